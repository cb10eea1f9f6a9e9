//! Triggering workflows.

use std::slice;
use std::sync::Arc;

use activity::{Appender, Facets};
use domain::convert::IntoChecked;
use domain::event::Event;
use domain::ids::{EnvironmentId, SubscriberId, TransactionId};
use domain::notification::Notification;
use domain::subscriber::Subscriber;
use domain::time::Timestamp;
use domain::trigger::{
    AcceptedTrigger, Broadcast, CreatedNotification, Crowd, EventProgress, FanOut, FanOutState,
    Trigger, TriggerReceipt,
};
use store::layout::CountedList;
use store::{HostTransaction, Order, ReadKept, ReadRecords, Snapshot, WriteRecords, layout};

use crate::idempotency::StoredRefusal;
use crate::pipeline::apply::Course;
use crate::pipeline::current::{NamedRecords, prepared_again};
use crate::pipeline::fan_out::Source;
use crate::pipeline::planned::{FirstTurn, Others, PlannedRecipient, PlannedTrigger, Prepared};
use crate::pipeline::prepare::Reach;
use crate::pipeline::receipts::BulkReceipts;
use crate::pipeline::{bulk, chunk};
use crate::resources::{contexts, subscribers};
use crate::scope::Write;
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

/// Triggering the workflows of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::subscriber::SubscriberCreate;
/// use tidings::trigger::Trigger;
/// # use tidings::{step::Step, workflow::WorkflowCreate};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
/// let greeting = Trigger::new("greeting", "ada")?
///     .to(SubscriberCreate::new("grace")?.first_name("Grace"))?
///     .transaction_id("greeting-4711")?;
/// let receipt = env.events().trigger(&greeting)?;
/// assert_eq!(receipt.notifications.len(), 2);
/// // It happens once.
/// assert_eq!(env.events().trigger(&greeting)?, receipt);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Events<'s> {
    pub(crate) scope: &'s Scope,
}

