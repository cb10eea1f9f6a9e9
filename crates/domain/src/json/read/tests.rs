use serde::Serialize;
use serde_json::{Map, json};

use super::*;
use crate::connection::{ChannelConnectionCreate, ChannelConnectionUpdate};
use crate::context::{ContextCreate, ContextPayload, ContextUpdate};
use crate::endpoint::{ChannelEndpointCreate, ChannelEndpointUpdate};
use crate::environment::{EnvironmentCreate, EnvironmentUpdate};
use crate::integration::{IntegrationCreate, IntegrationUpdate};
use crate::message::MarkMessages;
use crate::notification::NotificationQuery;
use crate::preference::{GlobalPreferenceUpdate, WorkflowPreferenceUpdates};
use crate::subscriber::{SubscriberCreate, SubscriberUpdate};
use crate::subscription::{Subscribe, SubscriptionUpdate};
use crate::topic::{TopicQuery, TopicUpdate};
use crate::trigger::Trigger;
use crate::workflow::{WorkflowCreate, WorkflowSync, WorkflowUpdate};

fn text<T: Shaped>(json: serde_json::Value) -> String {
    read::<T>(json.to_string().as_bytes()).map(drop).unwrap_err().to_string()
}

/// One row per kind of mistake.
#[test]
fn what_is_refused_is_named() {
    let connection = |auth| json!({ "integrationIdentifier": "slack", "workspace": { "id": "T1" }, "auth": auth });
    for (refused, expected) in [
        (text::<ChannelConnectionCreate>(connection(json!({}))), "`auth.accessToken` is required"),
        (text::<ChannelConnectionCreate>(connection(json!(1))), "`auth` must be an object"),
        (
            text::<WorkflowPreferenceUpdates>(json!({ "preferences": [{}] })),
            "`preferences[0].workflowId` is required",
        ),
        (text::<SubscriberUpdate>(json!({ "email": "x" })), "`email` must be an e-mail address"),
        (
            text::<ChannelConnectionCreate>(json!({ "integrationIdentifier": "a b" })),
            "`integrationIdentifier` must be letters and digits, joined by single `-`, `_` or `.`",
        ),
        (
            text::<WorkflowPreferenceUpdates>(json!({ "preferences": [{
                "workflowId": "w", "channels": {}, "condition": { "and": [{ "equals": [] }] },
            }] })),
            "`preferences[0].condition.and[0]` has no operator `equals`",
        ),
        (text::<ContextUpdate>(json!([{}])), "`body` must be an object"),
        (
            text::<WorkflowPreferenceUpdates>(json!({ "preferences": [["w", [false]]] })),
            "`preferences[0]` must be an object",
        ),
        (
            text::<ContextPayload>(json!({ "tenant": ["acme"] })),
            "`tenant` must be a text or an object",
        ),
        (
            text::<NotificationQuery>(json!({ "after": "x" })),
            "`after` must be an ISO 8601 timestamp, such as `2026-11-20T12:00:00Z`",
        ),
        (
            text::<NotificationQuery>(json!({ "subscriberIds": "a\0" })),
            "`subscriberIds` must be text without control characters",
        ),
        (
            text::<EnvironmentCreate>(json!({ "parentId": "1" })),
            "`parentId` must be an identifier made by the engine",
        ),
        (
            text::<MarkMessages>(json!({ "messageId": ["x"], "markAs": "read" })),
            "`messageId[0]` must be an identifier made by the engine",
        ),
        (
            text::<Subscribe>(json!({ "subscriptions": ["ada", { "subscriberId": "" }] })),
            "`subscriptions[1].subscriberId` must not be empty",
        ),
        (
            text::<ContextCreate>(json!({ "type": "a.b", "id": "x" })),
            "`type` must be 1 to 100 letters, digits, `_` and `-`",
        ),
        (text::<TopicQuery>(json!({ "limit": "x" })), "`limit` must be a whole number"),
        (
            read::<ContextUpdate>(br#"{ "data": {}, "data": {} }"#).unwrap_err().to_string(),
            "`data` must not be given twice",
        ),
        (
            read::<TopicQuery>(b"{").unwrap_err().to_string(),
            "`body` cannot be read: EOF while parsing an object at line 1 column 1",
        ),
        (
            read::<TopicQuery>(b"{} {}").unwrap_err().to_string(),
            "`body` cannot be read: trailing characters at line 1 column 4",
        ),
    ] {
        assert_eq!(refused, expected);
    }
}

#[test]
fn no_secret_is_shown() {
    let secret = || json!("xoxb-s3cr3t");
    for refused in [
        text::<ChannelConnectionCreate>(json!({
            "integrationIdentifier": "i", "workspace": { "id": "T" }, "auth": secret(),
        })),
        text::<ChannelConnectionUpdate>(json!({ "auth": { "accessToken": [secret()] } })),
        text::<ChannelEndpointCreate>(json!({
            "subscriberId": "ada", "integrationIdentifier": "i", "type": "webhook",
            "endpoint": secret(),
        })),
        text::<ChannelEndpointUpdate>(json!({ "endpoint": secret() })),
        text::<IntegrationCreate>(json!({
            "providerId": "ses", "channel": "email", "credentials": secret(),
        })),
        text::<IntegrationUpdate>(json!({ "credentials": { "secure": secret() } })),
        text::<SubscriberCreate>(json!({
            "subscriberId": "ada", "channels": [{ "credentials": secret() }],
        })),
    ] {
        assert!(!refused.contains("s3cr3t"), "{refused}");
    }
}

/// Workflow with one step.
fn workflow(step: serde_json::Value) -> serde_json::Value {
    json!({ "workflowId": "w", "name": "W", "steps": [step] })
}

/// One row per place of a value: the path.
#[test]
fn a_value_of_a_trigger_is_called_after_its_place() {
    for (refused, expected) in [
        (
            text::<SubscriberCreate>(json!({ "subscriberId": "ada", "firstName": 5 })),
            "`firstName` must be a text",
        ),
        (text::<SubscriberCreate>(json!({ "firstName": "Ada" })), "`subscriberId` is required"),
        (
            text::<Trigger>(json!({ "name": "w", "to": "ada", "context": { "t": { "id": 5 } } })),
            "`context.t.id` must be a text",
        ),
        (
            text::<Trigger>(json!({ "name": "w", "to": "ada", "context": { "t": 5 } })),
            "`context.t` must be a text or an object",
        ),
        (
            text::<Trigger>(json!({ "name": "w", "to": "ada", "payload": [] })),
            "`payload` must be an object",
        ),
        (
            text::<Trigger>(json!({ "name": "w", "to": ["ada", { "subscriberId": 5 }] })),
            "`to[1].subscriberId` must be a text",
        ),
        (text::<Trigger>(json!({ "name": "w", "to": ["ada", ""] })), "`to[1]` must not be empty"),
        (
            text::<Trigger>(json!({ "name": "w", "to": { "subscriberId": "ada", "email": "x" } })),
            "`to.email` must be an e-mail address",
        ),
        (text::<Trigger>(json!({ "name": "w", "to": 5 })), "`to` must be a text or an object"),
        (
            text::<Trigger>(json!({ "name": "w", "to": [
                { "type": "Topic", "topicKey": "news", "exclude": [""] },
            ] })),
            "`to[0].exclude[0]` must not be empty",
        ),
        (
            text::<Trigger>(
                json!({ "name": "w", "to": [{ "type": "topic", "topicKey": "news" }] }),
            ),
            "`to[0].type` must be one of Topic",
        ),
    ] {
        assert_eq!(refused, expected);
    }
}

/// One row per place of a value: the path.
#[test]
fn a_value_of_a_step_is_called_after_its_place() {
    let in_app = |template| json!({ "type": "in_app", "template": template });
    let email = |template| json!({ "type": "email", "template": template });
    for (refused, expected) in [
        (text::<WorkflowCreate>(workflow(json!({ "type": 5 }))), "`steps[0].type` must be a text"),
        (text::<WorkflowCreate>(workflow(json!({}))), "`steps[0].type` is required"),
        (
            text::<WorkflowCreate>(workflow(json!({ "type": "fax" }))),
            "`steps[0].type` must be one of in_app, email, sms, chat, push, digest, delay, \
             throttle, custom",
        ),
        (
            text::<WorkflowCreate>(workflow(json!({ "type": "in_app" }))),
            "`steps[0].template` is required",
        ),
        (
            text::<WorkflowCreate>(workflow(in_app(json!({ "body": 5 })))),
            "`steps[0].template.body` must be a text",
        ),
        (
            text::<WorkflowCreate>(workflow(email(json!({ "body": "b" })))),
            "`steps[0].template.subject` is required",
        ),
        (
            text::<WorkflowCreate>(workflow(email(json!({ "subject": "s", "body": 5 })))),
            "`steps[0].template.body` must be a text or a list of blocks",
        ),
        (
            text::<WorkflowCreate>(workflow(email(json!({
                "subject": "s", "body": [{ "type": "text", "content": 5 }],
            })))),
            "`steps[0].template.body[0].content` must be a text",
        ),
        (
            text::<WorkflowCreate>(workflow(json!({
                "type": "digest", "metadata": { "type": "regular", "amount": "5" },
            }))),
            "`steps[0].metadata.amount` must be a whole number",
        ),
        (
            text::<WorkflowUpdate>(json!({ "steps": [{ "_id": "x", "type": "custom" }] })),
            "`steps[0]._id` must be an identifier made by the engine",
        ),
    ] {
        assert_eq!(refused, expected);
    }
}

/// One row per place of a value: the path.
#[test]
fn any_value_is_called_after_its_place() {
    let endpoint = |kind, data| {
        json!({
            "subscriberId": "ada", "integrationIdentifier": "i", "type": kind, "endpoint": data,
        })
    };
    let integration =
        |condition| json!({ "providerId": "ses", "channel": "email", "conditions": [condition] });
    for (refused, expected) in [
        (text::<ChannelEndpointCreate>(endpoint(json!(5), json!({}))), "`type` must be a text"),
        (
            text::<ChannelEndpointCreate>(endpoint(json!("phone"), json!({ "phoneNumber": "1" }))),
            "`endpoint.phoneNumber` must be a number such as `+4930123456`",
        ),
        (
            text::<IntegrationCreate>(integration(json!({
                "type": "GROUP", "value": "AND", "children": [
                    { "field": 5, "value": "1", "operator": "EQUAL", "on": "payload" },
                ],
            }))),
            "`conditions[0].children[0].field` must be a text",
        ),
        (
            text::<IntegrationCreate>(integration(json!({
                "type": "GROUP", "value": "AND", "children": [{ "type": "GROUP" }],
            }))),
            "`conditions[0].children[0].value` is required",
        ),
        (
            text::<Subscribe>(json!({ "subscriptions": [{ "subscriberId": "ada", "name": 5 }] })),
            "`subscriptions[0].name` must be a text",
        ),
        (
            text::<Subscribe>(json!({ "subscriberIds": [5] })),
            "`subscriberIds[0]` must be a text or an object",
        ),
        (
            text::<Subscribe>(json!({ "subscriptions": [], "preferences": [{ "enabled": true }] })),
            "`preferences[0].workflowId` is required unless there is `filter`",
        ),
        (text::<TopicQuery>(json!({ "limit": "x" })), "`limit` must be a whole number"),
        (
            text::<TopicQuery>(json!({ "includeCursor": 1 })),
            "`includeCursor` must be `true` or `false`",
        ),
        (
            text::<TopicQuery>(json!({ "orderBy": "nonsense" })),
            "`orderBy` must be one of _id, key, createdAt, updatedAt",
        ),
        (
            text::<GlobalPreferenceUpdate>(json!({ "schedule": {
                "isEnabled": true, "weeklySchedule": { "someday": { "isEnabled": true } },
            } })),
            "`schedule.weeklySchedule.someday` must be one of monday, tuesday, wednesday, thursday, \
             friday, saturday, sunday",
        ),
        (
            text::<GlobalPreferenceUpdate>(json!({ "schedule": {
                "isEnabled": true,
                "weeklySchedule": { "monday": { "isEnabled": true, "hours": [{ "start": "9" }] } },
            } })),
            "`schedule.weeklySchedule.monday.hours[0].start` must be a time such as `09:30 AM`",
        ),
    ] {
        assert_eq!(refused, expected);
    }
}

/// One row per place of a misspelled name.
#[test]
fn nothing_misspelled_passes() {
    let to = |to| json!({ "name": "w", "to": to });
    for (refused, expected) in [
        (
            text::<WorkflowUpdate>(json!({ "actve": true })),
            "`actve` is not known; did you mean `active`?",
        ),
        (
            text::<WorkflowUpdate>(json!({ "critcal": true })),
            "`critcal` is not known; did you mean `critical`?",
        ),
        (
            text::<WorkflowSync>(json!({ "workflows": [{ "worklfowId": "w" }] })),
            "`workflows[0].worklfowId` is not known; did you mean `workflowId`?",
        ),
        (
            text::<WorkflowPreferenceUpdates>(json!({
                "preferences": [{ "workflowId": "w", "channels": { "fax": true } }],
            })),
            "`preferences[0].channels.fax` is not known",
        ),
        (
            text::<WorkflowPreferenceUpdates>(json!({
                "preferences": [{ "workflowId": "w", "channels": { "inApp": true } }],
            })),
            "`preferences[0].channels.inApp` is not known; did you mean `in_app`?",
        ),
        (
            text::<WorkflowCreate>(workflow(json!({
                "type": "sms", "template": { "body": "b" }, "filter": [],
            }))),
            "`steps[0].filter` is not known; did you mean `filters`?",
        ),
        (
            text::<WorkflowCreate>(workflow(json!({ "type": "sms", "template": { "bdy": "b" } }))),
            "`steps[0].template.bdy` is not known; did you mean `body`?",
        ),
        (
            text::<WorkflowCreate>(workflow(json!({
                "type": "sms", "template": { "body": "b" }, "metadata": {},
            }))),
            "`steps[0].metadata` is not known",
        ),
        (
            text::<WorkflowCreate>(workflow(json!({
                "typ": "sms", "template": { "body": "b" },
            }))),
            "`steps[0].typ` is not known; did you mean `type`?",
        ),
        (
            text::<WorkflowUpdate>(json!({ "preferenceSettings": { "emial": false } })),
            "`preferenceSettings.emial` is not known; did you mean `email`?",
        ),
        (
            text::<Trigger>(to(json!({ "subscriberId": "ada", "firstname": "Ada" }))),
            "`to.firstname` is not known; did you mean `firstName`?",
        ),
        (
            text::<Trigger>(to(json!([{ "tpye": "Topic", "topicKey": "news" }]))),
            "`to[0].tpye` is not known; did you mean `type`?",
        ),
        (
            text::<Trigger>(json!({
                "name": "w", "to": "ada", "context": { "t": { "id": "x", "dat": {} } },
            })),
            "`context.t.dat` is not known; did you mean `data`?",
        ),
        (
            text::<Subscribe>(json!({ "subscriptions": [{ "subscriberID": "ada" }] })),
            "`subscriptions[0].subscriberID` is not known; did you mean `subscriberId`?",
        ),
        (
            text::<IntegrationUpdate>(json!({ "credentials": { "api_key": "x" } })),
            "`credentials.api_key` is not known; did you mean `apiKey`?",
        ),
        (
            text::<IntegrationUpdate>(json!({ "conditions": [{
                "type": "GROUP", "value": "AND", "children": [
                    { "feild": "a", "value": "1", "operator": "EQUAL", "on": "payload" },
                ],
            }] })),
            "`conditions[0].children[0].feild` is not known; did you mean `field`?",
        ),
        (
            text::<ChannelEndpointCreate>(json!({ "conectionIdentifier": "c" })),
            "`conectionIdentifier` is not known; did you mean `connectionIdentifier`?",
        ),
    ] {
        assert_eq!(refused, expected);
    }
}

#[test]
fn a_name_of_another_place_is_known_there() {
    for (refused, expected) in [
        (
            text::<GlobalPreferenceUpdate>(json!({ "email": true })),
            "`email` is not known; did you mean `channels.email`?",
        ),
        (
            text::<WorkflowCreate>(json!({
                "name": "W", "workflowId": "w", "steps": [], "template": { "body": "b" },
            })),
            "`template` is not known; did you mean `steps[0].template`?",
        ),
        (
            text::<WorkflowPreferenceUpdates>(json!({
                "preferences": [{ "workflow": "w", "channels": {} }],
            })),
            "`preferences[0].workflow` is not known; did you mean `workflowId`?",
        ),
        (
            text::<Trigger>(json!({ "workflow": "w", "to": "ada" })),
            "`workflow` is not known; did you mean `name`?",
        ),
        (
            text::<Trigger>(json!({ "workflowId": "w", "to": "ada" })),
            "`workflowId` is not known; did you mean `name`?",
        ),
    ] {
        assert_eq!(refused, expected);
    }
}

#[test]
fn what_is_not_known_may_be_passed_over() {
    let body = br#"{ "subscriberId": "bob", "email": null }"#;
    let update: SubscriberUpdate = read_lenient(body).unwrap();
    assert_eq!(update, serde_json::from_value(json!({ "email": null })).unwrap());
    let body = br#"{ "subscriberId": "bob", "email": 5 }"#;
    let refused = read_lenient::<SubscriberUpdate>(body).unwrap_err();
    assert_eq!(refused.to_string(), "`email` must be a text");
}

#[test]
fn free_objects_stay_free() {
    let trigger = json!({
        "name": "w", "to": "ada", "payload": { "actve": [{ "x": 1 }] }, "overrides": { "a": {} },
    });
    let trigger: Trigger = read(trigger.to_string().as_bytes()).unwrap();
    assert_eq!(trigger.payload.size(), r#"{"actve":[{"x":1}]}"#.len());
}

#[test]
fn a_name_is_given_once_wherever_it_is() {
    for (body, field) in [
        (r#"{ "name": "w", "to": "ada", "to": "bob" }"#, "to"),
        (r#"{ "to": [{ "subscriberId": "ada", "data": { "a": 1, "a": 2 } }] }"#, "to[0].data.a"),
        (r#"{ "payload": { "a": [1, { "b": 1, "b": 1 }] } }"#, "payload.a[1].b"),
    ] {
        let refused = Invalid::new(field, Reason::Repeated);
        assert_eq!(read::<Trigger>(body.as_bytes()), Err(refused.clone()));
        assert_eq!(read_lenient::<Trigger>(body.as_bytes()), Err(refused));
    }
}

#[test]
fn a_bottomless_body_is_refused() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        for depth in [200, 1_000_000] {
            let body = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let refused = read::<Trigger>(body.as_bytes()).unwrap_err();
            assert!(refused.to_string().contains("recursion limit exceeded"), "{refused}");
        }
    }
    let name = "x".repeat(1_000_000);
    let body = format!(r#"{{"{name}":1}}"#);
    assert_eq!(read::<Trigger>(body.as_bytes()).unwrap_err().field.len(), 67);
}

/// What plain serde ignores is refused in a value as well.
#[test]
fn a_value_is_read_as_a_text_is() {
    for given in [
        json!({ "name": "w", "to": "ada", "transactionId": "once" }),
        json!({ "name": "w", "to": "ada", "transactionID": "once" }),
        json!({ "name": "w", "to": ["ada", { "subscriberId": "bob", "emial": "b@example.org" }] }),
        json!({ "name": "w", "to": 7 }),
        json!([]),
    ] {
        assert_eq!(read_value::<Trigger>(&given), read(given.to_string().as_bytes()), "{given}");
    }
}

// Each member of an update is cleared by `null`, or refuses it.
fn check_nulls<T: Shaped + Serialize>(kept: &[&str]) {
    let mut refused = Vec::new();
    for name in T::shape().names(&Map::new()) {
        let json = json!({ name: null });
        match read_value::<T>(&json) {
            Ok(update) => assert_eq!(serde_json::to_value(update).unwrap(), json, "{name}"),
            Err(invalid) => {
                let expected = format!("`{name}` must be a value: leave it out to keep it");
                assert_eq!(invalid.to_string(), expected);
                assert_eq!(read_lenient::<T>(json.to_string().as_bytes()).err(), Some(invalid));
                refused.push(name);
            }
        }
    }
    assert_eq!(refused, kept);
}

/// One row per update: the members that `null` does not clear.
#[test]
fn null_does_not_keep_a_field() {
    check_nulls::<ChannelConnectionUpdate>(&["workspace", "auth"]);
    check_nulls::<EnvironmentUpdate>(&[]);
    check_nulls::<IntegrationUpdate>(&[
        "name",
        "identifier",
        "credentials",
        "active",
        "conditions",
        "onUnknown",
    ]);
    check_nulls::<SubscriberUpdate>(&[]);
    check_nulls::<SubscriptionUpdate>(&["preferences"]);
    check_nulls::<TopicUpdate>(&[]);
    check_nulls::<WorkflowUpdate>(&[
        "name",
        "description",
        "active",
        "critical",
        "isTranslationEnabled",
        "missingVariables",
        "severity",
        "tags",
        "preferenceSettings",
        "steps",
        "validatePayload",
    ]);
}
