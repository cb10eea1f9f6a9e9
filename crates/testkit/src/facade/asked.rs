//! Calls that are written as requests: those about channels, topics and texts.

use arbitrary::Arbitrary;
use domain::message::MarkAs;
use serde_json::{Value, json};

use super::inputs::{About, Event, Mark, Which, Who};

/// Queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Asked {
    Context(Verb, u8, u8),
    Connection(Verb, Channel),
    Endpoint(Verb, Channel),
    Topic(Verb, u8, u8),
    /// Subscribers, as one bit for each of the four.
    Subscribe(u8, u8, About, Option<Wish>),
    Unsubscribe(u8, u8),
    Subscription(u8, Who, Wish),
    Layout(Verb, u8, bool),
    Translation(Verb, u8, u8),
    Untranslate(u8),
    Import(u8, u8),
    /// Topics, as one bit for each.
    Trigger(Event, u8),
    /// Messages of an inbox, by bits: read, seen, archived, snoozed, tagged, of high severity.
    Inbox(Who, Change, u8),
}

/// Change of the messages of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Change {
    Mark(Mark),
    Archive,
    Unarchive,
    Delete,
    /// Until a second of an hour.
    Snooze(u8),
    Unsnooze,
}

/// Action on an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Verb {
    Create,
    Update,
    Delete,
}

/// A connection or an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Channel {
    pub name: u8,
    pub account: u8,
    pub who: Option<Who>,
    pub about: About,
}

/// Preference of a subscription about a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Wish {
    pub workflow: Which,
    pub enabled: bool,
    pub if_urgent: bool,
}

impl Asked {
    /// The request.
    pub fn request(self) -> Value {
        match self {
            Asked::Context(verb, which, data) => {
                let (kind, id) = [("tenant", "acme"), ("app", "web")][usize::from(which) % 2];
                let (key, data) = (format!("{kind}:{id}"), json!({ "seats": data }));
                match verb {
                    Verb::Create => {
                        json!(["contexts.create", { "type": kind, "id": id, "data": data }])
                    }
                    Verb::Update => json!(["contexts.update", key, { "data": data }]),
                    Verb::Delete => json!(["contexts.delete", key]),
                }
            }
            Asked::Connection(verb, channel) => channel.connection(verb),
            Asked::Endpoint(verb, channel) => channel.endpoint(verb),
            Asked::Topic(verb, which, name) => {
                let (key, name) = (topic(which), json!({ "name": format!("Topic {name}") }));
                match verb {
                    Verb::Create => json!(["topics.create", { "key": key, "name": name["name"] }]),
                    Verb::Update => json!(["topics.update", key, name]),
                    Verb::Delete => json!(["topics.delete", key]),
                }
            }
            Asked::Subscribe(which, to, about, wish) => {
                let wishes: Vec<_> = wish.into_iter().map(Wish::word).collect();
                let subscribe = json!({ "subscriptions": told(to), "preferences": wishes });
                json!(["topics.subscribe", topic(which), about.added_to(subscribe)])
            }
            Asked::Unsubscribe(which, to) => {
                json!(["topics.unsubscribe", topic(which), { "subscriptions": told(to) }])
            }
            Asked::Subscription(which, who, wish) => {
                let made = format!("tk_{}:si_{}", topic(which), who.id());
                let update = json!({ "preferences": [wish.word()] });
                json!(["topics.update_subscription", topic(which), made, update])
            }
            Asked::Layout(verb, which, is_translated) => match verb {
                Verb::Create | Verb::Update => json!(["layouts.upsert", {
                    "layoutId": layout(which), "name": format!("{verb:?}"),
                    "isTranslationEnabled": is_translated,
                }]),
                Verb::Delete => json!(["layouts.delete", layout(which)]),
            },
            Asked::Translation(verb, which, language) => {
                let (resource, locale) = (resource(which), locale(language));
                match verb {
                    Verb::Create | Verb::Update => json!(["translations.upsert", {
                        "resourceType": resource["resourceType"],
                        "resourceId": resource["resourceId"],
                        "locale": locale, "content": { "hello": format!("{verb:?}") },
                    }]),
                    Verb::Delete => json!(["translations.delete", resource, locale]),
                }
            }
            Asked::Untranslate(which) => json!(["translations.delete_group", resource(which)]),
            Asked::Import(which, language) => {
                let workflows = json!({ Which(which).name(): { "hello": "Hi" }, "nobody": {} });
                let texts = json!({ "workflows": workflows, "layouts": { layout(which): {} } });
                json!(["translations.import", { "locale": locale(language), "masterJson": texts }])
            }
            Asked::Trigger(event, topics) => {
                let mut trigger = json!(event.trigger());
                let named = (0..2).filter(|bit| topics >> bit & 1 == 1);
                let named = named.map(|which| json!({ "type": "Topic", "topicKey": topic(which) }));
                if let Some(to) = trigger["to"].as_array_mut() {
                    to.extend(named);
                }
                json!(["events.trigger", trigger])
            }
            Asked::Inbox(who, change, bits) => change.request(who, &selected(bits)),
        }
    }
}

