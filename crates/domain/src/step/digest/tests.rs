use serde_json::{Value, json};

use super::*;
use crate::step::StepDefinition;

/// Reads the settings of a digest.
pub(in crate::step) fn digest(json: Value) -> Digest {
    serde_json::from_value(json).unwrap()
}

/// Returns the settings of a digest that ends at calendar times.
fn timed(mut json: Value) -> Digest {
    json["type"] = "timed".into();
    digest(json)
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn zone(name: &str) -> TimeZone {
    TimeZone::new(name).unwrap()
}

/// Asserts the ends of windows that open at these times. Each end is a later row's opening or not.
#[track_caller]
fn ends(digest: &Digest, zone: TimeZone, rows: &[(&str, &str)]) {
    for (opened_at, end) in rows {
        let found = digest.window_end(at(opened_at), zone);
        assert_eq!(found, Ok(at(end)), "{digest:?} opened at {opened_at}");
    }
}

/// One window of the longest interval that begins at an occurrence.
#[test]
fn a_window_of_the_longest_interval_has_an_end() {
    let digest = timed(json!({ "amount": StepDefinition::MAX_DAYS, "unit": "days" }));
    let first = digest.window_end(at("2026-11-20T10:17:00Z"), TimeZone::UTC).unwrap();
    let next = digest.window_end(first, TimeZone::UTC).unwrap();
    assert_eq!(next.since(first).as_secs(), u64::from(StepDefinition::MAX_DAYS) * 24 * 60 * 60);
}

/// D12: one row per unit.
#[test]
fn d12_a_window_lasts_as_long_as_its_unit() {
    for (amount, unit, end) in [
        (90, "seconds", "2026-01-31T10:01:30Z"),
        (2, "minutes", "2026-01-31T10:02:00Z"),
        (3, "hours", "2026-01-31T13:00:00Z"),
        (1, "days", "2026-02-01T10:00:00Z"),
        (2, "weeks", "2026-02-14T10:00:00Z"),
        (1, "months", "2026-02-28T10:00:00Z"),
        (13, "months", "2027-02-28T10:00:00Z"),
    ] {
        let digest = digest(json!({ "type": "regular", "amount": amount, "unit": unit }));
        ends(&digest, TimeZone::UTC, &[("2026-01-31T10:00:00Z", end)]);
    }
    // A month lasts until the same time on the clocks, also if they change in between.
    let month = digest(json!({ "type": "regular", "amount": 1, "unit": "months" }));
    ends(
        &month,
        zone("Europe/Berlin"),
        &[
            ("2026-03-15T08:00:00Z", "2026-04-15T07:00:00Z"),
            // 02:30 on 2026-03-29 is skipped, and on 2026-10-25 it is shown twice.
            ("2026-02-28T23:30:00Z", "2026-03-31T22:30:00Z"),
            ("2026-09-25T00:30:00Z", "2026-10-25T00:30:00Z"),
        ],
    );
    let skipped = DigestWindow::new(1, TimeUnit::Months).into();
    ends(&skipped, zone("America/New_York"), &[("2026-02-08T07:30:00Z", "2026-03-08T07:00:00Z")]);
}

/// D11: the clocks of Berlin skip an hour on Sunday, 2026-03-29.
#[test]
fn d11_a_time_of_day_is_that_of_the_clocks() {
    let berlin = zone("Europe/Berlin");
    let cron = timed(json!({ "timed": { "cronExpression": "0 9 * * *" } }));
    let daily = timed(json!({ "timed": { "atTime": "09:00" } }));
    for digest in [cron, daily] {
        ends(
            &digest,
            berlin,
            &[
                ("2026-03-27T12:00:00Z", "2026-03-28T08:00:00Z"),
                ("2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z"),
                ("2026-10-24T07:00:00Z", "2026-10-25T08:00:00Z"),
            ],
        );
    }
    let night = timed(json!({ "timed": { "atTime": "02:30" } }));
    ends(
        &night,
        berlin,
        &[
            // The instant of the skip, and the first of two instants.
            ("2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"),
            ("2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"),
            ("2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"),
            ("2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
        ],
    );
}

/// One row per calendar. 2026-11-20 is a Friday.
#[test]
fn a_window_ends_at_the_next_calendar_time() {
    let opened = "2026-11-20T10:17:00Z";
    for (settings, end) in [
        (json!({ "amount": 15, "unit": "minutes" }), "2026-11-20T10:30:00Z"),
        (json!({ "unit": "minutes", "timed": {} }), "2026-11-20T10:18:00Z"),
        (json!({ "amount": 6, "unit": "hours" }), "2026-11-20T12:00:00Z"),
        (json!({ "amount": 24, "unit": "hours" }), "2026-11-21T00:00:00Z"),
        (json!({ "unit": "days" }), "2026-11-21T00:00:00Z"),
        (json!({ "unit": "days", "timed": { "atTime": "10:18" } }), "2026-11-20T10:18:00Z"),
        (json!({ "unit": "days", "timed": { "atTime": "10:17" } }), "2026-11-21T10:17:00Z"),
        (json!({ "unit": "weeks" }), "2026-11-23T00:00:00Z"),
        (json!({ "timed": { "weekDays": ["tuesday", "friday"] } }), "2026-11-24T00:00:00Z"),
        (json!({ "timed": { "weekDays": ["friday"], "atTime": "11:00" } }), "2026-11-20T11:00:00Z"),
        (json!({ "unit": "months" }), "2026-12-01T00:00:00Z"),
        (json!({ "timed": { "monthDays": ["5", "25"] } }), "2026-11-25T00:00:00Z"),
        (json!({ "timed": { "monthDays": ["31"] } }), "2026-12-31T00:00:00Z"),
        (
            json!({ "timed": { "monthDays": ["20"], "monthlyType": "each", "atTime": "17:00" } }),
            "2026-11-20T17:00:00Z",
        ),
        (on("2", "weekend"), "2026-12-06T00:00:00Z"),
        (on("2", "monday"), "2026-12-14T00:00:00Z"),
        (on("5", "thursday"), "2026-12-31T00:00:00Z"),
        (on("4", "saturday"), "2026-11-28T00:00:00Z"),
        (on("3", "weekday"), "2026-12-03T00:00:00Z"),
        (on("1", "day"), "2026-12-01T00:00:00Z"),
        (on("last", "day"), "2026-11-30T00:00:00Z"),
        (on("last", "weekday"), "2026-11-30T00:00:00Z"),
        (on("last", "weekend"), "2026-11-29T00:00:00Z"),
        (on("last", "sunday"), "2026-11-29T00:00:00Z"),
        (on("last", "tuesday"), "2026-11-24T00:00:00Z"),
        (on("1", "wednesday"), "2026-12-02T00:00:00Z"),
        (cron("*/20 * * * *"), "2026-11-20T10:20:00Z"),
        (cron("17 10 * * *"), "2026-11-21T10:17:00Z"),
        (cron("0 9 * * MON-FRI"), "2026-11-23T09:00:00Z"),
        (cron("0 0 L * *"), "2026-11-30T00:00:00Z"),
        (cron("0 9 29 2 *"), "2028-02-29T09:00:00Z"),
        (cron("@hourly"), "2026-11-20T11:00:00Z"),
    ] {
        let digest = timed(settings);
        assert_eq!(digest.check(), Ok(()), "{digest:?}");
        ends(&digest, TimeZone::UTC, &[(opened, end)]);
    }
}

fn on(ordinal: &str, value: &str) -> Value {
    json!({ "timed": { "monthlyType": "on", "ordinal": ordinal, "ordinalValue": value } })
}

fn cron(expression: &str) -> Value {
    json!({ "timed": { "cronExpression": expression } })
}

/// Every second unit is the same for every window, whenever it opens.
#[test]
fn every_second_day_week_and_month() {
    let days = timed(json!({ "amount": 2, "unit": "days" }));
    let weeks = timed(json!({ "amount": 2, "timed": { "weekDays": ["monday", "tuesday"] } }));
    let months = timed(json!({ "amount": 3, "timed": { "monthDays": ["10"] } }));
    for (digest, rows) in [
        (days, ["2026-11-21", "2026-11-23", "2026-11-25", "2026-11-27"]),
        (weeks, ["2026-11-09", "2026-11-10", "2026-11-23", "2026-11-24"]),
        (months, ["2026-10-10", "2027-01-10", "2027-04-10", "2027-07-10"]),
    ] {
        let rows = rows.map(|day| format!("{day}T00:00:00Z"));
        let pairs: Vec<_> =
            rows.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
        ends(&digest, TimeZone::UTC, &pairs);
    }
}

/// In a repeated hour, the times of the first pass have gone.
#[test]
fn a_repeated_hour_has_its_times_once() {
    let digest = timed(cron("*/30 * * * *"));
    ends(
        &digest,
        zone("Europe/Berlin"),
        &[
            ("2026-10-25T00:10:00Z", "2026-10-25T00:30:00Z"),
            ("2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"),
            ("2026-03-29T00:40:00Z", "2026-03-29T01:00:00Z"),
            ("2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"),
        ],
    );
}

/// D5: look-back of 5 minutes, window of 60. Minutes of the events, and what becomes of them.
#[test]
fn d5_the_first_event_after_a_quiet_time_passes_at_once() {
    use Arrival::{Joins, Opens, Passes};
    let minute = |minutes: i64| Timestamp::from_millis(minutes * 60_000);
    let backoff = json!({
        "type": "backoff", "amount": 60, "unit": "minutes", "backoffAmount": 5,
        "backoffUnit": "minutes",
    });
    let mut flagged = backoff.clone();
    flagged["type"] = "regular".into();
    flagged["backoff"] = true.into();
    for settings in [backoff, flagged] {
        let digest = digest(settings);
        let mut state = DigestState::default();
        for (now, expected) in [
            (0, Passes),
            (1, Opens(minute(61))),
            // An open window wins over the look-back.
            (30, Joins),
            (60, Joins),
            // D4: at its end, a window is closed.
            (61, Opens(minute(121))),
            (122, Passes),
            (126, Opens(minute(186))),
            (200, Passes),
            (205, Passes),
        ] {
            let arrival = digest.arrival(state, minute(now), TimeZone::UTC).unwrap();
            assert_eq!(arrival, expected, "minute {now}");
            state.last_event = Some(minute(now));
            if let Opens(end) = arrival {
                state.window_end = Some(end);
            }
        }
    }
}

/// D4 without backoff.
#[test]
fn d4_an_event_at_the_end_opens_the_next_window() {
    let digest = digest(json!({ "type": "regular", "amount": 60, "unit": "seconds" }));
    let second = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
    let state = DigestState {
        window_end: Some(second(60)),
        last_event: Some(second(0)),
        ..DigestState::default()
    };
    let arrival = |now| digest.arrival(state, second(now), TimeZone::UTC).unwrap();
    assert_eq!(arrival(59), Arrival::Joins);
    assert_eq!(arrival(60), Arrival::Opens(second(120)));
    let none = DigestState::default();
    let first = digest.arrival(none, second(0), TimeZone::UTC);
    assert_eq!(first, Ok(Arrival::Opens(second(60))));
}

/// A window of a clock that was ahead by more than a day takes no events, and its last event ends no
/// quiet time. A window that lasts longer than the digest does today takes them.
#[test]
fn what_a_clock_that_was_ahead_has_left_does_not_count() {
    let backoff = digest(json!({
        "type": "backoff", "amount": 1, "unit": "hours", "backoffAmount": 5, "backoffUnit": "minutes",
    }));
    let day = Duration::from_secs(24 * 60 * 60);
    let now = at("2026-11-20T10:00:00Z");
    let arrival = |window_end, last_event| {
        let state = DigestState {
            window_end: Some(window_end),
            last_event: Some(last_event),
            ..DigestState::default()
        };
        backoff.arrival(state, now, TimeZone::UTC).unwrap()
    };
    let last = now.after(day);
    assert_eq!(arrival(now.after(day * 100), last), Arrival::Joins);
    let ahead = last.after(Duration::from_millis(1));
    assert_eq!(arrival(now.after(day * 100), ahead), Arrival::Passes);
}

/// One row per time of an event, and end of the window before, which has closed: the end of the next one.
#[test]
fn no_two_windows_close_at_one_calendar_time() {
    let nine = timed(json!({ "timed": { "cronExpression": "0 9 * * *" } }));
    let hour = digest(json!({ "type": "regular", "amount": 1, "unit": "hours" }));
    for (digest, now, closed_at, end) in [
        // The call has waited for its transaction.
        (&nine, "2026-11-20T08:59:59Z", "2026-11-20T09:00:00Z", "2026-11-21T09:00:00Z"),
        (&nine, "2026-11-20T09:00:00Z", "2026-11-20T09:00:00Z", "2026-11-21T09:00:00Z"),
        (&nine, "2026-11-20T10:00:00Z", "2026-11-20T09:00:00Z", "2026-11-21T09:00:00Z"),
        // The end had moved to the opening of a schedule.
        (&nine, "2026-11-20T09:59:59Z", "2026-11-20T10:00:00Z", "2026-11-21T09:00:00Z"),
        // The clock was ahead by a day, and by more.
        (&nine, "2026-11-20T08:30:00Z", "2026-11-21T08:30:00Z", "2026-11-21T09:00:00Z"),
        (&nine, "2026-11-20T08:30:00Z", "2026-11-21T08:30:00.001Z", "2026-11-20T09:00:00Z"),
        // A span begins with its first event.
        (&hour, "2026-11-20T08:59:59Z", "2026-11-20T09:00:00Z", "2026-11-20T09:59:59Z"),
    ] {
        let closed_at = Some(at(closed_at));
        let state = DigestState { closed_at, ..DigestState::default() };
        let arrival = digest.arrival(state, at(now), TimeZone::UTC);
        assert_eq!(arrival, Ok(Arrival::Opens(at(end))), "{now} behind {closed_at:?}");
    }
}

/// D10: each digest has settings and windows of its own.
#[test]
fn d10_two_digests_have_their_own_ends() {
    let opened = at("2026-11-20T10:00:00Z");
    let [minute, hour] = ["minutes", "hours"].map(|unit| {
        let digest = digest(json!({ "type": "regular", "amount": 1, "unit": unit }));
        digest.window_end(opened, TimeZone::UTC).unwrap()
    });
    assert_eq!((minute, hour), (at("2026-11-20T10:01:00Z"), at("2026-11-20T11:00:00Z")));
}

/// One row per value. Rows with the same letter have the same key, and others do not.
#[test]
fn events_are_collected_by_their_value() {
    let keyed = |path: Option<&str>, payload: Value| {
        let window = DigestWindow {
            digest_key: path.map(Into::into),
            ..DigestWindow::new(1, TimeUnit::Hours)
        };
        Digest::from(window).event_key(&payload.try_into().unwrap())
    };
    let rows = [
        ("all", None, json!({ "k": 1 })),
        ("all", None, json!({})),
        ("missing", Some("k"), json!({})),
        ("missing", Some("k.l"), json!({ "k": 1 })),
        ("null", Some("k"), json!({ "k": null })),
        ("empty", Some("k"), json!({ "k": "" })),
        ("one", Some("k"), json!({ "k": 1 })),
        ("one", Some("payload.k"), json!({ "k": 1.0 })),
        ("one", Some("a.b.0.c"), json!({ "a": { "b": [{ "c": 1 }] } })),
        ("one", Some("a.b"), json!({ "a.b": 1, "a": { "b": 2 } })),
        ("text", Some("k"), json!({ "k": "1" })),
        ("half", Some("k"), json!({ "k": 1.5 })),
        ("true", Some("k"), json!({ "k": true })),
        ("object", Some("k"), json!({ "k": { "x": 1, "y": 2 } })),
        ("object", Some("k"), json!({ "k": { "y": 2.0, "x": 1 } })),
        ("list", Some("k"), json!({ "k": [1] })),
    ];
    let keys = rows.map(|(name, path, payload)| (name, keyed(path, payload)));
    for (name, key) in keys {
        for (other, other_key) in keys {
            assert_eq!(name == other, key == other_key, "{name} {other}");
        }
    }
}

#[test]
fn settings_that_were_never_checked_have_no_end() {
    for (settings, error) in [
        (json!({ "type": "regular" }), NoEnd::missing("metadata.amount")),
        (json!({ "type": "regular", "amount": 1 }), NoEnd::missing("metadata.unit")),
        (json!({ "type": "regular", "amount": u32::MAX, "unit": "months" }), NoEnd::TOO_FAR),
        (json!({ "type": "regular", "amount": u32::MAX, "unit": "seconds" }), NoEnd::TOO_FAR),
        (
            json!({ "type": "timed", "timed": { "cronExpression": "0 0 30 2 *" } }),
            NoEnd::Malformed {
                path: "metadata.timed.cronExpression".into(),
                expected: "a calendar time",
            },
        ),
        // The next Monday, February 29th, is in 2044.
        (
            json!({ "type": "timed", "timed": { "cronExpression": "0 0 29 2 +MON" } }),
            NoEnd::TOO_FAR,
        ),
    ] {
        let end = digest(settings).window_end(at("2026-11-20T10:00:00Z"), TimeZone::UTC);
        assert_eq!(end, Err(error));
    }
    let day = digest(json!({ "type": "timed", "unit": "days" }));
    assert_eq!(day.window_end(Timestamp::MAX, TimeZone::UTC), Err(NoEnd::TOO_FAR));
    let quiet = digest(json!({ "type": "backoff", "amount": 1, "unit": "days" }));
    let arrival = quiet.arrival(DigestState::default(), Timestamp::MIN, TimeZone::UTC);
    assert_eq!(arrival, Err(NoEnd::missing("metadata.backoffAmount")));
}

/// A bucket is kept for as long as an event depends on the one before, in whatever time zone.
#[test]
fn nothing_is_forgotten_that_an_event_depends_on() {
    let names = ["UTC", "Asia/Tokyo", "Europe/Berlin", "America/Los_Angeles", "Pacific/Kiritimati"];
    let instant = Duration::from_millis(1);
    for (amount, unit) in [(1, "months"), (7, "months"), (3, "weeks"), (1, "days"), (5, "hours")] {
        let digest = digest(json!({
            "type": "backoff", "amount": 1, "unit": "minutes",
            "backoffAmount": amount, "backoffUnit": unit,
        }));
        let quiet = digest.quiet_time().unwrap().unwrap();
        for name in names {
            // Two years from a January on, one of which is a leap year.
            for hours in (0..2 * 366 * 24).step_by(5) {
                let last = at("2027-01-01T00:00:00Z").after(Duration::from_secs(hours * 3_600));
                let end = quiet.after(last, zone(name)).unwrap();
                assert!(
                    !digest.forgets(last, end.before(instant)),
                    "{amount} {unit}, {name}, {last}"
                );
                assert!(digest.forgets(last, end.after(Duration::from_secs(9 * 86_400))));
            }
        }
    }
}

/// One row per latest event: the latest one behind an event of the second of January.
#[test]
fn the_latest_event_is_that_of_the_latest_time_unless_a_clock_was_ahead() {
    let now = "2026-01-02T00:00:00Z";
    for (last, latest) in [
        (None, now),
        (Some("2026-01-01T00:00:00Z"), now),
        (Some("2026-01-03T00:00:00Z"), "2026-01-03T00:00:00Z"),
        (Some("2026-01-03T00:00:00.001Z"), now),
    ] {
        let state = DigestState { last_event: last.map(at), ..DigestState::default() };
        assert_eq!(state.last_event_behind(at(now)), at(latest), "{last:?}");
    }
}
