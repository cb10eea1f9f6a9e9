//! Everything about one person: its export, and its erasure.

mod answers;
mod notification;
mod ongoing_erasures;
mod subject;
mod tables;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use domain::endpoint::ChannelEndpoint;
use domain::ids::SubscriberId;
use domain::notification::Notification;
use domain::person::{Erasure, PersonalData, PersonalIdentifiers};
use domain::subscriber::Subscriber;
use domain::suppression::{SuppressedAddress, Suppression};
use domain::trigger::{AcceptedTrigger, TriggerRecipients};
use domain::vocabulary::Channel;
use store::{
    OnProgress, Order, Progress, ReadRecords, Step, Table, WriteScope, if_readable, layout,
};

use crate::resources::cascade::{Damaged, Removed};
use crate::resources::removal_guard::RemovalGuard;
use crate::resources::{subscribers, suppressions};
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

pub(crate) use self::ongoing_erasures::OngoingErasures;
use self::subject::{
    Person, begun, channels_of, naming, next_of, of_subscriber, readable_channels_of,
};
use self::tables::Rows;

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
    guard: RemovalGuard,
    erased: Erasure,
    /// How many rows the transactions have looked at.
    rows: u64,
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
    /// `event` is the key of the last event that was removed from the window of the next bucket.
    Buckets {
        after: Vec<u8>,
        event: Vec<u8>,
    },
    Rows(Rows, Vec<u8>),
    Subscriber(Removed),
}

impl Part {
    // The first part that looks at a table.
    const fn of_tables() -> Self {
        Self::Buckets { after: Vec::new(), event: Vec::new() }
    }

    const fn table(&self) -> Table {
        match self {
            Self::Notifications(_) => Table::Notifications,
            Self::Buckets { .. } => Table::DigestBuckets,
            Self::Rows(rows, _) => rows.table(),
            Self::Subscriber(_) => Table::Subscribers,
        }
    }
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
        let names = |recipients: &TriggerRecipients| recipients.has(id);
        view.each_wanted(environment, &all, names, |accepted| {
            receipts.push(accepted.receipt.only(id));
        })?;
        let mut suppressions = suppressed(view, id, Some(&subscriber))?;
        for former in naming(view, id)? {
            if !suppressions.contains(&former) {
                suppressions.push(former);
            }
        }
        let suppressions = suppressions.into_iter().map(|one| one.only(id));
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
            .with_suppressions(suppressions.collect()))
    })
}

/// Erases everything about a subscriber. Calls `progress` between two transactions, and ends if it breaks.
pub(super) fn erase(
    scope: &Scope,
    id: &SubscriberId,
    progress: &mut OnProgress<'_>,
) -> Result<Erasure> {
    let start = begun(scope, id)?;
    let mut told = |at: Erasing| {
        Ok(match progress(Progress::of_rows(at.part.table(), at.rows)) {
            ControlFlow::Continue(()) => Step::More(at),
            ControlFlow::Break(()) => Step::Done(at.erased),
        })
    };
    let erased =
        scope.write_in_steps_with("subscribers.erase", id, (start, &mut told), |tx, before| {
            let mut work = Eraser::new(tx, before)?;
            let mut erasing = before.clone();
            while work.left > 0 {
                match work.step(erasing)? {
                    Step::More(next) => erasing = next,
                    Step::Done(result) => return Ok(Step::Done(result)),
                }
            }
            let rows = before.rows + (AT_A_TIME - work.left) as u64;
            Ok(Step::More(Erasing { person: work.person, guard: work.guard, rows, ..erasing }))
        });
    // An erasure that was interrupted here before finds nothing.
    if matches!(erased, Ok(_) | Err(Error::NotFound { .. })) {
        scope.engine.store().forget_history(WriteScope::Environment(scope.environment_id()))?;
    }
    erased
}

// The trigger of a notification, or the run of it to which the notification belongs. Returns `None` if it
// cannot be read.
fn run_of(view: &dyn View, notification: &Notification) -> Result<Option<AcceptedTrigger>> {
    let (id, ordinal) = (&notification.transaction_id, notification.id.ordinal());
    let range = layout::runs_until(view.environment_id(), id, ordinal);
    let runs = if_readable(view.first::<AcceptedTrigger>(&range, Order::Descending, 1))?;
    Ok(runs.and_then(|mut runs| runs.pop()))
}

// The suppressions of the addresses of a subscriber and of the endpoints under its id.
fn suppressed(
    view: &dyn View,
    id: &SubscriberId,
    subscriber: Option<&Subscriber>,
) -> Result<Vec<Suppression>> {
    let (_, endpoints) = readable_channels_of(view, id)?;
    let numbers = endpoints.iter().filter_map(ChannelEndpoint::address);
    let own = subscriber.into_iter().flat_map(|found| found.profile.addresses());
    let addresses: BTreeSet<_> = own.chain(numbers).collect();
    let mut found = Vec::new();
    for (channel, text) in addresses {
        found.extend(suppressions_of(view, channel, text)?);
    }
    Ok(found)
}

