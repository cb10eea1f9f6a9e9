use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::contact::Email;
use crate::content::{CtaData, CtaType};
use crate::ids::WorkflowId;
use crate::sample;
use crate::vocabulary::Severity;

/// One row per mark: the stage after Unseen, Seen and Read.
#[test]
fn every_mark_from_every_stage() {
    use Stage::{Read, Seen, Unseen};
    let [one, two, now] = [1, 2, 3].map(Timestamp::from_millis);
    let (seen, read) = (Seen { seen_at: one }, Read { seen_at: one, read_at: two });
    let seen_now = Seen { seen_at: now };
    let read_now = Read { seen_at: now, read_at: now };
    let archived = Stage::Archived { seen_at: one, read_at: two, archived_at: two };
    for (mark_as, after) in [
        (MarkAs::Seen, [seen_now, seen, read, archived]),
        (MarkAs::Read, [read_now, Read { seen_at: one, read_at: now }, read, archived]),
        (MarkAs::Unread, [seen_now, seen, seen, seen]),
        (MarkAs::Unseen, [Unseen, Unseen, Unseen, Unseen]),
    ] {
        assert_eq!([Unseen, seen, read, archived].map(|stage| stage.mark(mark_as, now)), after);
    }
    let put_away = |seen_at, read_at| Stage::Archived { seen_at, read_at, archived_at: now };
    let after = [put_away(now, now), put_away(one, now), put_away(one, two), archived];
    assert_eq!([Unseen, seen, read, archived].map(|stage| stage.archive(now)), after);
    assert_eq!([Unseen, seen, read, archived].map(Stage::unarchive), [Unseen, seen, read, read]);
}

/// Every state of a message.
fn states() -> Vec<Message> {
    let [one, two] = [1, 2].map(Timestamp::from_millis);
    let read = Stage::Read { seen_at: one, read_at: two };
    let stages = [Stage::Unseen, Stage::Seen { seen_at: one }, read, read.archive(two)];
    let channels = [Channel::InApp, Channel::Email];
    let all = channels.iter().flat_map(|channel| stages.map(|stage| (*channel, stage)));
    let state = |(channel, stage): (Channel, Stage)| Message { stage, ..message(channel) };
    // Only messages in an inbox are archived.
    let all = all.filter(|(on, stage)| *on == Channel::InApp || !stage.is_archived());
    all.map(state).flat_map(|one| [one.clone(), one.edited(Edit::Snooze(two), two)]).collect()
}

#[test]
fn an_edit_moves_a_message_to_the_shelf_that_it_says() {
    let marks = MarkAs::ALL.iter().map(|mark| Edit::Mark(*mark));
    let others = [Edit::Archive, Edit::Unarchive, Edit::Snooze(sample::at(9)), Edit::Unsnooze];
    for edit in marks.chain(others) {
        for before in states() {
            let after = before.edited(edit, sample::at(5));
            let moves = after.shelf() != before.shelf();
            assert_eq!(moves, before.shelf().is_changed_by(edit), "{edit:?} of {before:?}");
            assert!(!after.stage.is_archived() || after.snoozed_until.is_none(), "{after:?}");
            assert_eq!(after.edited(edit, sample::at(6)), after, "{edit:?} again");
        }
    }
}

#[test]
fn the_shelves_of_a_query_and_its_rest_select_what_it_selects() {
    let flags = [None, Some(false), Some(true)];
    for channel in [None, Some(Channel::InApp), Some(Channel::Email)] {
        for (read, seen) in flags.into_iter().flat_map(|read| flags.map(|seen| (read, seen))) {
            for archived in flags {
                for snoozed in flags {
                    let some = MessageQuery { channel, read, seen, ..MessageQuery::default() };
                    let query = MessageQuery { archived, snoozed, ..some };
                    let (shelves, rest) = query.shelves();
                    for message in states() {
                        let found = shelves.contains(&message.shelf()) && rest.matches(&message);
                        assert_eq!(found, query.matches(&message), "{query:?} of {message:?}");
                    }
                    let is_counted = channel == Some(Channel::InApp);
                    assert!(!is_counted || !rest.is_filtered(), "{query:?}");
                }
            }
        }
    }
}

