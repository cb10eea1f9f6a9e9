//! Triggering workflows.

use activity::{Appender, Facets};
use domain::ids::TransactionId;
use domain::notification::{Event, Notification, NotificationTopic};
use domain::subscriber::Subscriber;
use domain::time::Timestamp;
use domain::trigger::{
    AcceptedTrigger, Audience, CreatedNotification, SubscriberRecipient, Trigger, TriggerReceipt,
    TriggerStatus,
};
use store::{ReadRecords, Transaction, WriteRecords, layout};

use crate::pipeline::delivery::{Gathered, Run};
use crate::pipeline::fan_out::FanOut;
use crate::resources::contexts::{self, NamedData};
use crate::resources::{subscribers, workflows};
use crate::{Entity, Error, Result, Scope};

/// Triggering the workflows of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{from_value, json};
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// # env.workflows().create(from_value(json!({
/// #     "workflowId": "greeting", "name": "Greeting", "active": true,
/// #     "steps": [{ "type": "in_app", "template": { "body": "Hello!" } }],
/// # }))?)?;
/// let greeting = from_value(json!({
///     "name": "greeting",
///     "to": ["ada", { "subscriberId": "grace", "firstName": "Grace" }],
///     "transactionId": "greeting-4711",
/// }))?;
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
    /// Triggers a workflow for its recipients. The notifications, their jobs and the messages that
    /// go into an inbox are written together; what goes through a provider is sent when
    /// [`run_due`](crate::DeliveryQueue::run_due) is called. A transaction id that was
    /// processed before returns its first receipt, and nothing happens.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such workflow; [`Error::Invalid`], if there is no
    /// recipient, or there are more than 100, or if a context is not well formed.
    pub fn trigger(&self, trigger: &Trigger) -> Result<TriggerReceipt> {
        let receipt = self
            .scope
            .write("events.trigger", trigger, |txn, now| self.accept(txn, trigger, now))?;
        self.tend_activity();
        Ok(receipt)
    }

    /// Triggers up to 100 events in one transaction. An event that is refused leaves the others
    /// alone; what comes back is in the order of the events.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if there is no event, or there are more than 100; [`Error::Store`], and
    /// then none of them has happened.
    pub fn trigger_bulk(&self, triggers: &[Trigger]) -> Result<Vec<Result<TriggerReceipt>>> {
        let receipts = self.scope.write("events.trigger_bulk", triggers, |txn, now| {
            Trigger::check_bulk(triggers)?;
            let mut receipts = Vec::with_capacity(triggers.len());
            for trigger in triggers {
                receipts.push(match self.accept(txn, trigger, now) {
                    Err(Error::Store(error)) => return Err(error.into()),
                    receipt => receipt,
                });
            }
            Ok(receipts)
        })?;
        self.tend_activity();
        Ok(receipts)
    }

    // The trigger has happened already, and the next one tends the index again, so a failure here
    // is nobody's.
    fn tend_activity(&self) {
        let (engine, environment) = (&self.scope.engine, self.scope.environment_id());
        while let Ok(true) = engine.activity().tend(engine.store(), environment)
            && engine.activity().is_behind(environment)
        {}
    }

    // Refuses before it writes anything.
    fn accept(
        &self,
        txn: &mut dyn Transaction,
        trigger: &Trigger,
        now: Timestamp,
    ) -> Result<TriggerReceipt> {
        if let Some(id) = &trigger.transaction_id
            && let Some(receipt) = self.receipt(&*txn, id)?
        {
            return Ok(receipt);
        }
        let audience = trigger.audience()?;
        let named = contexts::named(trigger.context.as_ref())?;
        let found = workflows::find_by_identifier(self.scope, &*txn, &trigger.workflow)?;
        let workflow =
            found.ok_or_else(|| Error::not_found(Entity::Workflow, &trigger.workflow))?;
        let receipt = TriggerReceipt::of(&workflow, self.transaction_id(trigger)?);
        if receipt.status != TriggerStatus::Processed {
            return Ok(receipt);
        }
        let contexts = contexts::ensure(self.scope, txn, &named, NamedData::Replaces, now)?;
        let event = Event {
            home: &self.scope.home,
            trigger,
            transaction_id: &receipt.transaction_id,
            workflow: &workflow,
            contexts: &contexts,
            context_keys: &contexts::keys(&named),
            now,
        };
        let receipt = self.tell(txn, &event, &audience, receipt.clone())?;
        txn.insert(&AcceptedTrigger {
            environment_id: self.scope.environment_id(),
            created_at: now,
            receipt: receipt.clone(),
        })?;
        Ok(receipt)
    }

    // Creates the notifications, and writes into the receipt who has one and who has none.
    fn tell(
        &self,
        txn: &mut dyn Transaction,
        event: &Event<'_>,
        audience: &Audience<'_>,
        mut receipt: TriggerReceipt,
    ) -> Result<TriggerReceipt> {
        let fan_out = FanOut::of(self.scope, &*txn, event, audience)?;
        receipt.filtered = fan_out.filtered;
        receipt.missing_topics = fan_out.missing;
        let mut log = self.scope.engine.activity().append(&*txn, self.scope.environment_id())?;
        for recipient in &audience.subscribers {
            let subscriber =
                subscribers::upsert(self.scope, txn, recipient.to_create(), event.now)?;
            let created = self.notify(txn, &mut log, event, subscriber, (recipient, Vec::new()))?;
            receipt.notifications.push(created);
        }
        for (subscriber, topics) in fan_out.told {
            let recipient = SubscriberRecipient::Id(subscriber.subscriber_id.clone());
            let created = self.notify(txn, &mut log, event, subscriber, (&recipient, topics))?;
            receipt.notifications.push(created);
        }
        log.finish(txn, event.transaction_id)?;
        Ok(receipt)
    }

    // The name that the trigger has, or else a new one.
    fn transaction_id(&self, trigger: &Trigger) -> Result<TransactionId> {
        let made = || TransactionId::new(format!("txn_{}", self.scope.engine.parts.ids.text(24)));
        Ok(trigger.transaction_id.clone().map_or_else(made, Ok)?)
    }

    fn receipt(
        &self,
        snapshot: &(impl ReadRecords + ?Sized),
        id: &TransactionId,
    ) -> Result<Option<TriggerReceipt>> {
        let key = layout::transaction(self.scope.environment_id(), id);
        Ok(snapshot.find::<AcceptedTrigger>(&key)?.map(|accepted| accepted.receipt))
    }

    fn notify(
        &self,
        txn: &mut dyn Transaction,
        log: &mut Appender,
        event: &Event<'_>,
        subscriber: Subscriber,
        (recipient, topics): (&SubscriberRecipient, Vec<NotificationTopic>),
    ) -> Result<CreatedNotification> {
        let (scope, now) = (self.scope, event.now);
        let subscriber_id = subscriber.subscriber_id.clone();
        let created_at = log.created_at(now);
        let id = log.next_id(created_at, scope.engine.parts.ids.random());
        let new_job = || scope.id(now);
        let created = (id, created_at);
        let notification =
            Notification::new(created, event, &subscriber, recipient, topics, new_job);
        log.add(Facets::from(&notification));
        let gathered = Gathered::for_trigger(scope, &*txn, event, &notification, subscriber)?;
        let mut run = Run { scope, now, notification, gathered };
        run.advance(txn)?;
        txn.insert(&run.notification)?;
        Ok(CreatedNotification::new(subscriber_id, id))
    }
}
