//! Preparation of triggers: their recipients and plans, decided on a snapshot before the
//! transaction.

use std::collections::HashMap;
use std::sync::Arc;

use domain::context::{Context, ContextKey, ContextSet, NamedContext};
use domain::event::Event;
use domain::ids::{SubscriberId, TransactionId};
use domain::notification::NotificationTopic;
use domain::plan::{self, Action, Run};
use domain::subscriber::Subscriber;
use domain::time::Timestamp;
use domain::trigger::{
    Audience, SubscriberRecipient, TopicCounts, Trigger, TriggerReceipt, TriggerStatus,
};
use domain::workflow::Workflow;

use crate::entropy::Made;
use crate::idempotency::StoredRefusal;
use crate::pipeline::facts::Preferences;
use crate::pipeline::fan_out::FanOut;
use crate::pipeline::trigger::find_receipt;
use crate::resources::{contexts, subscribers, workflows};
use crate::tx::Reading;
use crate::{Entity, Error, Result, Scope};

/// A trigger before its transaction.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// The trigger was accepted before, or has no effect.
    Settled(TriggerReceipt),
    /// The trigger creates notifications.
    Planned(Box<PlannedTrigger>),
    /// The trigger is refused.
    Refused(StoredRefusal),
}

/// A trigger whose notifications are planned.
#[derive(Debug)]
pub(crate) struct PlannedTrigger {
    /// The receipt, without the notifications of direct recipients.
    pub(crate) receipt: TriggerReceipt,
    pub(crate) workflow: Arc<Workflow>,
    pub(crate) named: Vec<NamedContext>,
    pub(crate) context_keys: ContextSet,
    /// Subscribers that the trigger names.
    pub(crate) direct: Vec<PlannedRecipient>,
    /// Subscribers that it reaches through topics.
    pub(crate) through_topics: Vec<PlannedRecipient>,
}

/// A recipient with the first turn of its notification.
#[derive(Debug)]
pub(crate) struct PlannedRecipient {
    pub(crate) recipient: SubscriberRecipient,
    pub(crate) topics: Vec<NotificationTopic>,
    pub(crate) actions: Vec<Action>,
}

/// Preparation of the triggers of one call, in their order. Each one sees the subscribers and the
/// contexts as those before it are going to leave them.
pub(crate) struct Preparation<'r> {
    view: &'r Reading<'r>,
    made: &'r Made<'r>,
    now: Timestamp,
    subscribers: HashMap<SubscriberId, Subscriber>,
    contexts: HashMap<ContextKey, Context>,
}

impl Scope {
    /// Prepares the triggers of a call, which happens at `now`, on one snapshot.
    pub(crate) fn prepare<T>(
        &self,
        now: Timestamp,
        mut body: impl FnMut(&mut Preparation<'_>) -> Result<T>,
    ) -> Result<T> {
        let seed = self.engine.parts.seeds.draw(now);
        self.read(|view| {
            let made = &seed.start();
            let (subscribers, contexts) = (HashMap::new(), HashMap::new());
            body(&mut Preparation { view, made, now, subscribers, contexts })
        })
    }
}

impl Preparation<'_> {
    /// Prepares a trigger.
    ///
    /// # Errors
    ///
    /// A refusal is a result of the preparation. Other errors, such as those of the store, fail the
    /// call.
    pub(crate) fn prepare(&mut self, trigger: &Trigger) -> Result<Prepared> {
        match self.plan(trigger) {
            Err(error) => Ok(Prepared::Refused(StoredRefusal::of(&error).ok_or(error)?)),
            planned => planned,
        }
    }

    fn plan(&mut self, trigger: &Trigger) -> Result<Prepared> {
        if let Some(id) = &trigger.transaction_id
            && let Some(receipt) = find_receipt(self.view, id)?
        {
            return Ok(Prepared::Settled(receipt));
        }
        let audience = trigger.audience()?;
        trigger.check_overrides()?;
        self.view.engine.parts.limits.check_trigger(trigger)?;
        let named = contexts::named(trigger.context.as_ref())?;
        let found = workflows::find_by_identifier(self.view, &trigger.workflow)?;
        let workflow =
            found.ok_or_else(|| Error::not_found(Entity::Workflow, &trigger.workflow))?;
        workflow.check_payload(&trigger.payload)?;
        let made = || TransactionId::new(format!("txn_{}", self.made.text(24)));
        let transaction_id = trigger.transaction_id.clone().map_or_else(made, Ok)?;
        let receipt = TriggerReceipt::of(&workflow, transaction_id);
        if receipt.status != TriggerStatus::Processed {
            return Ok(Prepared::Settled(receipt));
        }
        self.plan_notifications(trigger, &audience, receipt, workflow, named)
    }

