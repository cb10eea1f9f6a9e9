use serde_json::json;

use super::*;
use crate::sample;

fn ada() -> Subscriber {
    let mut ada = sample::subscriber(serde_json::json!({}));
    ada.profile.email = Some("Ada@example.org".parse().unwrap());
    ada.profile.phone = Some("+44 20".into());
    ada
}

/// One row per value: whether it tells of the subscriber.
#[test]
fn a_record_is_recognized_by_ids_and_addresses() {
    let ada = ada();
    let (name, id) = (ada.subscriber_id.to_string(), ada.id.to_string());
    let identifiers = PersonalIdentifiers::of(&ada.subscriber_id, [], []).with(Some(&ada));
    for (value, expected) in [
        (json!({ "a": [{ "subscriberId": name }] }), true),
        (json!([format!("of {id}")]), true),
        (json!("to Ada@example.org"), true),
        (json!("to ada@example.org"), true),
        (json!({ "phone": "+44 20" }), true),
        (json!({ "phone": "+4420" }), true),
        (json!("<mailto:ada@example.org>."), true),
        (json!([format!("`tk_news:si_{name}` is not there")]), true),
        (json!(format!("tk_news:si_{name}:ctx_tenant:acme")), true),
        (json!(format!("tk_news:si_{name}-2")), false),
        (json!(format!("tk_news:si_{name}:2 and tk_news:si_{name}|x")), false),
        (json!([format!("tk_news:si_{name}`"), format!("tk_news:si_{name}\"2\"")]), false),
        (json!([format!("x:si_{name}"), format!("`x:si_{name}`")]), false),
        (json!(["bada@example.org", "ada@example.organic"]), false),
        // As in the transaction id of a host.
        (json!("welcome-ada@example.org-1"), true),
        (json!(format!("order{id}of2")), true),
        (json!("bada@example.org and ada@example.org"), true),
        (json!({ "phone": "+44201" }), false),
        (json!({ name.clone(): 1 }), false),
        (json!(format!("{name}s")), false),
        (json!([null, 1, true, "bob@example.org"]), false),
    ] {
        assert_eq!(identifiers.are_in(&value), expected, "{value}");
    }
    assert!(!identifiers.are_in_escaped(&name));
    for (key, expected) in
        [("erase-ada@example.org", true), (&name, false), ("bada@example.org", false)]
    {
        assert_eq!(identifiers.are_in_key(&key.parse().unwrap()), expected, "{key}");
    }
    let short = PersonalIdentifiers::of(&ada.subscriber_id, [], [(Channel::Sms, "1".to_owned())]);
    assert!(short.are_in(&json!({ "phone": "1" })) && !short.are_in(&json!("1 of 1")));
    assert!(!short.are_in_escaped("1"));
}

/// One row per text: whether it has the number, which may begin within itself.
#[test]
fn an_address_may_begin_within_one_that_is_longer() {
    let number = (Channel::Sms, "12-12".to_owned());
    let identifiers = PersonalIdentifiers::of(&ada().subscriber_id, [], [number]);
    for (text, expected) in [
        ("x12-12-12", true),
        ("12-12", true),
        ("x12-123 and 12-12", true),
        ("ü12-12 12-12", true),
        ("x12-12-121", false),
        ("112-12", false),
    ] {
        assert_eq!(identifiers.are_in(&json!(text)), expected, "{text}");
    }
}

/// The quarantine shows bytes that are not printable ASCII, and some that are, as escapes.
#[test]
fn an_address_is_recognized_among_escapes() {
    for address in ["o'ada@example.org", "ädä@example.org", "ada@example.org"] {
        let email = (Channel::Email, address.to_owned());
        let identifiers = PersonalIdentifiers::of(&ada().subscriber_id, [], [email]);
        let text = format!("\u{1}{address}\u{2}").as_bytes().escape_ascii().to_string();
        assert!(identifiers.are_in_escaped(&text), "{text}");
    }
}
