//! What the rows of a trigger hold, whatever the database.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use bench_data::Calls;
use tidings::context::{ContextKey, ContextSet, ContextValue};
use tidings::trigger::Trigger;

/// The bit of the only channel.
pub(crate) const IN_APP: i64 = 1;

/// Values of the rows of a trigger and of its notifications.
pub(crate) struct TriggerRow<'t> {
    pub(crate) transaction_id: &'t str,
    pub(crate) now: i64,
    pub(crate) workflow: i64,
    pub(crate) severity: i64,
    pub(crate) contexts: i64,
    pub(crate) payload: String,
    pub(crate) subject: String,
    pub(crate) content: String,
    /// Number of the first notification.
    pub(crate) first: i64,
    pub(crate) recipients: Vec<String>,
}

impl TriggerRow<'_> {
    /// Number of the last notification.
    pub(crate) fn last(&self) -> i64 {
        self.first + i64::try_from(self.recipients.len()).unwrap() - 1
    }

    /// The job of a notification with its log. The message has the number of the notification.
    pub(crate) fn jobs(&self, id: i64) -> String {
        let Self { workflow, now, .. } = self;
        format!(
            r#"[{{"_id":{id},"type":"in_app","step":{workflow},"providerId":"svc","status":"completed","executionDetails":[{{"_id":{id},"createdAt":{now},"status":"Success","detail":"message_created","isRetry":false,"isTest":false,"source":"Internal"}}]}}]"#
        )
    }
}

/// Numbers of workflows and context sets, and of the next notification. The host has them in memory.
pub(crate) struct Numbers {
    // With the severity.
    workflows: HashMap<String, (i64, i64)>,
    contexts: HashMap<String, i64>,
    notifications: i64,
}

impl Default for Numbers {
    fn default() -> Self {
        let workflows = Calls::workflows().zip(0..);
        let workflows = workflows.map(|(workflow, number)| {
            (workflow.identifier.to_string(), (number, workflow.severity as i64))
        });
        Self { workflows: workflows.collect(), contexts: HashMap::new(), notifications: 1 }
    }
}

impl Numbers {
    /// Returns the name of the context set of that number.
    pub(crate) fn contexts(&self, number: i64) -> &str {
        let mut contexts = self.contexts.iter();
        contexts.find(|(_, one)| **one == number).map(|(name, _)| name.as_str()).unwrap()
    }

    fn of_contexts(&mut self, trigger: &Trigger) -> i64 {
        let contexts = trigger.context.iter().flat_map(|contexts| &contexts.0);
        let key = |(kind, value): (&String, &ContextValue)| {
            let ContextValue::Id(id) = value else { panic!("a context is an id") };
            ContextKey::new(kind.as_str(), id.as_str()).unwrap()
        };
        let next = i64::try_from(self.contexts.len()).unwrap();
        let contexts: ContextSet = contexts.map(key).collect();
        *self.contexts.entry(contexts.canonical().to_owned()).or_insert(next)
    }

    /// Returns the rows of the next trigger.
    pub(crate) fn take<'t>(&mut self, trigger: &'t Trigger) -> TriggerRow<'t> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let (workflow, severity) = self.workflows[trigger.workflow.as_str()];
        let contexts = self.of_contexts(trigger);
        let text = |field: &str| trigger.payload[field].as_str().unwrap();
        let (order, city) = (text("order"), text("city"));
        let recipients = trigger.audience().unwrap().subscribers.into_iter();
        let recipients = recipients.map(|one| one.subscriber_id().to_string()).collect();
        let row = TriggerRow {
            transaction_id: trigger.transaction_id.as_ref().unwrap().as_str(),
            now: i64::try_from(now).unwrap(),
            workflow,
            severity,
            contexts,
            payload: serde_json::to_string(&trigger.payload).unwrap(),
            subject: format!("Order {order}"),
            content: format!("Your order {order} is on its way to {city}."),
            first: self.notifications,
            recipients,
        };
        self.notifications = row.last() + 1;
        row
    }
}
