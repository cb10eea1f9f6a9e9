//! Case of one subscriber, one workflow and one moment, for tests of preferences.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ConditionData, Layer, Layers, Preference, Verdict, resolve};
use crate::condition::Rule;
use crate::contact::TimeZone;
use crate::context::ContextKey;
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::ids::WorkflowIdentifier;
use crate::json::Object;
use crate::known::Known;
use crate::schedule::{Schedule, Timing};
use crate::subscription;
use crate::time::Timestamp;
use crate::vocabulary::Channel;
use crate::workflow::WorkflowCreate;

/// Workflow with the preferences of one subscriber, and the data for conditions. It decides without
/// an engine whether a channel may be used.
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
/// let case = PreferenceCase::new(&orders)
///     .subscriber_global(Preference::default().with(Channel::Sms, false))
///     .subscriber_workflow(Preference::default().only_if(express)?);
///
/// let undecided = Decision::Undecided(Layer::SubscriberWorkflow);
/// assert_eq!(case.decide(Channel::Email), undecided);
/// let case = case.payload(json!({ "express": true }))?;
/// assert_eq!(case.decide(Channel::Email), Decision::Send(Layer::SubscriberWorkflow));
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct PreferenceCase {
    definition: Preference,
    dashboard: Option<Preference>,
    subscriber_global: Option<Preference>,
    subscriber_workflow: Option<Preference>,
    critical: bool,
    workflow: (String, WorkflowIdentifier),
    subscriber: Option<Object>,
    payload: Option<Object>,
    // By type, as in an event.
    contexts: BTreeMap<String, (ContextKey, Object)>,
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
    pub fn new(workflow: &WorkflowCreate) -> Self {
        Self {
            definition: workflow.preference_settings.clone(),
            dashboard: None,
            subscriber_global: None,
            subscriber_workflow: None,
            critical: workflow.critical,
            workflow: (workflow.name.clone(), workflow.workflow_id.clone()),
            subscriber: None,
            payload: None,
            contexts: BTreeMap::new(),
            subscriptions: Vec::new(),
            schedule: None,
            moment: None,
        }
    }

    /// Sets the preference that an operator has set for the workflow.
    pub fn dashboard(self, preference: Preference) -> Self {
        Self { dashboard: Some(preference), ..self }
    }

    /// Sets the preference of the subscriber for every workflow.
    pub fn subscriber_global(self, preference: Preference) -> Self {
        Self { subscriber_global: Some(preference), ..self }
    }

    /// Sets the preference of the subscriber for this workflow.
    pub fn subscriber_workflow(self, preference: Preference) -> Self {
        Self { subscriber_workflow: Some(preference), ..self }
    }

    /// Sets the subscriber that conditions see, as in `{ "data": { "plan": "pro" } }`.
    ///
    /// # Errors
    ///
    /// Rule of [`Object`] that the value breaks.
    pub fn subscriber(self, subscriber: impl IntoChecked<Object>) -> Result<Self, Invalid> {
        let subscriber = subscriber.into_checked().map_err(|bad| bad.named("subscriber"))?;
        Ok(Self { subscriber: Some(subscriber), ..self })
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

    /// Adds a context with its custom data, which conditions see.
    ///
    /// # Errors
    ///
    /// Rule of a context's type, id or data that the value breaks.
    pub fn context(
        mut self,
        kind: &str,
        id: &str,
        data: impl IntoChecked<Object>,
    ) -> Result<Self, Invalid> {
        let key = ContextKey::new(kind, id)?;
        let data = data.into_checked().map_err(|bad| bad.named("context"))?;
        self.contexts.insert(key.kind().into(), (key, data));
        Ok(self)
    }

    /// Adds a topic subscription that admits notifications of the workflow, or rejects them. One
    /// that admits them is enough. A case without subscriptions is that of a subscriber whom the
    /// trigger names.
    pub fn subscription(mut self, enabled: bool) -> Self {
        self.subscriptions.push(Setting { enabled, condition: None });
        self
    }

    /// Adds a topic subscription that admits notifications if a condition holds.
    pub fn subscription_if(mut self, condition: Rule) -> Self {
        self.subscriptions.push(Setting { enabled: true, condition: Some(condition) });
        self
    }

    /// Sets the schedule of the subscriber.
    pub fn schedule(self, schedule: Schedule) -> Self {
        Self { schedule: Some(schedule), ..self }
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
    /// subscriber, a payload or a context. With one of them, absent ones count as empty.
    pub fn decide(&self, channel: Channel) -> Decision {
        let data = self.data();
        if let Some(refusal) = self.refused(data.as_ref()) {
            return refusal;
        }
        let data = data.as_ref().map_or(ConditionData::Missing, ConditionData::Known);
        match resolve(self.layers(data), channel) {
            Verdict::Enabled(layer) => self.held_back(channel).unwrap_or(Decision::Send(layer)),
            Verdict::Disabled(layer) => Decision::Disabled(layer),
            Verdict::Undecided(layer) => Decision::Undecided(layer),
        }
    }

    fn layers<'a>(&'a self, data: ConditionData<'a>) -> Layers<'a> {
        Layers {
            definition: Some(&self.definition),
            dashboard: self.dashboard.as_ref(),
            subscriber_global: self.subscriber_global.as_ref(),
            subscriber_workflow: self.subscriber_workflow.as_ref(),
            critical: self.critical,
            data,
        }
    }

    // Returns the data for conditions. Returns `None` if the case has no such data.
    fn data(&self) -> Option<Value> {
        let is_known =
            self.subscriber.is_some() || self.payload.is_some() || !self.contexts.is_empty();
        let empty = Object::default();
        let contexts = self.contexts.values().map(|(key, data)| (key, data));
        let (name, identifier) = &self.workflow;
        let subscriber = self.subscriber.as_ref().unwrap_or(&empty);
        let payload = self.payload.as_ref().unwrap_or(&empty);
        is_known.then(|| Known::of_parts(subscriber, payload, contexts, (name, identifier)).data())
    }

    fn refused(&self, data: Option<&Value>) -> Option<Decision> {
        let admits = |Setting { enabled, condition }: &Setting| match data {
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
        let schedule = self.schedule.as_ref()?;
        if !schedule.may_hold_back(channel, self.critical) {
            return None;
        }
        let Some((moment, zone)) = self.moment else { return Some(Decision::ScheduleUndecided) };
        match schedule.timing(channel, self.critical, moment, zone) {
            Timing::Now => None,
            Timing::At(opening) => Some(Decision::OutsideSchedule { next_opening: Some(opening) }),
            Timing::Never => Some(Decision::OutsideSchedule { next_opening: None }),
            Timing::Drop => Some(Decision::DroppedBySchedule),
        }
    }
}

#[cfg(test)]
mod tests;
