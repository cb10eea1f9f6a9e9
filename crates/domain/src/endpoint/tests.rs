use std::fmt::Write;

use serde_json::{Value, json};

use super::*;
use crate::ids::PlatformId;
use crate::sample;

const SECRET: &str = "https://chat.example.com/s3cr3t";

// Every type with all fields. A `?` marks the optional ones.
const FIELDS: [(EndpointType, &[(&str, &str)]); 6] = [
    (EndpointType::SlackChannel, &[("channelId", "C1")]),
    (EndpointType::SlackUser, &[("userId", "U1")]),
    (EndpointType::Webhook, &[("url", SECRET), ("channel?", "general")]),
    (EndpointType::Phone, &[("phoneNumber", "+15550100")]),
    (EndpointType::MsTeamsChannel, &[("teamId", "T1"), ("channelId", "C1")]),
    (EndpointType::MsTeamsUser, &[("userId", "U1"), ("tenantId?", "X1")]),
];

fn full(fields: &[(&str, &str)]) -> Value {
    fields.iter().map(|(name, value)| (name.trim_end_matches('?'), *value)).collect()
}

fn minimal(fields: &[(&str, &str)]) -> Value {
    fields.iter().filter(|(name, _)| !name.ends_with('?')).copied().collect()
}

fn read(kind: EndpointType, data: Value) -> Result<Endpoint, String> {
    Endpoint::new(kind, &sample::object(data)).map_err(|invalid| invalid.to_string())
}

fn webhook() -> Endpoint {
    read(EndpointType::Webhook, json!({ "url": SECRET, "channel": "general" })).unwrap()
}

fn create(json: Value) -> Result<ChannelEndpointCreate, serde_json::Error> {
    let mut whole = json!({ "subscriberId": "ada", "integrationIdentifier": "slack-1" });
    whole
        .as_object_mut()
        .unwrap()
        .extend(sample::object(json).iter().map(|(name, value)| (name.clone(), value.clone())));
    serde_json::from_value(whole)
}

fn created(endpoint: Endpoint) -> ChannelEndpoint {
    let create = ChannelEndpointCreate {
        identifier: None,
        subscriber_id: "ada".parse().unwrap(),
        context: None,
        integration_identifier: "slack-1".parse().unwrap(),
        connection_identifier: Some("workspace".parse().unwrap()),
        endpoint,
    };
    let integration = sample::integration(5, "slack-1", Channel::Chat);
    let contexts = ContextSet::from_iter(["tenant:acme".parse().unwrap()]);
    let named = (sample::id(6), "here".parse().unwrap());
    ChannelEndpoint::new(named, &sample::home(), create, &integration, contexts, sample::at(1))
}

fn update(data: Value) -> ChannelEndpointUpdate {
    ChannelEndpointUpdate { endpoint: sample::object(data) }
}

#[test]
fn each_type_has_fields_of_its_own() {
    for (kind, fields) in FIELDS {
        for data in [full(fields), minimal(fields)] {
            let endpoint = read(kind, data.clone()).unwrap();
            assert_eq!(endpoint.kind(), kind);
            assert_eq!(Value::from(endpoint.data()), data);
            let json = json!({ "type": kind, "endpoint": data });
            assert_eq!(serde_json::to_value(&endpoint).unwrap(), json);
            assert_eq!(serde_json::from_value::<Endpoint>(json).unwrap(), endpoint);
        }
    }
}

#[test]
fn a_place_of_one_type_is_none_of_another() {
    for (kind, fields) in FIELDS {
        for (other, others) in FIELDS {
            // A Slack user reads as a Teams user without tenant.
            let alike = [EndpointType::SlackUser, EndpointType::MsTeamsUser];
            let fits = kind == other || (kind, other) == alike.into();
            assert_eq!(read(other, full(fields)).is_ok(), fits, "{kind} as {other}");
            let fits = fits || (other, kind) == alike.into();
            assert_eq!(read(other, minimal(fields)).is_ok(), fits, "{kind} as {other}");
            assert!(minimal(others).as_object().is_some_and(|fields| !fields.is_empty()));
        }
    }
}

