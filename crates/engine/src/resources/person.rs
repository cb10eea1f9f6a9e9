//! Everything about one person: its export, and its erasure.

mod meanwhile;
mod whose;

use std::ops::ControlFlow;
use std::sync::Arc;

use domain::digest::{DigestBucket, ThrottleSlot, WindowEvent};
use domain::idempotency::{CallOutcome, StoredAnswer};
use domain::ids::{DigestWindowId, SubscriberId, TaskId};
use domain::message::Message;
use domain::notification::{Notification, Ordinal};
use domain::person::{Erasure, PersonalData, Traces, addresses_of, addresses_of_message};
use domain::quarantine::Quarantined;
use domain::subscriber::Subscriber;
use domain::suppression::{SuppressedAddress, Suppression};
use domain::task::{Task, Work};
use domain::trigger::{AcceptedTrigger, FanOut};
use domain::vocabulary::Channel;
use store::{
    Lead, Order, Prefix, Range, ReadRecords, Record, Snapshot, WriteRecords, if_readable, layout,
};
use uuid::Uuid;

use crate::damage;
use crate::idempotency::Step;
use crate::pipeline::sweep::{has_something_left, remove_triggers};
use crate::resources::cascade::{Damaged, Removed};
use crate::resources::{messages, notifications, subscribers, suppressions};
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

pub(crate) use self::meanwhile::Meanwhile;
use self::whose::{Person, begun, channels_of, each_behind, of_subscriber};

/// Largest number of rows that one transaction looks at. A notification counts for several.
const AT_A_TIME: usize = 512;

/// Rows that a notification with its messages and tasks counts for.
const OF_NOTIFICATION: usize = 8;

/// Largest number of times that an erasure looks at a table. A host that triggers events for the person
/// all the time does not keep it from its end.
const LOOKS: u32 = 8;

/// How far an erasure is.
#[derive(Clone, Debug)]
struct Erasing {
    person: Arc<Person>,
    seen: Seen,
    /// How often each table was looked at again, for what was triggered meanwhile.
    again: u32,
    part: Part,
    erased: Erasure,
}

/// What was looked at of that which came meanwhile.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// The key of the last notification, also if its ordinal cannot be read.
    later: Vec<u8>,
    /// The number of the answers of this process.
    own: usize,
    /// The index key of the last answer, by the time of its call. Other processes store some as well.
    answered: Vec<u8>,
}

// Part of an erasure, in their order. Bytes are the key of the last row that was looked at.
#[derive(Clone, Debug)]
enum Part {
    /// How many of the person's notifications are left.
    Notifications(usize),
    Tasks(Vec<u8>),
    Answers(Vec<u8>),
    FanOuts(Vec<u8>),
    Messages,
    Triggers(Vec<u8>),
    /// `event` is the key of the last event that was removed from the window of the next bucket.
    Buckets {
        after: Vec<u8>,
        event: Vec<u8>,
    },
    Events(Vec<u8>),
    Slots(Vec<u8>),
    Quarantine(Vec<u8>),
    Suppressions(Vec<u8>),
    Subscriber(Removed),
}

/// The personal data of a subscriber.
pub(super) fn export(scope: &Scope, id: &SubscriberId) -> Result<PersonalData> {
    scope.read("subscribers.export", |view| {
        let subscriber = subscribers::get(view, id)?;
        let (environment, own) = (view.environment_id(), subscriber.id);
        let (connections, endpoints) = channels_of(view, id)?;
        let ordinals = of_subscriber(view, &subscriber)?;
        let keys = ordinals.iter().map(|ordinal| layout::notification(environment, *ordinal));
        let found = view.find_many::<Notification>(&keys.collect::<Vec<_>>())?;
        let notifications: Vec<_> = found.into_iter().flatten().collect();
        // The notifications of some are gone.
        let (mut receipts, all) = (Vec::new(), layout::triggers(environment).range());
        view.each_readable::<AcceptedTrigger>(&all, Order::Ascending, |accepted| {
            let receipt = accepted.receipt.only(id);
            receipts.extend(Some(receipt).filter(|receipt| !receipt.notifications.is_empty()));
            ControlFlow::Continue(())
        })?;
        let suppressed = suppressed(view, &subscriber)?.into_iter();
        Ok(PersonalData::new(subscriber.clone())
            .with_settings(
                view.all(&layout::preferences(environment, own))?,
                view.all(&layout::subscriber_subscriptions(environment, own))?,
            )
            .with_channels(connections, endpoints)
            .with_activity(
                notifications,
                view.all(&layout::message_lists(environment, own))?,
                receipts,
            )
            .with_suppressions(suppressed.map(|one| one.only(id)).collect()))
    })
}

