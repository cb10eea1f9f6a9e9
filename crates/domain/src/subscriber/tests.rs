use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::sample;

fn profile(json: Value) -> Profile {
    serde_json::from_value(json).unwrap()
}

fn full() -> Value {
    json!({
        "firstName": "Ada", "lastName": "Lovelace", "email": "ada@example.com", "phone": "+1",
        "avatar": "a.png", "locale": "en_GB", "timezone": "Europe/London", "data": { "a": 1 },
        "channels": [settings(1)],
    })
}

fn settings(devices: usize) -> Value {
    json!({
        "providerId": "fcm", "_integrationId": uuid::Uuid::nil(),
        "credentials": { "deviceTokens": vec!["t"; devices] },
    })
}

/// One row per field: another value, and the update that clears the field.
#[test]
fn an_update_sets_clears_and_keeps() {
    for (field, value) in [
        ("firstName", json!("")),
        ("lastName", json!("")),
        ("email", json!("b@c.de")),
        ("phone", json!("")),
        ("avatar", json!("")),
        ("locale", json!("fr")),
        ("timezone", json!("UTC")),
        ("data", json!({ "b": 2 })),
    ] {
        let update = |value: &Value| serde_json::from_value(json!({ field: value })).unwrap();
        let mut expected = full();
        expected[field] = value.clone();
        let set = profile(full()).updated(update(&value));
        assert_eq!(serde_json::to_value(&set).unwrap(), expected);

        expected.as_object_mut().unwrap().remove(field);
        let cleared = set.updated(update(&Value::Null));
        assert_eq!(serde_json::to_value(&cleared).unwrap(), expected);
    }
    assert_eq!(profile(full()).updated(SubscriberUpdate::default()), profile(full()));
}

#[test]
fn what_no_subscriber_can_be_called_is_refused() {
    for (field, value) in [
        ("email", json!("")),
        ("email", json!("invalid-email")),
        ("locale", json!("")),
        ("locale", json!("!!!invalid!!!")),
        ("timezone", json!("")),
        ("timezone", json!("Invalid/Timezone")),
        ("data", json!([1])),
        ("data", json!("text")),
    ] {
        let json = json!({ field: value });
        assert!(serde_json::from_value::<SubscriberUpdate>(json.clone()).is_err(), "{json}");
        assert!(serde_json::from_value::<Profile>(json.clone()).is_err(), "{json}");
    }
}

#[test]
fn what_is_left_out_later_stays() {
    let names = json!({ "firstName": "B", "email": "b@c.de", "data": { "b": 2 } });
    let mut expected = full();
    for (field, value) in names.as_object().unwrap() {
        expected[field] = value.clone();
    }
    let superseded = profile(full()).superseded_by(profile(names)).unwrap();
    assert_eq!(serde_json::to_value(superseded).unwrap(), expected);
}

/// Destinations of three integrations and of two of them: the devices of both are there, and one that is
/// not named stays.
#[test]
fn destinations_are_added_to_those_that_are_there() {
    let channel = |number: u128, credentials: Value| {
        json!({
            "providerId": "fcm", "_integrationId": uuid::Uuid::from_u128(number),
            "credentials": credentials,
        })
    };
    let channels = |channels: &[Value]| profile(json!({ "channels": channels }));
    let known = channels(&[
        channel(1, json!({ "deviceTokens": ["phone"], "title": "One" })),
        channel(2, json!({ "webhookUrl": "https://a.example.org" })),
    ]);
    let newer = channels(&[
        channel(3, json!({ "deviceTokens": ["watch"] })),
        channel(1, json!({ "deviceTokens": ["tablet", "phone"] })),
    ]);
    let both = channels(&[
        channel(1, json!({ "deviceTokens": ["phone", "tablet"], "title": "One" })),
        channel(2, json!({ "webhookUrl": "https://a.example.org" })),
        channel(3, json!({ "deviceTokens": ["watch"] })),
    ]);
    assert_eq!(known.clone().superseded_by(newer), Ok(both));

    let tokens = |from: usize, to: usize| {
        let tokens: Vec<_> = (from..to).map(|number| number.to_string()).collect();
        channel(1, json!({ "deviceTokens": tokens }))
    };
    let full = channels(&[tokens(0, 100)])
        .superseded_by(channels(&[channel(2, json!({})), tokens(100, 101)]));
    let expected = "`channels[1].credentials.deviceTokens` must have at most 100 items";
    assert_eq!(full.unwrap_err().to_string(), expected);

    let all: Vec<_> = (1..=100).map(|number| channel(number, json!({}))).collect();
    let full = channels(&all).superseded_by(channels(&[channel(101, json!({}))]));
    assert_eq!(full.unwrap_err().to_string(), "`channels` must have at most 100 items");
}

#[test]
fn a_device_is_removed_from_one_integration() {
    let mut before = profile(json!({ "channels": [settings(0)] }));
    let nobody = before.without_device(uuid::Uuid::nil().into(), "t");
    assert_eq!(nobody, before);
    before.channels[0].credentials = ChannelCredentials::default().device_tokens(["t", "u"]);
    assert_eq!(before.without_device(uuid::Uuid::from_u128(1).into(), "t"), before);
    let after = before.without_device(uuid::Uuid::nil().into(), "t");
    assert_eq!(after.channels[0].credentials.device_tokens, ["u"]);
}

#[test]
fn an_integration_has_at_most_100_devices() {
    assert_eq!(profile(json!({ "channels": [settings(100)] })).check(), Ok(()));
    let error = profile(json!({ "channels": [settings(0), settings(101)] })).check().unwrap_err();
    let expected = "`channels[1].credentials.deviceTokens` must have at most 100 items";
    assert_eq!(error.to_string(), expected);
}

