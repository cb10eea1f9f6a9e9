use serde_json::json;

use super::*;
use crate::sample;

fn context(key: &str, data: Value) -> Context {
    let key = key.parse().unwrap();
    Context::new(sample::id(7), &sample::home(), key, sample::object(data), sample::at(0))
}

#[test]
fn there_are_a_subscriber_a_payload_contexts_and_a_workflow() {
    let subscriber = about(&sample::subscriber(json!({ "firstName": "Ada" })));
    let payload = sample::object(json!({ "total": 42 }));
    let contexts =
        [context("tenant:acme", json!({ "plan": "pro" })), context("app:web", json!({}))];
    let workflow = sample::workflow(json!([]));

    let data = Known::new(&subscriber, &payload, &contexts, &workflow).data();
    assert_eq!(data["subscriber"]["firstName"], "Ada");
    assert_eq!(data["subscriber"]["subscriberId"], "ada");
    let rest = json!({
        "subscriber": subscriber,
        "payload": { "total": 42 },
        "context": {
            "tenant": { "id": "acme", "data": { "plan": "pro" } },
            "app": { "id": "web", "data": {} },
        },
        "workflow": { "name": "Order shipped", "identifier": "order-shipped" },
    });
    assert_eq!(data, rest, "and nothing else");
}

#[test]
fn what_is_not_there_is_empty() {
    let subscriber = about(&sample::subscriber(json!({})));
    let (payload, workflow) = (Object::default(), sample::workflow(json!([])));
    let data = Known::new(&subscriber, &payload, &[], &workflow).data();
    assert_eq!((&data["payload"], &data["context"]), (&json!({}), &json!({})));
}

#[test]
fn the_settings_of_channels_are_not_known() {
    let subscriber = sample::subscriber(json!({ "lastName": "Lovelace", "channels": [{
        "providerId": "slack",
        "_integrationId": uuid::Uuid::nil(),
        "credentials": { "webhookUrl": "https://chat.example.com/s3cr3t" },
    }] }));
    let known = about(&subscriber);
    assert!(!serde_json::to_string(&known).unwrap().contains("s3cr3t"));
    assert_eq!(known.get("lastName"), Some(&json!("Lovelace")));
    assert_eq!(known.get("channels"), None);
    let (payload, workflow) = (Object::default(), sample::workflow(json!([])));
    let data = Known::new(&subscriber, &payload, &[], &workflow).data();
    assert_eq!(data, Known::new(&known, &payload, &[], &workflow).data());
    assert_eq!(data["subscriber"], Value::from(known));
}

#[test]
fn objects_of_the_deepest_nesting_are_known_as_well() {
    let deepest = (1..Object::MAX_DEPTH).fold(json!("pro"), |inner, _| json!({ "in": inner }));
    let deepest = json!({ "plan": deepest });
    let subscriber = about(&sample::subscriber(json!({ "data": deepest })));
    let (payload, workflow) = (sample::object(deepest.clone()), sample::workflow(json!([])));
    let contexts = [context("tenant:acme", deepest.clone())];
    let data = Known::new(&subscriber, &payload, &contexts, &workflow).data();
    assert_eq!(data["subscriber"]["data"], deepest);
    assert_eq!(data["payload"], deepest);
    assert_eq!(data["context"]["tenant"]["data"], deepest);
}
