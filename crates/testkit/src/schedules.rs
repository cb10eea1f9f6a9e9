//! Any schedule and any window or delay, in any time zone and at any instant.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use domain::contact::TimeZone;
use domain::json::Object;
use domain::schedule::Schedule;
use domain::step::{Delay, DelayEnd, Digest};
use domain::time::Timestamp;
use domain::vocabulary::{TimeUnit, Weekday};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::json;

/// Zones whose clocks change at midnight, by half an hour, by a day, backwards in summer, or never.
const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "Europe/Dublin",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Pacific/Apia",
    "Pacific/Kiritimati",
];

/// Fields of cron expressions.
const FIELDS: &[&str] = &[
    "*", "0", "5", "*/7", "1-5", "1,3,29", "L", "LW", "15W", "MON#5", "FRIL", "31", "2", "-", "?",
];

/// Number of openings and ends that follow each other.
const IN_A_ROW: usize = 6;

/// A zone, an instant in milliseconds, a schedule, and a window or delay: the JSON texts that `bytes`
/// are, or else something made up from them.
pub fn decode(bytes: &[u8]) -> Vec<Value> {
    json::texts(bytes).or_else(|| made(&mut Unstructured::new(bytes)).ok()).unwrap_or_default()
}

fn made(from: &mut Unstructured<'_>) -> Result<Vec<Value>> {
    let zone = json!(from.choose(ZONES)?);
    let millis = if from.ratio(1, 8)? {
        from.arbitrary()?
    } else {
        from.int_in_range(0..=4_102_444_800_000_i64)?
    };
    Ok(vec![zone, json!(millis), schedule(from)?, timed(from)?])
}

fn schedule(from: &mut Unstructured<'_>) -> Result<Value> {
    let mut days = Map::new();
    for day in Weekday::ALL {
        if from.arbitrary()? {
            let mut hours = Vec::new();
            for _ in 0..from.int_in_range(0..=2)? {
                hours.push(json!({ "start": clock(from)?, "end": clock(from)? }));
            }
            let hours = if from.ratio(1, 6)? { Value::Null } else { json!(hours) };
            let day = day.to_string();
            days.insert(day, json!({ "isEnabled": from.ratio(7, 8)?, "hours": hours }));
        }
    }
    Ok(json!({ "isEnabled": from.ratio(7, 8)?, "weeklySchedule": days }))
}

fn clock(from: &mut Unstructured<'_>) -> Result<String> {
    let minute = from.int_in_range(0..=24 * 60 - 1)?;
    let half = if minute < 12 * 60 { "AM" } else { "PM" };
    Ok(format!("{:02}:{:02} {half}", (minute / 60 + 11) % 12 + 1, minute % 60))
}

fn timed(from: &mut Unstructured<'_>) -> Result<Value> {
    let unit = from.choose(TimeUnit::ALL)?;
    let amount = if from.ratio(1, 8)? { from.arbitrary()? } else { from.int_in_range(0..=40_u32)? };
    if from.ratio(1, 4)? {
        return Ok(json!({ "type": "regular", "amount": amount, "unit": unit }));
    }
    let mut timed = Map::new();
    match from.int_in_range(0..=3)? {
        0 => {
            let mut fields = Vec::new();
            for _ in 0..5 {
                fields.push(*from.choose(FIELDS)?);
            }
            timed.insert("cronExpression".into(), json!(fields.join(" ")));
        }
        1 => {
            timed.insert("weekDays".into(), json!([from.choose(Weekday::ALL)?]));
        }
        2 => {
            let day = from.int_in_range(1..=31)?.to_string();
            timed.insert("monthDays".into(), json!([day]));
        }
        _ => {
            let ordinal = from.choose(&["1", "5", "last"])?;
            timed.insert("ordinal".into(), json!(ordinal));
            let kind = from.choose(&["day", "weekday", "weekend", "sunday"])?;
            timed.insert("ordinalValue".into(), json!(kind));
            timed.insert("monthlyType".into(), json!("on"));
        }
    }
    if from.arbitrary()? {
        let minute = from.int_in_range(0..=24 * 60 - 1)?;
        let time = format!("{:02}:{:02}", minute / 60, minute % 60);
        timed.insert("atTime".into(), json!(time));
    }
    let mut metadata = json!({ "type": "timed", "timed": timed });
    if from.arbitrary()? {
        metadata["unit"] = json!(unit);
        metadata["amount"] = json!(amount);
    }
    Ok(metadata)
}

/// Looks for openings and ends from the instant in `values` on.
///
/// # Panics
///
/// If an opening is closed or has passed, a window or delay does not end later, or one of them does
/// not go on behind the one before.
pub fn run(values: &[Value]) {
    let [zone, at, schedule, metadata] = values else { return };
    let Some(Ok(zone)) = zone.as_str().map(TimeZone::new) else { return };
    let Some(at) = at.as_i64().map(Timestamp::from_millis) else { return };
    if let Some(schedule) = read::<Schedule>(schedule).filter(|schedule| schedule.check().is_ok()) {
        check_openings(&schedule, at, zone);
    }
    if let Some(window) = read::<Digest>(metadata) {
        check_ends(at, |at| window.window_end(at, zone).ok());
    }
    if let Some(delay) = read::<Delay>(metadata) {
        check_ends(at, |at| {
            let end = delay.end(at, &Object::default(), zone).ok()?;
            if let DelayEnd::Lasts { until, .. } = end { Some(until) } else { None }
        });
    }
}

fn read<T: DeserializeOwned>(json: &Value) -> Option<T> {
    serde_json::from_value(json.clone()).ok()
}

fn check_openings(schedule: &Schedule, mut at: Timestamp, zone: TimeZone) {
    for _ in 0..IN_A_ROW {
        let is_open = schedule.is_open(at, zone);
        let Some(next) = schedule.next_opening(at, zone) else {
            assert!(!is_open, "{schedule:?} is open at {at}, and never opens");
            return;
        };
        assert!(next >= at, "{schedule:?} opens at {next}, before {at}");
        assert_eq!(is_open, next == at, "{schedule:?} opens at {next} from {at} on");
        assert!(schedule.is_open(next, zone), "{schedule:?} is closed at its opening {next}");
        // Behind this one, or in the middle of it.
        at = next.after(Duration::from_secs(3_600));
    }
}

fn check_ends(mut at: Timestamp, end: impl Fn(Timestamp) -> Option<Timestamp>) {
    for _ in 0..IN_A_ROW {
        let Some(next) = end(at) else { return };
        assert!(next > at, "{next} is the end from {at} on");
        at = next;
    }
}
