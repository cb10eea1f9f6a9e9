use serde_json::{Value, json};

use super::*;
use crate::sample;

const TOKEN: &str = "xoxb-s3cr3t";

fn request(changes: Value) -> ChannelConnectionCreate {
    let mut json = json!({
        "subscriberId": "ada",
        "integrationIdentifier": "slack-1",
        "workspace": { "id": "T1", "name": "Acme" },
        "auth": { "accessToken": TOKEN },
    });
    for (name, value) in sample::object(changes).iter() {
        json[name] = value.clone();
    }
    serde_json::from_value(json).unwrap()
}

fn created(provider_id: &str) -> ChannelConnection {
    let integration = Integration {
        provider_id: provider_id.into(),
        ..sample::integration(5, "slack-1", Channel::Chat)
    };
    let contexts = ContextSet::from_iter(["tenant:acme".parse().unwrap()]);
    let named = (sample::id(6), "here".parse().unwrap());
    let (home, create) = (sample::home(), request(json!({})));
    ChannelConnection::new(named, &home, create, &integration, contexts, sample::at(1))
}

fn updated(before: &ChannelConnection, update: Value) -> Result<ChannelConnection, String> {
    let update = serde_json::from_value(update).unwrap();
    before.updated(update, sample::at(9)).map_err(|invalid| invalid.to_string())
}

#[test]
fn a_connection_is_for_somebody_or_something() {
    let tenant = json!({ "tenant": "acme" });
    for (subscriber, context, problem) in [
        (json!("ada"), json!(null), None),
        (json!(null), tenant.clone(), None),
        (json!("ada"), tenant, None),
        (json!(null), json!(null), Some("`subscriberId` is required unless there is `context`")),
    ] {
        let create = request(json!({ "subscriberId": subscriber, "context": context }));
        let error = create.check().err().map(|invalid| invalid.to_string());
        assert_eq!(error.as_deref(), problem);
    }
}

/// One row per workspace and token: the refusal, in a new connection and in an update.
#[test]
fn a_workspace_has_a_name_of_bounds_and_a_token_opens_it() {
    let workspace = |name: String| json!({ "workspace": { "id": "T1", "name": name } });
    let auth = |token: String| json!({ "auth": { "accessToken": token } });
    for (changes, problem) in [
        (workspace(String::new()), None),
        (workspace("ü".repeat(255)), None),
        (workspace("x".repeat(256)), Some("`workspace.name` must be at most 255 characters long")),
        (auth("x".into()), None),
        (auth(String::new()), Some("`auth.accessToken` must not be empty")),
        (auth("x".repeat(16_384)), None),
        (auth("x".repeat(16_385)), Some("`auth.accessToken` must be at most 16384 bytes long")),
    ] {
        let error = request(changes.clone()).check().err().map(|invalid| invalid.to_string());
        assert_eq!(error.as_deref(), problem);
        assert_eq!(updated(&created("slack"), changes).err().as_deref(), problem);
    }
}

#[test]
fn what_must_be_there_is_asked_for() {
    for (missing, problem) in [
        ("integrationIdentifier", "missing field `integrationIdentifier`"),
        ("workspace", "missing field `workspace`"),
        ("auth", "missing field `auth`"),
    ] {
        let mut json = serde_json::to_value(request(json!({}))).unwrap();
        json.as_object_mut().unwrap().remove(missing);
        let error = serde_json::from_value::<ChannelConnectionCreate>(json).unwrap_err();
        assert_eq!(error.to_string(), problem);
    }
    for (workspace, problem) in [
        (json!({ "name": "Acme" }), "missing field `id`"),
        (json!({ "id": "" }), "`id` must not be empty"),
        (json!({ "id": "T\n1" }), "`id` must be text without control characters"),
    ] {
        let error = serde_json::from_value::<Workspace>(workspace).unwrap_err();
        assert_eq!(error.to_string(), problem);
    }
    let error = serde_json::from_value::<ConnectionAuth>(json!({})).unwrap_err();
    assert_eq!(error.to_string(), "missing field `accessToken`");
}

#[test]
fn a_new_one_belongs_to_its_integration() {
    let connection = created("slack");
    assert_eq!(connection.channel, Channel::Chat);
    assert_eq!(connection.provider_id, Some(ProviderId::Slack));
    assert_eq!(created("of-our-own").provider_id, None);
    assert_eq!(connection.integration_id, sample::id(5));
    assert_eq!(connection.identifier.as_str(), "here");
    assert_eq!(Vec::from(connection.context_keys), ["tenant:acme"]);
    assert_eq!((connection.created_at, connection.updated_at), (sample::at(1), sample::at(1)));
}

#[test]
fn an_update_changes_what_it_names() {
    let before = created("slack");
    let workspace = Workspace { id: "T2".parse().unwrap(), name: None };
    let auth = ConnectionAuth { access_token: "new".into() };
    let later = ChannelConnection { updated_at: sample::at(9), ..before.clone() };
    for (update, expected) in [
        (json!({}), before.clone()),
        (json!({ "workspace": before.workspace, "auth": before.auth }), before.clone()),
        (json!({ "workspace": { "id": "T2" } }), ChannelConnection { workspace, ..later.clone() }),
        (json!({ "auth": { "accessToken": "new" } }), ChannelConnection { auth, ..later }),
    ] {
        assert_eq!(updated(&before, update), Ok(expected));
    }
}

#[test]
fn a_token_is_never_printed() {
    let connection = created("slack");
    let update: ChannelConnectionUpdate =
        serde_json::from_value(json!({ "auth": { "accessToken": TOKEN } })).unwrap();
    let printed = format!("{connection:?} {update:?} {:?}", request(json!({})));
    assert!(!printed.contains("s3cr3t"), "{printed}");
    assert!(serde_json::to_string(&connection).unwrap().contains(TOKEN), "it is stored as it is");
    let redacted = connection.clone().redacted();
    assert_eq!(redacted.auth.access_token.expose(), "***");
    assert_eq!(ChannelConnection { auth: connection.auth.clone(), ..redacted }, connection);
}
