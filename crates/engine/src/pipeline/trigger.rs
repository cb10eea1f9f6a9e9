//! Triggering workflows.

use activity::{Appender, Facets};
use domain::event::Event;
use domain::ids::TransactionId;
use domain::notification::{Notification, NotificationTopic};
use domain::subscriber::Subscriber;
use domain::trigger::{
    AcceptedTrigger, Audience, CreatedNotification, SubscriberRecipient, TopicCounts, Trigger,
    TriggerReceipt, TriggerStatus,
};
use store::{Order, ReadRecords, WriteRecords, layout};

use crate::idempotency::StoredRefusal;
use crate::pipeline::delivery::{RunFacts, StepRun};
use crate::pipeline::fan_out::FanOut;
use crate::resources::contexts::{self, NamedData};
use crate::resources::{subscribers, workflows};
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
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such workflow; [`Error::Invalid`], if there is no
    /// recipient, or there are more than 100, if a context is not well formed, or if the schema of
    /// the workflow does not allow the payload.
    pub fn trigger(&self, trigger: &Trigger) -> Result<TriggerReceipt> {
        let receipt = self.scope.write("events.trigger", trigger, |tx| accept(tx, trigger))?;
        self.tend_activity();
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
        let receipts = self.scope.write("events.trigger_bulk", triggers, |tx| {
            Trigger::check_bulk(triggers)?;
            let mut receipts = Vec::with_capacity(triggers.len());
            for trigger in triggers {
                receipts.push(match accept(tx, trigger) {
                    Ok(receipt) => Ok(receipt),
                    Err(error) => Err(StoredRefusal::of(&error).ok_or(error)?),
                });
            }
            Ok(receipts)
        })?;
        self.tend_activity();
        Ok(receipts.into_iter().map(|receipt| receipt.map_err(Error::from)).collect())
    }

    // The trigger is committed, and the next one tends the index again. A failure is ignored.
    fn tend_activity(&self) {
        let (engine, environment) = (&self.scope.engine, self.scope.environment_id());
        while let Ok(true) = engine.activity().tend(engine.store(), environment)
            && engine.activity().is_behind(environment)
        {}
    }
}

// Refuses before it writes anything.
fn accept(tx: &mut Tx<'_>, trigger: &Trigger) -> Result<TriggerReceipt> {
    if let Some(id) = &trigger.transaction_id
        && let Some(receipt) = find_receipt(tx, id)?
    {
        return Ok(receipt);
    }
    let audience = trigger.audience()?;
    trigger.check_overrides()?;
    tx.limits().check_trigger(trigger)?;
    let named = contexts::named(trigger.context.as_ref())?;
    let found = workflows::find_by_identifier(tx, &trigger.workflow)?;
    let workflow = found.ok_or_else(|| Error::not_found(Entity::Workflow, &trigger.workflow))?;
    workflow.check_payload(&trigger.payload)?;
    let made = || TransactionId::new(format!("txn_{}", tx.text(24)));
    let transaction_id = trigger.transaction_id.clone().map_or_else(made, Ok)?;
    let receipt = TriggerReceipt::of(&workflow, transaction_id);
    if receipt.status != TriggerStatus::Processed {
        return Ok(receipt);
    }
    let contexts = contexts::ensure(tx, &named, NamedData::Replaces)?;
    let event = Event {
        home: tx.home,
        trigger,
        transaction_id: &receipt.transaction_id,
        workflow: &workflow,
        contexts: &contexts,
        context_keys: &contexts::keys(&named),
        now: tx.now(),
    };
    notify_all(tx, &event, &audience, receipt.clone())
}

fn find_receipt(view: &dyn View, id: &TransactionId) -> Result<Option<TriggerReceipt>> {
    let triggers = layout::transaction(view.environment_id(), id).range();
    let first = view.first::<AcceptedTrigger>(&triggers, Order::Ascending, 1)?.pop();
    Ok(first.map(|accepted| accepted.receipt))
}

// Creates the notifications. The receipt names those of direct recipients, and counts the others.
fn notify_all(
    tx: &mut Tx<'_>,
    event: &Event<'_>,
    audience: &Audience<'_>,
    mut receipt: TriggerReceipt,
) -> Result<TriggerReceipt> {
    let fan_out = FanOut::of(tx, event, audience)?;
    receipt.topics = TopicCounts::new(fan_out.recipients.len(), fan_out.filtered.len());
    receipt.missing_topics = fan_out.missing;
    let mut log = tx.engine().activity().append(tx, tx.environment_id())?;
    for recipient in &audience.subscribers {
        let subscriber = subscribers::upsert(tx, &recipient.to_create())?;
        let created = notify(tx, &mut log, event, subscriber, recipient, Vec::new())?;
        receipt.notifications.push(created);
    }
    for (subscriber, topics) in fan_out.recipients {
        let recipient = SubscriberRecipient::Id(subscriber.subscriber_id.clone());
        notify(tx, &mut log, event, subscriber, &recipient, topics)?;
    }
    let accepted = AcceptedTrigger::new(tx.environment_id(), tx.now(), receipt);
    log.finish(tx, accepted.clone())?;
    Ok(accepted.receipt)
}

fn notify(
    tx: &mut Tx<'_>,
    log: &mut Appender,
    event: &Event<'_>,
    subscriber: Subscriber,
    recipient: &SubscriberRecipient,
    topics: Vec<NotificationTopic>,
) -> Result<CreatedNotification> {
    let subscriber_id = subscriber.subscriber_id.clone();
    let created_at = tx.now();
    let id = log.next_id(created_at, tx.random());
    let created = (id, created_at);
    let notification =
        Notification::new(created, event, &subscriber, recipient, topics, || tx.id());
    log.add(Facets::from(&notification));
    let facts = RunFacts::for_trigger(tx, event, &notification, subscriber)?;
    let mut run = StepRun { tx, notification, facts };
    run.advance()?;
    let notification = run.notification;
    tx.insert(&notification)?;
    Ok(CreatedNotification::new(subscriber_id, id))
}
