//! Case of one subscriber, one workflow and one moment, for tests of preferences.

mod seen;

use std::collections::BTreeMap;

use serde_json::Value;

use self::seen::SeenSubscriber;
use super::{ConditionData, Layer, Layers, Preference, Resolved, resolve};
use crate::condition::Rule;
use crate::contact::TimeZone;
use crate::context::{Context, ContextKey, ContextPayload, ContextSet};
use crate::convert::{IntoChecked, each_checked};
use crate::error::{Invalid, Reason};
use crate::explain::SendTime;
use crate::ids::WorkflowIdentifier;
use crate::json::Object;
use crate::schedule::Schedule;
use crate::subscription;
use crate::template_data::TemplateData;
use crate::time::Timestamp;
use crate::vocabulary::Channel;
use crate::workflow::WorkflowCreate;

/// Workflow with the preferences of one subscriber, and the data for conditions. It decides without
/// an engine whether a channel may be used, as an engine does. It refuses what an engine refuses.
///
/// Each context set has preferences and topic subscriptions of its own. They count for events of
/// exactly these contexts. The event of a case has the contexts of [`context`](Self::context), and
/// the preferences of the subscriber were saved for those of [`saved_for`](Self::saved_for): both are
/// none unless they are set. Only a schedule without contexts also holds in each context set.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use serde_json::json;
/// use tidings::condition::var;
/// use tidings::preference::{Decision, Layer, Preference, PreferenceCase};
/// use tidings::vocabulary::Channel;
/// use tidings::workflow::WorkflowCreate;
///
/// let orders = WorkflowCreate::new("order-shipped", "Order shipped")?;
/// let express = var("payload.express").equals(true);
/// let case = PreferenceCase::new(&orders)?
///     .subscriber_global(Preference::default().with(Channel::Sms, false))?
///     .subscriber_workflow(Preference::default().condition(express)?)?;
///
/// let undecided = Decision::Undecided(Layer::SubscriberWorkflow);
/// assert_eq!(case.decide(Channel::Email), undecided);
/// let case = case.payload(json!({ "express": true }))?;
/// assert_eq!(case.decide(Channel::Email), Decision::Send(Layer::SubscriberWorkflow));
///
/// // The event of another context set.
/// let case = case.context("tenant", "acme", json!({}))?;
/// assert_eq!(case.decide(Channel::Email), Decision::Send(Layer::Default));
/// let case = case.saved_for(["tenant:acme"])?;
/// assert_eq!(case.decide(Channel::Email), Decision::Send(Layer::SubscriberWorkflow));
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct PreferenceCase {
    definition: Preference,
    operator: Option<Preference>,
    subscriber_global: Option<Preference>,
    subscriber_workflow: Option<Preference>,
    critical: bool,
    workflow: (String, WorkflowIdentifier),
    subscriber: Option<Object>,
    actor: Option<Object>,
    payload: Option<Object>,
    // Of the event, by type.
    contexts: BTreeMap<String, (ContextKey, Object)>,
    // Of the preferences, the topic subscriptions and the schedule.
    saved_for: ContextSet,
    subscriptions: Vec<Setting>,
    schedule: Option<Schedule>,
    moment: Option<(Timestamp, TimeZone)>,
}

// Setting of a topic subscription for the workflow.
#[derive(Clone, Debug)]
struct Setting {
    enabled: bool,
    condition: Option<Rule>,
}

/// Decision about a message on one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The message is sent: the layer allows the channel, or no layer objects.
    Send(Layer),
    /// The layer switches the channel off.
    Disabled(Layer),
    /// The condition of the layer depends on data that the case does not have.
    Undecided(Layer),
    /// No topic subscription admits the notification.
    NotSubscribed,
    /// The conditions of topic subscriptions depend on data that the case does not have.
    SubscriptionUndecided,
    /// The schedule of the subscriber is closed at that moment, and the message waits.
    OutsideSchedule {
        /// Next opening. `None` if the schedule never opens: the message is not sent.
        next_opening: Option<Timestamp>,
    },
    /// The schedule of the subscriber is closed at that moment, and drops messages of the channel
    /// then ([`Outside::Drop`](crate::schedule::Outside::Drop)).
    DroppedBySchedule,
    /// The subscriber has a schedule, and the case has no moment.
    ScheduleUndecided,
}

impl PreferenceCase {
    /// Returns the case of a workflow and of a subscriber without preferences.
    ///
    /// # Errors
    ///
    /// Condition in the workflow's preference with an unknown variable.
    pub fn new(workflow: &WorkflowCreate) -> Result<Self, Invalid> {
        let within = |invalid: Invalid| invalid.within("preferenceSettings");
        workflow.preference_settings.check().map_err(within)?;
        Ok(Self {
            definition: workflow.preference_settings.clone(),
            operator: None,
            subscriber_global: None,
            subscriber_workflow: None,
            critical: workflow.critical,
            workflow: (workflow.name.clone(), workflow.identifier.clone()),
            subscriber: None,
            actor: None,
            payload: None,
            contexts: BTreeMap::new(),
            saved_for: ContextSet::default(),
            subscriptions: Vec::new(),
            schedule: None,
            moment: None,
        })
    }

