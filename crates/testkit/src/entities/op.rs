//! Operations, and what they are made with: a few values of each kind, so that they meet.

use arbitrary::Arbitrary;
use serde_json::{Value, json};

use super::listed;
use crate::world::World;

pub use crate::facade::Verb;

/// An operation, perhaps with one of three idempotency keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub struct Step {
    /// Number of the key. Operations whose arguments depend on what is there have none.
    pub key: Option<u8>,
    /// The operation.
    pub op: Op,
}

/// An operation on an entity, or something that happens around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Op {
    Named(Named),
    Trigger(Flow, u8, u8),
    /// A change of those messages of an inbox whose bits are set.
    Inbox(Who, u8, Change),
    /// Provider refuses messages to an address, or accepts them.
    Refuse(u8, bool),
    Deliver,
    Redrive(u8),
    Discard(u8),
    /// A report about a message that was sent.
    Receipt(u8, Report),
    Forget(u8),
    Wait(u8),
    /// Cancels the event of a notification.
    Cancel(u8),
}

/// An operation that names what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Named {
    Subscriber(Verb, Who, Option<u8>),
    Erase(Who),
    Workflow(Verb, u8),
    Pause(u8, bool),
    /// An update declares it, also where there is none.
    Integration(Verb, u8),
    Context(Verb, u8, u8),
    Prefer(Who, Flow, bool),
    PreferGlobally(Who, bool),
    Topic(Verb, u8, u8),
    Subscribe(u8, Who),
    Unsubscribe(u8, Who),
    Connection(Verb, u8, Who),
    Endpoint(Verb, u8, Who, Option<u8>),
    Layout(Verb, u8),
    Translation(Verb, Text, u8),
    Untranslate(Text),
    Suppress(u8, Option<u8>),
    Unsuppress(u8),
    ClearSuppressions,
    Key(u8),
    Environment(u8),
    Revoke(u8),
    /// Holds the workflow for e-mail, or lets it go on.
    Hold(bool),
}

/// Change of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Change {
    Seen,
    Read,
    Unread,
    Unseen,
    Archive,
    Unarchive,
    /// For so many seconds.
    Snooze(u8),
    Unsnooze,
    Delete,
}

/// Report of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Report {
    Delivered,
    Bounced,
    Complained,
}

/// One of three subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub struct Who(pub u8);

/// One of the workflows that are triggered: one for the inbox, one for e-mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Flow {
    Inbox,
    Mail,
}

/// A resource with translations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Text {
    Workflow(u8),
    Layout(u8),
}

impl Who {
    /// Its name.
    pub fn name(self) -> &'static str {
        ["ada", "bob", "cyd"][usize::from(self.0) % 3]
    }
}

impl Flow {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Flow::Inbox => "inbox",
            Flow::Mail => "mail",
        }
    }

    /// Its channel.
    pub fn channel(self) -> &'static str {
        match self {
            Flow::Inbox => "in_app",
            Flow::Mail => "email",
        }
    }
}

impl Text {
    /// Returns the text with a number that is one of two.
    #[must_use]
    pub fn normal(self) -> Self {
        match self {
            Text::Workflow(which) => Text::Workflow(which % 2),
            Text::Layout(which) => Text::Layout(which % 2),
        }
    }

    fn resource(self) -> Value {
        match self {
            Text::Workflow(which) => {
                json!({ "resourceType": "workflow", "resourceId": one_of("workflow", which) })
            }
            Text::Layout(which) => {
                json!({ "resourceType": "layout", "resourceId": one_of("layout", which) })
            }
        }
    }
}

/// One of two entities of a kind.
pub fn one_of(kind: &str, which: u8) -> String {
    format!("{kind}-{}", which % 2)
}

/// One of three addresses.
pub fn email(which: u8) -> String {
    format!("{}@example.org", ["info", "post", "mail"][usize::from(which) % 3])
}

/// One of two languages.
pub fn locale(which: u8) -> &'static str {
    ["de_DE", "fr_FR"][usize::from(which) % 2]
}

/// The key of one of two contexts.
pub fn context(which: u8) -> &'static str {
    ["app:web", "tenant:acme"][usize::from(which) % 2]
}

