use serde_json::{Value, json};

use super::*;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;

/// Asserts what becomes of events at these times in milliseconds, with one list of slots.
#[track_caller]
fn check(metadata: &Throttle, rows: &[(i64, bool)]) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (now, passes) in rows {
        let now = Timestamp::from_millis(*now);
        let admission = metadata.admit(&slots, now, &Object::default(), TimeZone::UTC).unwrap();
        match admission {
            Admission::Admitted(slot) => slots.push(slot),
            Admission::Refused { until } => assert!(until > now),
        }
        assert_eq!(matches!(admission, Admission::Admitted(_)), *passes, "at {now}");
    }
    slots
}

fn throttle(amount: u32, threshold: u32, window_type: ThrottleWindow) -> Throttle {
    let metadata = Throttle::per(amount, TimeUnit::Minutes).threshold(threshold);
    metadata.window_type(window_type)
}

/// T1: one event in 10 minutes.
#[test]
fn t1_a_window_is_exact() {
    for window_type in [ThrottleWindow::Fixed, ThrottleWindow::Sliding] {
        let rows = [(0, true), (9 * MINUTE + 59 * SECOND, false), (10 * MINUTE, true)];
        check(&throttle(10, 1, window_type), &rows);
        let last = 10 * MINUTE - 1;
        check(&throttle(10, 1, window_type), &[(0, true), (last, false), (last + 1, true)]);
    }
    // Without a threshold, one event passes.
    check(&Throttle::per(1, TimeUnit::Hours), &[(0, true), (1, false)]);
}

/// A fixed window starts with the first event that passes, and not with one that is refused.
#[test]
fn a_fixed_window_starts_with_the_first_event() {
    let minutes = |rows: &[(i64, bool)]| -> Vec<(i64, bool)> {
        rows.iter().map(|(minute, passes)| (minute * MINUTE, *passes)).collect()
    };
    let rows =
        [(5, true), (14, true), (14, false), (15, true), (16, true), (24, false), (25, true)];
    check(&throttle(10, 2, ThrottleWindow::Fixed), &minutes(&rows));
    let rows =
        [(5, true), (14, true), (14, false), (15, true), (16, false), (24, true), (25, true)];
    check(&throttle(10, 2, ThrottleWindow::Sliding), &minutes(&rows));
}

#[test]
fn a_refusal_says_when_an_event_can_pass() {
    let at = Timestamp::from_millis;
    let slots = [30, 10, 20].map(|minute| Slot { until: at(minute * MINUTE) });
    for (threshold, until) in [(1, 30), (2, 20), (3, 10)] {
        let metadata = throttle(10, threshold, ThrottleWindow::Sliding);
        let admission = metadata.admit(&slots, at(0), &Object::default(), TimeZone::UTC);
        assert_eq!(admission, Ok(Admission::Refused { until: at(until * MINUTE) }));
    }
    let four = throttle(10, 4, ThrottleWindow::Sliding);
    let admission = four.admit(&slots, at(5), &Object::default(), TimeZone::UTC);
    let slot = Slot { until: at(10 * MINUTE + 5) };
    assert_eq!(admission, Ok(Admission::Admitted(slot)));
    // The slots of a fixed window end with it.
    let slots = check(&throttle(10, 3, ThrottleWindow::Fixed), &[(0, true), (MINUTE, true)]);
    assert_eq!(slots, [Slot { until: at(10 * MINUTE) }; 2]);
}

/// T3: events with different values are counted separately.
#[test]
fn t3_values_have_keys_of_their_own() {
    let metadata = Throttle::per(1, TimeUnit::Hours).throttle_key("order.id");
    let key = |payload: Value| metadata.event_key(&payload.try_into().unwrap());
    let order = |id: Value| json!({ "order": { "id": id } });
    assert_eq!(key(order(json!("a"))), key(order(json!("a"))));
    let keys =
        [order(json!("a")), order(json!("b")), order(json!("")), order(json!(null)), json!({})];
    let keys: std::collections::BTreeSet<_> = keys.into_iter().map(key).collect();
    assert_eq!(keys.len(), 5);
}

#[test]
fn a_window_may_be_in_the_payload() {
    let metadata = Throttle::dynamic("quiet").window_type(ThrottleWindow::Fixed);
    let admit = |quiet: Value, now: i64| {
        let payload = json!({ "quiet": quiet }).try_into().unwrap();
        metadata.admit(&[], Timestamp::from_millis(now), &payload, TimeZone::UTC)
    };
    let until = |millis| Ok(Admission::Admitted(Slot { until: Timestamp::from_millis(millis) }));
    assert_eq!(admit(json!({ "amount": 2, "unit": "minutes" }), 5), until(2 * MINUTE + 5));
    assert_eq!(admit(json!("1970-01-01T00:01:00Z"), 5), until(MINUTE));
    assert_eq!(admit(json!("1970-01-01T00:01:00Z"), MINUTE), until(MINUTE));
    assert_eq!(admit(json!(null), 0), Err(NoEnd::missing("payload.quiet")));
    assert_eq!(admit(json!("1990-01-01T00:01:00Z"), 5), Err(NoEnd::TOO_FAR));
}
