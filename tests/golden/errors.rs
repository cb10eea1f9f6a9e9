//! What an operation answers with when it does not happen.
//!
//! A refusal is kept under the idempotency key of its call, so that it is read again as well.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tidings::Error;
use tidings::notification::NotificationQuery;

/// Says that the error that is written as `json` says `text`, and means `status`.
#[track_caller]
fn check(json: &Value, text: &str, status: u16) {
    let error = read(json);
    assert_eq!(error.to_string(), text);
    assert_eq!(error.status(), status);
    assert_eq!(serde_json::to_value(&error).unwrap(), *json);
}

fn read(json: &Value) -> Error {
    let (kind, of) = json.as_object().and_then(|error| error.iter().next()).unwrap();
    match kind.as_str() {
        "invalid" => Error::Invalid(parsed(of)),
        "notFound" => Error::NotFound {
            entity: parsed(&of["entity"]),
            ids: parsed(&of["ids"]),
            suggestion: parsed(&of["suggestion"]),
        },
        "conflict" => Error::Conflict { entity: parsed(&of["entity"]), id: parsed(&of["id"]) },
        "beingDeleted" => {
            Error::BeingDeleted { entity: parsed(&of["entity"]), id: parsed(&of["id"]) }
        }
        "rejected" => Error::Rejected(parsed(of)),
        "unauthorized" => Error::Unauthorized(parsed(of)),
        other => panic!("{other}"),
    }
}

fn parsed<T: DeserializeOwned>(json: &Value) -> T {
    T::deserialize(json).unwrap()
}

/// One row per reason why a value is refused.
#[test]
fn errors_of_values_have_their_texts() {
    for (reason, text) in [
        (json!("missing"), "is required"),
        (
            json!({ "missingUnless": { "other": "context" } }),
            "is required unless there is `context`",
        ),
        (json!("empty"), "must not be empty"),
        (json!({ "tooLong": { "max": 255, "unit": "bytes" } }), "must be at most 255 bytes long"),
        (
            json!({ "tooLong": { "max": 100, "unit": "characters" } }),
            "must be at most 100 characters long",
        ),
        (json!({ "tooMany": { "max": 5 } }), "must have at most 5 items"),
        (json!({ "outOfRange": { "min": 1, "max": 100 } }), "must be between 1 and 100"),
        (json!({ "malformed": { "expected": "a text" } }), "must be a text"),
        (json!({ "notOneOf": { "words": ["a", "b"] } }), "must be one of a, b"),
        (json!({ "tooDeep": { "max": 64 } }), "must be nested at most 64 levels deep"),
        (json!("repeated"), "must not be given twice"),
        (json!({ "excludes": { "other": "after" } }), "must not be given together with `after`"),
        (json!({ "reversed": { "end": "before" } }), "must not come after `before`"),
        (json!({ "template": { "problem": "line 1" } }), "is not a valid template: line 1"),
        (json!({ "unknownOperator": { "operator": "nope" } }), "has no operator `nope`"),
        (json!({ "arguments": { "expected": "1 argument" } }), "must have 1 argument"),
        (json!({ "inWords": { "rule": "must be read" } }), "must be read"),
        (json!({ "unreadable": { "problem": "EOF" } }), "cannot be read: EOF"),
        (
            json!("noPages"),
            "must not be given: this call is about all that match, not about a page",
        ),
        (
            json!({ "missingFeature": { "feature": "payload-schema" } }),
            "needs the cargo feature `payload-schema` of `tidings`",
        ),
    ] {
        let invalid = json!({ "invalid": { "field": "steps[2].template", "reason": reason } });
        check(&invalid, &format!("`steps[2].template` {text}"), 422);
    }
}

/// One row per kind of thing that an operation can name.
#[test]
fn errors_of_names_have_their_texts() {
    for (entity, name) in [
        ("channelConnection", "channel connection"),
        ("channelEndpoint", "channel endpoint"),
        ("context", "context"),
        ("environment", "environment"),
        ("event", "event"),
        ("idempotencyKey", "idempotency key"),
        ("integration", "integration"),
        ("layout", "layout"),
        ("message", "message"),
        ("notification", "notification"),
        ("subscriber", "subscriber"),
        ("subscription", "subscription"),
        ("suppression", "suppression"),
        ("topic", "topic"),
        ("translation", "translation"),
        ("translationGroup", "translation group"),
        ("workflow", "workflow"),
    ] {
        let not_found = |ids: Value| json!({ "notFound": { "entity": entity, "ids": ids } });
        check(&not_found(json!(["a"])), &format!("{name} `a` is not there"), 404);
        check(&not_found(json!(["a", "b"])), &format!("{name}s `a`, `b` are not there"), 404);
        let meant = json!({
            "notFound": { "entity": entity, "ids": ["a"], "suggestion": "b" },
        });
        check(&meant, &format!("{name} `a` is not there; did you mean `b`?"), 404);
        let conflict = json!({ "conflict": { "entity": entity, "id": "a" } });
        let taken = match entity {
            "idempotencyKey" => "was used for another call",
            "event" => "is one of another workflow",
            _ => "is there already",
        };
        check(&conflict, &format!("{name} `a` {taken}"), 409);
        let deleted = json!({ "beingDeleted": { "entity": entity, "id": "a" } });
        let text = format!(
            "{name} `a` is being deleted: if the deletion was interrupted, delete it again"
        );
        check(&deleted, &text, 409);
    }
}