impl Events<'_> {
    /// Triggers a workflow for its recipients. One transaction writes notifications, jobs and inbox
    /// messages. [`run_due`](crate::DeliveryQueue::run_due) sends the messages of other channels. A
    /// repeated transaction id changes nothing and returns the first receipt.
    ///
    /// An inactive workflow, or one without active steps, is no error: nothing is stored, and
    /// [`TriggerReceipt::status`] says why. Topics that do not exist are in
    /// [`TriggerReceipt::missing_topics`].
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such workflow; [`Error::Invalid`], if there is no
    /// recipient or there are more than 100, if a context is not well formed, if the schema of the
    /// workflow does not allow the payload, if the payload, the overrides or a subscriber are too
    /// large, if an override has no valid value or names a step that the workflow does not have, or if
    /// there is more content than [`Limits::content`](crate::limits::Limits::content).
    pub fn trigger(&self, trigger: &Trigger) -> Result<TriggerReceipt> {
        let receipt = self.scope.operation("events.trigger", || self.accept(trigger))?;
        self.scope.engine.tend_after_trigger(self.scope.environment_id());
        Ok(receipt)
    }

    /// Triggers a workflow, without upkeep of the activity index.
    pub(crate) fn accept(&self, trigger: &Trigger) -> Result<TriggerReceipt> {
        let (now, event) = (self.scope.engine.now(), (trigger, Reach::Recipients));
        let prepared = self.prepared(now, event)?;
        Write::new(self.scope, "events.trigger", now, trigger)?
            .once(|tx| accept_one(tx, event, &prepared))
    }

    /// Triggers a workflow in a transaction of the host: the rows of the host and the event are
    /// committed together, or neither. A store on the host's own database has such transactions, as
    /// `PostgresStore::join` of `tidings-store-postgres`.
    ///
    /// The transaction keeps other writers of the environment waiting until its end, also this
    /// thread, so trigger last. Workers and those who wait for an inbox hear of the event after the
    /// commit. An [observer](crate::Builder::observer) is not told of it, only of what workers do
    /// for it.
    ///
    /// # Errors
    ///
    /// As [`trigger`](Self::trigger). After [`Error::Store`], the host must roll its transaction back.
    /// Under an idempotency key, a refusal is not stored.
    pub fn trigger_in(
        &self,
        transaction: &mut dyn HostTransaction,
        trigger: &Trigger,
    ) -> Result<TriggerReceipt> {
        const NAME: &str = "events.trigger_in";
        let receipt = self.scope.operation(NAME, || {
            let (now, event) = (self.scope.engine.now(), (trigger, Reach::Recipients));
            let prepared = self.prepared(now, event)?;
            Write::new(self.scope, NAME, now, trigger)?
                .once_in_host(transaction, |tx| accept_one(tx, event, &prepared))
        })?;
        self.scope.engine.tend_later(self.scope.environment_id());
        Ok(receipt)
    }

    // Prepares the only event of a call.
    fn prepared(&self, now: Timestamp, event: (&Trigger, Reach)) -> Result<Prepared> {
        self.scope.prepare(now, |preparation| preparation.prepare(event, None))
    }

    /// Triggers up to 100 events, one behind the other. Each event happens as a whole, and the refusal
    /// of one does not affect the others: it is in [`BulkReceipts::refused`].
    ///
    /// A transaction takes events until they have 500 notifications or 4 MiB of content, so that other
    /// writers do not wait for the whole bulk.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if there is no event, or more than 100. No event has happened.
    /// [`Error::Store`]; [`Error::Conflict`], if the [`Entropy`](crate::Entropy) repeats. Earlier
    /// transactions stay. A repeated call in an [idempotent](crate::Scope::idempotent) scope goes on
    /// behind them, and repeats an event only if all of its notifications were deleted or erased
    /// meanwhile. Without a key, events without a transaction id happen again.
    pub fn trigger_bulk(&self, triggers: &[Trigger]) -> Result<BulkReceipts> {
        let receipts =
            self.scope.operation(bulk::NAME, || bulk::accept_all(self.scope, triggers))?;
        self.scope.engine.tend_after_trigger(self.scope.environment_id());
        Ok(BulkReceipts::new(receipts.into_iter().map(|receipt| receipt.map_err(Error::from))))
    }

    /// Notifies all subscribers of the environment. More than 100 are notified by tasks, a chunk at a
    /// time: each subscriber who is there now and has not left by then gets one notification.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::{step::Step, subscriber::SubscriberCreate, workflow::WorkflowCreate};
    /// use tidings::trigger::Broadcast;
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("maintenance", "Maintenance")?.step(Step::in_app("Tonight")?))?;
    /// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
    /// let receipt = env.events().broadcast(&Broadcast::new("maintenance")?)?;
    /// engine.delivery().run_due(usize::MAX)?;
    /// let progress = env.events().progress(&receipt.transaction_id)?;
    /// assert_eq!(progress.created, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`trigger`](Self::trigger).
    pub fn broadcast(&self, broadcast: &Broadcast) -> Result<TriggerReceipt> {
        let receipt = self.scope.operation("events.broadcast", || {
            let trigger = broadcast.to_trigger();
            let (now, event) = (self.scope.engine.now(), (&trigger, Reach::Everybody));
            let prepared = self.prepared(now, event)?;
            Write::new(self.scope, "events.broadcast", now, broadcast)?
                .once(|tx| accept_one(tx, event, &prepared))
        })?;
        self.scope.engine.tend_after_trigger(self.scope.environment_id());
        Ok(receipt)
    }

    /// Returns how far an event has got: the receipt of an event with many recipients is fixed when
    /// the event is accepted, and tasks notify them afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if no event has this transaction id.
    pub fn progress(
        &self,
        transaction_id: impl IntoChecked<TransactionId>,
    ) -> Result<EventProgress> {
        self.progress_of(&transaction_id.into_checked()?)
    }

    fn progress_of(&self, id: &TransactionId) -> Result<EventProgress> {
        self.scope.read("events.progress", |view| {
            let state = view.find(&layout::fan_out_state(view.environment_id(), id))?;
            let progress = if let Some(FanOutState { progress, .. }) = state {
                progress
            } else {
                let accepted = find_accepted(view, id)?;
                let accepted = accepted.ok_or_else(|| Error::not_found(Entity::Event, id))?;
                EventProgress::of(&accepted.receipt, accepted.created_at)
            };
            let canceled = view.find(&layout::canceled_trigger(view.environment_id(), id))?;
            Ok(progress.canceled(canceled.map(|canceled| canceled.canceled_at)))
        })
    }
}

