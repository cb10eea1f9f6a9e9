//! Requests as large as each limit.

#![expect(clippy::needless_pass_by_value, reason = "rows are shorter with values")]

use serde_json::{Value, json};
use tidings::api_key::ApiKeyName;
use tidings::condition::Rule;
use tidings::connection::{ConnectionAuth, Workspace};
use tidings::contact::Email;
use tidings::context::{Context, ContextFilter, ContextPart, ContextPayload};
use tidings::credentials::Credentials;
use tidings::dead_letter::DeadLetterQuery;
use tidings::endpoint::{PhoneNumber, WebhookUrl};
use tidings::environment::EnvironmentName;
use tidings::filter::{FieldFilterPart, Filter};
use tidings::ids::{self, SubscriptionIdentifier, TopicKey};
use tidings::integration::Integration;
use tidings::json::Object;
use tidings::layout::Layout;
use tidings::limits::Limits;
use tidings::message::{DataFilter, Message, MessageQuery, TagFilter};
use tidings::notification::NotificationQuery;
use tidings::page::PageQuery;
use tidings::preference::WorkflowPreferenceUpdates;
use tidings::receipt::Receipt;
use tidings::schedule::DaySchedule;
use tidings::step::{StepDefinition, Throttle};
use tidings::subscriber::{Profile, SubscriberCreate};
use tidings::subscription::{Subscribe, Subscription};
use tidings::suppression::{SuppressedAddress, SuppressionCreate};
use tidings::template::Template;
use tidings::topic::Topic;
use tidings::translation::{Translation, TranslationImport};
use tidings::trigger::Trigger;
use tidings::workflow::{Workflow, WorkflowSync};
use uuid::Uuid;

use crate::limits::sized;

/// A limit, the field that a refusal names, and a request of a size.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) limit: &'static str,
    pub(super) max: usize,
    pub(super) field: &'static str,
    /// Whether the refusal names the limit. If not, it names the form of the value.
    pub(super) has_number: bool,
    pub(super) request: fn(usize) -> Value,
}

impl Row {
    const fn of_form(self) -> Self {
        Self { has_number: false, ..self }
    }
}

const fn row(
    limit: &'static str,
    max: usize,
    field: &'static str,
    request: fn(usize) -> Value,
) -> Row {
    Row { limit, max, field, has_number: true, request }
}

/// Objects in objects, so many in all.
fn nested(depth: usize) -> Value {
    (1..depth).fold(json!({}), |inner, _| json!({ "a": inner }))
}

fn text(length: usize) -> String {
    "x".repeat(length)
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("n{number}")).collect()
}

fn workflow(fields: Value) -> Value {
    let mut create = json!({ "workflowId": "w", "name": "W", "steps": [] });
    create.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!(["workflows.create", create])
}

fn stepped(fields: Value) -> Value {
    let mut step = json!({ "type": "in_app", "template": { "body": "Hello" } });
    step.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    workflow(json!({ "steps": [step] }))
}

fn templated(body: String) -> Value {
    stepped(json!({ "template": { "body": body } }))
}

fn timed(kind: &str, metadata: Value) -> Value {
    workflow(json!({ "steps": [{ "type": kind, "metadata": metadata }] }))
}

fn filtered(children: Value) -> Value {
    let group =
        json!({ "isNegated": false, "type": "GROUP", "value": "AND", "children": children });
    stepped(json!({ "filters": [group] }))
}

fn part(field: String, value: String, operator: &str) -> Value {
    json!({ "field": field, "value": value, "operator": operator, "on": "payload" })
}

/// A group in groups, so many in all.
fn groups(depth: usize) -> Value {
    let group = |children| json!({ "isNegated": false, "type": "GROUP", "value": "AND", "children": children });
    let innermost = group(json!([part("a".into(), "b".into(), "EQUAL")]));
    let outermost = (1..depth).fold(innermost, |inner, _| group(json!([inner])));
    stepped(json!({ "filters": [outermost] }))
}

fn conditional(condition: Value) -> Value {
    json!(["preferences.update_bulk", "ada", { "preferences": [
        { "workflowId": "both", "channels": { "email": true }, "condition": condition },
    ] }])
}

