use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;

/// Returns a schedule with these hours of days.
fn weekly(days: &[(&str, &[(&str, &str)])]) -> Schedule {
    let day = |(day, hours): &(&str, &[(&str, &str)])| {
        let hours: Vec<_> =
            hours.iter().map(|(start, end)| json!({ "start": start, "end": end })).collect();
        ((*day).to_owned(), json!({ "isEnabled": true, "hours": hours }))
    };
    let days: serde_json::Map<String, Value> = days.iter().map(day).collect();
    serde_json::from_value(json!({ "isEnabled": true, "weeklySchedule": days })).unwrap()
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn opens(time: &str) -> SendTime {
    SendTime::AtOpening { at: at(time) }
}

fn send_time(schedule: &Schedule, now: &str) -> SendTime {
    schedule.send_time(Channel::Email, false, at(now), TimeZone::UTC)
}

/// S1 to S6: schedule, local time, and when an e-mail is sent. 2026-11-23 is a Monday.
#[test]
fn s1_to_s6_an_e_mail_waits_for_the_next_opening() {
    let night = weekly(&[("monday", &[("10:00 PM", "02:00 AM")])]);
    let both = weekly(&[("monday", &[("09:00 AM", "12:00 PM"), ("10:00 PM", "02:00 AM")])]);
    let unordered = weekly(&[("monday", &[("02:00 PM", "04:00 PM"), ("09:00 AM", "11:00 AM")])]);
    let next_monday = opens("2026-11-30T22:00:00Z");
    for (number, schedule, now, expected) in [
        ("S1", &night, "2026-11-23T01:00:00Z", opens("2026-11-23T22:00:00Z")),
        ("S2", &night, "2026-11-24T01:00:00Z", SendTime::Now),
        ("S3", &night, "2026-11-24T23:00:00Z", next_monday),
        ("S4", &both, "2026-11-24T10:00:00Z", opens("2026-11-30T09:00:00Z")),
        ("S5", &night, "2026-11-24T02:01:00Z", next_monday),
        ("S6", &unordered, "2026-11-23T08:00:00Z", opens("2026-11-23T09:00:00Z")),
    ] {
        assert_eq!(send_time(schedule, now), expected, "{number}");
    }
}

/// S7: a span without a length could mean a minute or a day, so it is refused when it is saved.
#[test]
fn s7_a_span_without_a_length_is_refused() {
    let schedule = weekly(&[("monday", &[("09:00 AM", "09:00 AM")])]);
    let refusal = schedule.check().unwrap_err().to_string();
    let rule = "must be spans whose start and end differ";
    assert_eq!(refusal, format!("`schedule.weeklySchedule.monday.hours` {rule}"));
    // A stored one is closed.
    assert_eq!(send_time(&schedule, "2026-11-23T09:00:00Z"), SendTime::Never);
    assert_eq!(send_time(&schedule, "2026-11-23T09:01:00Z"), SendTime::Never);
}

/// One row per setting: when a message outside the open hours is sent, and if there are no hours.
#[test]
fn each_channel_is_deferred_dropped_or_delivered() {
    let hours = weekly(&[("monday", &[("09:00 AM", "12:00 PM")])]);
    let none = weekly(&[("monday", &[])]);
    let (now, opening) = (at("2026-11-23T08:00:00Z"), at("2026-11-23T09:00:00Z"));
    for (outside, expected, without_hours) in [
        (None, SendTime::AtOpening { at: opening }, SendTime::Never),
        (Some(Outside::Defer), SendTime::AtOpening { at: opening }, SendTime::Never),
        (Some(Outside::Drop), SendTime::Dropped, SendTime::Dropped),
        (Some(Outside::Deliver), SendTime::Now, SendTime::Now),
    ] {
        let with = |schedule: &Schedule| match outside {
            Some(outside) => schedule.clone().with_outside(Channel::Sms, outside),
            None => schedule.clone(),
        };
        let send_time = |schedule: &Schedule, channel, critical| {
            with(schedule).send_time(channel, critical, now, TimeZone::UTC)
        };
        assert_eq!(send_time(&hours, Channel::Sms, false), expected);
        assert_eq!(send_time(&none, Channel::Sms, false), without_hours);
        assert_eq!(send_time(&hours, Channel::Email, false), SendTime::AtOpening { at: opening });
        assert_eq!(send_time(&hours, Channel::Sms, true), SendTime::Now);
        assert_eq!(send_time(&none, Channel::InApp, false), SendTime::Now);
        let open = with(&hours).send_time(Channel::Sms, false, opening, TimeZone::UTC);
        assert_eq!(open, SendTime::Now);
    }
}

#[test]
fn settings_outside_the_hours_are_kept_until_others_are_set() {
    let open = Schedule::open();
    let dropping = open.clone().with_outside(Channel::Sms, Outside::Drop);
    let delivering = open.clone().with_outside(Channel::Email, Outside::Deliver);
    assert_eq!(open.clone().in_place_of(None), open);
    assert_eq!(open.clone().in_place_of(Some(&dropping)), dropping);
    assert_eq!(delivering.clone().in_place_of(Some(&dropping)), delivering);
}

#[test]
fn the_settings_are_a_member_of_the_schedule() {
    let json = json!({ "isEnabled": true, "outside": { "email": "drop", "sms": "deliver" } });
    let schedule = Schedule::open()
        .with_outside(Channel::Email, Outside::Drop)
        .with_outside(Channel::Sms, Outside::Deliver);
    assert_eq!(serde_json::to_value(&schedule).unwrap(), json);
    assert_eq!(serde_json::from_value::<Schedule>(json).unwrap(), schedule);
    let read = |outside: Value| {
        let json = json!({ "isEnabled": true, "outside": outside }).to_string();
        crate::json::read::<Schedule>(json.as_bytes()).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(read(json!({ "push": "defer" })), Ok(()));
    let fax = "`outside.fax` must be one of in_app, email, sms, chat, push";
    assert_eq!(read(json!({ "fax": "defer" })), Err(fax.into()));
    let later = "`outside.sms` must be one of defer, drop, deliver";
    assert_eq!(read(json!({ "sms": "later" })), Err(later.into()));
    let inbox = Schedule::open().with_outside(Channel::InApp, Outside::Drop).check().unwrap_err();
    assert_eq!(
        inbox.to_string(),
        "`schedule.outside.in_app` must be left out: the inbox is always open"
    );
}

proptest! {
    /// A deferred message is sent when the schedule is open, and a later one not before it.
    #[test]
    fn a_deferred_message_is_sent_at_the_first_opening(
        days in prop::collection::vec((0_usize..7, 0_u32..1440, 0_u32..1440), 0..5),
        now in 1_100_000_000_000_i64..2_000_000_000_000,
        later in 0_i64..1_000_000_000,
        zone in select(&["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    ) {
        let clock = |minute: u32| {
            let (hour, half) = (minute / 60, if minute < 720 { "AM" } else { "PM" });
            format!("{:02}:{:02} {half}", (hour + 11) % 12 + 1, minute % 60)
        };
        let mut schedule = Schedule::open();
        schedule.weekly_schedule = Some(std::collections::BTreeMap::new());
        for (day, start, end) in days {
            let hours = crate::schedule::DaySchedule::open().hours(clock(start), clock(end)).unwrap();
            schedule = schedule.day(crate::vocabulary::Weekday::ALL[day], hours);
        }
        let zone = TimeZone::new(zone).unwrap();
        let sent = |now: Timestamp| match schedule.send_time(Channel::Sms, false, now, zone) {
            SendTime::Now => Some(now),
            SendTime::AtOpening { at: opening } => Some(opening),
            SendTime::Dropped | SendTime::Never => None,
        };
        let (now, later) = (Timestamp::from_millis(now), Timestamp::from_millis(now + later));
        if let Some(opening) = sent(now) {
            prop_assert!(opening >= now && schedule.is_open(opening, zone));
            prop_assert!(sent(later) >= Some(opening));
            prop_assert_eq!(sent(opening), Some(opening));
            prop_assert_eq!(schedule.next_opening(now, zone), Some(opening));
        } else {
            prop_assert_eq!(sent(later), None);
        }
    }
}