impl Named {
    /// The request, in the world as it is.
    pub fn request(self, world: &World) -> Value {
        match self {
            Named::Subscriber(verb, who, address) => subscriber(verb, who.name(), address),
            Named::Erase(who) => json!(["subscribers.erase", who.name()]),
            Named::Workflow(verb, which) => workflow(verb, &one_of("workflow", which)),
            Named::Pause(which, true) => json!(["workflows.pause", one_of("workflow", which)]),
            Named::Pause(which, false) => json!(["workflows.resume", one_of("workflow", which)]),
            Named::Integration(verb, which) => {
                integration(verb, &one_of("integration", which), world)
            }
            Named::Context(verb, which, data) => {
                let data = json!({ "seats": data });
                let key = context(which);
                let (kind, id) = key.split_once(':').unwrap_or_default();
                match verb {
                    Verb::Create => {
                        json!(["contexts.create", { "type": kind, "id": id, "data": data }])
                    }
                    Verb::Update => json!(["contexts.update", key, { "data": data }]),
                    Verb::Delete => json!(["contexts.delete", key]),
                }
            }
            Named::Prefer(who, flow, wanted) => {
                let said =
                    json!({ "workflowId": flow.name(), "channels": { flow.channel(): wanted } });
                json!(["preferences.update_bulk", who.name(), { "preferences": [said] }])
            }
            Named::PreferGlobally(who, wanted) => {
                let said = json!({ "channels": { "email": wanted, "in_app": wanted } });
                json!(["preferences.update_global", who.name(), said])
            }
            Named::Topic(verb, which, name) => topic(verb, &one_of("topic", which), name),
            Named::Subscribe(which, who) => {
                let topic = one_of("topic", which);
                json!(["topics.subscribe", topic, { "subscriptions": [who.name()] }])
            }
            Named::Unsubscribe(which, who) => {
                let topic = one_of("topic", which);
                let who = json!({ "subscriberId": who.name() });
                json!(["topics.unsubscribe", topic, { "subscriptions": [who] }])
            }
            Named::Connection(verb, which, who) => {
                connection(verb, &one_of("connection", which), who)
            }
            Named::Endpoint(verb, which, who, through) => {
                endpoint(verb, &one_of("endpoint", which), who, through)
            }
            Named::Layout(Verb::Delete, which) => {
                json!(["layouts.delete", one_of("layout", which)])
            }
            Named::Layout(Verb::Create | Verb::Update, which) => {
                let id = one_of("layout", which);
                json!(["layouts.upsert", { "layoutId": id, "name": id }])
            }
            Named::Translation(Verb::Delete, text, language) => {
                json!(["translations.delete", text.resource(), locale(language)])
            }
            Named::Translation(verb, text, language) => {
                let mut upsert = text.resource();
                upsert["locale"] = json!(locale(language));
                upsert["content"] = json!({ "hello": format!("{verb:?}") });
                json!(["translations.upsert", upsert])
            }
            Named::Untranslate(text) => json!(["translations.delete_group", text.resource()]),
            Named::Suppress(which, seconds) => {
                let mut create = json!({ "channel": "email", "address": email(which) });
                if let Some(seconds) = seconds {
                    create["expiresAt"] = json!(world.now().after(span(seconds)));
                }
                json!(["suppressions.add", create])
            }
            Named::Unsuppress(which) => json!(["suppressions.remove", "email", email(which)]),
            Named::ClearSuppressions => json!(["suppressions.clear", "email"]),
            Named::Key(which) => json!(["keys.create", { "name": one_of("key", which) }]),
            Named::Environment(which) => {
                json!(["environments.create", { "name": one_of("env", which), "color": "#fff" }])
            }
            Named::Revoke(which) => {
                let id = id(world, "keys.list", "name", &one_of("key", which));
                json!(["keys.revoke", id])
            }
            Named::Hold(true) => json!(["workflows.pause", Flow::Mail.name()]),
            Named::Hold(false) => json!(["workflows.resume", Flow::Mail.name()]),
        }
    }
}

impl Named {
    /// The request for what a deletion is about.
    pub fn of_what_is_gone(self) -> Option<Value> {
        Some(match self {
            Named::Subscriber(Verb::Delete, who, _) | Named::Erase(who) => {
                json!(["subscribers.get", who.name()])
            }
            Named::Workflow(Verb::Delete, which) => {
                json!(["workflows.get", one_of("workflow", which)])
            }
            Named::Context(Verb::Delete, which, _) => json!(["contexts.get", context(which)]),
            Named::Topic(Verb::Delete, which, _) => json!(["topics.get", one_of("topic", which)]),
            Named::Connection(Verb::Delete, which, _) => {
                json!(["channel_connections.get", one_of("connection", which)])
            }
            Named::Endpoint(Verb::Delete, which, ..) => {
                json!(["channel_endpoints.get", one_of("endpoint", which)])
            }
            Named::Layout(Verb::Delete, which) => json!(["layouts.get", one_of("layout", which)]),
            Named::Subscriber(..)
            | Named::Workflow(..)
            | Named::Pause(..)
            | Named::Integration(..)
            | Named::Context(..)
            | Named::Prefer(..)
            | Named::PreferGlobally(..)
            | Named::Topic(..)
            | Named::Subscribe(..)
            | Named::Unsubscribe(..)
            | Named::Connection(..)
            | Named::Endpoint(..)
            | Named::Layout(..)
            | Named::Translation(..)
            | Named::Untranslate(..)
            | Named::Suppress(..)
            | Named::Unsuppress(..)
            | Named::ClearSuppressions
            | Named::Key(..)
            | Named::Environment(..)
            | Named::Revoke(..)
            | Named::Hold(..) => return None,
        })
    }
}

