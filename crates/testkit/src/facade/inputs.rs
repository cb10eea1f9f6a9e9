//! Arguments of operations: a few values of each kind, so that calls meet.

use std::time::Duration;

use arbitrary::Arbitrary;
use domain::context::ContextPayload;
use domain::environment::EnvironmentCreate;
use domain::ids::{IntegrationId, SubscriberId};
use domain::integration::{IntegrationCreate, IntegrationUpdate};
use domain::message::MarkAs;
use domain::preference::{GlobalPreferenceUpdate, WorkflowPreferenceUpdates};
use domain::subscriber::{SubscriberCreate, SubscriberUpdate};
use domain::trigger::Trigger;
use domain::workflow::{WorkflowCreate, WorkflowUpdate};
use serde_json::{Value, json};
use tidings::SendError;

use crate::parsed;
use crate::seeded::is_urgent;

/// One of four subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub struct Who(pub u8);

/// One of four workflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub struct Which(pub u8);

/// Fields of a subscriber, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub struct Profile(pub u8);

/// Steps and fields of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub struct Shape {
    /// Number of the step list.
    pub steps: u8,
    /// Bits: inactive, critical, urgent, tagged, without e-mail.
    pub traits: u8,
}

/// Fields of an integration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Account {
    pub channel: u8,
    pub name: Option<u8>,
    pub active: bool,
    pub conditional: bool,
}

/// A trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Event {
    pub workflow: Which,
    /// Recipients, as one bit for each of the four subscribers.
    pub to: u8,
    pub said: Option<Profile>,
    pub transaction: Option<u8>,
    pub about: About,
    pub urgent: bool,
}

/// Contexts, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub struct About(pub u8);

/// Settings of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Word {
    pub in_app: Option<bool>,
    pub email: Option<bool>,
    pub others: Option<bool>,
}

/// Action of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Mark {
    Read,
    Seen,
    Unread,
    Unseen,
}

/// Answer of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Refusal {
    Retryable,
    Permanent,
    RecipientGone,
    Misconfigured,
}

/// Length of a time span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub struct Span(pub u8);

impl Who {
    /// Its id.
    pub fn id(self) -> SubscriberId {
        let names = ["ada", "bob", "cyd", "dan"];
        SubscriberId::new(names[usize::from(self.0) % names.len()]).expect("an id")
    }
}

impl Which {
    /// Its name.
    pub fn name(self) -> &'static str {
        ["welcome", "invoice", "digest.daily", "alarm"][usize::from(self.0) % 4]
    }
}

impl Profile {
    fn has(self, bit: u8) -> bool {
        self.0 >> bit & 1 == 1
    }

    pub(super) fn create(self, who: Who, integrations: &[IntegrationId]) -> SubscriberCreate {
        let mut create = json!({ "subscriberId": who.id() });
        if self.has(0) {
            // Two addresses for four subscribers.
            create["email"] = json!(format!("{}@example.org", ["info", "post"][self.number() % 2]));
        }
        if self.has(1) {
            create["phone"] = json!("+44 20 7946 0000");
        }
        if self.has(2) {
            create["firstName"] = json!(["Ada", "Bob\u{0}", ""][self.number() % 3]);
        }
        if self.has(3) {
            let settings = |id: &IntegrationId| {
                let credentials = json!({ "deviceTokens": ["one", "two"], "webhookUrl": "here" });
                json!({ "providerId": "fcm", "_integrationId": id, "credentials": credentials })
            };
            create["channels"] = integrations.iter().map(settings).collect();
        }
        if self.has(4) {
            create["data"] = json!({ "plan": self.0 });
        }
        parsed(create)
    }

    pub(super) fn update(self) -> SubscriberUpdate {
        let mut update = json!({});
        for (bit, field, value) in [
            (0, "email", "other@example.org"),
            (1, "phone", "+44 20 7946 0001"),
            (2, "lastName", "Lovelace"),
        ] {
            if self.has(bit) {
                update[field] = if self.has(bit + 3) { Value::Null } else { value.into() };
            }
        }
        parsed(update)
    }

    fn number(self) -> usize {
        usize::from(self.0 >> 5)
    }
}

impl Shape {
    fn has(self, bit: u8) -> bool {
        self.traits >> bit & 1 == 1
    }

    pub(super) fn create(self, which: Which) -> WorkflowCreate {
        let mut create = self.fields();
        create["workflowId"] = json!(which.name());
        create["name"] = json!(which.name());
        parsed(create)
    }

    pub(super) fn update(self) -> WorkflowUpdate {
        parsed(self.fields())
    }

    fn fields(self) -> Value {
        let tags = if self.has(3) { vec!["tagged"] } else { Vec::new() };
        let preference = if self.has(4) { json!({ "email": false }) } else { json!({}) };
        json!({
            "active": !self.has(0),
            "critical": self.has(1),
            "severity": if self.has(2) { "high" } else { "none" },
            "tags": tags,
            "preferenceSettings": preference,
            "steps": self.steps(),
        })
    }

    fn steps(self) -> Vec<Value> {
        match self.steps % 9 {
            0 => vec![inbox()],
            1 => vec![email()],
            2 => vec![inbox(), email()],
            3 => vec![with(email(), json!({ "shouldStopOnFail": true })), sms(), inbox()],
            4 => vec![with(inbox(), json!({ "filters": [is_urgent()] })), inbox()],
            5 => vec![push(), chat()],
            6 => vec![with(inbox(), json!({ "active": false }))],
            7 => vec![broken(), sms()],
            _ => Vec::new(),
        }
    }
}

