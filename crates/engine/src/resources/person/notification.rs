//! Notifications of a person, with their messages, tasks and suppressions.

use std::sync::Arc;

use domain::ids::TaskId;
use domain::message::Message;
use domain::notification::{Notification, Ordinal};
use domain::person::{Erasure, addresses_of, addresses_of_message};
use domain::task::Task;
use domain::vocabulary::Channel;
use store::{Range, ReadRecords, Referent, WriteRecords, if_readable, layout};

use super::{AT_A_TIME, Eraser, OF_NOTIFICATION, run_of, suppressions_of};
use crate::Result;
use crate::resources::{messages, notifications, suppressions};
use crate::tx::View;

impl Eraser<'_, '_> {
    // Removes a notification with its messages and tasks, and the subscriber from its trigger. Returns
    // `false` if that has to go on in another transaction, because the windows of its digests have many events,
    // or its trigger has many runs.
    pub(super) fn notification(&mut self, ordinal: Ordinal, erased: &mut Erasure) -> Result<bool> {
        self.left = self.left.saturating_sub(OF_NOTIFICATION);
        let key = layout::notification(self.tx.environment_id(), ordinal);
        let found = self.tx.find::<Notification>(&key)?;
        let own = &self.person.own;
        let Some(notification) = found.filter(|found| own.contains(&found.subscriber_id)) else {
            return Ok(true);
        };
        for window in notification.windows() {
            let limit = self.left.max(1);
            let events = self.window(window, &mut Vec::new(), limit)?;
            self.left = self.left.saturating_sub(events);
            if events == limit {
                self.left = 0;
                return Ok(false);
            }
        }
        let cleared = std::slice::from_ref(&notification);
        if notifications::clear_runs(self.tx, cleared, &mut self.guard)? {
            self.left = 0;
            return Ok(false);
        }
        self.tasks(&notification)?;
        self.messages(ordinal, erased)?;
        self.suppressions(addresses_of(&notification), erased)?;
        if let Some(before) = run_of(self.tx, &notification)?
            && let Some(rest) = before.without(&self.person.id)
        {
            self.tx.replace(&before, &rest)?;
            erased.triggers += u64::from(!rest.receipt.notifications.is_empty());
        }
        let engine = self.tx.engine().clone();
        engine.activity().delete(self.tx, &notification)?;
        erased.notifications += 1;
        Ok(true)
    }

    // Removes the tasks of the jobs, sends and windows of a notification.
    fn tasks(&mut self, notification: &Notification) -> Result<()> {
        for job in &notification.jobs {
            let window = job.digest.as_ref().and_then(|digest| digest.window_id);
            for id in job.task_ids().chain(window.map(TaskId::from)) {
                self.task(id)?;
            }
        }
        Ok(())
    }

    pub(super) fn task(&mut self, id: TaskId) -> Result<()> {
        let key = layout::task(self.tx.environment_id(), id);
        match if_readable(self.tx.find::<Task>(&key))? {
            Some(Some(task)) => self.tx.remove(&task)?,
            Some(None) => {}
            None => self.tx.delete_key(&key)?,
        }
        Ok(())
    }

    // Removes the messages of a notification, and the addresses of the suppressions that they have.
    fn messages(&mut self, ordinal: Ordinal, erased: &mut Erasure) -> Result<()> {
        let all = layout::messages_of_one(self.tx.environment_id(), ordinal);
        self.remove_messages(&all, usize::MAX, erased).map(drop)
    }

    // Removes these addresses from their suppressions.
    fn suppressions(
        &mut self,
        addresses: impl IntoIterator<Item = (Channel, String)>,
        erased: &mut Erasure,
    ) -> Result<()> {
        for (channel, text) in addresses {
            for found in suppressions_of(self.tx, channel, text)? {
                erased.suppressions += u64::from(suppressions::erase(self.tx, &found)?);
            }
        }
        Ok(())
    }

    // Removes the messages that the notifications have left, whose own may be gone. What is removed is not
    // found again, so there is no key to go on behind.
    pub(super) fn left_messages(&mut self, erased: &mut Erasure) -> Result<Option<Vec<u8>>> {
        let limit = AT_A_TIME / OF_NOTIFICATION;
        for own in &Arc::clone(&self.person).own {
            let all = layout::message_lists(self.tx.environment_id(), *own).range();
            let found = self.remove_messages(&all, limit, erased)?;
            self.left = self.left.saturating_sub(found * OF_NOTIFICATION);
            // There may be more.
            if found == limit {
                return Ok(Some(Vec::new()));
            }
        }
        Ok(None)
    }

    // Removes messages, also those that cannot be read, and the addresses of the suppressions that they
    // have. Returns the number of the entries that were found. If there may be more, notes the first one. Index
    // entries of what cannot be read are removed with the subscriber.
    fn remove_messages(
        &mut self,
        range: &Range<Message>,
        limit: usize,
        erased: &mut Erasure,
    ) -> Result<usize> {
        let found = store::dependents(&*self.tx, range, limit)?;
        let count = found.len();
        if let Some(first) = found.first().filter(|_| count == limit) {
            self.guard.note(range.table(), &first.key)?;
        }
        for entry in found {
            match &entry.referent {
                Referent::Record(message) => messages::remove(self.tx, message)?,
                Referent::Other(_) | Referent::Unreadable(_) | Referent::Missing => {
                    entry.take_out(self.tx, range)?;
                }
            }
            erased.messages +=
                u64::from(matches!(entry.referent, Referent::Record(_) | Referent::Unreadable(_)));
            self.suppressions(entry.record().into_iter().flat_map(addresses_of_message), erased)?;
        }
        Ok(count)
    }
}