/// One row per rule.
#[test]
fn errors_of_rules_have_their_texts() {
    let missing = json!({
        "subscriberId": "eve",
        "code": "SUBSCRIBER_NOT_FOUND",
        "message": "subscriber `eve` is not there",
    });
    for (rule, text) in [
        (json!({ "reservedName": { "name": "Production" } }), "the name `Production` is reserved"),
        (
            json!({ "criticalWorkflows": { "workflows": ["a", "b"] } }),
            "critical workflows take no preferences: a, b",
        ),
        (json!({ "noPrimary": { "channel": "chat" } }), "chat integrations cannot be primary"),
        (
            json!({ "noSubscription": { "errors": [missing.clone(), missing] } }),
            "each subscription was refused: subscriber `eve` is not there; subscriber `eve` is not \
             there",
        ),
        (
            json!({ "notRedriven": { "reason": "messageGone" } }),
            "the dead letter is not redriven: its message was deleted: resend the step, which \
             renders a new one",
        ),
        (
            json!({ "inboundReport": { "reason": { "forged": { "problem": "old" } } } }),
            "the report of the service is refused: its signature is refused: old",
        ),
        (
            json!({ "unsubscribeLink": { "problem": "expired" } }),
            "the unsubscribe link cannot be used: it has expired",
        ),
        (
            json!("noUnsubscribeUrl"),
            "the engine has no URL for unsubscribe links: see `Builder::unsubscribe_links`",
        ),
        (json!("oneInbox"), "an environment has at most one in_app integration"),
        (json!({ "tooManyApiKeys": { "max": 100 } }), "an environment has at most 100 API keys"),
        (json!({ "noAction": { "button": "primary" } }), "the message has no primary button"),
        (json!("clockNotManual"), "a simulation needs an engine with a manual clock"),
    ] {
        check(&json!({ "rejected": rule }), text, 400);
    }
}

/// One row per reason why something is not done again.
#[test]
fn errors_of_repetitions_have_their_texts() {
    let step = "00000000-0000-7000-8000-000000000001";
    for (reason, text) in [
        ("noStep", "the notification has no such step"),
        ("waiting", "the step has not ended"),
        ("noMessage", "the step has no message"),
    ] {
        let rule = json!({ "notResent": { "step": step, "reason": reason } });
        let text = format!("the step `{step}` is not sent again: {text}");
        check(&json!({ "rejected": rule }), &text, 400);
    }
    for (reason, text) in [
        ("unreadable", "it has no task that can be read"),
        ("gone", "its notification is gone"),
        ("ended", "its job has ended in another way"),
        ("queued", "the queue has such a task"),
    ] {
        let rule = json!({ "notRequeued": { "reason": reason } });
        let text = format!("the task is not put back into the queue: {text}");
        check(&json!({ "rejected": rule }), &text, 400);
    }
}

/// An outcome that is not one of the words, alone or among others.
#[test]
fn errors_of_outcomes_have_their_texts() {
    let text = "`outcomes` must be one of waiting, delivered, failed, skipped, canceled, merged";
    for outcomes in [json!("late"), json!(["failed", "late"])] {
        let query = json!({ "outcomes": outcomes });
        let error = serde_json::from_value::<NotificationQuery>(query).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn errors_of_keys_have_their_texts() {
    let form = "the `Authorization` header must be `ApiKey`, a space and the key";
    check(&json!({ "unauthorized": "noKey" }), form, 401);
    let scheme =
        "the `Authorization` header has the scheme `Bearer`: send `ApiKey`, a space and the key";
    check(&json!({ "unauthorized": "bearer" }), scheme, 401);
    check(&json!({ "unauthorized": "unknownKey" }), "the API key is not known", 401);
}

#[test]
fn errors_of_the_store_have_their_texts() {
    let failure = Error::Store(store::Error::AlreadyOpen { path: "file".into() });
    assert_eq!(failure.status(), 500);
    let told = serde_json::to_value(&failure).unwrap();
    assert_eq!(told, json!({ "store": failure.to_string() }));
}

/// A full disk is the only failure of a file that calls outlast by themselves.
#[test]
fn errors_of_a_file_in_trouble_have_their_texts() {
    let (path, text) = (PathBuf::from("shop.redb"), "I/O error");
    let source = || {
        let (backend, action) = ("redb", "write the log");
        Box::new(store::Error::Backend { backend, action, source: text.into() })
    };
    for (error, expected, status, is_retryable) in [
        (
            store::Error::StorageFull { path: path.clone(), source: source() },
            "`shop.redb` takes no changes until there is room on its disk: redb could not write the \
             log: I/O error",
            507,
            true,
        ),
        (
            store::Error::Interrupted { path: path.clone(), source: text.into() },
            "`shop.redb` was opened again while it was read: I/O error",
            503,
            true,
        ),
        (
            store::Error::ReadOnly { path: path.clone(), source: source() },
            "`shop.redb` cannot be changed: redb could not write the log: I/O error: make it \
             writable, and open it again",
            503,
            false,
        ),
        (
            store::Error::Replaced { path: path.clone() },
            "`shop.redb` was moved, deleted or replaced while it was open, and takes no changes",
            503,
            false,
        ),
        (
            store::Error::NeedsReopen { path: path.clone(), source: source() },
            "`shop.redb` takes no changes until it is opened again: redb could not write the log: \
             I/O error",
            503,
            false,
        ),
        (store::Error::Damaged { path, source: text.into() }, "`shop.redb` is damaged", 500, false),
        (*source(), "redb could not write the log: I/O error", 500, true),
        (
            store::Error::Refused { backend: "redb", action: "put", source: "too large".into() },
            "redb could not put: too large",
            500,
            false,
        ),
    ] {
        let error = Error::Store(error);
        assert_eq!(error.to_string(), expected);
        assert_eq!((error.status(), error.is_retryable()), (status, is_retryable), "{error}");
    }
}
