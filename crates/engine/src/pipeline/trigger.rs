//! Triggering workflows.

use std::slice;

use domain::convert::IntoChecked;
use domain::ids::{EnvironmentId, TransactionId, WorkflowIdentifier};
use domain::time::Timestamp;
use domain::trigger::{
    AcceptedTrigger, Broadcast, EventProgress, FanOutState, Trigger, TriggerReceipt,
};
use serde::Serialize;
use store::layout::CountedList;
use store::{HostTransaction, Order, ReadRecords, Snapshot, layout};

use crate::idempotency::StoredRefusal;
use crate::pipeline::bulk;
use crate::pipeline::current::{NamedRecords, prepare_again};
use crate::pipeline::notify::notify_all;
use crate::pipeline::planned::{PlannedTrigger, Prepared};
use crate::pipeline::prepare::Request;
use crate::pipeline::receipts::BulkReceipts;
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
    /// messages. [`run_due`](crate::DeliveryQueue::run_due) sends the messages of other channels. A repeated
    /// transaction id changes nothing and returns the first receipt. One order has several events, so name the event
    /// in the id, as in `shipped-A-1001`.
    ///
    /// A recipient that does not exist is created, so a misspelled id is that of a new subscriber.
    ///
    /// An inactive workflow, or one without active steps, is no error: nothing is stored, and
    /// [`TriggerReceipt::status`] says why. Topics that do not exist are in
    /// [`TriggerReceipt::missing_topics`].
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such workflow; [`Error::Conflict`], if an event of another
    /// workflow has the transaction id; [`Error::Invalid`], if there is no recipient or there are more
    /// than 100, if a context is not well formed, if the schema of the workflow does not allow the
    /// payload, if the payload, the overrides or a subscriber are too large, if an override has no valid
    /// value or names a step that the workflow does not have, or if there is more content than [`Limits::content`](crate::limits::Limits::content).
    pub fn trigger(&self, trigger: &Trigger) -> Result<TriggerReceipt> {
        let receipt = self.scope.operation("events.trigger", || self.accept(trigger))?;
        self.scope.engine.tend_after_trigger(self.scope.environment_id());
        Ok(receipt)
    }

    /// Triggers a workflow, without upkeep of the activity index.
    pub(crate) fn accept(&self, trigger: &Trigger) -> Result<TriggerReceipt> {
        self.accept_as("events.trigger", trigger, Request::for_recipients(trigger))
    }

    // Accepts the only event of the call `name`, which has these arguments.
    fn accept_as(
        &self,
        name: &'static str,
        arguments: &impl Serialize,
        request: Request<'_>,
    ) -> Result<TriggerReceipt> {
        let now = self.scope.engine.now();
        let prepared = self.prepared(now, request)?;
        Write::new(self.scope, name, now, arguments)?.once(|tx| accept_one(tx, request, &prepared))
    }

    /// Triggers a workflow in a transaction of the host: the rows of the host and the event are
    /// committed together, or neither. A store on the host's own database has such transactions, as
    /// `PostgresStore::join` of `tidings-store-postgres`.
    ///
    /// Other writers of the environment wait until the transaction ends, and so do other calls of this thread. So
    /// call this function last. The commit wakes workers and readers that wait for an inbox. An
    /// [observer](crate::Builder::observer) gets no event of the trigger itself, only those of the tasks behind it.
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
            let (now, request) = (self.scope.engine.now(), Request::for_recipients(trigger));
            let prepared = self.prepared(now, request)?;
            Write::new(self.scope, NAME, now, trigger)?
                .once_in_host(transaction, |tx| accept_one(tx, request, &prepared))
        })?;
        self.scope.engine.tend_later(self.scope.environment_id());
        Ok(receipt)
    }

    // Prepares the only event of a call.
    fn prepared(&self, now: Timestamp, request: Request<'_>) -> Result<Prepared> {
        self.scope.prepare(now, |preparation| preparation.prepare(request, None))
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
    /// behind them. Without a key, events without a transaction id happen again.
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
            self.accept_as("events.broadcast", broadcast, Request::for_everybody(&trigger))
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
            let progress = progress_of(view, id, || get_accepted(view, id))?;
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
        Prepared::NothingToDo(_) | Prepared::Repeated(_) | Prepared::Refused(_) => None,
    });
    let counts = planned.clone().flat_map(|planned| longer(environment, planned));
    let counts = counts.map(|list| list.key().into_parts());
    let workflows = planned.clone().map(|planned| planned.workflow.id);
    let workflows = workflows.map(|id| layout::workflow(environment, id).into_parts());
    let direct = planned.clone().flat_map(|planned| &planned.direct);
    let others = planned.clone().flat_map(|planned| planned.others.planned());
    let ids = direct.map(|(direct, _)| direct.recipient.subscriber_id());
    let ids = ids.chain(others.map(|(member, _)| &member.subscriber_id));
    let subscribers = ids.map(|id| layout::subscriber(environment, id).into_parts());
    let known = planned.flat_map(|planned| planned.known());
    let counters = known.map(|id| layout::message_counters(environment, id).into_parts());
    Ok(tx.prefetch(&mut workflows.chain(subscribers).chain(counters).chain(counts))?)
}