    fn plan_notifications(
        &mut self,
        trigger: &Trigger,
        audience: &Audience<'_>,
        mut receipt: TriggerReceipt,
        workflow: Arc<Workflow>,
        named: Vec<NamedContext>,
    ) -> Result<Prepared> {
        let contexts = self.contexts(&named)?;
        let context_keys = contexts::keys(&named);
        let event = Event {
            home: self.view.home,
            trigger,
            transaction_id: &receipt.transaction_id,
            workflow: &workflow,
            contexts: &contexts,
            context_keys: &context_keys,
            now: self.now,
        };
        let run = Run::new(&event);
        let fan_out = FanOut::of(self.view, &event, audience, &self.subscribers)?;
        let direct = audience.subscribers.iter().map(|recipient| {
            let subscriber = self.subscriber(recipient)?;
            self.recipient((*recipient).clone(), &subscriber, Vec::new(), (&event, &run))
        });
        let direct = direct.collect::<Result<Vec<_>>>()?;
        let through_topics = fan_out.recipients.into_iter().map(|(subscriber, topics)| {
            let recipient = SubscriberRecipient::Id(subscriber.subscriber_id.clone());
            self.recipient(recipient, &subscriber, topics, (&event, &run))
        });
        let through_topics = through_topics.collect::<Result<Vec<_>>>()?;
        receipt.topics = TopicCounts::new(through_topics.len(), fan_out.filtered.len());
        receipt.missing_topics = fan_out.missing;
        let planned =
            PlannedTrigger { receipt, workflow, named, context_keys, direct, through_topics };
        Ok(Prepared::Planned(Box::new(planned)))
    }

    // Plans the first turn of the notification for `subscriber`.
    fn recipient(
        &self,
        recipient: SubscriberRecipient,
        subscriber: &Subscriber,
        topics: Vec<NotificationTopic>,
        (event, run): (&Event<'_>, &Run<'_>),
    ) -> Result<PlannedRecipient> {
        let workflow = event.workflow;
        let preferences =
            Preferences::of(self.view, subscriber.id, event.context_keys, Some(workflow.id))?;
        let facts = preferences.facts(Some(subscriber), Some(workflow), event.contexts, self.now);
        Ok(PlannedRecipient { recipient, topics, actions: plan::turn(run, facts) })
    }

    // Returns the subscriber of a recipient as the trigger leaves it.
    fn subscriber(&mut self, recipient: &SubscriberRecipient) -> Result<Subscriber> {
        let create = recipient.to_create();
        let before = match self.subscribers.get(&create.subscriber_id) {
            Some(known) => Some(known.clone()),
            None => subscribers::find(self.view, &create.subscriber_id)?,
        };
        let after = match before {
            Some(before) => subscribers::superseded(before, &create, self.now),
            None => Subscriber::new(self.made.id(), self.view.home, create, self.now),
        };
        self.subscribers.insert(after.subscriber_id.clone(), after.clone());
        Ok(after)
    }

    // Returns the contexts that the trigger names, as it leaves them.
    fn contexts(&mut self, named: &[NamedContext]) -> Result<Vec<Context>> {
        named.iter().map(|context| self.context(context)).collect()
    }

    fn context(&mut self, named: &NamedContext) -> Result<Context> {
        let before = match self.contexts.get(&named.key) {
            Some(known) => Some(known.clone()),
            None => contexts::find(self.view, &named.key)?,
        };
        let data = named.data.clone();
        let after = match (before, data) {
            (Some(before), Some(data)) => before.with_data(data, self.now),
            (Some(before), None) => before,
            (None, data) => {
                let data = data.unwrap_or_default();
                Context::new(self.made.id(), self.view.home, named.key.clone(), data, self.now)
            }
        };
        self.contexts.insert(named.key.clone(), after.clone());
        Ok(after)
    }
}
