use serde_json::json;

use super::*;
use crate::step::span::most;

const NOW: &str = "2026-11-20T10:00:00Z";

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

#[track_caller]
fn check(delay: Value, payload: Value, expected: Result<DelayEnd, NoEnd>) {
    let read: Delay = serde_json::from_value(delay.clone()).unwrap();
    let end = read.end(at(NOW), &payload.clone().try_into().unwrap(), TimeZone::UTC);
    assert_eq!(end, expected, "{delay} with {payload}");
}

fn missing(path: &str) -> Result<DelayEnd, NoEnd> {
    Err(NoEnd::missing(path))
}

fn malformed(path: &str, expected: &'static str) -> Result<DelayEnd, NoEnd> {
    Err(NoEnd::Malformed { path: path.into(), expected })
}

fn until(time: &str) -> DelayEnd {
    DelayEnd::Lasts { until: at(time) }
}

#[test]
fn a_fixed_delay_lasts_as_long_as_its_unit() {
    for (fields, expected) in [
        (json!({}), Ok(DelayEnd::Over)),
        (json!({ "amount": 0 }), Ok(DelayEnd::Over)),
        (json!({ "amount": 0, "unit": "months" }), Ok(DelayEnd::Over)),
        (json!({ "unit": "days" }), Ok(DelayEnd::Over)),
        (json!({ "amount": 1 }), missing("metadata.unit")),
        (json!({ "amount": 30, "unit": "seconds" }), Ok(until("2026-11-20T10:00:30Z"))),
        (json!({ "amount": 2, "unit": "weeks" }), Ok(until("2026-12-04T10:00:00Z"))),
        (json!({ "amount": 3, "unit": "months" }), Ok(until("2027-02-20T10:00:00Z"))),
        (json!({ "amount": 3660, "unit": "days" }), Ok(until("2036-11-27T10:00:00Z"))),
        (json!({ "amount": 3661, "unit": "days" }), Err(NoEnd::TOO_FAR)),
        (json!({ "amount": u32::MAX, "unit": "weeks" }), Err(NoEnd::TOO_FAR)),
    ] {
        let mut delay = fields;
        delay["type"] = "regular".into();
        check(delay, json!({}), expected);
    }
}

/// A month of a subscriber ends at the same time on his clocks.
#[test]
fn months_are_those_of_the_zone() {
    let delay = Delay::lasting(1, TimeUnit::Months);
    let end = |now: &str, zone: &str| {
        delay.end(at(now), &Object::default(), TimeZone::new(zone).unwrap()).unwrap()
    };
    let berlin = end("2026-03-15T08:00:00Z", "Europe/Berlin");
    assert_eq!(berlin, until("2026-04-15T07:00:00Z"));
    // It is already December there.
    let kiritimati = end("2026-11-30T11:00:00Z", "Pacific/Kiritimati");
    assert_eq!(kiritimati, until("2026-12-31T11:00:00Z"));
}

/// One row per value in the payload.
#[test]
fn a_scheduled_delay_ends_at_a_time_in_the_payload() {
    const TIME: &str = Timestamp::EXPECTED;
    let later = "2026-11-21T09:00:00+01:00";
    for (path, payload, expected) in [
        ("at", json!({ "at": later }), Ok(until("2026-11-21T08:00:00Z"))),
        ("payload.at", json!({ "at": later }), Ok(until("2026-11-21T08:00:00Z"))),
        ("order.due.0", json!({ "order": { "due": [later] } }), Ok(until("2026-11-21T08:00:00Z"))),
        ("order.due", json!({ "order.due": "2026-12-01" }), Ok(until("2026-12-01T00:00:00Z"))),
        ("at", json!({ "at": NOW }), Ok(DelayEnd::Over)),
        ("at", json!({}), missing("payload.at")),
        ("at", json!({ "at": null }), missing("payload.at")),
        ("payload.a.b", json!({ "a": 1 }), missing("payload.a.b")),
        ("at", json!({ "at": "tomorrow" }), malformed("payload.at", TIME)),
        ("at", json!({ "at": "2026-11-21T09:00:00" }), malformed("payload.at", TIME)),
        ("at", json!({ "at": 1_795_176_000 }), malformed("payload.at", TIME)),
        ("at", json!({ "at": "2036-11-28T10:00:00Z" }), Err(NoEnd::TOO_FAR)),
    ] {
        check(json!({ "type": "scheduled", "delayPath": path }), payload, expected);
    }
}