#[test]
fn what_a_place_needs_is_asked_for() {
    for (kind, fields) in FIELDS {
        for (name, _) in fields.iter().filter(|(name, _)| !name.ends_with('?')) {
            let required = Err(format!("`endpoint.{name}` is required"));
            let mut data = full(fields);
            data[*name] = Value::Null;
            assert_eq!(read(kind, data.clone()), required, "null");
            data.as_object_mut().unwrap().remove(*name);
            assert_eq!(read(kind, data), required, "missing");
        }
    }
}

#[test]
fn null_is_as_good_as_absent_where_a_place_can_do_without() {
    for (kind, fields) in FIELDS {
        for (name, _) in fields {
            let Some(name) = name.strip_suffix('?') else { continue };
            let mut data = full(fields);
            data[name] = Value::Null;
            assert_eq!(read(kind, data).unwrap(), read(kind, minimal(fields)).unwrap());
        }
    }
}

#[test]
fn a_field_is_a_text() {
    for (kind, fields) in FIELDS {
        for (name, _) in fields {
            let name = name.trim_end_matches('?');
            for other in [json!(7), json!(true), json!(["C1"]), json!({ "id": "C1" })] {
                let mut data = full(fields);
                data[name] = other;
                let problem = Err(format!("`endpoint.{name}` must be a text"));
                assert_eq!(read(kind, data), problem);
            }
        }
    }
}

#[test]
fn a_name_that_a_platform_gave_is_readable() {
    for (kind, fields) in FIELDS {
        for (name, _) in fields {
            let name = name.trim_end_matches('?');
            if ["url", "phoneNumber"].contains(&name) {
                continue;
            }
            for (value, problem) in [
                (String::new(), Some("must not be empty")),
                ("x".repeat(255), None),
                ("x".repeat(256), Some("must be at most 255 bytes long")),
                ("a\0b".into(), Some("must be text without control characters")),
                ("19:ä b@thread.tacv2".into(), None),
            ] {
                let mut data = full(fields);
                data[name] = value.into();
                let problem = problem.map(|problem| format!("`endpoint.{name}` {problem}"));
                assert_eq!(read(kind, data).err(), problem);
            }
        }
    }
}

#[test]
fn what_is_no_field_of_the_type_is_refused() {
    for (kind, fields) in FIELDS {
        for value in [json!("x"), json!(null)] {
            let mut data = full(fields);
            data["extra"] = value;
            let expected = format!("must be a field of the type `{kind}`, or left out");
            assert_eq!(read(kind, data), Err(format!("`endpoint.extra` {expected}")));
        }
    }
    // A missing field comes before an unknown one.
    let error = read(EndpointType::SlackChannel, json!({ "userId": "U1" })).unwrap_err();
    assert_eq!(error, "`endpoint.channelId` is required");
}

#[test]
fn a_telephone_number_is_a_plus_and_2_to_15_digits() {
    for good in ["+15550100", "+10", "+999999999999999", "+4930123456"] {
        let number = PhoneNumber::try_from(good.to_owned()).unwrap();
        assert_eq!((number.as_str(), String::from(number.clone())), (good, good.to_owned()));
    }
    for bad in [
        "",
        "+",
        "+1",
        "+9999999999999999",
        "15550100",
        "0015550100",
        "+05550100",
        "++15550100",
        "+1 555 0100",
        "+1-555-0100",
        "+1555010a",
        " +15550100",
        "+15550100 ",
        "+15550100\n",
        "+१५५५०१००",
        "+1(555)0100",
    ] {
        let error = read(EndpointType::Phone, json!({ "phoneNumber": bad })).unwrap_err();
        let expected = "`endpoint.phoneNumber` must be a number such as `+4930123456`";
        assert_eq!(error, expected, "{bad}");
    }
}

