//! The files, read and written again.

use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use domain::api_key::{ApiKey, ApiKeyCreate, CreatedApiKey};
use domain::connection::{
    ChannelConnection, ChannelConnectionCreate, ChannelConnectionQuery, ChannelConnectionUpdate,
};
use domain::context::{Context, ContextCreate, ContextQuery, ContextUpdate};
use domain::dead_letter::{DeadLetter, DeadLetterQuery};
use domain::endpoint::{
    ChannelEndpoint, ChannelEndpointCreate, ChannelEndpointQuery, ChannelEndpointUpdate,
    EndpointType,
};
use domain::environment::{Environment, EnvironmentCreate, EnvironmentUpdate};
use domain::ids::DeadLetterId;
use domain::integration::{Integration, IntegrationCreate, IntegrationDelete, IntegrationUpdate};
use domain::layout::{Layout, LayoutQuery, LayoutUpsert};
use domain::message::{CompleteAction, MarkMessages, Message, MessageQuery};
use domain::notification::{Notification, NotificationPage, NotificationQuery};
use domain::page::{ForwardPage, Page};
use domain::preference::{
    GlobalPreferenceUpdate, Preferences, PreferencesQuery, UpdatedPreference,
    WorkflowPreferenceUpdates,
};
use domain::preview::Preview;
use domain::receipt::Receipt;
use domain::subscriber::{
    ChannelSettings, Subscriber, SubscriberCreate, SubscriberQuery, SubscriberUpdate,
};
use domain::subscription::{
    Subscribe, Subscription, SubscriptionQuery, SubscriptionUpdate, Subscriptions, Unsubscribe,
};
use domain::suppression::{SuppressionCreate, SuppressionQuery};
use domain::topic::{Topic, TopicCreate, TopicQuery, TopicUpdate};
use domain::translation::{
    ImportResult, Resource, Translation, TranslationImport, TranslationQuery, TranslationUpsert,
};
use domain::trigger::{Broadcast, Trigger, TriggerReceipt};
use domain::unsubscribe::UnsubscribeRequest;
use domain::vocabulary::Channel;
use domain::workflow::{Workflow, WorkflowCreate, WorkflowQuery, WorkflowSync, WorkflowUpdate};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::document::{self, Structure};

/// A pair of files, and what is read from them.
pub struct Golden {
    pub file: &'static str,
    /// Name of the type.
    pub of: &'static str,
    structure: &'static Structure,
    pub rewrite: fn(Value) -> Result<Value, serde_json::Error>,
    print: fn(Value) -> String,
    /// What a request says where it says nothing.
    defaults: Value,
}

fn response<T: fmt::Debug + Serialize + DeserializeOwned>(
    file: &'static str,
    structure: &'static Structure,
) -> Golden {
    request::<T>(file, structure, json!({}))
}

fn request<T: fmt::Debug + Serialize + DeserializeOwned>(
    file: &'static str,
    structure: &'static Structure,
    defaults: Value,
) -> Golden {
    let rewrite = |json| serde_json::to_value(serde_json::from_value::<T>(json)?);
    let print = |json| format!("{:?}", serde_json::from_value::<T>(json).unwrap());
    Golden { file, of: type_name::<T>(), structure, rewrite, print, defaults }
}

fn first_page() -> Value {
    json!({ "includeCursor": false })
}

pub fn goldens() -> Vec<Golden> {
    let mut all = of_channels();
    all.extend(of_topics());
    all.extend(of_translations());
    all.extend(of_environments());
    all.extend(of_messages());
    all
}

