//! The tables that an erasure looks through, and what it removes from them.

use std::ops::ControlFlow;
use std::sync::Arc;

use domain::digest::{DigestBucket, ThrottleSlot, WindowEvent};
use domain::ids::DigestWindowId;
use domain::notification::Notification;
use domain::person::Erasure;
use domain::quarantine::Quarantined;
use domain::suppression::Suppression;
use domain::task::{SendWork, Task, Work};
use domain::trigger::{FanOut, TriggerRecipients};
use store::{
    Codec, Order, Prefix, Range, ReadRecords, Record, Referent, Snapshot, Table, WriteRecords,
    if_readable, layout,
};

use super::subject::address_of;
use super::{AT_A_TIME, Eraser, Part};
use crate::pipeline::sweep::{has_something_left, remove_triggers};
use crate::resources::{notifications, subscribers, suppressions};
use crate::tx::View;
use crate::{Result, damage};

/// Rows that are looked at one after the other, in the order of the variants.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rows {
    Tasks,
    Answers,
    FanOuts,
    Messages,
    Triggers,
    Events,
    Slots,
    Quarantine,
    Suppressions,
}

impl Rows {
    /// Returns the table of the rows.
    pub(super) const fn table(self) -> Table {
        match self {
            Self::Tasks => Table::Tasks,
            Self::Answers => Table::StoredAnswers,
            Self::FanOuts => Table::FanOuts,
            Self::Messages => Table::Messages,
            Self::Triggers => Table::Triggers,
            Self::Events => Table::DigestEvents,
            Self::Slots => Table::ThrottleSlots,
            Self::Quarantine => Table::Quarantine,
            Self::Suppressions => Table::Suppressions,
        }
    }

    /// Returns the rows that come next. Returns `None` behind the last ones.
    pub(super) const fn next(self) -> Option<Self> {
        Some(match self {
            Self::Tasks => Self::Answers,
            Self::Answers => Self::FanOuts,
            Self::FanOuts => Self::Messages,
            Self::Messages => Self::Triggers,
            Self::Triggers => Self::Events,
            Self::Events => Self::Slots,
            Self::Slots => Self::Quarantine,
            Self::Quarantine => Self::Suppressions,
            Self::Suppressions => return None,
        })
    }
}

impl Eraser<'_, '_> {
    /// Looks at the next rows behind a key. Returns the key of the last one. Returns `None` at the end.
    pub(super) fn rows_of(
        &mut self,
        rows: Rows,
        after: Vec<u8>,
        erased: &mut Erasure,
    ) -> Result<Option<Vec<u8>>> {
        match rows {
            Rows::Tasks => self.orphans(after, erased),
            Rows::Answers => self.answers(after, erased),
            Rows::FanOuts => self.fan_outs(after, erased),
            Rows::Messages => self.left_messages(erased),
            Rows::Triggers => self.triggers(after, erased),
            Rows::Events => self.events(after, erased),
            Rows::Slots => self.slots(after, erased),
            Rows::Quarantine => self.quarantine(after, erased),
            Rows::Suppressions => self.former_suppressions(after, erased),
        }
    }