fn suppressions_of(view: &dyn View, channel: Channel, text: String) -> Result<Vec<Suppression>> {
    // A phone number of a subscriber may be any text.
    SuppressedAddress::new(channel, text)
        .map_or(Ok(Vec::new()), |address| suppressions::find_all(view, &address))
}

struct Eraser<'e, 't> {
    tx: &'e mut Tx<'t>,
    person: Arc<Person>,
    /// The subscriber who has the id, unless its record is gone.
    subscriber: Option<Subscriber>,
    identifiers: PersonalIdentifiers,
    /// The messages, events or runs that were removed last.
    guard: RemovalGuard,
    left: usize,
}

impl<'e, 't> Eraser<'e, 't> {
    fn new(tx: &'e mut Tx<'t>, before: &Erasing) -> Result<Self> {
        let (mut person, guard) = (Arc::clone(&before.person), before.guard.clone());
        let subscriber = subscribers::find(tx, &person.id)?;
        // It may have been created since the erasure has begun.
        if let Some(found) = subscriber.as_ref().filter(|found| !person.own.contains(&found.id)) {
            Arc::make_mut(&mut person).own.insert(found.id);
        }
        let identifiers = person.personal_identifiers(subscriber.as_ref());
        Ok(Self { tx, person, subscriber, identifiers, guard, left: AT_A_TIME })
    }

    // Does a part, or as much of it as is left for this transaction.
    fn step(&mut self, mut at: Erasing) -> Result<Step<Erasing, Erasure>> {
        let erased = &mut at.erased;
        at.part = match at.part {
            Part::Notifications(0) => Part::of_tables(),
            Part::Notifications(left) => {
                let ordinal = at.person.notifications.get(left - 1);
                let is_gone =
                    ordinal.map_or(Ok(true), |ordinal| self.notification(*ordinal, erased))?;
                Part::Notifications(left - usize::from(is_gone))
            }
            Part::Buckets { after, event } => {
                let first = Part::Rows(Rows::Tasks, Vec::new());
                self.buckets(after, event, erased)?.unwrap_or(first)
            }
            Part::Rows(rows, after) => match (self.rows_of(rows, after, erased)?, rows.next()) {
                (Some(after), _) => Part::Rows(rows, after),
                (None, Some(next)) => Part::Rows(next, Vec::new()),
                (None, None) => Part::Subscriber(Removed::default()),
            },
            Part::Subscriber(before) => {
                match self.last(before, (&mut at.seen, &mut at.again), erased)? {
                    Step::Done(()) => return Ok(Step::Done(at.erased.finished())),
                    Step::More(part) => part,
                }
            }
        };
        Ok(Step::More(at))
    }

    // Adds to what the person is recognized by.
    fn learn(&mut self, add: impl FnOnce(&mut Person)) {
        add(Arc::make_mut(&mut self.person));
        self.identifiers = self.person.personal_identifiers(self.subscriber.as_ref());
    }

    // Removes the present addresses of the subscriber from their suppressions.
    fn own_suppressions(&mut self, erased: &mut Erasure) -> Result<()> {
        for found in suppressed(self.tx, &self.person.id, self.subscriber.as_ref())? {
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
            return Ok(Step::More(Part::of_tables()));
        }
        let is_more = later.is_more()
            || self.answered_here(&mut seen.own, erased)?.is_more()
            || self.answered(&mut seen.answered, erased)?.is_more();
        if is_more {
            return Ok(Step::More(Part::Subscriber(before)));
        }
        self.own_suppressions(erased)?;
        Ok(self.end(&before, *erased)?.map_more(Part::Subscriber))
    }

    // Removes the subscriber, and what those without a record have left. A person of whom nothing was
    // there is refused.
    fn end(&mut self, before: &Removed, erased: Erasure) -> Result<Step<Removed, ()>> {
        self.left = 0;
        let id = &self.person.id;
        let own: Vec<_> = self.person.own.iter().copied().collect();
        match subscribers::removal(self.tx, id, &own, before, Damaged::Erased)? {
            Step::More(removed) => Ok(Step::More(removed)),
            Step::Done(false) if erased == Erasure::default() => {
                Err(Error::not_found(Entity::Subscriber, id))
            }
            Step::Done(_) => Ok(Step::Done(())),
        }
    }

    // Removes notifications that were triggered since the erasure has begun.
    fn later(&mut self, after: &mut Vec<u8>, erased: &mut Erasure) -> Result<Step> {
        let limit = AT_A_TIME / OF_NOTIFICATION;
        let (found, last) = next_of(self.tx, &self.person, after, limit)?;
        let ordinals: Vec<_> = found.iter().map(|found| found.ordinal).collect();
        if !found.is_empty() {
            self.learn(|person| person.add(found));
        }
        for ordinal in ordinals {
            if !self.notification(ordinal, erased)? {
                return Ok(Step::More(()));
            }
        }
        let Some(last) = last else { return Ok(Step::Done(())) };
        self.left = self.left.saturating_sub(limit);
        *after = last;
        Ok(Step::More(()))
    }
}