/// One row per destination: where the refusal is. The other texts are cleared by empty ones.
#[test]
fn a_destination_is_not_empty() {
    for (credentials, place) in [
        (json!({ "deviceTokens": [""] }), "deviceTokens[0]"),
        (json!({ "deviceTokens": ["t", " "] }), "deviceTokens[1]"),
        (json!({ "webhookUrl": "" }), "webhookUrl"),
        (json!({ "webhookUrl": " " }), "webhookUrl"),
    ] {
        let mut settings = settings(0);
        settings["credentials"] = credentials;
        let stored = profile(json!({ "channels": [settings] }));
        let problem = stored.check().unwrap_err().to_string();
        assert_eq!(problem, format!("`channels[0].credentials.{place}` must not be empty"));
        let channel = || stored.channels[0].clone();
        let problem = profile(json!({})).with_channel(channel()).unwrap_err().to_string();
        assert_eq!(problem, format!("`credentials.{place}` must not be empty"));

        // A stored subscriber may have such a destination, and is changed all the same.
        let mut newer = channel();
        newer.credentials = ChannelCredentials::default().device_tokens(["u"]);
        let changed = stored.with_channel(newer).unwrap();
        assert!(changed.channels[0].credentials.device_tokens.contains(&"u".to_owned()));
    }
    let mut cleared = settings(1);
    cleared["credentials"]["title"] = json!("");
    cleared["credentials"]["channel"] = json!("");
    assert_eq!(profile(json!({ "channels": [cleared] })).check(), Ok(()));
}

#[test]
fn an_integration_has_one_destination() {
    let repeated = profile(json!({ "channels": [settings(1), settings(0)] }));
    let error = repeated.check().unwrap_err();
    assert_eq!(error.to_string(), "`channels[1]._integrationId` must not be given twice");
    // A stored subscriber may have such destinations, and is changed all the same.
    let update: SubscriberUpdate = serde_json::from_value(json!({ "firstName": "Ada" })).unwrap();
    assert_eq!(update.check(), Ok(()));
    assert_eq!(repeated.updated(update).channels, repeated.channels);
    let named = profile(json!({ "firstName": "Ada" }));
    assert_eq!(named.check(), Ok(()));
    assert_eq!(repeated.clone().superseded_by(named).unwrap().channels, repeated.channels);
}

#[test]
fn every_change_is_counted_and_dated() {
    let before = sample::subscriber(json!({ "firstName": "Ada" }));
    assert_eq!((before.version, before.created_at, before.deleted), (0, sample::at(0), false));

    let after = before.with_profile(profile(full()), sample::at(5));
    let expected =
        Subscriber { profile: profile(full()), version: 1, updated_at: sample::at(5), ..before };
    assert_eq!(after, expected);
    assert_eq!(after.with_profile(profile(full()), sample::at(9)), after);

    let worn = Subscriber { version: u64::MAX, ..after };
    assert_eq!(worn.with_profile(profile(json!({})), sample::at(9)).version, u64::MAX);
}

#[test]
fn a_query_shows_who_fulfils_all_of_it() {
    let subscriber = sample::subscriber(full());
    let conditions = [
        ("email", json!("ada@example.com"), true),
        ("email", json!("Ada@example.com"), false),
        ("email", json!("ada"), false),
        ("phone", json!("+1"), true),
        ("phone", json!("1"), false),
        ("name", json!("ada"), true),
        ("name", json!("a LOVE"), true),
        ("name", json!("lovelace ada"), false),
    ];
    let query = |json: Value| serde_json::from_value::<SubscriberQuery>(json).unwrap();
    let finds = |query: &SubscriberQuery| query.search().unwrap().finds(&subscriber);
    for all in [json!({}), json!({ "limit": 3 }), json!({ "name": "" })] {
        assert!(query(all).search().is_none());
    }
    for (name, value, shown) in &conditions {
        assert_eq!(finds(&query(json!({ *name: value }))), *shown, "{value}");
        for (other, second, second_shown) in &conditions {
            if name != other {
                let both = json!({ *name: value, *other: second });
                let expected = *shown && *second_shown;
                assert_eq!(finds(&query(both.clone())), expected, "{both}");
            }
        }
    }
    let nameless = sample::subscriber(json!({}));
    assert!(!query(json!({ "name": "a" })).search().unwrap().finds(&nameless));
}

// Some of the fields of a profile.
fn some_fields() -> impl Strategy<Value = Profile> {
    let names: Vec<_> = full().as_object().unwrap().keys().cloned().collect();
    proptest::sample::subsequence(names.clone(), 0..=names.len()).prop_map(|names| {
        let full = full();
        profile(names.into_iter().map(|name| (name.clone(), full[&name].clone())).collect())
    })
}

proptest! {
    #[test]
    fn who_said_nothing_changed_nothing(old in some_fields(), new in some_fields()) {
        prop_assert_eq!(old.clone().superseded_by(Profile::default()), Ok(old.clone()));
        prop_assert_eq!(Profile::default().superseded_by(new.clone()), Ok(new.clone()));
        let both = old.superseded_by(new.clone()).unwrap();
        prop_assert_eq!(both.clone().superseded_by(new), Ok(both));
    }

    #[test]
    fn a_profile_is_read_as_it_is_written(profile in some_fields()) {
        let subscriber = Subscriber { profile, ..sample::subscriber(json!({})) };
        let json = serde_json::to_string(&subscriber).unwrap();
        prop_assert_eq!(serde_json::from_str::<Subscriber>(&json).unwrap(), subscriber);
    }
}