// The lists that an event makes longer. The numbers of records in others are not read.
fn longer(
    environment: EnvironmentId,
    planned: &PlannedTrigger,
) -> impl Iterator<Item = CountedList> + use<> {
    let is_actor_new = planned.actor.iter().any(|(_, read)| read.is_none());
    let is_new = is_actor_new || planned.direct.iter().any(|(_, read)| read.is_none());
    let subscribers = is_new.then_some(CountedList::Subscribers(environment));
    let has_new_context = planned.contexts.iter().any(|context| context.read.is_none());
    let contexts = has_new_context.then_some(CountedList::Contexts(environment));
    subscribers.into_iter().chain(contexts)
}

// Accepts the only event of a call.
fn accept_one(
    tx: &mut Tx<'_>,
    request: Request<'_>,
    prepared: &Prepared,
) -> Result<TriggerReceipt> {
    prefetch(tx, slice::from_ref(prepared))?;
    let mut named = NamedRecords::before_events(tx);
    accept(tx, request, prepared, &mut named)?.map_err(Error::from)
}

/// Accepts a trigger, behind those of its call that have named some records. A refusal leaves nothing of it
/// in the transaction. An error may leave a part, which must not be committed.
pub(crate) fn accept(
    tx: &mut Tx<'_>,
    request: Request<'_>,
    prepared: &Prepared,
    named: &mut NamedRecords,
) -> Result<Result<TriggerReceipt, StoredRefusal>> {
    let again = prepare_again(tx, request, prepared, named)?;
    match again.as_ref().unwrap_or(prepared) {
        Prepared::Refused(refusal) => Ok(Err(refusal.clone())),
        Prepared::NothingToDo(receipt) => Ok(Ok(receipt.clone())),
        Prepared::Repeated(id) => Err(Error::not_found(Entity::Event, id)),
        Prepared::Planned(planned) => {
            let receipt = notify_all(tx, request.trigger, planned, named)?;
            named.add(planned);
            Ok(Ok(receipt))
        }
    }
}

/// The receipt of an accepted trigger. Returns `None` if there is none.
pub(crate) fn find_receipt(view: &dyn View, id: &TransactionId) -> Result<Option<TriggerReceipt>> {
    Ok(find_accepted(view, id)?.map(|accepted| accepted.receipt))
}

/// Returns what an event of `workflow` comes to under an id under which one was accepted before: the receipt of
/// that one, or a refusal, if that one was of another workflow.
pub(crate) fn accepted_before(
    view: &dyn View,
    id: &TransactionId,
    workflow: &WorkflowIdentifier,
) -> Result<Option<Prepared>> {
    let accepted = find_accepted(view, id)?;
    Ok(accepted.map(|accepted| {
        if accepted.may_be_of(workflow) {
            Prepared::NothingToDo(accepted.receipt)
        } else {
            Prepared::Refused(StoredRefusal::Conflict { entity: Entity::Event, id: id.to_string() })
        }
    }))
}

/// A receipt that was read before the transaction. An erasure may have removed recipients from it since,
/// whom a stored answer must not name. It removes the record with the last recipient.
pub(crate) fn current_receipt(view: &dyn View, receipt: &TriggerReceipt) -> Result<TriggerReceipt> {
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

/// Returns how far an event has got, apart from its cancellation. One without a fan-out has got as far as its first
/// run.
pub(crate) fn progress_of(
    view: &dyn View,
    id: &TransactionId,
    accepted: impl FnOnce() -> Result<AcceptedTrigger>,
) -> Result<EventProgress> {
    if let Some(state) = view.find(&layout::fan_out_state(view.environment_id(), id))? {
        let FanOutState { progress, .. } = state;
        return Ok(progress);
    }
    let accepted = accepted()?;
    Ok(EventProgress::of(&accepted.receipt, accepted.created_at))
}

/// The first run of an event, which has the receipt.
pub(crate) fn get_accepted(view: &dyn View, id: &TransactionId) -> Result<AcceptedTrigger> {
    find_accepted(view, id)?.ok_or_else(|| Error::not_found(Entity::Event, id))
}

/// The first run of an event, which has the receipt. Returns `None` if it was not accepted.
pub(crate) fn find_accepted(
    view: &dyn View,
    id: &TransactionId,
) -> Result<Option<AcceptedTrigger>> {
    let triggers = layout::transaction(view.environment_id(), id).range();
    Ok(view.first(&triggers, Order::Ascending, 1)?.pop())
}