/// Tells the store which rows of the recipients the triggers are going to read.
pub(crate) fn prefetch(tx: &Tx<'_>, prepared: &[Prepared]) -> Result<()> {
    let environment = tx.environment_id();
    let planned = prepared.iter().filter_map(|prepared| match prepared {
        Prepared::Planned(planned) => Some(planned),
        Prepared::Settled(_) | Prepared::Repeated(_) | Prepared::Refused(_) => None,
    });
    let counts = planned.clone().flat_map(|planned| longer(environment, planned));
    let counts = counts.map(|list| list.key().into_parts());
    let direct = planned.clone().flat_map(|planned| &planned.direct);
    let others = planned.flat_map(|planned| match &planned.others {
        Others::Planned(members) => members.as_slice(),
        Others::Crowd(_) => &[],
    });
    let ids = direct.clone().map(|direct| direct.recipient.subscriber_id());
    let ids = ids.chain(others.clone().map(|(member, _)| &member.subscriber_id));
    let subscribers = ids.map(|id| layout::subscriber(environment, id).into_parts());
    let known = direct.filter_map(|direct| direct.read.as_deref().map(|read| read.id));
    let known = known.chain(others.map(|(member, _)| member.id));
    let counters = known.map(|id| layout::message_counters(environment, id).into_parts());
    Ok(tx.prefetch(&mut subscribers.chain(counters).chain(counts))?)
}

// The lists that an event makes longer. The numbers of records in others are not read.
fn longer(
    environment: EnvironmentId,
    planned: &PlannedTrigger,
) -> impl Iterator<Item = CountedList> + use<> {
    let is_actor_new = planned.actor.iter().any(|(_, read)| read.is_none());
    let is_new = is_actor_new || planned.direct.iter().any(|direct| direct.read.is_none());
    let subscribers = is_new.then_some(CountedList::Subscribers(environment));
    let has_new_context = planned.contexts.iter().any(|context| context.read.is_none());
    let contexts = has_new_context.then_some(CountedList::Contexts(environment));
    subscribers.into_iter().chain(contexts)
}

// Accepts the only event of a call.
fn accept_one(
    tx: &mut Tx<'_>,
    event: (&Trigger, Reach),
    prepared: &Prepared,
) -> Result<TriggerReceipt> {
    prefetch(tx, slice::from_ref(prepared))?;
    accept(tx, event, prepared, &mut NamedRecords::default())?.map_err(Error::from)
}

/// Accepts a trigger, behind those of its call that have named some records. A refusal leaves nothing of it
/// in the transaction. An error may leave a part, which must not be committed.
pub(crate) fn accept(
    tx: &mut Tx<'_>,
    event: (&Trigger, Reach),
    prepared: &Prepared,
    named: &mut NamedRecords,
) -> Result<Result<TriggerReceipt, StoredRefusal>> {
    let again = prepared_again(tx, event, prepared, named)?;
    match again.as_ref().unwrap_or(prepared) {
        Prepared::Refused(refusal) => Ok(Err(refusal.clone())),
        Prepared::Settled(receipt) => Ok(Ok(receipt.clone())),
        Prepared::Repeated(id) => Err(Error::not_found(Entity::Event, id)),
        Prepared::Planned(planned) => {
            let receipt = notify_all(tx, event.0, planned, named)?;
            named.add(planned);
            Ok(Ok(receipt))
        }
    }
}

/// The receipt of an accepted trigger. Returns `None` if there is none.
pub(crate) fn find_receipt(view: &dyn View, id: &TransactionId) -> Result<Option<TriggerReceipt>> {
    Ok(find_accepted(view, id)?.map(|accepted| accepted.receipt))
}

/// A receipt that was read before the transaction. An erasure may have removed recipients from it since,
/// whom a stored answer must not name. It removes the record with the last recipient.
pub(crate) fn receipt_now(view: &dyn View, receipt: &TriggerReceipt) -> Result<TriggerReceipt> {
    if receipt.notifications.is_empty() {
        return Ok(receipt.clone());
    }
    let stored = find_receipt(view, &receipt.transaction_id)?;
    Ok(stored.unwrap_or_else(|| {
        let mut rest = receipt.clone();
        rest.notifications.clear();
        rest
    }))
}

/// The first run of an event, which has the receipt. Returns `None` if it was not accepted.
pub(crate) fn find_accepted(
    view: &dyn View,
    id: &TransactionId,
) -> Result<Option<AcceptedTrigger>> {
    let triggers = layout::transaction(view.environment_id(), id).range();
    Ok(view.first(&triggers, Order::Ascending, 1)?.pop())
}