impl Change {
    fn request(self, who: Who, query: &Value) -> Value {
        match self {
            Change::Mark(mark) => {
                json!(["inbox.mark_matching", who.id(), query, MarkAs::from(mark)])
            }
            Change::Archive => json!(["inbox.archive_matching", who.id(), query]),
            Change::Unarchive => json!(["inbox.unarchive_matching", who.id(), query]),
            Change::Delete => json!(["inbox.delete_matching", who.id(), query]),
            Change::Snooze(second) => {
                let until = format!("2026-11-20T13:00:{:02}Z", second % 60);
                json!(["inbox.snooze_matching", who.id(), query, until])
            }
            Change::Unsnooze => json!(["inbox.unsnooze_matching", who.id(), query]),
        }
    }
}

// A query of messages: two bits for `read`, one for each of the others.
fn selected(bits: u8) -> Value {
    let is = |bit: u8| bits >> bit & 1 == 1;
    let mut query = json!({ "archived": is(2), "snoozed": is(3) });
    for (bit, name, value) in [
        (0, "read", json!(is(1))),
        (4, "tags", json!(["tag"])),
        (5, "severity", json!(["high"])),
        (6, "seen", json!(is(7))),
    ] {
        if is(bit) {
            query[name] = value;
        }
    }
    query
}

impl Channel {
    fn connection(self, verb: Verb) -> Value {
        let name = format!("connection-{}", self.name % 3);
        let workspace = json!({ "id": format!("T{}", self.account) });
        match verb {
            Verb::Create => {
                let mut create = json!({
                    "identifier": name, "integrationIdentifier": self.account(),
                    "workspace": workspace, "auth": { "accessToken": "secret" },
                });
                if let Some(who) = self.who {
                    create["subscriberId"] = json!(who.id());
                }
                json!(["channel_connections.create", self.about.added_to(create)])
            }
            Verb::Update => json!(["channel_connections.update", name, { "workspace": workspace }]),
            Verb::Delete => json!(["channel_connections.delete", name]),
        }
    }

    fn endpoint(self, verb: Verb) -> Value {
        let name = format!("endpoint-{}", self.name % 3);
        let endpoint = json!({ "channelId": format!("C{}", self.account) });
        match verb {
            Verb::Create => {
                let mut create = json!({
                    "identifier": name, "integrationIdentifier": self.account(),
                    "subscriberId": self.who.unwrap_or(Who(0)).id(), "type": "slack_channel",
                    "endpoint": endpoint,
                });
                if self.who.is_none() {
                    create["connectionIdentifier"] = json!(format!("connection-{}", self.name % 3));
                }
                json!(["channel_endpoints.create", self.about.added_to(create)])
            }
            Verb::Update => json!(["channel_endpoints.update", name, { "endpoint": endpoint }]),
            Verb::Delete => json!(["channel_endpoints.delete", name]),
        }
    }

    fn account(self) -> String {
        format!("account-{}", self.account % 3)
    }
}

impl Wish {
    fn word(self) -> Value {
        let mut word = json!({ "workflowId": self.workflow.name(), "enabled": self.enabled });
        if self.if_urgent {
            word["condition"] = json!({ "==": [{ "var": "payload.urgent" }, true] });
        }
        word
    }
}

impl About {
    fn added_to(self, mut request: Value) -> Value {
        if let Some(context) = self.payload() {
            request["context"] = json!(context);
        }
        request
    }
}

/// One of two topics.
pub(super) fn topic(which: u8) -> &'static str {
    ["news", "product:1"][usize::from(which) % 2]
}

fn told(to: u8) -> Vec<Value> {
    (0..4).filter(|bit| to >> bit & 1 == 1).map(|bit| json!(Who(bit).id())).collect()
}

fn layout(which: u8) -> &'static str {
    ["plain", "framed"][usize::from(which) % 2]
}

fn locale(which: u8) -> &'static str {
    ["de_DE", "en_GB"][usize::from(which) % 2]
}

fn resource(which: u8) -> Value {
    if which.is_multiple_of(3) {
        json!({ "resourceType": "layout", "resourceId": layout(which / 3) })
    } else {
        json!({ "resourceType": "workflow", "resourceId": Which(which / 3).name() })
    }
}