#[test]
fn a_stage_is_two_flags_and_their_dates() {
    let at = Timestamp::from_millis(0);
    let json = |stage| serde_json::to_string(&stage).unwrap();
    assert_eq!(json(Stage::Unseen), r#"{"read":false,"seen":false}"#);
    let date = "1970-01-01T00:00:00.000Z";
    assert_eq!(
        json(Stage::Read { seen_at: at, read_at: at }),
        format!(r#"{{"read":true,"seen":true,"lastSeenDate":"{date}","lastReadDate":"{date}"}}"#)
    );
    let torn = r#"{"read":true,"seen":false}"#;
    assert!(serde_json::from_str::<Stage>(torn).is_err());
}

pub(super) fn message(on: Channel) -> Message {
    let workflow = sample::workflow(json!([]));
    let subscriber = sample::subscriber(json!({}));
    let notification = Notification {
        overrides: Some(sample::object(json!({ "b": 2 }))),
        context_keys: serde_json::from_value(json!(["tenant:acme"])).unwrap(),
        ..sample::notification(&workflow, &subscriber, json!({ "a": 1 }))
    };
    let rendered = Rendered {
        subject: Some("S".into()),
        title: Some("T".into()),
        content: MessageContent::Text("C".into()),
        cta: Cta::new(Some("/".into()), None),
        variant: None,
        warnings: Vec::new(),
    };
    let now = sample::at(5);
    Message::new(sample::id(9), &notification, &workflow, sample::id(8), on, rendered, now)
}

#[test]
fn a_new_one_says_what_was_rendered_and_was_seen_by_nobody() {
    let message = message(Channel::Push);
    let data = Some(CtaData { url: Some("/".into()) });
    let cta = Cta { kind: Some(CtaType::Redirect), data, action: None };
    assert_eq!((message.subject.as_deref(), message.title.as_deref()), (Some("S"), Some("T")));
    assert_eq!(message.content, Some(MessageContent::Text("C".into())));
    assert_eq!((message.cta.clone(), message.channel), (cta, Channel::Push));
    assert_eq!((message.stage, message.status.clone()), (Stage::Unseen, MessageStatus::Sent));
    assert_eq!(message.content_id, Some(sample::id(8)));
    assert_eq!(message.workflow_id, Some(sample::id(3)));
    assert_eq!(message.workflow_identifier, Some("order-shipped".parse().unwrap()));
    assert_eq!(message.payload, Some(sample::object(json!({ "a": 1 }))));
    assert_eq!(message.overrides, Some(sample::object(json!({ "b": 2 }))));
    assert_eq!(message.context_keys.canonical(), "tenant:acme");
    assert_eq!(message.created_at, sample::at(5));
}

/// One row per kind of address: the field with the address.
#[test]
fn an_address_is_written_to_its_field() {
    let rows = [
        (Address::Email(Email::new("a@b.cd").unwrap()), "email", json!("a@b.cd")),
        (Address::Phone("+1".into()), "phone", json!("+1")),
        (
            Address::Webhook { url: "https://x".into(), channel: None },
            "directWebhookUrl",
            json!("https://x"),
        ),
        (Address::Device("d".into()), "deviceTokens", json!(["d"])),
    ];
    for (address, field, value) in rows {
        let mut expected = serde_json::to_value(message(Channel::Sms)).unwrap();
        expected["providerId"] = "outbox".into();
        expected[field] = value;
        let addressed = message(Channel::Sms).addressed("outbox", &address);
        assert_eq!(serde_json::to_value(addressed).unwrap(), expected);
    }
}

/// An excerpt is on the shelf and in the place of its message, and queries select both or none.
#[test]
fn an_excerpt_is_found_as_its_message_is() {
    let (tags, severity) = (vec!["a".to_owned()], Severity::High);
    let queries = [
        json!({ "channel": "email" }),
        json!({ "transactionId": "txn" }),
        json!({ "read": true }),
        json!({ "seen": true }),
        json!({ "archived": true }),
        json!({ "snoozed": true }),
        json!({ "tags": "a" }),
        json!({ "severity": "high" }),
        json!({ "contextKeys": ["tenant:acme"] }),
        json!({ "contextKeys": [] }),
        json!({ "templates": "order-shipped" }),
        json!({ "templates": sample::id::<WorkflowId>(3) }),
    ];
    for before in states() {
        let with_tags = Message { tags: tags.clone(), severity, ..before.clone() };
        let woken = before.woken(sample::at(7));
        let put_back = Message { listed_at: Some(sample::at(8)), ..woken.clone() };
        for message in [before, with_tags, woken, put_back] {
            let json = serde_json::to_value(&message).unwrap();
            let excerpt: MessageExcerpt = serde_json::from_value(json).unwrap();
            assert_eq!(excerpt.shelf(), message.shelf(), "{message:?}");
            assert_eq!(excerpt.list_place(), message.list_place(), "{message:?}");
            for query in &queries {
                let asked: MessageQuery = serde_json::from_value(query.clone()).unwrap();
                assert_eq!(asked.matches(&excerpt), asked.matches(&message), "{query}");
            }
        }
    }
}

#[test]
fn a_query_shows_what_fulfils_all_of_it() {
    let read = Stage::Read { seen_at: sample::at(1), read_at: sample::at(2) };
    let (tags, severity) = (vec!["a".into()], crate::vocabulary::Severity::High);
    let message = Message { stage: read, tags, severity, ..message(Channel::Sms) };
    let conditions = [
        ("channel", json!("sms"), true),
        ("channel", json!("email"), false),
        ("transactionId", json!("txn"), true),
        ("transactionId", json!("other"), false),
        ("read", json!(true), true),
        ("read", json!(false), false),
        ("seen", json!(true), true),
        ("seen", json!(false), false),
        ("archived", json!(true), false),
        ("archived", json!(false), true),
        ("snoozed", json!(true), false),
        ("snoozed", json!("false"), true),
        ("tags", json!(["b", "a"]), true),
        ("tags", json!("b"), false),
        ("severity", json!(["high", "low"]), true),
        ("severity", json!("low"), false),
        ("contextKeys", json!(["tenant:acme"]), true),
        ("contextKeys", json!([]), false),
        ("templates", json!(["other", "order-shipped"]), true),
        ("templates", json!(sample::id::<crate::ids::WorkflowId>(3)), true),
        ("templates", json!("other"), false),
    ];
    let query = |json: Value| serde_json::from_value::<MessageQuery>(json).unwrap();
    assert!(query(json!({})).matches(&message) && !query(json!({ "limit": 3 })).is_filtered());
    for (name, value, shown) in &conditions {
        assert!(query(json!({ *name: value })).is_filtered());
        for (other, second, second_shown) in &conditions {
            if name != other {
                let both = json!({ *name: value, *other: second });
                let expected = *shown && *second_shown;
                assert_eq!(query(both.clone()).matches(&message), expected, "{both}");
            }
        }
    }
    let seen = Message { stage: Stage::Seen { seen_at: sample::at(1) }, ..message };
    assert!(query(json!({ "seen": true, "read": false })).matches(&seen));
}

#[test]
fn a_status_carries_what_is_known_in_it() {
    let told = || ("provider_error".to_owned(), "no route".to_owned());
    let (error_id, error_text) = told();
    let error = MessageStatus::Error { error_id, error_text };
    let (error_id, error_text) = told();
    let warning = MessageStatus::Warning { error_id, error_text };
    let with = |status: &str| json!({ "status": status, "errorId": "provider_error", "errorText": "no route" });
    for (status, json) in [
        (MessageStatus::Sent, json!({ "status": "sent" })),
        (error, with("error")),
        (warning, with("warning")),
    ] {
        assert_eq!(serde_json::to_value(status.clone()).unwrap(), json);
        assert_eq!(serde_json::from_value::<MessageStatus>(json).unwrap(), status);
    }
}

#[test]
fn two_flags_and_three_dates_say_one_of_four_things() {
    let date = || json!("1970-01-01T00:00:00.000Z");
    let mut stages = 0;
    for bits in 0..32 {
        let is = |bit: u32| bits >> bit & 1 == 1;
        let mut json = json!({ "seen": is(0), "read": is(1) });
        for (bit, field) in [(2, "lastSeenDate"), (3, "lastReadDate"), (4, "archivedAt")] {
            if is(bit) {
                json[field] = date();
            }
        }
        if let Ok(stage) = serde_json::from_value::<Stage>(json.clone()) {
            stages += 1;
            assert_eq!(serde_json::to_value(stage).unwrap(), json);
        }
    }
    assert_eq!(stages, 4);
}

fn history() -> impl Strategy<Value = Stage> {
    let marks = prop::collection::vec(proptest::sample::select(MarkAs::ALL), 0..8);
    marks.prop_map(|marks| {
        let mark =
            |stage: Stage, (now, mark_as): (i64, MarkAs)| stage.mark(mark_as, sample::at(now));
        (1..).zip(marks).fold(Stage::Unseen, mark)
    })
}

#[test]
fn one_to_a_thousand_messages_are_marked_at_once() {
    let check = |count: usize| {
        let ids: Vec<_> = (0..count).map(|n| sample::id(n as u128)).collect();
        Message::check_marked(&ids).map_err(|invalid| invalid.to_string())
    };
    assert_eq!([check(1), check(1_000)], [Ok(()), Ok(())]);
    assert_eq!(check(0), Err("`messageId` must not be empty".into()));
    assert_eq!(check(1_001), Err("`messageId` must have at most 1000 items".into()));
}

/// One row per request to mark messages: the messages, or the refusal.
#[test]
fn a_request_to_mark_names_one_message_or_several() {
    let (one, other) = (sample::id::<MessageId>(1), sample::id::<MessageId>(2));
    for (json, expected) in [
        (json!({ "messageId": one, "markAs": "seen" }), Ok(vec![one])),
        (
            json!({ "messageId": [other, one, other], "markAs": "read" }),
            Ok(vec![other, one, other]),
        ),
        (json!({ "messageId": [], "markAs": "read" }), Ok(vec![])),
        (
            json!({ "messageId": "42", "markAs": "read" }),
            Err("`messageId` must be an identifier made by the engine"),
        ),
        (json!({ "messageId": [one, 7], "markAs": "read" }), Err("invalid type: integer `7`")),
        (json!({ "messageId": null, "markAs": "read" }), Ok(vec![])),
        (json!({ "markAs": "read" }), Err("missing field `messageId`")),
        (json!({ "messageId": one }), Err("missing field `markAs`")),
        (
            json!({ "messageId": one, "markAs": "archived" }),
            Err("`markAs` must be one of read, seen, unread, unseen"),
        ),
    ] {
        let read = serde_json::from_value::<MarkMessages>(json);
        match (read, expected) {
            (Ok(request), Ok(ids)) => assert_eq!(request.message_id, ids),
            (Err(error), Err(problem)) => {
                assert!(error.to_string().contains(problem), "{error}");
            }
            (read, expected) => panic!("{read:?}, not {expected:?}"),
        }
    }
}

proptest! {
    #[test]
    fn a_mark_that_is_made_again_changes_nothing(
        stage in history(),
        mark_as in proptest::sample::select(MarkAs::ALL),
    ) {
        let once = stage.mark(mark_as, sample::at(100));
        prop_assert_eq!(once.mark(mark_as, sample::at(200)), once);
        match mark_as {
            MarkAs::Read => prop_assert!(once.is_read() && once.is_seen()),
            MarkAs::Seen => prop_assert!(once.is_seen() && once.is_read() == stage.is_read()),
            MarkAs::Unread => prop_assert!(once.is_seen() && !once.is_read()),
            MarkAs::Unseen => prop_assert!(!once.is_seen() && !once.is_read()),
        }
    }

    #[test]
    fn a_stage_is_read_as_it_is_written(stage in history()) {
        let json = serde_json::to_value(stage).unwrap();
        prop_assert_eq!(serde_json::from_value::<Stage>(json).unwrap(), stage);
    }
}

/// A reader may snooze a message without end.
#[test]
fn a_message_has_its_first_times_of_delivery_and_its_last_ones() {
    let mut message = message(Channel::InApp);
    message.delivered_at.clear();
    for at in 0..1_000 {
        message = message.woken(sample::at(at));
    }
    let times: Vec<_> = (0..50).chain(950..1_000).map(sample::at).collect();
    assert_eq!(message.delivered_at, times);
}