/// Lists in lists, so many in all.
fn condition_of_depth(depth: usize) -> Value {
    let inner = (3..depth).fold(json!([]), |inner, _| json!([inner]));
    json!({ "in": [1, inner] })
}

fn condition_of_size(bytes: usize) -> Value {
    json!({ "==": [1, text(bytes - r#"{"==":[1,""]}"#.len())] })
}

fn event(fields: Value) -> Value {
    let mut event = json!({ "name": "both", "to": "ada" });
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!(["events.trigger", event])
}

fn contexts(count: usize) -> Value {
    let all = names(count).into_iter().map(|name| (name, json!("id")));
    Value::Object(all.collect())
}

fn context_keys(count: usize) -> Vec<String> {
    names(count).into_iter().map(|name| format!("tenant:{name}")).collect()
}

fn destinations(count: usize) -> Value {
    let one = |number| {
        json!({
            "providerId": "fcm", "_integrationId": Uuid::from_u128(number), "credentials": {},
        })
    };
    let all: Vec<_> = (0..count as u128).map(one).collect();
    subscriber(json!({ "channels": all }))
}

fn devices(tokens: &[String]) -> Value {
    let channel = json!({
        "providerId": "fcm", "_integrationId": "$integration 0",
        "credentials": { "deviceTokens": tokens },
    });
    json!(["subscribers.create", { "subscriberId": "new", "channels": [channel] }])
}

/// Subscribers that take so many bytes. Each but the last takes a part of them.
fn bulk_of_size(size: usize) -> Value {
    const PART: usize = 60_000;
    let one = |number: usize, size: usize| {
        let bare = json!({ "subscriberId": format!("n{number}"), "data": {} }).to_string().len();
        json!({ "subscriberId": format!("n{number}"), "data": sized(size - bare + 2) })
    };
    let mut all: Vec<_> = (1..size / PART).map(|number| one(number, PART)).collect();
    let rest = size - all.len() * PART;
    all.extend([one(0, rest / 2), one(all.len() + 1, rest - rest / 2)]);
    json!(["subscribers.upsert_bulk", all])
}

fn subscription(fields: Value) -> Value {
    let mut one = json!({ "subscriberId": "ada" });
    one.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!(["topics.subscribe", "new", { "subscriptions": [one] }])
}

fn connection(name: String, token: String) -> Value {
    json!(["channel_connections.create", {
        "integrationIdentifier": "slack", "subscriberId": "cyd",
        "workspace": { "id": "T1", "name": name }, "auth": { "accessToken": token },
    }])
}

fn webhook(length: usize) -> Value {
    let url = "https://example.org/";
    json!(["channel_endpoints.create", {
        "integrationIdentifier": "slack", "subscriberId": "bob", "type": "webhook",
        "endpoint": { "url": format!("{url}{}", text(length - url.len())) },
    }])
}

fn subscriber(fields: Value) -> Value {
    let mut create = json!({ "subscriberId": "new" });
    create.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!(["subscribers.create", create])
}

/// An expression of so many tokens.
fn tokens(count: usize) -> String {
    let items = "1,".repeat((count - 2) / 2);
    if count.is_multiple_of(2) {
        format!("{{{{ [{items}] }}}}")
    } else {
        format!("{{{{ [{items}1] }}}}")
    }
}

fn cron(length: usize) -> String {
    let minutes = length - " 0 * * *".len();
    let first = if minutes.is_multiple_of(2) { "00" } else { "0" };
    format!("{first}{} 0 * * *", ",0".repeat((minutes - first.len()) / 2))
}

/// A row for each limit that a request can reach.
pub(super) fn rows() -> Vec<Row> {
    [
        of_workflows(),
        of_templates(),
        of_conditions(),
        of_triggers(),
        of_names(),
        of_people(),
        of_topics(),
        of_lists(),
        of_contexts(),
    ]
    .concat()
}

fn of_workflows() -> Vec<Row> {
    vec![
        row("Workflow::MAX_NAME", Workflow::MAX_NAME, "name", |n| {
            workflow(json!({ "name": text(n) }))
        }),
        row("Workflow::MAX_DESCRIPTION", Workflow::MAX_DESCRIPTION, "description", |n| {
            workflow(json!({ "description": text(n) }))
        }),
        row("Workflow::MAX_TAGS", Workflow::MAX_TAGS, "tags", |n| {
            workflow(json!({ "tags": names(n) }))
        }),
        row("Workflow::MAX_TAG", Workflow::MAX_TAG, "tags[0]", |n| {
            workflow(json!({ "tags": [text(n)] }))
        }),
        row("Workflow::MAX_STEPS", Workflow::MAX_STEPS, "steps", |n| {
            let step = json!({ "type": "in_app", "template": { "body": "Hello" } });
            workflow(json!({ "steps": vec![step; n] }))
        }),
        row("Workflow::MAX_PAYLOAD_SCHEMA", Workflow::MAX_PAYLOAD_SCHEMA, "payloadSchema", |n| {
            let comment = text(n - r#"{"$comment":""}"#.len());
            workflow(json!({ "payloadSchema": { "$comment": comment } }))
        }),
        row("Workflow::MAX_PAYLOAD_SCHEMA", Workflow::MAX_PAYLOAD_SCHEMA, "payloadSchema", |n| {
            let comment = text(n - r#"{"$comment":""}"#.len());
            let schema = json!({ "$comment": comment });
            workflow(json!({ "payloadSchema": schema, "validatePayload": false }))
        }),
        row("WorkflowSync::MAX", WorkflowSync::MAX, "workflows", |n| {
            let all: Vec<Value> = names(n)
                .into_iter()
                .map(|name| json!({ "workflowId": name, "name": name, "steps": [] }))
                .collect();
            json!(["workflows.sync", { "workflows": all }])
        }),
        row("StepDefinition::MAX_NAME", StepDefinition::MAX_NAME, "steps[0].name", |n| {
            stepped(json!({ "name": text(n) }))
        }),
        row(
            "StepDefinition::MAX_VARIANTS",
            StepDefinition::MAX_VARIANTS,
            "steps[0].variants",
            |n| {
                let variant = json!({ "type": "in_app", "template": { "body": "Hello" } });
                stepped(json!({ "variants": vec![variant; n] }))
            },
        ),
        row(
            "StepDefinition::MAX_BLOCKS",
            StepDefinition::MAX_BLOCKS,
            "steps[0].template.body",
            |n| {
                let body = vec![json!({ "type": "text", "content": "Hello" }); n];
                stepped(json!({ "type": "email", "template": { "subject": "", "body": body } }))
            },
        ),
        row(
            "StepDefinition::MAX_BUTTONS",
            StepDefinition::MAX_BUTTONS,
            "steps[0].template.buttons",
            |n| {
                let buttons = vec![json!({ "type": "primary", "content": "Yes" }); n];
                stepped(json!({ "template": { "body": "Hello", "buttons": buttons } }))
            },
        ),
        row(
            "StepDefinition::MAX_DAYS",
            StepDefinition::MAX_DAYS as usize,
            "steps[0].metadata.amount",
            |n| timed("delay", json!({ "type": "regular", "amount": n, "unit": "days" })),
        ),
        row(
            "StepDefinition::MAX_PATH",
            StepDefinition::MAX_PATH,
            "steps[0].metadata.digestKey",
            |n| {
                timed(
                    "digest",
                    json!({
                        "type": "regular", "amount": 1, "unit": "days", "digestKey": text(n),
                    }),
                )
            },
        ),
        row(
            "StepDefinition::MAX_CRON",
            StepDefinition::MAX_CRON,
            "steps[0].metadata.timed.cronExpression",
            |n| timed("digest", json!({ "type": "timed", "timed": { "cronExpression": cron(n) } })),
        ),
        row(
            "Throttle::MAX_THRESHOLD",
            Throttle::MAX_THRESHOLD as usize,
            "steps[0].metadata.threshold",
            |n| timed("throttle", json!({ "amount": 1, "unit": "days", "threshold": n })),
        ),
    ]
}

fn of_templates() -> Vec<Row> {
    let body = "steps[0].template.body";
    vec![
        row("Template::MAX_LEN", Template::MAX_LEN, body, |n| templated(text(n))),
        row("Template::MAX_TAGS", Template::MAX_TAGS, body, |n| templated("{{ 1 }}".repeat(n))),
        row("Template::MAX_TOKENS", Template::MAX_TOKENS, body, |n| templated(tokens(n))),
        row("Template::MAX_OPERATORS", Template::MAX_OPERATORS, body, |n| {
            templated(format!("{{{{ 1{} }}}}", "+1".repeat(n)))
        }),
        row("Template::MAX_NESTING", Template::MAX_NESTING, body, |n| {
            templated(format!("{{{{ {}1{} }}}}", "(".repeat(n - 1), ")".repeat(n - 1)))
        }),
        row("Template::MAX_BLOCKS", Template::MAX_BLOCKS, body, |n| {
            templated(format!("{}x{}", "{% if 1 %}".repeat(n), "{% endif %}".repeat(n)))
        }),
        row("Template::MAX_INDEX", Template::MAX_INDEX, body, |n| {
            templated(format!("{{{{ payload.list.{} }}}}", "0".repeat(n)))
        }),
        row("Template::MAX_FORMAT", Template::MAX_FORMAT, body, |n| {
            templated(format!("{{{{ payload.at | date('{}') }}}}", text(n)))
        })
        .of_form(),
        row("Template::MAX_NUMBER", Template::MAX_NUMBER.into(), body, |n| {
            templated(format!("{{{{ payload.list | batch({n}) }}}}"))
        }),
        row("Template::MAX_ELIFS", Template::MAX_ELIFS, body, |n| {
            templated(format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(n)))
        }),
    ]
}

fn of_conditions() -> Vec<Row> {
    vec![
        row("Filter::MAX_DEPTH", Filter::MAX_DEPTH, "steps[0].filters", groups),
        row("Filter::MAX_PARTS", Filter::MAX_PARTS, "steps[0].filters", |n| {
            filtered(json!(vec![part("a".into(), "b".into(), "EQUAL"); n]))
        }),
        row(
            "FieldFilterPart::MAX_FIELD",
            FieldFilterPart::MAX_FIELD,
            "steps[0].filters[0].children[0].field",
            |n| filtered(json!([part(text(n), "b".into(), "EQUAL")])),
        ),
        row(
            "FieldFilterPart::MAX_VALUE",
            FieldFilterPart::MAX_VALUE,
            "steps[0].filters[0].children[0].value",
            |n| filtered(json!([part("a".into(), text(n), "EQUAL")])),
        ),
        row(
            "FieldFilterPart::MAX_PATTERN",
            FieldFilterPart::MAX_PATTERN,
            "steps[0].filters[0].children[0].value",
            |n| filtered(json!([part("a".into(), text(n), "LIKE")])),
        ),
        row("Rule::MAX_DEPTH", Rule::MAX_DEPTH, "condition", |n| {
            conditional(condition_of_depth(n))
        }),
        row("Rule::MAX_NODES", Rule::MAX_NODES, "condition", |n| {
            conditional(json!({ "in": [1, vec![1; n - 4]] }))
        }),
        row("Rule::MAX_SIZE", Rule::MAX_SIZE, "condition", |n| conditional(condition_of_size(n))),
    ]
}

fn of_triggers() -> Vec<Row> {
    let limits = Limits::default();
    vec![
        row("Trigger::MAX_RECIPIENTS", Trigger::MAX_RECIPIENTS, "to", |n| {
            event(json!({ "to": names(n) }))
        }),
        row("Trigger::MAX_EXCLUDED", Trigger::MAX_EXCLUDED, "to.exclude", |n| {
            let topic = json!({ "type": "Topic", "topicKey": "news", "exclude": names(n) });
            event(json!({ "to": topic }))
        }),
        row("Trigger::MAX_BULK", Trigger::MAX_BULK, "events", |n| {
            json!(["events.trigger_bulk", vec![json!({ "name": "both", "to": "ada" }); n]])
        }),
        row("Limits::payload", limits.payload, "payload", |n| {
            event(json!({ "payload": sized(n) }))
        }),
        row("Limits::overrides", limits.overrides, "overrides", |n| {
            event(json!({ "overrides": sized(n) }))
        }),
        row("ContextPayload::MAX", ContextPayload::MAX, "context", |n| {
            event(json!({ "context": contexts(n) }))
        }),
        row(
            "ContextPart::MAX_LEN",
            ContextPart::MAX_LEN,
            "id",
            |n| json!(["contexts.create", { "type": "tenant", "id": text(n) }]),
        ),
        row(
            "Context::MAX_DATA",
            Context::MAX_DATA,
            "data",
            |n| json!(["contexts.create", { "type": "tenant", "id": "new", "data": sized(n) }]),
        ),
    ]
}

fn of_names() -> Vec<Row> {
    vec![
        row(
            "EnvironmentName::MAX_LEN",
            EnvironmentName::MAX_LEN,
            "name",
            |n| json!(["environments.create", { "name": text(n), "color": "fff" }]),
        ),
        row(
            "ApiKeyName::MAX_LEN",
            ApiKeyName::MAX_LEN,
            "name",
            |n| json!(["keys.create", { "name": text(n) }]),
        ),
        row("Email::MAX_LEN", Email::MAX_LEN, "email", |n| {
            let domain = "@example.org";
            subscriber(json!({ "email": format!("{}{domain}", text(n - domain.len())) }))
        }),
        row("PhoneNumber::MAX_DIGITS", PhoneNumber::MAX_DIGITS, "endpoint.phoneNumber", |n| {
            json!(["channel_endpoints.create", {
                "integrationIdentifier": "twilio", "subscriberId": "bob", "type": "phone",
                "endpoint": { "phoneNumber": format!("+{}", "4".repeat(n)) },
            }])
        })
        .of_form(),
        row(
            "SuppressedAddress::MAX_DIGITS",
            SuppressedAddress::MAX_DIGITS,
            "address",
            |n| json!(["suppressions.add", { "channel": "sms", "address": "4".repeat(n) }]),
        )
        .of_form(),
    ]
}

fn of_people() -> Vec<Row> {
    let limits = Limits::default();
    vec![
        row("ids::MAX_LEN", ids::MAX_LEN, "subscriberId", |n| {
            subscriber(json!({ "subscriberId": text(n) }))
        }),
        row("Object::MAX_DEPTH", Object::MAX_DEPTH, "object", |n| {
            subscriber(json!({ "data": nested(n) }))
        }),
        row("Limits::data", limits.data, "data", |n| subscriber(json!({ "data": sized(n) }))),
        row("Limits::subscriber_text", limits.subscriber_text, "firstName", |n| {
            subscriber(json!({ "firstName": text(n) }))
        }),
        row("Limits::avatar", limits.avatar, "avatar", |n| {
            subscriber(json!({ "avatar": text(n) }))
        }),
        row("Profile::MAX_CHANNELS", Profile::MAX_CHANNELS, "channels", destinations),
        row(
            "Profile::MAX_DEVICE_TOKENS",
            Profile::MAX_DEVICE_TOKENS,
            "channels[0].credentials.deviceTokens",
            |n| devices(&names(n)),
        ),
        row(
            "Profile::MAX_DEVICE_TOKEN",
            Profile::MAX_DEVICE_TOKEN,
            "channels[0].credentials.deviceTokens[0]",
            |n| devices(&[text(n)]),
        ),
        row("SubscriberCreate::MAX_BULK", SubscriberCreate::MAX_BULK, "subscribers", |n| {
            let all: Vec<_> = names(n).iter().map(|name| json!({ "subscriberId": name })).collect();
            json!(["subscribers.upsert_bulk", all])
        }),
        row(
            "SubscriberCreate::MAX_BULK_SIZE",
            SubscriberCreate::MAX_BULK_SIZE,
            "subscribers",
            bulk_of_size,
        ),
        row("WorkflowPreferenceUpdates::MAX", WorkflowPreferenceUpdates::MAX, "preferences", |n| {
            let one = json!({ "workflowId": "both", "channels": { "email": true } });
            json!(["preferences.update_bulk", "ada", { "preferences": vec![one; n] }])
        }),
        row(
            "DaySchedule::MAX_HOURS",
            DaySchedule::MAX_HOURS,
            "schedule.weeklySchedule.monday.hours",
            |n| {
                let hours = vec![json!({ "start": "09:00 AM", "end": "05:00 PM" }); n];
                let monday = json!({ "monday": { "isEnabled": true, "hours": hours } });
                let schedule = json!({ "isEnabled": false, "weeklySchedule": monday });
                json!(["preferences.update_global", "ada", { "schedule": schedule }])
            },
        ),
    ]
}

fn of_topics() -> Vec<Row> {
    vec![
        row(
            "Topic::MAX_NAME",
            Topic::MAX_NAME,
            "name",
            |n| json!(["topics.create", { "key": "new", "name": text(n) }]),
        ),
        row(
            "TopicKey::MAX_LEN",
            TopicKey::MAX_LEN,
            "topicKey",
            |n| json!(["topics.create", { "key": text(n) }]),
        ),
        row(
            "SubscriptionIdentifier::MAX_LEN",
            SubscriptionIdentifier::MAX_LEN,
            "identifier",
            |n| json!(["topics.find_subscription", "news", text(n)]),
        ),
        row("Subscribe::MAX", Subscribe::MAX, "subscriptions", |n| {
            let all = [names(n - 1), vec!["ada".into()]].concat();
            json!(["topics.subscribe", "new", { "subscriptions": all }])
        }),
        row("Subscription::MAX_PREFERENCES", Subscription::MAX_PREFERENCES, "preferences", |n| {
            json!(["topics.subscribe", "new", {
                "subscriptions": ["ada"], "preferences": vec![json!("both"); n],
            }])
        }),
        row(
            "Subscription::MAX_CONDITIONS_SIZE",
            Subscription::MAX_CONDITIONS_SIZE,
            "preferences",
            |n| {
                let setting = |(name, bytes): (&str, usize)| {
                    let condition =
                        json!({ "!": text(bytes - json!({ "!": "" }).to_string().len()) });
                    json!({ "workflowId": name, "condition": condition })
                };
                let settings =
                    [("inbox", n / 3), ("both", n / 3), ("all", n - n / 3 * 2)].map(setting);
                json!(["topics.subscribe", "new", {
                    "subscriptions": ["ada"], "preferences": settings,
                }])
            },
        ),
        row("Subscription::MAX_NAME", Subscription::MAX_NAME, "subscriptions[0].name", |n| {
            subscription(json!({ "name": text(n) }))
        }),
        row(
            "Subscription::MAX_IDENTIFIER",
            Subscription::MAX_IDENTIFIER,
            "subscriptions[0].identifier",
            |n| subscription(json!({ "identifier": text(n) })),
        ),
        row(
            "SuppressionCreate::MAX_TEXT",
            SuppressionCreate::MAX_TEXT,
            "text",
            |n| json!(["suppressions.add", { "channel": "sms", "address": "+44 21", "text": text(n) }]),
        ),
        row("Message::MAX_MARKED", Message::MAX_MARKED, "messageId", |n| {
            json!(["inbox.mark_as", "ada", vec!["$message 0"; n], "read"])
        }),
    ]
}

fn of_lists() -> Vec<Row> {
    vec![
        row("Receipt::MAX_ID", Receipt::MAX_ID, "providerMessageId", |n| {
            json!(["integrations.ingest_receipt", "$integration 0", {
                "providerMessageId": text(n), "type": "opened",
            }])
        }),
        row(
            "Integration::MAX_NAME",
            Integration::MAX_NAME,
            "name",
            |n| json!(["integrations.create", { "providerId": "new", "channel": "email", "name": text(n) }]),
        ),
        row("Credentials::MAX_SIZE", Credentials::MAX_SIZE, "credentials", |n| {
            let key = text(n - r#"{"apiKey":""}"#.len());
            json!(["integrations.create", {
                "providerId": "new", "channel": "email", "credentials": { "apiKey": key },
            }])
        }),
        row("Workspace::MAX_NAME", Workspace::MAX_NAME, "workspace.name", |n| {
            connection(text(n), "secret".into())
        }),
        row("ConnectionAuth::MAX_TOKEN", ConnectionAuth::MAX_TOKEN, "auth.accessToken", |n| {
            connection("T".into(), text(n))
        }),
        row("WebhookUrl::MAX_LEN", WebhookUrl::MAX_LEN, "endpoint.url", webhook),
        row(
            "Layout::MAX_NAME",
            Layout::MAX_NAME,
            "name",
            |n| json!(["layouts.upsert", { "layoutId": "new", "name": text(n) }]),
        ),
        row("Translation::MAX_CONTENT", Translation::MAX_CONTENT, "content", |n| {
            json!(["translations.upsert", {
                "resourceType": "workflow", "resourceId": "inbox", "locale": "it", "content": sized(n),
            }])
        }),
        row("TranslationImport::MAX", TranslationImport::MAX, "masterJson", |n| {
            let texts = names(n).into_iter().map(|name| (name, json!({ "hello": "Ciao" })));
            let texts: serde_json::Map<String, Value> = texts.collect();
            json!(["translations.import", { "locale": "it", "masterJson": { "workflows": texts } }])
        }),
        row(
            "PageQuery::MAX_LIMIT",
            PageQuery::MAX_LIMIT as usize,
            "limit",
            |n| json!(["subscribers.list", { "limit": n }]),
        ),
        row(
            "NotificationQuery::MAX_LIMIT",
            NotificationQuery::MAX_LIMIT as usize,
            "limit",
            |n| json!(["notifications.list", { "limit": n }]),
        ),
        row(
            "DeadLetterQuery::MAX_LIMIT",
            DeadLetterQuery::MAX_LIMIT as usize,
            "limit",
            |n| json!(["dead_letters.list", { "limit": n }]),
        ),
        row(
            "NotificationQuery::MAX_VALUES",
            NotificationQuery::MAX_VALUES,
            "subscriberIds",
            |n| json!(["notifications.list", { "subscriberIds": names(n) }]),
        ),
        row(
            "MessageQuery::MAX_VALUES",
            MessageQuery::MAX_VALUES,
            "templates",
            |n| json!(["inbox.list", "ada", { "templates": names(n) }]),
        ),
        row(
            "TagFilter::MAX_IN_GROUP",
            TagFilter::MAX_IN_GROUP,
            "tags",
            |n| json!(["inbox.list", "ada", { "tags": names(n) }]),
        ),
        row(
            "TagFilter::MAX_GROUPS",
            TagFilter::MAX_GROUPS,
            "tags.and",
            |n| json!(["inbox.list", "ada", { "tags": { "and": tag_groups(n, 1) } }]),
        ),
        row("TagFilter::MAX_IN_ALL", TagFilter::MAX_IN_ALL, "tags", |n| {
            let groups = [tag_groups(2, n / 3), tag_groups(1, n - 2 * (n / 3))].concat();
            json!(["inbox.list", "ada", { "tags": { "and": groups } }])
        }),
        row(
            "DataFilter::MAX_TEXT",
            DataFilter::MAX_TEXT,
            "data.x",
            |n| json!(["inbox.list", "ada", { "data": { "x": text(n) } }]),
        ),
        row(
            "DeadLetterQuery::MAX_VALUES",
            DeadLetterQuery::MAX_VALUES,
            "templates",
            |n| json!(["dead_letters.list", { "templates": names(n) }]),
        ),
    ]
}

fn tag_groups(count: usize, size: usize) -> Vec<Value> {
    (0..count).map(|_| json!({ "or": names(size) })).collect()
}

/// Contexts in queries.
fn of_contexts() -> Vec<Row> {
    let (field, limit) = ("contextKeys", "ContextFilter::MAX_VALUES");
    let of_filter =
        |request: fn(usize) -> Value| row(limit, ContextFilter::MAX_VALUES, field, request);
    vec![
        row(
            "NotificationQuery::MAX_VALUES",
            NotificationQuery::MAX_VALUES,
            field,
            |n| json!(["notifications.list", { "contextKeys": context_keys(n) }]),
        ),
        row(
            "MessageQuery::MAX_VALUES",
            MessageQuery::MAX_VALUES,
            field,
            |n| json!(["inbox.list", "ada", { "contextKeys": context_keys(n) }]),
        ),
        of_filter(|n| json!(["preferences.get", "ada", { "contextKeys": context_keys(n) }])),
        of_filter(|n| json!(["topics.subscriptions", "news", { "contextKeys": context_keys(n) }])),
        of_filter(|n| json!(["channel_connections.list", { "contextKeys": context_keys(n) }])),
        of_filter(|n| json!(["channel_endpoints.list", { "contextKeys": context_keys(n) }])),
    ]
}