fn of_channels() -> Vec<Golden> {
    let create = |file, structure| request::<ChannelEndpointCreate>(file, structure, json!({}));
    vec![
        response::<ChannelEndpoint>("channel_endpoint", &document::CHANNEL_ENDPOINT),
        create("channel_endpoint_create_slack_channel", &document::SLACK_CHANNEL_CREATE),
        create("channel_endpoint_create_slack_user", &document::SLACK_USER_CREATE),
        create("channel_endpoint_create_webhook", &document::WEBHOOK_CREATE),
        create("channel_endpoint_create_phone", &document::PHONE_CREATE),
        create("channel_endpoint_create_ms_teams_channel", &document::MS_TEAMS_CHANNEL_CREATE),
        create("channel_endpoint_create_ms_teams_user", &document::MS_TEAMS_USER_CREATE),
        response::<ChannelEndpointUpdate>(
            "channel_endpoint_update",
            &document::CHANNEL_ENDPOINT_UPDATE,
        ),
        request::<ChannelEndpointQuery>(
            "channel_endpoint_query",
            &document::CHANNEL_ENDPOINT_QUERY,
            first_page(),
        ),
        response::<ChannelConnection>("channel_connection", &document::CHANNEL_CONNECTION),
        response::<ChannelConnectionCreate>(
            "channel_connection_create",
            &document::CHANNEL_CONNECTION_CREATE,
        ),
        response::<ChannelConnectionUpdate>(
            "channel_connection_update",
            &document::CHANNEL_CONNECTION_UPDATE,
        ),
        request::<ChannelConnectionQuery>(
            "channel_connection_query",
            &document::CHANNEL_CONNECTION_QUERY,
            first_page(),
        ),
        response::<Page<ChannelConnection>>(
            "channel_connection_page",
            &document::CHANNEL_CONNECTION_PAGE,
        ),
    ]
}

fn of_topics() -> Vec<Golden> {
    vec![
        response::<Topic>("topic", &document::TOPIC),
        response::<TopicCreate>("topic_create", &document::TOPIC_CREATE),
        response::<TopicUpdate>("topic_update", &document::TOPIC_UPDATE),
        request::<TopicQuery>("topic_query", &document::TOPIC_QUERY, first_page()),
        response::<Page<Topic>>("topic_page", &document::TOPIC_PAGE),
        response::<Subscription>("subscription", &document::SUBSCRIPTION),
        response::<Subscribe>("subscribe", &document::SUBSCRIBE),
        response::<Unsubscribe>("unsubscribe", &document::UNSUBSCRIBE),
        request::<UnsubscribeRequest>(
            "unsubscribe_request_topic",
            &document::UNSUBSCRIBE_TOPIC,
            json!({ "contextKeys": [] }),
        ),
        request::<UnsubscribeRequest>(
            "unsubscribe_request_workflow",
            &document::UNSUBSCRIBE_WORKFLOW,
            json!({ "contextKeys": [] }),
        ),
        response::<SubscriptionUpdate>("subscription_update", &document::SUBSCRIPTION_UPDATE),
        request::<SubscriptionQuery>(
            "subscription_query",
            &document::SUBSCRIPTION_QUERY,
            first_page(),
        ),
        response::<Subscriptions>("subscriptions", &document::SUBSCRIPTIONS),
    ]
}

fn of_translations() -> Vec<Golden> {
    vec![
        response::<Translation>("translation", &document::TRANSLATION),
        response::<Resource>("resource", &document::RESOURCE),
        response::<TranslationUpsert>("translation_upsert", &document::TRANSLATION_UPSERT),
        response::<TranslationImport>("translation_import", &document::TRANSLATION_IMPORT),
        response::<ImportResult>("import_result", &document::IMPORT_RESULT),
        request::<TranslationQuery>(
            "translation_query",
            &document::TRANSLATION_QUERY,
            first_page(),
        ),
        response::<Layout>("layout", &document::LAYOUT),
        response::<LayoutUpsert>("layout_upsert", &document::LAYOUT_UPSERT),
        request::<LayoutQuery>("layout_query", &document::LAYOUT_QUERY, first_page()),
    ]
}