/// Erases everything about a subscriber. Calls `progress` between two transactions.
pub(super) fn erase(
    scope: &Scope,
    id: &SubscriberId,
    progress: &mut dyn FnMut(Erasure),
) -> Result<Erasure> {
    let start = begun(scope, id)?;
    let mut told = |at: &Erasing| progress(at.erased);
    scope.write_in_told_steps("subscribers.erase", id, (start, &mut told), |tx, before| {
        let person = Arc::clone(&before.person);
        let found = subscribers::find(tx, id)?;
        let subscriber = found.filter(|found| person.own.contains(&found.id));
        let traces = person.traces(subscriber.as_ref());
        let mut work = Eraser { tx, person, subscriber, traces, left: AT_A_TIME };
        let mut erasing = before.clone();
        while work.left > 0 {
            match work.step(erasing)? {
                Step::More(next) => erasing = next,
                Step::Done(result) => return Ok(Step::Done(result)),
            }
        }
        Ok(Step::More(erasing))
    })
}

// The trigger of a notification, or the run of it to which the notification belongs.
fn run_of(view: &dyn View, notification: &Notification) -> Result<Option<AcceptedTrigger>> {
    let (id, ordinal) = (&notification.transaction_id, notification.id.ordinal());
    let range = layout::runs_until(view.environment_id(), id, ordinal);
    Ok(view.first::<AcceptedTrigger>(&range, Order::Descending, 1)?.pop())
}

// The suppressions of the addresses of a subscriber.
fn suppressed(view: &dyn View, subscriber: &Subscriber) -> Result<Vec<Suppression>> {
    let mut found = Vec::new();
    for (channel, text) in subscriber.profile.addresses() {
        found.extend(suppression_of(view, channel, text)?);
    }
    Ok(found)
}

fn suppression_of(view: &dyn View, channel: Channel, text: String) -> Result<Option<Suppression>> {
    // A phone number of a subscriber may be any text.
    SuppressedAddress::new(channel, text)
        .map_or(Ok(None), |address| suppressions::find(view, &address))
}

struct Eraser<'e, 't> {
    tx: &'e mut Tx<'t>,
    person: Arc<Person>,
    /// The subscriber, unless the person was deleted before.
    subscriber: Option<Subscriber>,
    traces: Traces,
    left: usize,
}

impl Eraser<'_, '_> {
    // Does a part, or as much of it as is left for this transaction.
    fn step(&mut self, mut at: Erasing) -> Result<Step<Erasing, Erasure>> {
        let erased = &mut at.erased;
        at.part = match at.part {
            Part::Notifications(0) => Part::Tasks(Vec::new()),
            Part::Notifications(left) => {
                let ordinal = at.person.notifications.get(left - 1);
                let is_gone =
                    ordinal.map_or(Ok(true), |ordinal| self.notification(*ordinal, erased))?;
                Part::Notifications(left - usize::from(is_gone))
            }
            Part::Tasks(after) => {
                self.orphans(after)?.map_or(Part::Answers(Vec::new()), Part::Tasks)
            }
            Part::Answers(after) => {
                self.answers(after, erased)?.map_or(Part::FanOuts(Vec::new()), Part::Answers)
            }
            Part::FanOuts(after) => {
                self.fan_outs(after, erased)?.map_or(Part::Messages, Part::FanOuts)
            }
            Part::Messages => match self.left_messages(erased)? {
                ControlFlow::Continue(()) => Part::Messages,
                ControlFlow::Break(()) => Part::Triggers(Vec::new()),
            },
            Part::Triggers(after) => {
                let first = Part::Buckets { after: Vec::new(), event: Vec::new() };
                self.triggers(after, erased)?.map_or(first, Part::Triggers)
            }
            Part::Buckets { after, event } => {
                self.buckets(after, event, erased)?.unwrap_or(Part::Events(Vec::new()))
            }
            Part::Events(after) => {
                self.events(after)?.map_or(Part::Slots(Vec::new()), Part::Events)
            }
            Part::Slots(after) => {
                self.slots(after, erased)?.map_or(Part::Quarantine(Vec::new()), Part::Slots)
            }
            Part::Quarantine(after) => {
                let next = Part::Suppressions(Vec::new());
                self.quarantine(after, erased)?.map_or(next, Part::Quarantine)
            }
            Part::Suppressions(after) => {
                let next = Part::Subscriber(Removed::default());
                self.former_suppressions(after, erased)?.map_or(next, Part::Suppressions)
            }
            Part::Subscriber(before) => {
                match self.last(before, (&mut at.seen, &mut at.again), erased)? {
                    Step::Done(()) => return Ok(Step::Done(at.erased)),
                    Step::More(part) => part,
                }
            }
        };
        Ok(Step::More(at))
    }

