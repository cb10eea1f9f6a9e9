//! Triggering workflows.

use domain::error::{Invalid, Reason};
use domain::ids::TransactionId;
use domain::notification::{Event, Notification};
use domain::time::Timestamp;
use domain::trigger::{
    AcceptedTrigger, CreatedNotification, Recipient, Trigger, TriggerReceipt, TriggerStatus,
};
use store::{ReadRecords, Transaction, WriteRecords, layout};

use crate::contexts::{self, NamedData};
use crate::delivery::{Gathered, Run};
use crate::{Entity, Error, Result, Scope, subscribers, workflows};

/// Triggering the workflows of an environment.
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
        let now = self.scope.now();
        self.scope.write(|txn| self.accept(txn, trigger, now))
    }

    /// Triggers up to 100 events in one transaction. An event that is refused leaves the others
    /// alone; what comes back is in the order of the events.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if there is no event, or there are more than 100; [`Error::Store`], and
    /// then none of them has happened.
    pub fn trigger_bulk(&self, triggers: &[Trigger]) -> Result<Vec<Result<TriggerReceipt>>> {
        if triggers.is_empty() {
            return Err(Invalid::new("events", Reason::Empty).into());
        }
        if triggers.len() > Trigger::MAX_BULK {
            let reason = Reason::TooMany { max: Trigger::MAX_BULK };
            return Err(Invalid::new("events", reason).into());
        }
        let now = self.scope.now();
        self.scope.write(|txn| {
            let mut receipts = Vec::with_capacity(triggers.len());
            for trigger in triggers {
                receipts.push(match self.accept(txn, trigger, now) {
                    Err(Error::Store(error)) => return Err(error.into()),
                    receipt => receipt,
                });
            }
            Ok(receipts)
        })
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
        let recipients = trigger.recipients()?;
        let named = contexts::named(trigger.context.as_ref())?;
        let found = workflows::find_by_identifier(self.scope, &*txn, &trigger.workflow)?;
        let workflow =
            found.ok_or_else(|| Error::not_found(Entity::Workflow, &trigger.workflow))?;
        let mut receipt = TriggerReceipt::of(&workflow, self.transaction_id(trigger)?);
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
            now,
        };
        receipt.notifications = recipients
            .into_iter()
            .map(|recipient| self.notify(txn, &event, recipient))
            .collect::<Result<_>>()?;
        txn.insert(&AcceptedTrigger {
            environment_id: self.scope.environment_id(),
            created_at: now,
            receipt: receipt.clone(),
        })?;
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
        event: &Event<'_>,
        recipient: &Recipient,
    ) -> Result<CreatedNotification> {
        let (scope, now) = (self.scope, event.now);
        let subscriber = subscribers::upsert(scope, txn, recipient.to_create(), now)?;
        let subscriber_id = subscriber.subscriber_id.clone();
        let (id, new_job) = (scope.id(now), || scope.id(now));
        let notification = Notification::new(id, event, &subscriber, recipient, new_job);
        let gathered = Gathered::for_trigger(scope, &*txn, event, &notification, subscriber)?;
        let mut run = Run { scope, now, notification, gathered };
        run.advance(txn)?;
        txn.insert(&run.notification)?;
        Ok(CreatedNotification { subscriber_id, notification_id: id })
    }
}