    // Removes the addresses of suppressions that name the subscriber. Those that the erasure did not know
    // are in answers that were stored since it has begun.
    fn former_suppressions(
        &mut self,
        after: Vec<u8>,
        erased: &mut Erasure,
    ) -> Result<Option<Vec<u8>>> {
        let all = layout::suppressions(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<Suppression>(all, after)?;
        let person = Arc::clone(&self.person);
        for row in rows.iter().filter(|row| row.subscriber_ids.contains(&person.id)) {
            self.learn(|person| person.add_addresses([address_of(row)]));
            erased.suppressions += u64::from(suppressions::erase(self.tx, row)?);
        }
        Ok(after)
    }

    // Removes the tasks whose notification is gone, but for those of windows, which other events may wait
    // for. They would end without it.
    fn orphans(&mut self, after: Vec<u8>, erased: &mut Erasure) -> Result<Option<Vec<u8>>> {
        let all = layout::tasks(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<Task>(all, after)?;
        for task in &rows {
            let (Work::Turn { notification_id }
            | Work::Send(SendWork { notification_id, .. })
            | Work::Call { notification_id, .. }) = &task.work
            else {
                continue;
            };
            let key = layout::notification(task.environment_id, notification_id.ordinal());
            if matches!(if_readable(self.tx.find::<Notification>(&key))?, Some(None)) {
                self.tx.remove(task)?;
                erased.orphans += 1;
            }
        }
        Ok(after)
    }

    // Removes the person from events whose recipients are still being notified. An event excludes its actor and
    // the recipients that it names from its topics. So the subscriber is marked as deleted, and chunks exclude it.
    fn fan_outs(&mut self, after: Vec<u8>, erased: &mut Erasure) -> Result<Option<Vec<u8>>> {
        let all = layout::fan_outs(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<FanOut>(all, after)?;
        let mut is_named = false;
        for before in rows {
            if let Some(rest) = before.without(&self.person.id) {
                self.tx.replace(&before, &rest)?;
                erased.triggers += 1;
                is_named = true;
            }
        }
        if is_named {
            subscribers::mark(self.tx, &self.person.id)?;
        }
        Ok(after)
    }

    // Removes the person from triggers whose notification is gone. A trigger that can have notified nobody else
    // is removed, if nothing of it is left.
    fn triggers(&mut self, after: Vec<u8>, erased: &mut Erasure) -> Result<Option<Vec<u8>>> {
        let environment = self.tx.environment_id();
        let all = layout::triggers(environment).range();
        let id = self.person.id.clone();
        let (rows, after) = self.rows_by(all, after, |codec, key, value| {
            codec.decode_if(environment, (key, value), |named: &TriggerRecipients| named.has(&id))
        })?;
        for before in rows {
            let Some(rest) = before.without(&self.person.id) else { continue };
            self.tx.replace(&before, &rest)?;
            let receipt = &rest.receipt;
            let has_others = receipt.continues
                || receipt.topics.created > 0
                || !receipt.notifications.is_empty();
            let is_left = || {
                let runs = std::slice::from_ref(&rest);
                let left = has_something_left(self.tx, &receipt.transaction_id, runs);
                // What cannot be read is left.
                damage::if_readable(left).map(|left| left.unwrap_or(true))
            };
            if !has_others && !is_left()? {
                remove_triggers(self.tx, &[rest])?;
            } else {
                erased.triggers += 1;
            }
        }
        Ok(after)
    }

    // Removes the events of windows of which the notification is gone: it was that of the person, or is one
    // that no digest shows any more.
    fn events(&mut self, after: Vec<u8>, erased: &mut Erasure) -> Result<Option<Vec<u8>>> {
        let all = layout::all_digest_events(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<WindowEvent>(all, after)?;
        for event in &rows {
            if !notifications::exists(self.tx, event.notification_id)? {
                self.tx.remove(event)?;
                erased.orphans += 1;
            }
        }
        Ok(after)
    }

    pub(super) fn buckets(
        &mut self,
        after: Vec<u8>,
        mut event: Vec<u8>,
        erased: &mut Erasure,
    ) -> Result<Option<Part>> {
        let all = layout::digest_buckets(self.tx.environment_id()).range();
        let (rows, last) = self.rows::<DigestBucket>(all, after.clone())?;
        let (mut passed, mut events) = (after, 0);
        for bucket in &rows {
            if self.person.own.contains(&bucket.id.subscriber_id) {
                if let Some(window) = &bucket.window {
                    events += self.window(window.id, &mut event, AT_A_TIME - events)?;
                }
                // The window may have more.
                if events == AT_A_TIME {
                    self.left = 0;
                    return Ok(Some(Part::Buckets { after: passed, event }));
                }
                if let Some(window) = &bucket.window {
                    self.task(window.id.into())?;
                }
                self.tx.remove(bucket)?;
                erased.windows += 1;
            }
            event.clear();
            passed = bucket.key().as_bytes().to_vec();
        }
        Ok(last.map(|after| Part::Buckets { after, event: Vec::new() }))
    }

    // Removes the next events of a window, behind a key. Returns their number. If there may be more, notes the
    // first one.
    pub(super) fn window(
        &mut self,
        id: DigestWindowId,
        after: &mut Vec<u8>,
        limit: usize,
    ) -> Result<usize> {
        let events = layout::digest_events(self.tx.environment_id(), id).range().resumed(after);
        let found = store::dependents(&*self.tx, &events, limit)?;
        if let Some(first) = found.first().filter(|_| found.len() == limit) {
            self.guard.note(events.table(), &first.key)?;
        }
        for entry in &found {
            match &entry.referent {
                Referent::Record(event) => self.tx.remove(event)?,
                Referent::Other(_) | Referent::Unreadable(_) | Referent::Missing => {
                    entry.take_out(self.tx, &events)?;
                }
            }
            after.clone_from(&entry.key);
        }
        Ok(found.len())
    }

    fn slots(&mut self, after: Vec<u8>, erased: &mut Erasure) -> Result<Option<Vec<u8>>> {
        let all = layout::all_throttle_slots(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<ThrottleSlot>(all, after)?;
        let own = &self.person.own;
        for slot in rows.iter().filter(|row| own.contains(&row.id.subscriber_id)) {
            self.tx.remove(slot)?;
            erased.windows += 1;
        }
        Ok(after)
    }

    fn quarantine(&mut self, after: Vec<u8>, erased: &mut Erasure) -> Result<Option<Vec<u8>>> {
        let environment = self.tx.environment_id();
        let all = Prefix::<Quarantined>::of_all().range();
        let (rows, after) = self.rows::<Quarantined>(all, after)?;
        for entry in rows.iter().filter(|row| row.environment_id == environment) {
            if self.person.is_in(entry, &self.identifiers) {
                self.tx.remove(entry)?;
                erased.quarantined += 1;
            }
        }
        Ok(after)
    }

    // The next rows of a range that can be read, and the key of the last one. `None` at the end.
    pub(super) fn rows<R: Record>(
        &mut self,
        range: Range<R>,
        after: Vec<u8>,
    ) -> Result<(Vec<R>, Option<Vec<u8>>)> {
        self.rows_by(range, after, |codec, key, value| codec.decode(key, value).ok())
    }

    // The records that `read` finds in the next rows of a range, and the key of the last row. `None` at the
    // end.
    pub(super) fn rows_by<R>(
        &mut self,
        range: Range<R>,
        after: Vec<u8>,
        read: impl Fn(Codec<'_>, &[u8], &[u8]) -> Option<R>,
    ) -> Result<(Vec<R>, Option<Vec<u8>>)> {
        let (mut rows, mut looked, limit) = (Vec::new(), 0, self.left);
        let (range, mut last) = (range.resumed(&after), after);
        let codec = self.tx.codec();
        self.tx.scan_bytes(&range, Order::Ascending, Some(limit), &mut |key, value| {
            looked += 1;
            last = key.to_vec();
            rows.extend(read(codec, key, value));
            ControlFlow::Continue(())
        })?;
        self.left -= looked;
        Ok((rows, (looked == limit).then_some(last)))
    }
}
