//! Laws of windows, delays and throttles.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;
use crate::contact::TimeZone;
use crate::json::Object;
use crate::time::Timestamp;
use crate::vocabulary::{TimeUnit, Weekday};

const ZONES: [&str; 6] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Kathmandu",
];

fn zones() -> impl Strategy<Value = TimeZone> {
    select(&ZONES).prop_map(|name| TimeZone::new(name).unwrap())
}

// Times of the years in which clocks change most, and times at the ends of the calendar.
fn times() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        8 => 1_100_000_000_000_i64..2_000_000_000_000,
        1 => any::<i64>(),
    ]
    .prop_map(Timestamp::from_millis)
}

fn timed() -> impl Strategy<Value = TimedConfig> {
    let clock = proptest::option::of((0..24, 0..60).prop_map(|(h, m)| format!("{h:02}:{m:02}")));
    let on = proptest::option::of((select(NthDay::ALL), select(OrdinalValue::ALL)));
    let week_days = proptest::collection::vec(select(Weekday::ALL), 0..4);
    let month_days = proptest::collection::vec((1_u32..32).prop_map(|day| day.to_string()), 0..4);
    let cron = select(&["0 9 * * *", "*/7 * * * *", "30 2 * * SUN", "0 0 29 2 *", "15 1-3 L * *"]);
    let cron = proptest::option::weighted(0.2, cron.prop_map(str::to_owned));
    (clock, week_days, month_days, on, cron).prop_map(
        |(at_time, week_days, month_days, on, cron_expression)| TimedConfig {
            at_time,
            week_days,
            month_days,
            ordinal: on.map(|(ordinal, _)| ordinal),
            ordinal_value: on.map(|(_, value)| value),
            monthly_type: None,
            cron_expression,
        },
    )
}

fn timed_windows() -> impl Strategy<Value = Digest> {
    let unit = proptest::option::of(select(TimeUnit::ALL));
    let amount = proptest::option::of(1_u32..5);
    (amount, unit, timed()).prop_map(|(amount, unit, timed)| {
        let window = TimedWindow { amount, unit, timed: Some(timed), ..TimedWindow::default() };
        Digest::Timed(window)
    })
}

// Days of every so many months. Few months have some of them.
fn monthly_windows() -> impl Strategy<Value = Digest> {
    let on = (select(NthDay::ALL), select(OrdinalValue::ALL))
        .prop_map(|(ordinal, kind)| TimedConfig::default().ordinal(ordinal).ordinal_value(kind));
    let each = (20_u32..32).prop_map(|day| TimedConfig::default().month_days([day.to_string()]));
    (1_u32..=120, prop_oneof![on, each]).prop_map(|(amount, timed)| {
        let (amount, unit) = (Some(amount), Some(TimeUnit::Months));
        Digest::Timed(TimedWindow { amount, unit, timed: Some(timed), ..TimedWindow::default() })
    })
}

fn windows() -> impl Strategy<Value = Digest> {
    let regular = (1_u32..100, select(TimeUnit::ALL))
        .prop_map(|(amount, unit)| Digest::from(DigestWindow::new(amount, unit)));
    prop_oneof![regular, timed_windows()]
}

