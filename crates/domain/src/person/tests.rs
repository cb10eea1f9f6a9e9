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
    let traces = Traces::of(&ada.subscriber_id, [], []).with(Some(&ada));
    for (value, expected) in [
        (json!({ "a": [{ "subscriberId": name }] }), true),
        (json!([format!("of {id}")]), true),
        (json!("to Ada@example.org"), true),
        (json!("to ada@example.org"), true),
        (json!({ "phone": "+44 20" }), true),
        (json!({ "phone": "+4420" }), true),
        (json!({ name.clone(): 1 }), false),
        (json!(format!("{name}s")), false),
        (json!([null, 1, true, "bob@example.org"]), false),
    ] {
        assert_eq!(traces.are_in(&value), expected, "{value}");
    }
    assert!(!traces.are_in_text(&name));
}