    /// Sets the preference that an operator has set for the workflow.
    ///
    /// # Errors
    ///
    /// Condition with an unknown variable.
    pub fn operator(self, preference: Preference) -> Result<Self, Invalid> {
        preference.check().map_err(|invalid| invalid.within("preferences"))?;
        Ok(Self { operator: Some(preference), ..self })
    }

    /// Sets the preference of the subscriber for every workflow.
    ///
    /// # Errors
    ///
    /// Condition with an unknown variable.
    pub fn subscriber_global(self, preference: Preference) -> Result<Self, Invalid> {
        preference.check()?;
        Ok(Self { subscriber_global: Some(preference), ..self })
    }

    /// Sets the preference of the subscriber for this workflow.
    ///
    /// # Errors
    ///
    /// Condition with an unknown variable.
    pub fn subscriber_workflow(self, preference: Preference) -> Result<Self, Invalid> {
        preference.check()?;
        Ok(Self { subscriber_workflow: Some(preference), ..self })
    }

    /// Sets the contexts for which the subscriber saved the preferences, the topic subscriptions and
    /// the schedule of the case, as in `tenant:acme`. Without this call, they were saved without
    /// contexts.
    ///
    /// # Errors
    ///
    /// Context that is not well formed.
    pub fn saved_for(
        self,
        contexts: impl IntoIterator<Item: IntoChecked<ContextKey>>,
    ) -> Result<Self, Invalid> {
        let contexts: Vec<ContextKey> = each_checked("contextKeys", contexts)?;
        Ok(Self { saved_for: contexts.into(), ..self })
    }

    /// Sets the subscriber that conditions see, as in `{ "data": { "plan": "pro" } }`.
    ///
    /// # Errors
    ///
    /// Rule of [`Object`] or of a field of a subscriber that the value breaks, or an unknown field.
    pub fn subscriber(self, subscriber: impl IntoChecked<Object>) -> Result<Self, Invalid> {
        Ok(Self { subscriber: Some(seen("subscriber", subscriber)?), ..self })
    }

    /// Sets the subscriber who has caused the event, as conditions see one. Without this call, the
    /// event has no actor.
    ///
    /// # Errors
    ///
    /// Rule of [`Object`] or of a field of a subscriber that the value breaks, or an unknown field.
    pub fn actor(self, actor: impl IntoChecked<Object>) -> Result<Self, Invalid> {
        Ok(Self { actor: Some(seen("actor", actor)?), ..self })
    }

    /// Sets the payload that conditions see.
    ///
    /// # Errors
    ///
    /// Rule of [`Object`] that the value breaks.
    pub fn payload(self, payload: impl IntoChecked<Object>) -> Result<Self, Invalid> {
        let payload = payload.into_checked().map_err(|bad| bad.named("payload"))?;
        Ok(Self { payload: Some(payload), ..self })
    }

    /// Adds a context of the event, with its custom data, which conditions see: 5 at most.
    ///
    /// # Errors
    ///
    /// Rule of a context's type, id or data that the value breaks, a second context of its type, or a
    /// sixth context.
    pub fn context(
        mut self,
        kind: &str,
        id: &str,
        data: impl IntoChecked<Object>,
    ) -> Result<Self, Invalid> {
        let key = ContextKey::new(kind, id).map_err(|invalid| invalid.within("context"))?;
        let data = data.into_checked().map_err(|bad| bad.named("context"))?;
        Context::check_data(&data).map_err(|invalid| invalid.within("context"))?;
        if self.contexts.contains_key(kind) {
            return Err(ContextPayload::repeated(kind));
        }
        self.contexts.insert(key.kind().into(), (key, data));
        if self.contexts.len() > ContextPayload::MAX {
            return Err(Invalid::new("context", Reason::TooMany { max: ContextPayload::MAX }));
        }
        Ok(self)
    }

    /// Adds a topic subscription that admits notifications of the workflow, or rejects them. One
    /// that admits them is enough. A case without subscriptions is that of a subscriber whom the
    /// trigger names. Subscriptions for other contexts than those of the event admit nothing.
    pub fn subscription(mut self, enabled: bool) -> Self {
        self.subscriptions.push(Setting { enabled, condition: None });
        self
    }

    /// Adds a topic subscription that admits notifications if a condition holds.
    ///
    /// # Errors
    ///
    /// Condition with an unknown variable.
    pub fn subscription_if(mut self, condition: Rule) -> Result<Self, Invalid> {
        condition.check_names()?;
        self.subscriptions.push(Setting { enabled: true, condition: Some(condition) });
        Ok(self)
    }