fn of_environments() -> Vec<Golden> {
    vec![
        response::<ApiKeyCreate>("api_key_create", &document::API_KEY_CREATE),
        response::<CreatedApiKey>("created_api_key", &document::CREATED_API_KEY),
        response::<ApiKey>("environment_key", &document::ENVIRONMENT_KEY),
        response::<Environment>("environment", &document::ENVIRONMENT),
        response::<EnvironmentCreate>("environment_create", &document::ENVIRONMENT_CREATE),
        response::<EnvironmentUpdate>("environment_update", &document::ENVIRONMENT_UPDATE),
        response::<Integration>("integration", &document::INTEGRATION),
        request::<IntegrationCreate>(
            "integration_create",
            &document::INTEGRATION_CREATE,
            json!({ "credentials": {}, "conditions": [] }),
        ),
        response::<IntegrationUpdate>("integration_update", &document::INTEGRATION_UPDATE),
        request::<IntegrationDelete>(
            "integration_delete",
            &document::INTEGRATION_DELETE,
            json!({ "promote": false }),
        ),
        response::<Subscriber>("subscriber", &document::SUBSCRIBER),
        response::<SubscriberCreate>("subscriber_create", &document::SUBSCRIBER_CREATE),
        response::<ChannelSettings>("channel_settings", &document::CHANNEL_SETTINGS),
        response::<SubscriberUpdate>("subscriber_update", &document::SUBSCRIBER_UPDATE),
        request::<SubscriberQuery>("subscriber_query", &document::SUBSCRIBER_QUERY, first_page()),
        response::<SuppressionCreate>("suppression_create", &document::SUPPRESSION_CREATE),
        request::<SuppressionQuery>(
            "suppression_query",
            &document::SUPPRESSION_QUERY,
            first_page(),
        ),
        response::<Workflow>("workflow", &document::WORKFLOW),
        request::<WorkflowCreate>(
            "workflow_create",
            &document::WORKFLOW_CREATE,
            json!({
                "description": "", "critical": false,
                "isTranslationEnabled": false, "severity": "none", "tags": [],
                "preferenceSettings": {},
            }),
        ),
        response::<WorkflowUpdate>("workflow_update", &document::WORKFLOW_UPDATE),
        request::<WorkflowSync>(
            "workflow_sync",
            &document::WORKFLOW_SYNC,
            json!({ "undeclared": "keep" }),
        ),
        request::<WorkflowQuery>("workflow_query", &document::WORKFLOW_QUERY, first_page()),
        response::<Context>("context", &document::CONTEXT),
        request::<ContextCreate>(
            "context_create",
            &document::CONTEXT_CREATE,
            json!({ "data": {} }),
        ),
        response::<ContextUpdate>("context_update", &document::CONTEXT_UPDATE),
        request::<ContextQuery>("context_query", &document::CONTEXT_QUERY, first_page()),
    ]
}

fn of_messages() -> Vec<Golden> {
    vec![
        response::<Message>("message", &document::MESSAGE),
        response::<MarkMessages>("mark_messages", &document::MARK_MESSAGES),
        response::<CompleteAction>("complete_action", &document::COMPLETE_ACTION),
        request::<MessageQuery>("message_query", &document::MESSAGE_QUERY, first_page()),
        response::<Notification>("notification", &document::NOTIFICATION),
        response::<NotificationPage>("notification_page", &document::NOTIFICATION_PAGE),
        request::<NotificationQuery>(
            "notification_query",
            &document::NOTIFICATION_QUERY,
            json!({ "page": 0 }),
        ),
        response::<ForwardPage<DeadLetter, DeadLetterId>>(
            "dead_letter_page",
            &document::DEAD_LETTER_PAGE,
        ),
        request::<DeadLetterQuery>("dead_letter_query", &document::DEAD_LETTER_QUERY, json!({})),
        response::<Page<Subscriber>>("page", &document::PAGE),
        response::<Preferences>("preferences", &document::PREFERENCES),
        request::<PreferencesQuery>(
            "preferences_query",
            &document::PREFERENCES_QUERY,
            json!({ "criticality": "nonCritical", "contextKeys": [] }),
        ),
        response::<Vec<UpdatedPreference>>(
            "bulk_preferences_result",
            &document::UPDATED_PREFERENCE,
        ),
        response::<WorkflowPreferenceUpdates>("bulk_preferences", &document::BULK_PREFERENCES),
        request::<GlobalPreferenceUpdate>(
            "global_preference_update",
            &document::GLOBAL_PREFERENCE_UPDATE,
            json!({ "channels": {} }),
        ),
        request::<Broadcast>("broadcast", &document::BROADCAST, json!({ "payload": {} })),
        request::<Preview>("preview", &document::PREVIEW, json!({ "payload": {} })),
        response::<Receipt>("receipt", &document::RECEIPT),
        request::<Trigger>("trigger", &document::TRIGGER, json!({ "payload": {} })),
        request::<Trigger>("trigger_topic", &document::TRIGGER_TOPIC, json!({ "payload": {} })),
        response::<TriggerReceipt>("trigger_receipt", &document::TRIGGER_RECEIPT),
    ]
}

