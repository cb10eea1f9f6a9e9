//! Triggering workflows.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};

use domain::ids::{InternalSubscriberId, SubscriberId, TopicKey, TransactionId};
use domain::notification::{Event, Notification, NotificationTopic};
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::time::Timestamp;
use domain::trigger::{
    AcceptedTrigger, Audience, CreatedNotification, SubscriberRecipient, Trigger, TriggerReceipt,
    TriggerStatus,
};
use store::{ReadRecords, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::contexts::{self, NamedData};
use crate::delivery::{Gathered, Run};
use crate::{Entity, Error, Result, Scope, subscribers, topics, workflows};

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
        self.scope.write("events.trigger", trigger, |txn, now| self.accept(txn, trigger, now))
    }

    /// Triggers up to 100 events in one transaction. An event that is refused leaves the others
    /// alone; what comes back is in the order of the events.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if there is no event, or there are more than 100; [`Error::Store`], and
    /// then none of them has happened.
    pub fn trigger_bulk(&self, triggers: &[Trigger]) -> Result<Vec<Result<TriggerReceipt>>> {
        self.scope.write("events.trigger_bulk", triggers, |txn, now| {
            Trigger::check_bulk(triggers)?;
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
        let audience = trigger.audience()?;
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
        let told = self.fan_out(&*txn, &event, &audience)?;
        receipt.filtered = told.filtered;
        receipt.missing_topics = told.missing_topics;
        for recipient in audience.subscribers {
            let subscriber = subscribers::upsert(self.scope, txn, recipient.to_create(), now)?;
            let created = self.notify(txn, &event, subscriber, recipient, Vec::new())?;
            receipt.notifications.push(created);
        }
        for (subscriber, topics) in told.subscribers {
            let recipient = SubscriberRecipient::Id(subscriber.subscriber_id.clone());
            let created = self.notify(txn, &event, subscriber, &recipient, topics)?;
            receipt.notifications.push(created);
        }
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
        subscriber: Subscriber,
        recipient: &SubscriberRecipient,
        topics: Vec<NotificationTopic>,
    ) -> Result<CreatedNotification> {
        let (scope, now) = (self.scope, event.now);
        let subscriber_id = subscriber.subscriber_id.clone();
        let (id, new_job) = (scope.id(now), || scope.id(now));
        let notification = Notification::new(id, event, &subscriber, recipient, topics, new_job);
        let gathered = Gathered::for_trigger(scope, &*txn, event, &notification, subscriber)?;
        let mut run = Run { scope, now, notification, gathered };
        run.advance(txn)?;
        txn.insert(&run.notification)?;
        Ok(CreatedNotification { subscriber_id, notification_id: id })
    }

    // Who is told through the topics of the trigger, in the order of the topics, and within a topic
    // in that in which the subscribers were created.
    fn fan_out(
        &self,
        snapshot: &dyn Snapshot,
        event: &Event<'_>,
        audience: &Audience<'_>,
    ) -> Result<FanOut> {
        let mut told = FanOut::default();
        for recipient in &audience.topics {
            let key = &recipient.topic_key;
            let Some(topic) = topics::find(self.scope, snapshot, key)? else {
                told.missing_topics.push(key.clone());
                continue;
            };
            let prefix = layout::subscriptions(topic.environment_id, topic.id);
            let subscriptions: Vec<Subscription> =
                snapshot.all(Table::TopicSubscribers, &prefix)?;
            for of_one in subscriptions.chunk_by(Subscription::is_of_same_subscriber) {
                self.tell(snapshot, event, audience, of_one, &mut told)?;
            }
        }
        told.settle();
        Ok(told)
    }

    // Adds a subscriber who is in a topic with these subscriptions.
    fn tell(
        &self,
        snapshot: &dyn Snapshot,
        event: &Event<'_>,
        audience: &Audience<'_>,
        subscriptions: &[Subscription],
        told: &mut FanOut,
    ) -> Result<()> {
        let Some(first) = subscriptions.first() else { return Ok(()) };
        if audience.excludes(&first.subscriber_id) {
            return Ok(());
        }
        let subscriber = subscribers::get(self.scope, snapshot, &first.subscriber_id)?;
        let data = LazyCell::new(|| event.data(&subscriber));
        let admitted = subscriptions.iter().filter(|one| one.admits(event, &data));
        match NotificationTopic::through(admitted) {
            Some(topic) => told.add(subscriber, topic),
            None => told.filtered.push(subscriber.subscriber_id),
        }
        Ok(())
    }
}

// Who is told through topics.
#[derive(Default)]
struct FanOut {
    subscribers: Vec<(Subscriber, Vec<NotificationTopic>)>,
    places: HashMap<InternalSubscriberId, usize>,
    filtered: Vec<SubscriberId>,
    missing_topics: Vec<TopicKey>,
}

impl FanOut {
    fn add(&mut self, subscriber: Subscriber, topic: NotificationTopic) {
        let place = *self.places.entry(subscriber.id).or_insert(self.subscribers.len());
        match self.subscribers.get_mut(place) {
            Some((_, topics)) => topics.push(topic),
            None => self.subscribers.push((subscriber, vec![topic])),
        }
    }

    // Who is told through one topic was not filtered by another.
    fn settle(&mut self) {
        let told: HashSet<&SubscriberId> =
            self.subscribers.iter().map(|(subscriber, _)| &subscriber.subscriber_id).collect();
        let mut known = HashSet::new();
        self.filtered.retain(|id| !told.contains(id) && known.insert(id.clone()));
    }
}