    /// Sets the schedule of the subscriber. One that was saved without contexts holds for events of
    /// each context set.
    ///
    /// # Errors
    ///
    /// Schedule that names no day, or has a span without length or a setting for the inbox.
    pub fn schedule(self, schedule: Schedule) -> Result<Self, Invalid> {
        schedule.check()?;
        Ok(Self { schedule: Some(schedule), ..self })
    }

    /// Sets the moment of sending, and the time zone of the subscriber.
    pub fn at(self, moment: Timestamp, zone: TimeZone) -> Self {
        Self { moment: Some((moment, zone)), ..self }
    }

    /// Decides about a message on `channel`: by the topic subscriptions, the preferences and the
    /// schedule, in this order.
    ///
    /// The schedule holds back neither in-app messages, nor those of a critical workflow, nor those of
    /// a channel that it delivers at all hours. A condition is undecided unless the case has a
    /// subscriber, an actor, a payload or a context. With one of them, absent ones count as empty.
    pub fn decide(&self, channel: Channel) -> Decision {
        let data = self.data();
        if let Some(refusal) = self.refused(data.as_ref()) {
            return refusal;
        }
        let data = data.as_ref().map_or(ConditionData::Missing, ConditionData::Known);
        match resolve(self.layers(data), channel) {
            Resolved::Enabled(layer) => self.held_back(channel).unwrap_or(Decision::Send(layer)),
            Resolved::Disabled(layer) => Decision::Disabled(layer),
            Resolved::Undecided(layer) => Decision::Undecided(layer),
        }
    }

    // Returns `true` if the preferences and topic subscriptions are those of the event's contexts.
    fn counts(&self) -> bool {
        let keys = self.contexts.values().map(|(key, _)| key);
        self.saved_for.keys().eq(keys)
    }

    fn layers<'a>(&'a self, data: ConditionData<'a>) -> Layers<'a> {
        let counts = self.counts();
        Layers {
            definition: Some(&self.definition),
            operator: self.operator.as_ref(),
            subscriber_global: self.subscriber_global.as_ref().filter(|_| counts),
            subscriber_workflow: self.subscriber_workflow.as_ref().filter(|_| counts),
            critical: self.critical,
            data,
        }
    }

    // Returns the data for conditions. Returns `None` if the case has no such data.
    fn data(&self) -> Option<Value> {
        let is_known = self.subscriber.is_some()
            || self.actor.is_some()
            || self.payload.is_some()
            || !self.contexts.is_empty();
        let empty = Object::default();
        let contexts = self.contexts.values().map(|(key, data)| (key, data));
        let (name, identifier) = &self.workflow;
        let subscriber = self.subscriber.as_ref().unwrap_or(&empty);
        let payload = self.payload.as_ref().unwrap_or(&empty);
        is_known.then(|| {
            let workflow = (name.as_str(), identifier);
            TemplateData::of_parts(subscriber, payload, contexts, workflow)
                .with_actor(self.actor.as_ref())
                .data()
        })
    }

    fn refused(&self, data: Option<&Value>) -> Option<Decision> {
        let counts = self.counts();
        let admits = |Setting { enabled, condition }: &Setting| match data {
            _ if !counts => Some(false),
            Some(data) => Some(subscription::admits(*enabled, condition.as_ref(), &data)),
            None => condition.is_none().then_some(*enabled),
        };
        let answers: Vec<_> = self.subscriptions.iter().map(admits).collect();
        if answers.is_empty() || answers.contains(&Some(true)) {
            None
        } else if answers.contains(&None) {
            Some(Decision::SubscriptionUndecided)
        } else {
            Some(Decision::NotSubscribed)
        }
    }

    fn held_back(&self, channel: Channel) -> Option<Decision> {
        let holds = self.saved_for.is_empty() || self.counts();
        let schedule = self.schedule.as_ref().filter(|_| holds)?;
        if !schedule.may_hold_back(channel, self.critical) {
            return None;
        }
        let Some((moment, zone)) = self.moment else { return Some(Decision::ScheduleUndecided) };
        match schedule.send_time(channel, self.critical, moment, zone) {
            SendTime::Now => None,
            SendTime::AtOpening { at: opening } => {
                Some(Decision::OutsideSchedule { next_opening: Some(opening) })
            }
            SendTime::Never => Some(Decision::OutsideSchedule { next_opening: None }),
            SendTime::Dropped => Some(Decision::DroppedBySchedule),
        }
    }
}

// Returns the fields of a subscriber that conditions see. `name` is the field in refusals.
fn seen(name: &str, fields: impl IntoChecked<Object>) -> Result<Object, Invalid> {
    let fields = fields.into_checked().map_err(|bad| bad.named(name))?;
    SeenSubscriber::read(fields).map(Object::of).map_err(|bad| bad.within(name))
}

#[cfg(test)]
mod tests;