    // Removes the addresses of suppressions that name the subscriber.
    fn former_suppressions(
        &mut self,
        after: Vec<u8>,
        erased: &mut Erasure,
    ) -> Result<Option<Vec<u8>>> {
        let all = layout::suppressions(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<Suppression>(all, after)?;
        for row in rows.iter().filter(|row| row.subscriber_ids.contains(&self.person.id)) {
            erased.suppressions += u64::from(suppressions::erase(self.tx, row)?);
        }
        Ok(after)
    }

    // Removes the present addresses of the subscriber from their suppressions.
    fn own_suppressions(&mut self, erased: &mut Erasure) -> Result<()> {
        let Some(subscriber) = &self.subscriber else { return Ok(()) };
        for found in suppressed(self.tx, subscriber)? {
            erased.suppressions += u64::from(suppressions::erase(self.tx, &found)?);
        }
        Ok(())
    }

    // Removes the subscriber in a transaction that has seen all notifications and answers.
    fn last(
        &mut self,
        before: Removed,
        (seen, again): (&mut Seen, &mut u32),
        erased: &mut Erasure,
    ) -> Result<Step<Part, ()>> {
        let known = erased.notifications;
        let later = self.later(&mut seen.later, erased)?;
        // Their events may have left rows in the tables that were looked at.
        if erased.notifications > known && *again + 1 < LOOKS {
            *again += 1;
            return Ok(Step::More(Part::Tasks(Vec::new())));
        }
        let is_more = later.is_continue()
            || self.answered_here(&mut seen.own, erased)?.is_continue()
            || self.answered(&mut seen.answered, erased)?.is_continue();
        if is_more {
            return Ok(Step::More(Part::Subscriber(before)));
        }
        self.own_suppressions(erased)?;
        Ok(match self.end(&before, *erased)? {
            Step::Done(()) => Step::Done(()),
            Step::More(removed) => Step::More(Part::Subscriber(removed)),
        })
    }

    // Removes the subscriber. A person of whom nothing was there is refused.
    fn end(&mut self, before: &Removed, erased: Erasure) -> Result<Step<Removed, ()>> {
        self.left = 0;
        match &self.subscriber {
            Some(own) => subscribers::removal(self.tx, own, before, Damaged::Erased),
            None if erased == Erasure::default() => {
                Err(Error::not_found(Entity::Subscriber, &self.person.id))
            }
            None => Ok(Step::Done(())),
        }
    }

    // Removes notifications that were triggered since the erasure has begun. Breaks at the end of all.
    fn later(&mut self, after: &mut Vec<u8>, erased: &mut Erasure) -> Result<ControlFlow<()>> {
        let own = &self.person.own;
        let mut found = Vec::new();
        let limit = AT_A_TIME / OF_NOTIFICATION;
        let last = each_behind(self.tx, after, limit, &mut |notification| {
            if own.contains(&notification.subscriber_id) {
                found.push(notification.id.ordinal());
            }
        })?;
        for ordinal in found {
            while !self.notification(ordinal, erased)? {}
        }
        let Some(last) = last else { return Ok(ControlFlow::Break(())) };
        self.left = self.left.saturating_sub(limit);
        *after = last;
        Ok(ControlFlow::Continue(()))
    }

    // Removes the tasks whose notification is gone, but for those of windows, which other events may wait
    // for. They would end without it.
    fn orphans(&mut self, after: Vec<u8>) -> Result<Option<Vec<u8>>> {
        let all = layout::tasks(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<Task>(all, after)?;
        for task in &rows {
            let (Work::Turn { notification_id }
            | Work::Send { notification_id, .. }
            | Work::Call { notification_id, .. }) = &task.work
            else {
                continue;
            };
            let key = layout::notification(task.environment_id, notification_id.ordinal());
            if matches!(if_readable(self.tx.find::<Notification>(&key))?, Some(None)) {
                self.tx.remove(task)?;
            }
        }
        Ok(after)
    }

    fn answers(&mut self, after: Vec<u8>, erased: &mut Erasure) -> Result<Option<Vec<u8>>> {
        let all = layout::stored_answers(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<StoredAnswer>(all, after)?;
        for answer in &rows {
            self.answer(answer, erased)?;
        }
        Ok(after)
    }

    // Removes answers that this process has stored since the erasure has begun, whatever the clock
    // has shown. Breaks at the end of all.
    fn answered_here(&mut self, seen: &mut usize, erased: &mut Erasure) -> Result<ControlFlow<()>> {
        let found = self.person.answered.behind(*seen, AT_A_TIME);
        for key in &found {
            let key = layout::stored_answer(self.tx.environment_id(), key);
            // An answer that cannot be read is about nobody that is known.
            if let Some(answer) = if_readable(self.tx.find::<StoredAnswer>(&key))?.flatten() {
                self.answer(&answer, erased)?;
            }
        }
        *seen += found.len();
        self.left = self.left.saturating_sub(found.len());
        let is_last = found.len() < AT_A_TIME;
        Ok(if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    // Removes answers to calls that have begun since the erasure has. Breaks at the end of all.
    fn answered(&mut self, after: &mut Vec<u8>, erased: &mut Erasure) -> Result<ControlFlow<()>> {
        let since = layout::answers_since(self.tx.environment_id(), self.person.since);
        let rest = since.resumed(after);
        let found = store::leads(self.tx, &rest, AT_A_TIME, layout::answer_of)?;
        for entry in &found {
            if let Lead::Record(answer) = &entry.lead {
                self.answer(answer, erased)?;
            }
        }
        self.left = self.left.saturating_sub(found.len());
        let Some(last) = found.last().filter(|_| found.len() == AT_A_TIME) else {
            return Ok(ControlFlow::Break(()));
        };
        after.clone_from(&last.key);
        Ok(ControlFlow::Continue(()))
    }

    fn answer(&mut self, answer: &StoredAnswer, erased: &mut Erasure) -> Result<()> {
        let is_about = match &answer.outcome {
            CallOutcome::Begun | CallOutcome::BegunAs(_) => false,
            CallOutcome::Done(json) => {
                self.traces.are_in(json) || self.traces.are_in_key(&answer.key)
            }
            CallOutcome::Refused(json) => {
                self.traces.are_in(json)
                    || self.traces.are_named_in(json)
                    || self.traces.are_in_key(&answer.key)
            }
        };
        if is_about {
            self.tx.remove(answer)?;
            erased.answers += 1;
        }
        Ok(())
    }

    fn fan_outs(&mut self, after: Vec<u8>, erased: &mut Erasure) -> Result<Option<Vec<u8>>> {
        let all = layout::fan_outs(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<FanOut>(all, after)?;
        for before in rows {
            if let Some(rest) = before.without(&self.person.id) {
                self.tx.replace(&before, &rest)?;
                erased.triggers += 1;
            }
        }
        Ok(after)
    }

    // Removes the messages that the notifications have left, whose own may be gone. Breaks at the end of all.
    fn left_messages(&mut self, erased: &mut Erasure) -> Result<ControlFlow<()>> {
        let Some(own) = self.subscriber.as_ref().map(|own| own.id) else {
            return Ok(ControlFlow::Break(()));
        };
        let (limit, all) =
            (AT_A_TIME / OF_NOTIFICATION, layout::message_lists(self.tx.environment_id(), own));
        let found: Vec<Message> = self.tx.readable(&all.range(), Order::Ascending, limit)?;
        self.left = self.left.saturating_sub(found.len() * OF_NOTIFICATION);
        let is_last = found.len() < limit;
        for message in found {
            messages::remove(self.tx, &message)?;
            erased.messages += 1;
            self.suppressions(addresses_of_message(message), erased)?;
        }
        Ok(if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    // Removes the person from triggers whose notification is gone. A trigger that names nobody any more is
    // removed, if nothing of it is left.
    fn triggers(&mut self, after: Vec<u8>, erased: &mut Erasure) -> Result<Option<Vec<u8>>> {
        let all = layout::triggers(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<AcceptedTrigger>(all, after)?;
        for before in rows {
            let Some(rest) = before.without(&self.person.id) else { continue };
            self.tx.replace(&before, &rest)?;
            let left = has_something_left(self.tx, &rest.receipt.transaction_id);
            // What cannot be read is left.
            let is_left = damage::if_readable(left)?.unwrap_or(true);
            if rest.receipt.notifications.is_empty() && !is_left {
                remove_triggers(self.tx, &[rest])?;
            } else {
                erased.triggers += 1;
            }
        }
        Ok(after)
    }

    // Removes the events of windows of which the notification is gone: it was that of the person, or is one
    // that no digest shows any more.
    fn events(&mut self, after: Vec<u8>) -> Result<Option<Vec<u8>>> {
        let all = layout::all_digest_events(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<WindowEvent>(all, after)?;
        for event in &rows {
            if !notifications::exists(self.tx, event.notification_id)? {
                self.tx.remove(event)?;
            }
        }
        Ok(after)
    }

    fn buckets(
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
                    self.task(Uuid::from(window.id).into())?;
                }
                self.tx.remove(bucket)?;
                erased.windows += 1;
            }
            event.clear();
            passed = bucket.key().as_bytes().to_vec();
        }
        Ok(last.map(|after| Part::Buckets { after, event: Vec::new() }))
    }

    // Removes the next events of a window, behind a key. Returns their number.
    fn window(&mut self, id: DigestWindowId, after: &mut Vec<u8>, limit: usize) -> Result<usize> {
        let events = layout::digest_events(self.tx.environment_id(), id).range().resumed(after);
        let found = self.tx.first::<WindowEvent>(&events, Order::Ascending, limit)?;
        for event in &found {
            self.tx.remove(event)?;
            *after = event.key().as_bytes().to_vec();
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
            if self.person.is_in(entry, &self.traces) {
                self.tx.remove(entry)?;
                erased.quarantined += 1;
            }
        }
        Ok(after)
    }

    // Removes a notification with its messages and tasks, and the subscriber from its trigger. Returns
    // `false` if that has to go on, because the window of its digest has many events.
    fn notification(&mut self, ordinal: Ordinal, erased: &mut Erasure) -> Result<bool> {
        self.left = self.left.saturating_sub(OF_NOTIFICATION);
        let key = layout::notification(self.tx.environment_id(), ordinal);
        let found = self.tx.find::<Notification>(&key)?;
        let own = &self.person.own;
        let Some(notification) = found.filter(|found| own.contains(&found.subscriber_id)) else {
            return Ok(true);
        };
        for window in notification.jobs.iter().filter_map(|job| job.digest.as_ref()?.window_id) {
            if self.window(window, &mut Vec::new(), AT_A_TIME)? == AT_A_TIME {
                self.left = 0;
                return Ok(false);
            }
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
            for id in job.task_ids().chain(window.map(|window| Uuid::from(window).into())) {
                self.task(id)?;
            }
        }
        Ok(())
    }

    fn task(&mut self, id: TaskId) -> Result<()> {
        let key = layout::task(self.tx.environment_id(), id);
        if let Some(task) = self.tx.find::<Task>(&key)? {
            self.tx.remove(&task)?;
        }
        Ok(())
    }

    // Removes the messages of a notification, and the addresses of the suppressions that they have.
    fn messages(&mut self, ordinal: Ordinal, erased: &mut Erasure) -> Result<()> {
        let of = ordinal.get()..ordinal.get().saturating_add(1);
        let all = layout::messages_of(self.tx.environment_id(), of);
        for message in self.tx.first(&all, Order::Ascending, usize::MAX)? {
            messages::remove(self.tx, &message)?;
            erased.messages += 1;
            self.suppressions(addresses_of_message(message), erased)?;
        }
        Ok(())
    }

    // Removes these addresses from their suppressions.
    fn suppressions(
        &mut self,
        addresses: impl IntoIterator<Item = (Channel, String)>,
        erased: &mut Erasure,
    ) -> Result<()> {
        for (channel, text) in addresses {
            if let Some(found) = suppression_of(self.tx, channel, text)? {
                erased.suppressions += u64::from(suppressions::erase(self.tx, &found)?);
            }
        }
        Ok(())
    }

    // The next rows of a range that can be read, and the key of the last one. `None` at the end.
    fn rows<R: Record>(
        &mut self,
        range: Range<R>,
        after: Vec<u8>,
    ) -> Result<(Vec<R>, Option<Vec<u8>>)> {
        let (mut rows, mut last, limit) = (Vec::new(), after.clone(), self.left);
        let range = range.resumed(&after);
        self.tx.scan_bytes(&range, Order::Ascending, Some(limit), &mut |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            last = key.to_vec();
            ControlFlow::Continue(())
        })?;
        let is_last = rows.len() < limit;
        self.left -= rows.len();
        let codec = self.tx.codec();
        let rows = rows.iter().filter_map(|(key, value)| codec.decode::<R>(key, value).ok());
        Ok((rows.collect(), (!is_last).then_some(last)))
    }
}