impl Golden {
    pub fn full(&self) -> Value {
        read(&format!("{}.full.json", self.file))
    }

    pub fn minimal(&self) -> Value {
        read(&format!("{}.minimal.json", self.file))
    }

    pub fn rewritten(&self, json: Value) -> Value {
        (self.rewrite)(json).unwrap_or_else(|error| panic!("{}: {error}", self.file))
    }

    /// `json` after `change` was done to every object in it that has a structure.
    pub fn changed(
        &self,
        mut json: Value,
        mut change: impl FnMut(&Structure, &mut Map<String, Value>),
    ) -> Value {
        self.structure.walk(&mut json, &mut change);
        json
    }

    /// The minimal file with what it leaves to be filled in.
    fn completed(&self) -> Value {
        let mut json = self.minimal();
        if let (Value::Object(json), Value::Object(defaults)) = (&mut json, &self.defaults) {
            json.extend(defaults.clone());
        }
        json
    }
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/wire"))
}

fn read(file: &str) -> Value {
    let text = fs::read_to_string(folder().join(file));
    let text = text.unwrap_or_else(|error| panic!("{file}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn keys(object: &Map<String, Value>) -> BTreeSet<&str> {
    object.keys().map(String::as_str).collect()
}

#[test]
fn what_is_read_is_written_again() {
    for golden in goldens() {
        assert_eq!(golden.rewritten(golden.full()), golden.full(), "{}.full", golden.file);
        let written = golden.rewritten(golden.minimal());
        assert_eq!(written, golden.completed(), "{}.minimal", golden.file);
        assert_eq!(golden.rewritten(written.clone()), written, "{}", golden.file);
    }
}

/// Everywhere in the full files there is what must be there and nothing that is not known, and
/// every field of every structure is somewhere.
#[test]
fn the_full_files_have_every_field_of_the_specification() {
    for golden in goldens() {
        let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        golden.changed(golden.full(), |structure, object| {
            let (keys, every) = (keys(object), structure.every());
            let place = format!("{}.full: {}", golden.file, structure.name);
            assert_eq!(keys.difference(&every).collect::<Vec<_>>(), [&""; 0], "{place}: unknown");
            let missing: Vec<_> = structure.required().difference(&keys).copied().collect();
            assert_eq!(missing, [""; 0], "{place}: missing");
            seen.entry(structure.name).or_default().extend(object.keys().cloned());
        });
        for structure in golden.structure.with_inside() {
            let seen = seen.remove(structure.name).unwrap_or_default();
            let every = structure.every().into_iter().map(str::to_owned).collect();
            assert_eq!(seen, every, "{}.full: {}", golden.file, structure.name);
        }
    }
}

/// A new field that may be absent is not in the files, but it is in what is read from them.
#[test]
fn the_full_files_leave_nothing_unset() {
    for golden in goldens() {
        let text = (golden.print)(golden.full());
        let (mut set, mut unset) = (BTreeSet::new(), BTreeSet::new());
        for part in text.split([',', '{', '(']) {
            let Some((name, value)) = part.trim().split_once(": ") else { continue };
            match value.trim_end_matches([' ', '}']) {
                "None" | "[]" | "Keep" => unset.insert(name),
                _ => set.insert(name),
            };
        }
        let kept: &[&str] = match golden.file {
            // A step of a new workflow keeps no step.
            "workflow_create" | "workflow_sync" => &["id"],
            _ => &[],
        };
        let never = unset.difference(&set).copied().filter(|name| !ADDED.contains(name));
        let never: Vec<_> = never.collect();
        assert_eq!(never, kept, "{}.full", golden.file);
    }
}

/// Fields that the specification does not have.
const ADDED: [&str; 24] = [
    "actor",
    "actor_id",
    "awaits",
    "body",
    "cron_expression",
    "default_locale",
    "dynamic_key",
    "event_count",
    "expires_at",
    "extend_to_schedule",
    "is_default",
    "last_change",
    "last_event",
    "layout_id",
    "listed_at",
    "missing_variables",
    "on_past",
    "outcomes",
    "outside",
    "paused_at",
    "result",
    "run_if",
    "undeclared_at",
    "window_type",
];

#[test]
fn the_minimal_files_have_nothing_that_may_be_absent() {
    for golden in goldens() {
        golden.changed(golden.minimal(), |structure, object| {
            let place = format!("{}.minimal: {}", golden.file, structure.name);
            assert_eq!(keys(object), structure.least(), "{place}");
        });
    }
}

#[test]
fn what_may_be_absent_stays_absent() {
    for golden in goldens() {
        for structure in golden.structure.with_inside() {
            let is_whole = structure.name == golden.structure.name;
            for field in structure.free() {
                if is_whole && golden.defaults.get(field).is_some() {
                    continue;
                }
                let without = golden.changed(golden.full(), |at, object| {
                    if at.name == structure.name {
                        object.remove(field);
                    }
                });
                let place = format!("{}.full: {} without {field}", golden.file, structure.name);
                assert_eq!(golden.rewritten(without.clone()), without, "{place}");
            }
        }
    }
}

/// What is always written, and filled in where it is absent.
const FILLED_IN: [(&str, &str); 4] = [
    ("integration", "priority"),
    ("subscribe", "subscriptions"),
    ("trigger_receipt", "notifications"),
    ("unsubscribe", "subscriptions"),
];

#[test]
fn what_must_be_there_is_asked_for() {
    for golden in goldens().iter().filter(|golden| golden.minimal().is_object()) {
        for field in golden.structure.required() {
            let mut json = golden.minimal();
            let is_null = json.as_object_mut().unwrap().remove(field) == Some(Value::Null);
            let may_be_absent = is_null || FILLED_IN.contains(&(golden.file, field));
            let is_read = (golden.rewrite)(json).is_ok();
            assert_eq!(is_read, may_be_absent, "{} without {field}", golden.file);
        }
    }
}

#[test]
fn what_is_not_known_is_ignored() {
    for golden in goldens() {
        for json in [golden.full(), golden.minimal()] {
            let expected = golden.rewritten(json.clone());
            let strange = golden.changed(json, |structure, object| {
                if !structure.closed {
                    object.insert("unheardOf".into(), json!({ "of": ["any", "kind"] }));
                }
            });
            assert_eq!(golden.rewritten(strange), expected, "{}", golden.file);
        }
    }
}

/// What must be there and may be null is written as null; what may be absent as well is left out.
#[test]
fn null_is_written_where_something_must_be() {
    let mut nulls = BTreeMap::new();
    for golden in goldens() {
        let nulled = golden.changed(golden.minimal(), |structure, object| {
            for (field, _) in structure.nullable() {
                object.insert(field.into(), Value::Null);
            }
        });
        let expected = golden.changed(golden.completed(), |structure, object| {
            for (field, _) in structure.nullable().filter(|(_, may_be_absent)| !may_be_absent) {
                object.insert(field.into(), Value::Null);
                *nulls.entry(golden.file).or_default() += 1;
            }
        });
        assert_eq!(golden.rewritten(nulled), expected, "{}", golden.file);
    }
    let expected = [
        ("channel_connection", 3),
        ("channel_connection_page", 2 + 3),
        ("channel_endpoint", 3),
        ("page", 2),
        ("topic_page", 2),
        ("workflow", 2),
    ];
    assert_eq!(nulls, expected.into());
}

#[test]
fn an_update_clears_what_is_null() {
    let clears = |file, fields: &[&str]| {
        let golden = goldens().into_iter().find(|golden| golden.file == file).unwrap();
        for field in fields {
            let mut expected = golden.completed();
            expected[*field] = Value::Null;
            let json = json!({ *field: null });
            assert_eq!(golden.rewritten(json), expected, "{file}.{field}");
        }
    };
    let profile =
        ["firstName", "lastName", "email", "phone", "avatar", "locale", "timezone", "data"];
    clears("subscriber_update", &profile);
    clears("integration_update", &["configurations", "fallback"]);
    clears("workflow_update", &["preferences", "data"]);
    clears("global_preference_update", &["enabled", "condition", "schedule"]);
    clears("topic_update", &["name"]);
    clears("subscription_update", &["name"]);
}

#[test]
fn a_preference_may_take_back_each_of_its_settings() {
    let golden = |file| goldens().into_iter().find(|golden| golden.file == file).unwrap();
    let mut json = read("bulk_preferences.full.json");
    let one = &mut json["preferences"][0];
    (one["condition"], one["enabled"]) = (Value::Null, Value::Null);
    for channel in Channel::ALL {
        one["channels"][channel.as_str()] = Value::Null;
    }
    let channels = one["channels"].clone();
    assert_eq!(golden("bulk_preferences").rewritten(json.clone()), json);
    let json = json!({ "channels": channels });
    assert_eq!(golden("global_preference_update").rewritten(json.clone()), json);
}

/// An endpoint is shown with the place that it was created with, whatever type it is of.
#[test]
fn an_endpoint_of_every_type_is_read_as_it_is_written() {
    for kind in EndpointType::ALL {
        for variant in ["full", "minimal"] {
            let create = read(&format!("channel_endpoint_create_{kind}.{variant}.json"));
            let mut endpoint = read("channel_endpoint.full.json");
            for field in ["type", "endpoint"] {
                endpoint[field] = create[field].clone();
            }
            let read = ChannelEndpoint::deserialize(&endpoint).unwrap();
            assert_eq!(read.endpoint.kind(), *kind);
            assert_eq!(serde_json::to_value(read).unwrap(), endpoint);
        }
    }
}

/// What may be written short, and how it is written in full.
#[test]
fn a_request_may_be_short() {
    fn check<T: Serialize + DeserializeOwned>(short: Value, full: &str) {
        let read_short: T = serde_json::from_value(short).unwrap();
        assert_eq!(serde_json::to_value(read_short).unwrap(), read(full), "{full}");
    }
    let id = read("mark_messages.minimal.json")["messageId"][0].clone();
    check::<MarkMessages>(
        json!({ "messageId": id, "markAs": "unseen" }),
        "mark_messages.minimal.json",
    );
    check::<Subscribe>(json!({ "subscriptions": ["ada"] }), "subscribe.minimal.json");
    check::<Subscribe>(json!({ "subscriberIds": ["ada"] }), "subscribe.minimal.json");
    check::<TranslationImport>(
        json!({ "locale": "de-de", "masterJson": {} }),
        "translation_import.minimal.json",
    );

    let full: Unsubscribe = serde_json::from_value(read("unsubscribe.full.json")).unwrap();
    let mut short = read("unsubscribe.full.json");
    short["subscriptions"][0] = "ada".into();
    assert_eq!(Unsubscribe::deserialize(short).unwrap(), full);

    let full: SubscriptionUpdate =
        serde_json::from_value(read("subscription_update.full.json")).unwrap();
    let mut short = read("subscription_update.full.json");
    short["preferences"][1].as_object_mut().unwrap().remove("enabled");
    assert_eq!(SubscriptionUpdate::deserialize(short).unwrap(), full);
}

#[test]
fn every_file_is_read() {
    let known: BTreeSet<_> = goldens()
        .iter()
        .flat_map(|golden| ["full", "minimal"].map(|kind| format!("{}.{kind}.json", golden.file)))
        .collect();
    let there: BTreeSet<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, known);
}