// Creates the notifications. The receipt names those of direct recipients, and counts the others.
fn notify_all(
    tx: &mut Tx<'_>,
    trigger: &Trigger,
    planned: &PlannedTrigger,
    named: &NamedRecords,
) -> Result<TriggerReceipt> {
    let contexts = contexts::store_named(tx, &planned.contexts)?;
    let actor = planned.actor.as_ref();
    let actor = actor.map(|(actor, _)| subscribers::upsert(tx, &actor.to_create()));
    let actor = actor.transpose()?;
    let event = Event {
        home: tx.home,
        trigger,
        transaction_id: &planned.receipt.transaction_id,
        workflow: &planned.workflow,
        contexts: &contexts,
        actor: actor.as_ref(),
        context_keys: &planned.context_keys,
        now: tx.now(),
    };
    let mut receipt = planned.receipt.clone();
    let mut activity = tx.engine().activity().append(tx, tx.environment_id())?;
    let is_changed = |id: &SubscriberId| {
        named.has(id) || event.actor.is_some_and(|actor| actor.subscriber_id == *id)
    };
    for direct in &planned.direct {
        let subscriber = upsert_recipient(tx, direct, is_changed)?;
        receipt.notifications.push(notify(tx, &mut activity, &event, &subscriber, direct)?);
    }
    match &planned.others {
        Others::Planned(members) => {
            notify_members(tx, &mut activity, (&event, members), is_changed)?;
        }
        Others::Crowd(crowd) => begin_fan_out(tx, &event, crowd, &receipt)?,
    }
    let accepted = AcceptedTrigger::new(tx.environment_id(), tx.now(), receipt);
    activity.finish(tx, accepted.clone())?;
    Ok(accepted.receipt)
}

// Creates or updates the subscriber of a recipient: as it was read, or as the call has changed it.
fn upsert_recipient(
    tx: &mut Tx<'_>,
    planned: &PlannedRecipient,
    is_changed: impl Fn(&SubscriberId) -> bool,
) -> Result<Arc<Subscriber>> {
    let create = planned.recipient.to_create();
    let before = match &planned.read {
        read if is_changed(&create.subscriber_id) => {
            let key = layout::subscriber(tx.environment_id(), &create.subscriber_id);
            tx.find_again(&key, read.as_deref())?
        }
        read => read.as_ref().map(|read| Arc::clone(read.record())),
    };
    subscribers::upsert_known(tx, &create, before)
}

// Creates the notifications of a small crowd.
fn notify_members(
    tx: &mut Tx<'_>,
    activity: &mut Appender,
    (event, members): (&Event<'_>, &[(Subscriber, PlannedRecipient)]),
    is_changed: impl Fn(&SubscriberId) -> bool,
) -> Result<()> {
    for (member, planned) in members {
        let id = &member.subscriber_id;
        let changed = if is_changed(id) { Some(subscribers::get(tx, id)?) } else { None };
        notify(tx, activity, event, changed.as_ref().unwrap_or(member), planned)?;
    }
    Ok(())
}

// Leaves a crowd to tasks.
fn begin_fan_out(
    tx: &mut Tx<'_>,
    event: &Event<'_>,
    crowd: &Crowd,
    receipt: &TriggerReceipt,
) -> Result<()> {
    let progress = EventProgress::of(receipt, tx.now());
    let fan_out = FanOut {
        environment_id: tx.environment_id(),
        transaction_id: receipt.transaction_id.clone(),
        workflow_id: event.workflow.id,
        trigger: event.trigger.clone(),
        crowd: crowd.clone(),
        before: Source::of(tx, crowd)?.behind_all(tx, tx.id())?,
        context_keys: event.context_keys.clone(),
        actor_id: event.actor.map(|actor| actor.id),
    };
    let state = FanOutState::new(tx.environment_id(), progress);
    chunk::begin(tx, (&fan_out, event.workflow), &state)
}

/// Creates the notification of an event for a subscriber, whom the transaction has found.
pub(crate) fn notify(
    tx: &mut Tx<'_>,
    activity: &mut Appender,
    event: &Event<'_>,
    subscriber: &Subscriber,
    planned: &PlannedRecipient,
) -> Result<CreatedNotification> {
    let PlannedRecipient { recipient, topics, first, .. } = planned;
    let created_at = tx.now();
    let id = activity.next_id(created_at, tx.random());
    let created = (id, created_at);
    let notification =
        Notification::new(created, event, subscriber, recipient, topics.clone(), || tx.id());
    activity.add(Facets::from(&notification));
    let course = Course::of(tx, notification, Some(event.workflow));
    let mut course = course.with_subscriber(subscriber);
    match first {
        FirstTurn::Planned(actions) => course.perform(actions)?,
        FirstTurn::Later => course.begin_later()?,
    }
    let notification = course.notification;
    tx.insert(&notification)?;
    Ok(CreatedNotification::new(subscriber.subscriber_id.clone(), id))
}
