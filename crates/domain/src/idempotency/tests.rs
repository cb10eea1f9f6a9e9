use serde_json::json;

use super::*;
use crate::sample;

const DAY: i64 = 24 * 60 * 60 * 1_000;
const MADE: i64 = 1_000;

fn stored(outcome: CallOutcome) -> StoredAnswer {
    StoredAnswer {
        environment_id: sample::id(1),
        key: "once".parse().unwrap(),
        call: "abc".into(),
        created_at: sample::at(MADE),
        outcome,
    }
}

/// One row per call and time since the first one: the meaning of the answer.
#[test]
fn an_answer_means_something_for_a_day() {
    let done = CallOutcome::Done(json!({ "id": 1 }));
    let stored = stored(done.clone());
    for (call, after, expected) in [
        ("abc", 0, Replay::Same(&done)),
        ("abc", 1, Replay::Same(&done)),
        ("abc", DAY - 1, Replay::Same(&done)),
        ("abc", DAY, Replay::Expired),
        ("abc", DAY + 1, Replay::Expired),
        // A clock that went back makes no answer older.
        ("abc", -MADE, Replay::Same(&done)),
        ("abc", -DAY, Replay::Same(&done)),
        ("abc", -DAY - 1, Replay::Expired),
        ("abd", -DAY, Replay::Other),
        ("abd", -DAY - 1, Replay::Expired),
        ("abd", 0, Replay::Other),
        ("abd", DAY - 1, Replay::Other),
        ("abd", DAY, Replay::Expired),
        ("", 0, Replay::Other),
        ("ABC", 0, Replay::Other),
    ] {
        let replay = stored.replay(call, sample::at(MADE + after));
        assert_eq!(replay, expected, "{call} after {after} ms");
    }
    assert_eq!(stored.expires_at(), sample::at(MADE + DAY));
}

#[test]
fn a_refusal_is_an_answer_as_well() {
    let refused = CallOutcome::Refused(json!({ "conflict": {} }));
    let stored = stored(refused.clone());
    assert_eq!(stored.replay("abc", sample::at(MADE)), Replay::Same(&refused));
}

/// One row per answer: the wire form.
#[test]
fn an_answer_is_read_as_it_is_written() {
    for (outcome, field, value) in [
        (CallOutcome::BegunOn(json!("id")), "begunOn", json!("id")),
        (CallOutcome::Done(json!({ "a": [1] })), "done", json!({ "a": [1] })),
        (CallOutcome::Done(json!(null)), "done", json!(null)),
        (CallOutcome::Done(json!([])), "done", json!([])),
        (CallOutcome::Refused(json!({ "rejected": {} })), "refused", json!({ "rejected": {} })),
    ] {
        let stored = stored(outcome);
        let json = serde_json::to_value(&stored).unwrap();
        assert_eq!(json.get(field), Some(&value));
        assert_eq!(serde_json::from_value::<StoredAnswer>(json).unwrap(), stored);
    }
}

#[test]
fn what_was_returned_is_never_printed() {
    let connection = json!({ "auth": { "accessToken": "xoxb-s3cr3t" } });
    for outcome in [CallOutcome::Done(connection.clone()), CallOutcome::Refused(connection)] {
        let stored = stored(outcome);
        let printed = format!("{stored:?} {:?}", stored.replay("abc", stored.created_at));
        assert!(!printed.contains("s3cr3t"), "{printed}");
        assert!(
            serde_json::to_string(&stored).unwrap().contains("s3cr3t"),
            "it is stored as it is"
        );
    }
}
