use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

fn weekly(days: Value) -> Schedule {
    serde_json::from_value(json!({ "isEnabled": true, "weeklySchedule": days })).unwrap()
}

fn hours(spans: &[(&str, &str)]) -> Value {
    let hours: Vec<_> =
        spans.iter().map(|(start, end)| json!({ "start": start, "end": end })).collect();
    json!({ "isEnabled": true, "hours": hours })
}

fn zone(name: &str) -> TimeZone {
    TimeZone::new(name).unwrap()
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// One row per schedule and instant: whether it is open. 2026-11-23 is a Monday.
#[test]
fn hours_are_those_of_their_day_and_of_the_night_behind_it() {
    let night = || weekly(json!({ "monday": hours(&[("10:00 PM", "02:00 AM")]) }));
    let both = hours(&[("09:00 AM", "12:00 PM"), ("10:00 PM", "02:00 AM")]);
    let off = json!({ "isEnabled": false, "hours": [{ "start": "09:00 AM", "end": "05:00 PM" }] });
    for (schedule, time, expected) in [
        (night(), "2026-11-23T01:00:00Z", false),
        (night(), "2026-11-23T21:59:59Z", false),
        (night(), "2026-11-23T22:00:00Z", true),
        (night(), "2026-11-24T01:59:59.999Z", true),
        (night(), "2026-11-24T02:00:00Z", false),
        (night(), "2026-11-24T23:00:00Z", false),
        (weekly(json!({ "monday": both })), "2026-11-24T10:00:00Z", false),
        (weekly(json!({ "monday": off })), "2026-11-23T10:00:00Z", false),
        (weekly(json!({ "monday": { "isEnabled": true } })), "2026-11-23T00:00:00Z", true),
        (weekly(json!({ "monday": { "isEnabled": true } })), "2026-11-23T23:59:59.999Z", true),
        (weekly(json!({ "monday": { "isEnabled": true } })), "2026-11-24T00:00:00Z", false),
        (weekly(json!({ "monday": hours(&[]) })), "2026-11-23T10:00:00Z", false),
        (Schedule::open(), "2026-11-23T10:00:00Z", true),
        (
            Schedule { is_enabled: false, ..weekly(json!({ "monday": hours(&[]) })) },
            "2026-11-23T10:00:00Z",
            true,
        ),
    ] {
        assert_eq!(schedule.is_open(at(time), TimeZone::UTC), expected, "{schedule:?} {time}");
    }
    let monday = weekly(json!({ "monday": { "isEnabled": true } }));
    assert!(monday.is_open(at("2026-11-22T23:30:00Z"), zone("Europe/Berlin")));
    assert!(!monday.is_open(at("2026-11-23T23:30:00Z"), zone("Europe/Berlin")));
}

/// One row per change of clocks, on a Sunday in Berlin: the start and the end of the hours.
#[test]
fn hours_that_clocks_skip_or_repeat_are_one_span() {
    let berlin = zone("Europe/Berlin");
    for (start, end, opens, closes) in [
        // 02:00 to 03:00 is skipped on 2026-03-29.
        ("01:00 AM", "02:30 AM", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"),
        ("02:30 AM", "04:00 AM", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"),
        // 02:00 to 03:00 is repeated on 2026-10-25.
        ("01:00 AM", "02:30 AM", "2026-10-24T23:00:00Z", "2026-10-25T00:30:00Z"),
        ("02:30 AM", "04:00 AM", "2026-10-25T00:30:00Z", "2026-10-25T03:00:00Z"),
    ] {
        let schedule = weekly(json!({ "sunday": hours(&[(start, end)]) }));
        let (opens, closes) = (at(opens), at(closes));
        let around = |time: Timestamp| {
            [time.as_millis() - 1, time.as_millis()]
                .map(|millis| schedule.is_open(Timestamp::from_millis(millis), berlin))
        };
        assert_eq!(around(opens), [false, true], "{start} {opens}");
        assert_eq!(around(closes), [true, false], "{end} {closes}");
        let day_before = Timestamp::from_millis(opens.as_millis() - DAY / 2);
        assert_eq!(schedule.next_opening(day_before, berlin), Some(opens));
    }
    // A span that clocks skip as a whole opens a week later.
    let skipped = weekly(json!({ "sunday": hours(&[("02:15 AM", "02:45 AM")]) }));
    let next = skipped.next_opening(at("2026-03-29T00:00:00Z"), berlin);
    assert_eq!(next, Some(at("2026-04-05T00:15:00Z")));
}

#[test]
fn the_first_opening_is_the_earliest_and_there_may_be_none() {
    let unordered = hours(&[("02:00 PM", "04:00 PM"), ("09:00 AM", "11:00 AM")]);
    let schedule = weekly(json!({ "monday": unordered }));
    let next = |time: &str| schedule.next_opening(at(time), TimeZone::UTC);
    assert_eq!(next("2026-11-23T08:00:00Z"), Some(at("2026-11-23T09:00:00Z")));
    assert_eq!(next("2026-11-23T10:00:00Z"), Some(at("2026-11-23T10:00:00Z")));
    assert_eq!(next("2026-11-23T16:00:00Z"), Some(at("2026-11-30T09:00:00Z")));
    let never = weekly(json!({ "monday": hours(&[]) }));
    assert_eq!(never.next_opening(at("2026-11-23T16:00:00Z"), TimeZone::UTC), None);
    for end in [Timestamp::MIN, Timestamp::MAX] {
        assert!(!never.is_open(end, zone("Pacific/Apia")));
        assert_eq!(never.next_opening(end, zone("Pacific/Apia")), None);
    }
}

// States of a schedule at each minute from `start` on, by a clock that is read once a minute. A
// span is open from the reading of its start to the reading of its end.
fn by_minutes(schedule: &Schedule, zone: TimeZone, start: i64, minutes: i64) -> Vec<bool> {
    let tz = Tz::from(zone);
    let spans: Vec<Span> = {
        let first = DateTime::from_timestamp_millis(start).unwrap().date_naive();
        days_around(first, 4, minutes.unsigned_abs() / 1_440 + 4)
            .flat_map(|day| schedule.spans(day))
            .collect()
    };
    let mut latest = NaiveDateTime::MIN;
    let look = |minute: i64| {
        let now = DateTime::from_timestamp_millis(start + minute * MINUTE).unwrap();
        latest = latest.max(now.with_timezone(&tz).naive_local());
        spans.iter().any(|(from, until)| *from <= latest && latest < *until)
    };
    // The clock runs for two days before `start`.
    (-2_880..minutes).map(look).skip(2_880).collect()
}

fn some_schedule() -> impl Strategy<Value = Schedule> {
    let time =
        (1..=12_u32, select(vec![0, 15, 30, 59]), any::<bool>()).prop_map(|(hour, minute, pm)| {
            format!("{hour:02}:{minute:02} {}", if pm { "PM" } else { "AM" })
        });
    let span = (time.clone(), time).prop_filter("a span has a length", |(start, end)| start != end);
    let spans = prop::option::of(prop::collection::vec(span, 0..3));
    let day = (any::<bool>(), spans).prop_map(|(enabled, spans)| {
        let mut day = json!({ "isEnabled": enabled });
        if let Some(spans) = spans {
            let hours = spans.iter().map(|(start, end)| json!({ "start": start, "end": end }));
            day["hours"] = hours.collect();
        }
        day
    });
    let name = select(Weekday::ALL.to_vec());
    prop::collection::btree_map(name.prop_map(|day| day.to_string()), day, 1..7)
        .prop_map(|days| weekly(json!(days)))
}

// Minute of the years 2000 to 2029, often near to a change of clocks.
fn some_start() -> impl Strategy<Value = (TimeZone, i64)> {
    let changes = [
        ("Europe/Berlin", "2026-03-29T00:00:00Z"),
        ("Europe/Berlin", "2026-10-24T22:00:00Z"),
        // Half an hour.
        ("Australia/Lord_Howe", "2026-04-04T12:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-03T12:00:00Z"),
        // At midnight.
        ("America/Havana", "2026-03-08T02:00:00Z"),
        ("America/Havana", "2026-11-01T02:00:00Z"),
        ("America/Sao_Paulo", "2018-02-17T22:00:00Z"),
        ("America/Sao_Paulo", "2018-11-03T22:00:00Z"),
        // Two hours, and a day that the calendar skipped.
        ("Antarctica/Troll", "2026-03-28T22:00:00Z"),
        ("Pacific/Apia", "2011-12-29T20:00:00Z"),
        ("Asia/Kathmandu", "2026-05-05T00:00:00Z"),
        ("UTC", "2026-05-05T00:00:00Z"),
    ];
    let near = (select(changes.to_vec()), -1_440..720_i64)
        .prop_map(|((name, time), minutes)| (zone(name), at(time).as_millis() + minutes * MINUTE));
    let any = (select(changes.to_vec()), 0..30 * 525_600_i64)
        .prop_map(|((name, _), minute)| (zone(name), 946_684_800_000 + minute * MINUTE));
    prop_oneof![3 => near, 1 => any]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_is_open_when_clocks_say_so((zone, start) in some_start(), schedule in some_schedule()) {
        let expected = by_minutes(&schedule, zone, start, 1_440);
        for (minute, expected) in (0_i64..).zip(expected) {
            let at = Timestamp::from_millis(start + minute * MINUTE);
            prop_assert_eq!(schedule.is_open(at, zone), expected, "{}", at);
        }
    }

    #[test]
    fn it_opens_when_it_is_open_first((zone, start) in some_start(), schedule in some_schedule()) {
        let minutes = by_minutes(&schedule, zone, start, 9 * 1_440);
        let first = (0_i64..).zip(minutes).find(|(_, is_open)| *is_open);
        let expected = first.map(|(minute, _)| Timestamp::from_millis(start + minute * MINUTE));
        let next = schedule.next_opening(Timestamp::from_millis(start), zone);
        match expected {
            Some(_) => prop_assert_eq!(next, expected),
            // An opening once a week may be skipped.
            None => prop_assert!(next.is_none_or(|next| next.as_millis() >= start + 9 * DAY)),
        }
    }
}
