//! Triggering workflows.

use activity::{Appender, Facets};
use domain::event::Event;
use domain::ids::TransactionId;
use domain::notification::Notification;
use domain::subscriber::Subscriber;
use domain::trigger::{AcceptedTrigger, CreatedNotification, Trigger, TriggerReceipt};
use store::{Order, ReadRecords, WriteRecords, layout};

use crate::idempotency::StoredRefusal;
use crate::pipeline::apply::Course;
use crate::pipeline::prepare::{PlannedRecipient, PlannedTrigger, Prepared};
use crate::resources::contexts::{self, NamedData};
use crate::resources::subscribers;
use crate::tx::{Tx, View};
use crate::{Error, Result, Scope};

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
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such workflow; [`Error::Invalid`], if there is no
    /// recipient, or there are more than 100, if a context is not well formed, or if the schema of
    /// the workflow does not allow the payload.
    pub fn trigger(&self, trigger: &Trigger) -> Result<TriggerReceipt> {
        let now = self.scope.engine.now();
        let prepared = self.scope.prepare(now, |preparation| preparation.prepare(trigger))?;
        let receipt = self
            .scope
            .write_at(now, "events.trigger", trigger, |tx| accept(tx, trigger, &prepared))?;
        self.scope.engine.tend_after_trigger(self.scope.environment_id());
        Ok(receipt)
    }

    /// Triggers up to 100 events in one transaction. The refusal of one event does not affect the
    /// others. The results are in the order of the events.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if there is no event, or there are more than 100; [`Error::Store`], and
    /// then none of them has happened.
    pub fn trigger_bulk(&self, triggers: &[Trigger]) -> Result<Vec<Result<TriggerReceipt>>> {
        let now = self.scope.engine.now();
        let checked = Trigger::check_bulk(triggers);
        let planned = if checked.is_ok() { triggers } else { &[] };
        let prepared = self.scope.prepare(now, |preparation| {
            planned.iter().map(|trigger| preparation.prepare(trigger)).collect::<Result<Vec<_>>>()
        })?;
        let receipts = self.scope.write_at(now, "events.trigger_bulk", triggers, |tx| {
            checked.clone()?;
            let mut receipts = Vec::with_capacity(triggers.len());
            for (trigger, prepared) in triggers.iter().zip(&prepared) {
                receipts.push(match accept(tx, trigger, prepared) {
                    Ok(receipt) => Ok(receipt),
                    Err(error) => Err(StoredRefusal::of(&error).ok_or(error)?),
                });
            }
            Ok(receipts)
        })?;
        self.scope.engine.tend_after_trigger(self.scope.environment_id());
        Ok(receipts.into_iter().map(|receipt| receipt.map_err(Error::from)).collect())
    }
}

// Refuses before it writes anything. Another call may have been accepted under the same transaction
// id since the preparation.
fn accept(tx: &mut Tx<'_>, trigger: &Trigger, prepared: &Prepared) -> Result<TriggerReceipt> {
    let planned = match prepared {
        Prepared::Refused(refusal) => return Err(refusal.clone().into()),
        Prepared::Settled(receipt) => return Ok(receipt.clone()),
        Prepared::Planned(planned) => planned,
    };
    match find_receipt(tx, &planned.receipt.transaction_id)? {
        Some(receipt) => Ok(receipt),
        None => notify_all(tx, trigger, planned),
    }
}

/// The receipt of an accepted trigger. Returns `None` if there is none.
pub(crate) fn find_receipt(view: &dyn View, id: &TransactionId) -> Result<Option<TriggerReceipt>> {
    let triggers = layout::transaction(view.environment_id(), id).range();
    let first = view.first::<AcceptedTrigger>(&triggers, Order::Ascending, 1)?.pop();
    Ok(first.map(|accepted| accepted.receipt))
}

// Creates the notifications. The receipt names those of direct recipients, and counts the others.
fn notify_all(
    tx: &mut Tx<'_>,
    trigger: &Trigger,
    planned: &PlannedTrigger,
) -> Result<TriggerReceipt> {
    let contexts = contexts::ensure(tx, &planned.named, NamedData::Replaces)?;
    let mut receipt = planned.receipt.clone();
    let event = Event {
        home: tx.home,
        trigger,
        transaction_id: &planned.receipt.transaction_id,
        workflow: &planned.workflow,
        contexts: &contexts,
        context_keys: &planned.context_keys,
        now: tx.now(),
    };
    let mut log = tx.engine().activity().append(tx, tx.environment_id())?;
    for planned in &planned.direct {
        let subscriber = subscribers::upsert(tx, &planned.recipient.to_create())?;
        receipt.notifications.push(notify(tx, &mut log, &event, &subscriber, planned)?);
    }
    for planned in &planned.through_topics {
        // A subscriber that was deleted since the preparation gets nothing.
        match subscribers::find(tx, planned.recipient.subscriber_id())? {
            Some(subscriber) => drop(notify(tx, &mut log, &event, &subscriber, planned)?),
            None => receipt.topics.created -= 1,
        }
    }
    let accepted = AcceptedTrigger::new(tx.environment_id(), tx.now(), receipt);
    log.finish(tx, accepted.clone())?;
    Ok(accepted.receipt)
}

fn notify(
    tx: &mut Tx<'_>,
    log: &mut Appender,
    event: &Event<'_>,
    subscriber: &Subscriber,
    planned: &PlannedRecipient,
) -> Result<CreatedNotification> {
    let PlannedRecipient { recipient, topics, actions } = planned;
    let created_at = tx.now();
    let id = log.next_id(created_at, tx.random());
    let created = (id, created_at);
    let notification =
        Notification::new(created, event, subscriber, recipient, topics.clone(), || tx.id());
    log.add(Facets::from(&notification));
    let mut course = Course { tx, notification, workflow: Some(event.workflow) };
    course.perform(actions)?;
    let notification = course.notification;
    tx.insert(&notification)?;
    Ok(CreatedNotification::new(subscriber.subscriber_id.clone(), id))
}