#[test]
fn a_webhook_is_an_absolute_url() {
    let long = |len: usize| format!("{:x<len$}", "https://x/");
    for good in [
        "https://hooks.example.com/services/T1/B2/c3",
        "http://localhost:8080",
        "https://example.com?x=1&y=%20#z",
        "https://user:pass@example.com/",
        "https://[::1]:443/x",
        "https://müller.example/ü",
        &long(2_048),
    ] {
        let url = WebhookUrl::try_from(good.to_owned()).unwrap();
        assert_eq!(url.expose(), good);
    }
    for bad in [
        "",
        "not-a-url",
        "example.com",
        "//example.com",
        "/hook",
        "https:",
        "https://",
        "https:///path",
        "https://:443/x",
        "https://user:pass@/x",
        "https://user@:443",
        "https://?x",
        "https://#x",
        "ftp://example.com",
        "mailto:a@example.com",
        "javascript:alert(1)",
        "file:///etc/passwd",
        " https://example.com",
        "https://example.com/a b",
        "https://example.com/\n",
        "https://exa\tmple.com",
        "https://example.com/\u{0}",
        "xhttps://example.com",
    ] {
        let error = read(EndpointType::Webhook, json!({ "url": bad })).unwrap_err();
        let expected = "`endpoint.url` must be an absolute `http` or `https` URL";
        assert_eq!(error, expected, "{bad}");
    }
    let error = read(EndpointType::Webhook, json!({ "url": long(2_049) })).unwrap_err();
    assert_eq!(error, "`endpoint.url` must be at most 2048 bytes long");
}

#[test]
fn the_url_of_a_webhook_is_never_printed() {
    let endpoint = webhook();
    let update = ChannelEndpointUpdate::from(endpoint.clone());
    let asked = json!({ "type": "webhook", "endpoint": { "url": SECRET } });
    let mut printed = String::new();
    write!(printed, "{endpoint:?} {update:?} {:?}", create(asked).unwrap()).unwrap();
    write!(printed, "{:?}", created(endpoint)).unwrap();
    assert!(!printed.contains("s3cr3t") && !printed.contains("chat.example"), "{printed}");
    assert!(printed.contains("general") && printed.contains("channel"), "{printed}");
}

#[test]
fn a_redacted_endpoint_holds_no_secret() {
    let endpoint = created(webhook());
    let redacted = endpoint.clone().redacted();
    let Endpoint::Webhook { url, channel } = &redacted.endpoint else { panic!("{redacted:?}") };
    assert_eq!(url.expose(), "***");
    assert_eq!(channel.as_ref().map(PlatformId::as_str), Some("general"));
    assert_eq!(ChannelEndpoint { endpoint: webhook(), ..redacted }, endpoint, "all else stays");

    let phone = read(EndpointType::Phone, json!({ "phoneNumber": "+15550100" })).unwrap();
    assert_eq!(created(phone.clone()).redacted(), created(phone), "what holds none stays");
}

#[test]
fn a_new_one_belongs_to_its_integration() {
    let endpoint = created(webhook());
    assert_eq!(endpoint.channel, Channel::Chat);
    assert_eq!(endpoint.provider_id, None, "`outbox` is not a provider that is known");
    assert_eq!(endpoint.integration_id, sample::id(5));
    assert_eq!(endpoint.connection_identifier, Some("workspace".parse().unwrap()));
    assert_eq!(Vec::from(endpoint.context_keys.clone()), ["tenant:acme"]);
    assert_eq!((endpoint.created_at, endpoint.updated_at), (sample::at(1), sample::at(1)));
    assert_eq!(endpoint.environment_id, sample::home().environment_id);

    let integration = Integration {
        provider_id: "slack".into(),
        ..sample::integration(5, "slack-1", Channel::Chat)
    };
    let asked = json!({ "type": "slack_user", "endpoint": { "userId": "U1" } });
    let named = (sample::id(6), "here".parse().unwrap());
    let (home, contexts) = (sample::home(), ContextSet::default());
    let create = create(asked).unwrap();
    let known = ChannelEndpoint::new(named, &home, create, &integration, contexts, sample::at(1));
    assert_eq!(known.provider_id, Some(ProviderId::Slack));
    assert_eq!(known.connection_identifier, None);
}