#[test]
fn a_time_that_has_passed_is_dealt_with_as_set() {
    let past = "2026-11-20T09:59:59.999Z";
    for (on_past, expected) in [
        (json!(null), Ok(DelayEnd::Over)),
        (json!("immediate"), Ok(DelayEnd::Over)),
        (json!("skip"), Ok(DelayEnd::Passed)),
        (json!("fail"), Err(NoEnd::Past { at: at(past) })),
    ] {
        let scheduled = json!({ "type": "scheduled", "delayPath": "at", "onPast": on_past });
        check(scheduled, json!({ "at": past }), expected.clone());
        let dynamic = json!({ "type": "dynamic", "dynamicKey": "at", "onPast": on_past });
        check(dynamic, json!({ "at": past }), expected);
    }
}

#[test]
fn a_dynamic_delay_ends_as_the_payload_says() {
    const SPAN: &str = "a time, or an object with `amount` and `unit`";
    for (value, expected) in [
        (json!("2026-11-21T08:00:00Z"), Ok(until("2026-11-21T08:00:00Z"))),
        (json!({ "amount": 2, "unit": "hours" }), Ok(until("2026-11-20T12:00:00Z"))),
        (json!({ "amount": 1, "unit": "months", "x": 1 }), Ok(until("2026-12-20T10:00:00Z"))),
        (json!({ "amount": 0, "unit": "hours" }), Ok(DelayEnd::Over)),
        (json!(null), missing("payload.a.wait")),
        (json!({}), malformed("payload.a.wait", SPAN)),
        (json!({ "amount": 2 }), malformed("payload.a.wait", SPAN)),
        (json!({ "amount": -2, "unit": "hours" }), malformed("payload.a.wait", SPAN)),
        (json!({ "amount": 2, "unit": "years" }), malformed("payload.a.wait", SPAN)),
        (json!(2), malformed("payload.a.wait", Timestamp::EXPECTED)),
        (json!({ "amount": u64::MAX, "unit": "hours" }), Err(NoEnd::TOO_FAR)),
    ] {
        let delay = json!({ "type": "dynamic", "dynamicKey": "a.wait" });
        check(delay, json!({ "a": { "wait": value } }), expected);
    }
}

#[test]
fn a_timed_delay_ends_at_the_next_calendar_time() {
    let cron = json!({ "type": "timed", "timed": { "cronExpression": "0 10 * * *" } });
    check(cron, json!({}), Ok(until("2026-11-21T10:00:00Z")));
    let monday = json!({ "type": "timed", "timed": { "weekDays": ["monday"], "atTime": "08:15" } });
    check(monday, json!({}), Ok(until("2026-11-23T08:15:00Z")));
    let never = json!({ "type": "timed", "timed": { "cronExpression": "nonsense" } });
    check(never, json!({}), malformed("metadata.timed.cronExpression", "a calendar time"));
}

#[test]
fn an_error_says_what_is_wrong() {
    for (error, text) in [
        (NoEnd::missing("payload.at"), "`payload.at` is required"),
        (
            NoEnd::Malformed { path: "payload.at".into(), expected: "a time" },
            "`payload.at` must be a time",
        ),
        (NoEnd::Past { at: at(NOW) }, "the time 2026-11-20T10:00:00.000Z has passed"),
        (NoEnd::TOO_FAR, "the end is more than 3660 days away"),
    ] {
        assert_eq!(error.to_string(), text);
    }
}

/// The longest delay of each unit is possible, whatever the calendar.
#[test]
fn the_longest_delay_of_each_unit_has_an_end() {
    for unit in TimeUnit::ALL.iter().copied() {
        let longest = Delay::lasting(most(unit), unit);
        assert_eq!(longest.check(), Ok(()), "{unit}");
        assert!(Delay::lasting(most(unit) + 1, unit).check().is_err(), "{unit}");
        for start in ["2026-01-31T00:00:00Z", "2028-02-29T12:00:00Z", "2031-12-31T23:59:59Z"] {
            let now: Timestamp = start.parse().unwrap();
            let end = longest.end(now, &Object::default(), TimeZone::UTC);
            assert!(matches!(end, Ok(DelayEnd::Lasts { .. })), "{unit} {start} {end:?}");
        }
    }
}