impl Account {
    pub(super) fn create(self) -> IntegrationCreate {
        let mut create = self.fields();
        let channel = ["email", "sms", "push", "chat", "in_app"][usize::from(self.channel) % 5];
        create["channel"] = json!(channel);
        create["providerId"] = json!(if channel == "email" { "sendgrid" } else { "of-the-host" });
        parsed(create)
    }

    pub(super) fn update(self) -> IntegrationUpdate {
        parsed(self.fields())
    }

    fn fields(self) -> Value {
        let conditions = if self.conditional { vec![is_urgent()] } else { Vec::new() };
        let mut fields = json!({ "active": self.active, "conditions": conditions });
        if let Some(name) = self.name {
            fields["identifier"] = json!(format!("account-{}", name % 3));
        }
        fields
    }
}

impl Event {
    /// The call.
    pub fn trigger(self) -> Trigger {
        let told = (0..4).filter(|bit| self.to >> bit & 1 == 1).map(Who);
        let to = told.map(|who| match self.said {
            Some(profile) => json!(profile.create(who, &[])),
            None => json!(who.id()),
        });
        let payload = json!({ "urgent": self.urgent, "name": "Ada" });
        let mut trigger = json!({
            "name": self.workflow.name(),
            "to": to.collect::<Vec<_>>(),
            "payload": payload,
        });
        if let Some(transaction) = self.transaction {
            trigger["transactionId"] = json!(format!("transaction {}", transaction % 4));
        }
        if let Some(context) = self.about.payload() {
            trigger["context"] = json!(context);
        }
        if self.urgent {
            trigger["overrides"] = json!({ "severity": "high" });
        }
        parsed(trigger)
    }
}

impl About {
    pub(super) fn payload(self) -> Option<ContextPayload> {
        let context = match self.0 % 4 {
            0 => return None,
            1 => json!({ "tenant": "acme" }),
            2 => json!({ "tenant": { "id": "acme", "data": { "seats": self.0 } }, "app": "web" }),
            _ => json!({ "app": "web" }),
        };
        Some(parsed(context))
    }
}

impl Word {
    fn channels(self) -> Value {
        let mut channels = json!({});
        for (channel, word) in
            [("in_app", self.in_app), ("email", self.email), ("sms", self.others)]
        {
            if let Some(word) = word {
                channels[channel] = json!(word);
            }
        }
        channels
    }

    pub(super) fn bulk(self, workflows: &[Which], about: About) -> WorkflowPreferenceUpdates {
        let word =
            |which: &Which| json!({ "workflowId": which.name(), "channels": self.channels() });
        let preferences: Vec<Value> = workflows.iter().map(word).collect();
        let mut bulk: WorkflowPreferenceUpdates = parsed(json!({ "preferences": preferences }));
        bulk.context = about.payload();
        bulk
    }

    pub(super) fn global(self, about: About) -> GlobalPreferenceUpdate {
        let mut global = json!({ "channels": self.channels() });
        if let Some(enabled) = self.others {
            global["enabled"] = json!(enabled);
        }
        let mut global: GlobalPreferenceUpdate = parsed(global);
        global.context = about.payload();
        global
    }
}

impl Span {
    pub(super) fn duration(self) -> Duration {
        let seconds = [0.001, 1.0, 20.0, 400.0][usize::from(self.0) % 4];
        Duration::from_secs_f64(seconds)
    }
}

impl From<Mark> for MarkAs {
    fn from(mark: Mark) -> Self {
        match mark {
            Mark::Read => MarkAs::Read,
            Mark::Seen => MarkAs::Seen,
            Mark::Unread => MarkAs::Unread,
            Mark::Unseen => MarkAs::Unseen,
        }
    }
}

impl From<Refusal> for SendError {
    fn from(refusal: Refusal) -> Self {
        let reason = "on purpose";
        match refusal {
            Refusal::Retryable => SendError::retryable(reason),
            Refusal::Permanent => SendError::permanent(reason),
            Refusal::RecipientGone => SendError::recipient_gone(reason),
            Refusal::Misconfigured => SendError::misconfigured(reason),
        }
    }
}

pub(super) fn environment(name: u8) -> EnvironmentCreate {
    let name = ["QA", "Staging", "Production"][usize::from(name) % 3];
    parsed(json!({ "name": name, "color": "#fff" }))
}

fn inbox() -> Value {
    json!({ "type": "in_app", "template": { "subject": "Hi", "body": "Dear {{ payload.name }}" } })
}

fn email() -> Value {
    json!({ "type": "email", "template": { "subject": "Hi {{ payload.name }}", "body": "<p/>" } })
}

fn sms() -> Value {
    json!({ "type": "sms", "template": { "body": "Dear {{ subscriber.firstName }}" } })
}

fn chat() -> Value {
    json!({ "type": "chat", "template": { "body": "Dear {{ payload.name }}" } })
}

fn push() -> Value {
    json!({ "type": "push", "template": { "title": "Hi", "body": "{{ context.tenant.id }}" } })
}

// Compiles, and cannot be rendered.
fn broken() -> Value {
    json!({ "type": "in_app", "template": { "body": "{{ payload.name.no.such.thing }}" } })
}

fn with(mut json: Value, fields: Value) -> Value {
    if let (Value::Object(json), Value::Object(fields)) = (&mut json, fields) {
        json.extend(fields);
    }
    json
}