// JSON whose members have the names and many of the values of settings.
fn any_metadata() -> impl Strategy<Value = Value> {
    let names = select(&[
        "amount",
        "unit",
        "digestKey",
        "backoff",
        "backoffAmount",
        "backoffUnit",
        "timed",
        "delayPath",
        "dynamicKey",
        "onPast",
        "threshold",
        "throttleKey",
        "windowType",
        "atTime",
        "weekDays",
        "monthDays",
        "ordinal",
        "ordinalValue",
        "monthlyType",
        "cronExpression",
    ]);
    let words = select(&[
        "days",
        "months",
        "seconds",
        "minutes",
        "hours",
        "weeks",
        "at",
        "payload.a.b",
        "09:30",
        "last",
        "5",
        "weekday",
        "monday",
        "each",
        "on",
        "immediate",
        "sliding",
        "* * * * *",
        "0 0 31 2 *",
        "0 0 L * *",
        "59 23 29 2 +MON",
        "",
    ]);
    let leaf = prop_oneof![
        4 => words.prop_map(Value::from),
        2 => (0_u32..40).prop_map(Value::from),
        1 => any::<u32>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => "\\PC{0,12}|[-*/,0-9LW#?+ ]{5,20}".prop_map(Value::from),
    ];
    let value = prop_oneof![
        6 => leaf.clone(),
        1 => proptest::collection::vec(leaf.clone(), 0..3).prop_map(Value::from),
    ];
    let fields = proptest::collection::btree_map(names.clone(), value.clone(), 0..6);
    let inner = proptest::collection::btree_map(names, value, 0..6);
    let kind = select(&["regular", "backoff", "timed", "scheduled", "dynamic"]);
    let on_past = select(&["immediate", "skip", "fail", "never"]);
    (kind, fields, inner, on_past).prop_map(|(kind, fields, inner, on_past)| {
        let mut json = json!(fields);
        json["type"] = kind.into();
        // Otherwise most delays would lack a required field.
        for (name, value) in [("delayPath", "at"), ("dynamicKey", "a.b"), ("onPast", on_past)] {
            if json[name].is_null() {
                json[name] = value.into();
            }
        }
        json["timed"] = json!(inner);
        json
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_window_ends_strictly_after_its_opening_and_on_its_calendar(
        window in windows(), opened_at in times(), zone in zones(),
    ) {
        if let Ok(end) = window.window_end(opened_at, zone) {
            prop_assert!(end > opened_at);
            prop_assert!(end.since(opened_at) <= Duration::from_secs(3_720 * 24 * 60 * 60));
            // At its end, the next window may open.
            if let Ok(next) = window.window_end(end, zone) {
                prop_assert!(next > end);
            }
            // No time of the calendar lies in between.
            if let Digest::Timed(_) = window {
                let between = opened_at.as_millis().midpoint(end.as_millis());
                for before in [between, end.as_millis() - 1] {
                    let before = Timestamp::from_millis(before);
                    prop_assert_eq!(window.window_end(before, zone), Ok(end));
                }
            }
        }
    }

    #[test]
    fn a_calendar_that_is_saved_has_a_time_within_reach(
        window in prop_oneof![timed_windows(), monthly_windows()],
        opened_at in 946_684_800_000_i64..13_000_000_000_000, zone in zones(),
    ) {
        prop_assume!(window.check().is_ok());
        let end = window.window_end(Timestamp::from_millis(opened_at), zone);
        prop_assert!(end.is_ok(), "{:?}", end);
    }

    /// Months are left out: the end of each of the last days of January is the end of February.
    #[test]
    fn a_later_window_does_not_end_earlier(
        window in windows(), times in prop::array::uniform2(times()), zone in zones(),
    ) {
        let is_regular_month = matches!(
            &window, Digest::Regular(DigestWindow { unit: Some(TimeUnit::Months), .. })
        );
        prop_assume!(!is_regular_month);
        let [first, second] = [times[0].min(times[1]), times[0].max(times[1])];
        if let (Ok(one), Ok(other)) =
            (window.window_end(first, zone), window.window_end(second, zone))
        {
            prop_assert!(one <= other);
        }
    }

    /// A day that is named is a day of the local calendar.
    #[test]
    fn a_daily_window_ends_at_its_time_on_the_clocks(
        hour in 0_u32..24, minute in 0_u32..60, opened_at in times(), zone in zones(),
    ) {
        let at_time = format!("{hour:02}:{minute:02}");
        let window = Digest::from(TimedConfig::default().at_time(&at_time));
        if let Ok(end) = window.window_end(opened_at, zone) {
            let shown = crate::zone::local(end, zone).format("%H:%M:%S").to_string();
            let before = Timestamp::from_millis(end.as_millis() - 1);
            let shown_before = crate::zone::local(before, zone).format("%H:%M:%S").to_string();
            let wanted = format!("{at_time}:00");
            let skipped = shown_before < wanted && wanted < shown;
            prop_assert!(shown == wanted || skipped || shown < shown_before, "{shown}");
        }
    }

    #[test]
    fn any_metadata_is_checked_and_ends_or_is_refused(
        json in any_metadata(), now in times(), zone in zones(), text in "\\PC{0,30}",
    ) {
        let payload = json!({ "at": text, "a": { "b": json } }).try_into().unwrap();
        if let Ok(digest) = serde_json::from_value::<Digest>(json.clone()) {
            let written = serde_json::to_value(&digest).unwrap();
            prop_assert_eq!(&serde_json::from_value::<Digest>(written).unwrap(), &digest);
            let end = digest.window_end(now, zone);
            let _ = digest.event_key(&payload);
            let step = Step::digest(digest).definition;
            // What may be saved has an end, unless it is too far away.
            if step.check().is_ok() {
                prop_assert!(matches!(end, Ok(_) | Err(NoEnd::TooFar { .. })), "{end:?}");
            }
        }
        if let Ok(delay) = serde_json::from_value::<Delay>(json.clone()) {
            let written = serde_json::to_value(&delay).unwrap();
            prop_assert_eq!(&serde_json::from_value::<Delay>(written).unwrap(), &delay);
            if let Ok(DelayEnd::Lasts { until: end }) = delay.end(now, &payload, zone) {
                prop_assert!(end > now);
            }
            let _ = Step::delay(delay).definition.check();
        }
        if let Ok(throttle) = serde_json::from_value::<Throttle>(json) {
            let written = serde_json::to_value(&throttle).unwrap();
            prop_assert_eq!(&serde_json::from_value::<Throttle>(written).unwrap(), &throttle);
            if let Ok(Admission::Admitted(slot)) = throttle.admit(&[], now, &payload, zone) {
                prop_assert!(slot.until > now);
            }
            let _ = Step::throttle(throttle).definition.check();
        }
    }

    /// In no span as long as the window are there more events than the threshold.
    #[test]
    fn a_sliding_window_never_has_too_many_events(
        threshold in 1_u32..4, gaps in prop::collection::vec(0_i64..40, 0..60),
    ) {
        let metadata = Throttle::per(60, TimeUnit::Seconds)
            .threshold(threshold)
            .window_type(ThrottleWindow::Sliding);
        let (mut now, mut slots, mut passed) = (0, Vec::new(), Vec::<i64>::new());
        for gap in gaps {
            now += gap * 1_000;
            let at = Timestamp::from_millis(now);
            let in_window = passed.iter().filter(|time| **time > now - 60_000).count();
            match metadata.admit(&slots, at, &Object::default(), TimeZone::UTC).unwrap() {
                Admission::Admitted(slot) => {
                    prop_assert!(in_window < threshold as usize);
                    slots.push(slot);
                    passed.push(now);
                }
                Admission::Refused { until } => {
                    prop_assert_eq!(in_window, threshold as usize);
                    // Until then it stays refused, and then it passes.
                    let before = Timestamp::from_millis(until.as_millis() - 1);
                    let admit = |at| {
                        metadata.admit(&slots, at, &Object::default(), TimeZone::UTC).unwrap()
                    };
                    prop_assert_eq!(admit(before), Admission::Refused { until });
                    prop_assert!(matches!(admit(until), Admission::Admitted(_)));
                }
            }
        }
    }
}