/// A span of some seconds.
pub fn span(seconds: u8) -> std::time::Duration {
    std::time::Duration::from_secs(1 + u64::from(seconds % 8))
}

/// The telephone number of those who have an e-mail address.
pub fn phone(email: &str) -> String {
    format!("phone of {email}")
}

/// The name of those who have an e-mail address.
pub fn called(email: &str) -> String {
    format!("Reader of {email}")
}

fn subscriber(verb: Verb, name: &str, address: Option<u8>) -> Value {
    let mut profile = json!({});
    if let Some(address) = address.map(email) {
        profile["phone"] = json!(phone(&address));
        profile["firstName"] = json!(called(&address));
        profile["email"] = json!(address);
    }
    match verb {
        Verb::Create => {
            profile["subscriberId"] = json!(name);
            json!(["subscribers.create", profile])
        }
        Verb::Update => json!(["subscribers.update", name, profile]),
        Verb::Delete => json!(["subscribers.delete", name]),
    }
}

fn integration(verb: Verb, name: &str, world: &World) -> Value {
    let mut create = json!({ "identifier": name, "providerId": "twilio", "channel": "sms" });
    match verb {
        Verb::Create => json!(["integrations.create", create]),
        Verb::Update => {
            create["name"] = json!("Another");
            json!(["integrations.upsert", create])
        }
        Verb::Delete => {
            json!(["integrations.delete", id(world, "integrations.list", "identifier", name), {}])
        }
    }
}

/// The id of the item of a list that has `name` in a field, or one that no item has.
fn id(world: &World, list: &str, field: &str, name: &str) -> Value {
    let found = listed(world, &json!([list])).into_iter().find(|item| item[field] == name);
    found.map_or(json!("00000000-0000-7000-8000-000000000000"), |item| item["_id"].clone())
}

fn workflow(verb: Verb, name: &str) -> Value {
    match verb {
        Verb::Create => {
            json!(["workflows.create", { "workflowId": name, "name": name, "steps": [] }])
        }
        Verb::Update => json!(["workflows.update", name, { "name": "Another" }]),
        Verb::Delete => json!(["workflows.delete", name]),
    }
}

fn topic(verb: Verb, key: &str, name: u8) -> Value {
    let name = format!("Topic {name}");
    match verb {
        Verb::Create => json!(["topics.create", { "key": key, "name": name }]),
        Verb::Update => json!(["topics.update", key, { "name": name }]),
        Verb::Delete => json!(["topics.delete", key]),
    }
}

fn connection(verb: Verb, name: &str, who: Who) -> Value {
    let workspace = json!({ "id": format!("T-{}", who.name()) });
    match verb {
        Verb::Create => json!(["channel_connections.create", {
            "identifier": name, "integrationIdentifier": "slack", "subscriberId": who.name(),
            "workspace": workspace, "auth": { "accessToken": "secret" },
        }]),
        Verb::Update => json!(["channel_connections.update", name, { "workspace": workspace }]),
        Verb::Delete => json!(["channel_connections.delete", name]),
    }
}

fn endpoint(verb: Verb, name: &str, who: Who, through: Option<u8>) -> Value {
    let endpoint = json!({ "channelId": format!("C-{}", who.name()) });
    match verb {
        Verb::Create => {
            let mut create = json!({
                "identifier": name, "integrationIdentifier": "slack", "subscriberId": who.name(),
                "type": "slack_channel", "endpoint": endpoint,
            });
            if let Some(through) = through {
                create["connectionIdentifier"] = json!(one_of("connection", through));
            }
            json!(["channel_endpoints.create", create])
        }
        Verb::Update => json!(["channel_endpoints.update", name, { "endpoint": endpoint }]),
        Verb::Delete => json!(["channel_endpoints.delete", name]),
    }
}