#[test]
fn an_update_replaces_the_place_and_nothing_else() {
    let before = created(webhook());
    let data = json!({ "url": "https://example.com/other" });
    let after = before.updated(&update(data.clone()), sample::at(9)).unwrap();
    let endpoint = read(EndpointType::Webhook, data).unwrap();
    let expected = ChannelEndpoint { endpoint, updated_at: sample::at(9), ..before.clone() };
    assert_eq!(after, expected, "the channel that is not named is gone");
    let same = ChannelEndpointUpdate::from(before.endpoint.clone());
    assert_eq!(before.updated(&same, sample::at(9)), Ok(before), "the same changes nothing");
}

#[test]
fn an_update_keeps_the_type() {
    for (kind, fields) in FIELDS {
        let before = created(read(kind, full(fields)).unwrap());
        for (other, others) in FIELDS {
            let after = before.updated(&update(full(others)), sample::at(9));
            let expected = Endpoint::new(kind, &sample::object(full(others)));
            let kept = after.map(|endpoint| endpoint.endpoint);
            assert_eq!(kept, expected, "{other} for {kind}");
            assert!(kept.is_err() || kept.unwrap().kind() == kind);
        }
    }
    let channel = read(EndpointType::SlackChannel, json!({ "channelId": "C1" })).unwrap();
    let error = created(channel).updated(&update(json!({ "url": SECRET })), sample::at(9));
    assert_eq!(error.unwrap_err().to_string(), "`endpoint.channelId` is required");
}

/// One row per request that cannot be read: the refusal.
#[test]
fn a_request_says_what_is_wrong_with_it() {
    let there = || json!({ "channelId": "C1" });
    for (json, problem) in [
        (json!({ "endpoint": there() }), "missing field `type`"),
        (json!({ "type": "slack_channel" }), "missing field `endpoint`"),
        (
            json!({ "type": "telegram", "endpoint": there() }),
            "`type` must be one of slack_channel, slack_user, webhook, phone, ms_teams_channel, \
             ms_teams_user",
        ),
        (json!({ "type": "slack_user", "endpoint": there() }), "`endpoint.userId` is required"),
        (json!({ "type": "phone", "endpoint": "+15550100" }), "`endpoint` must be a JSON object"),
        (json!({ "type": "slack_channel", "endpoint": null }), "`endpoint` must be a JSON object"),
        (
            json!({ "type": "slack_channel", "endpoint": there(), "subscriberId": "" }),
            "`subscriberId` must not be empty",
        ),
        (
            json!({ "type": "slack_channel", "endpoint": there(), "subscriberId": null }),
            "invalid type: null",
        ),
        (
            json!({ "type": "slack_channel", "endpoint": there(), "identifier": "a\nb" }),
            "`identifier` must be text without control characters",
        ),
    ] {
        let error = create(json.clone()).unwrap_err().to_string();
        assert!(error.contains(problem), "{json}: {error}");
    }
    for required in ["subscriberId", "integrationIdentifier"] {
        let mut json = json!({
            "subscriberId": "ada", "integrationIdentifier": "slack-1",
            "type": "slack_channel", "endpoint": there(),
        });
        json.as_object_mut().unwrap().remove(required);
        let error = serde_json::from_value::<ChannelEndpointCreate>(json).unwrap_err();
        assert_eq!(error.to_string(), format!("missing field `{required}`"));
    }
}
