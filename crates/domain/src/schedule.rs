//! Schedules: hours in which a subscriber accepts disturbing messages.

mod compose;
mod open;
pub(crate) mod send_time;

use std::collections::BTreeMap;
use std::fmt;

use chrono::{NaiveTime, Timelike};
use serde::{Deserialize, Serialize};

use crate::error::{Invalid, Reason, at_most_items};
use crate::json::shape;
use crate::vocabulary::{Channel, Weekday, wire_enum};

/// Hours in which a subscriber accepts messages on channels that disturb.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Schedule {
    /// `true` if the schedule applies.
    pub is_enabled: bool,
    /// Hours of each day. If absent, every hour of every day is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekly_schedule: Option<BTreeMap<Weekday, DaySchedule>>,
    /// What happens to messages outside the open hours, by channel. The messages of a channel that
    /// is absent are deferred. Absent or `null` in an update, the settings are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<BTreeMap<Channel, Outside>>,
}

shape! { Schedule {
    "isEnabled": is_enabled, "weeklySchedule": weekly_schedule, "outside": outside
} }

wire_enum! {
    /// What happens to a message outside the open hours: `defer` sends it at the next opening,
    /// `drop` does not send it, and `deliver` sends it at once.
    Outside, "outside":
    Defer = "defer",
    Drop = "drop",
    Deliver = "deliver",
}

/// Hours of one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DaySchedule {
    /// `true` if the day has open hours.
    pub is_enabled: bool,
    /// Open hours. If absent, the whole day is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<Vec<Hours>>,
}

shape! { DaySchedule { "isEnabled": is_enabled, "hours": hours } }

/// Span of open hours. It ends on the next day if the end comes before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Hours {
    /// Start of the span, included.
    pub start: ClockTime,
    /// End of the span, excluded.
    pub end: ClockTime,
}

shape! { Hours { "start": start, "end": end } }

/// Time of day to the minute, on a 12-hour clock: `09:30 AM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClockTime(NaiveTime);

impl DaySchedule {
    /// Maximum number of spans in a day.
    pub const MAX_HOURS: usize = 48;
}

impl Schedule {
    /// Refuses a schedule that applies but names no day, an empty span, a day with too many spans, and a
    /// setting for the inbox.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        if self.outside.iter().any(|outside| outside.contains_key(&Channel::InApp)) {
            let expected = "left out: the inbox is always open";
            return Err(Invalid::new("schedule.outside.in_app", Reason::malformed(expected)));
        }
        for (day, open) in self.weekly_schedule.iter().flatten() {
            let hours = open.hours.as_deref().unwrap_or_default();
            let field = format!("schedule.weeklySchedule.{day}.hours");
            at_most_items(&field, hours, DaySchedule::MAX_HOURS)?;
        }
        let (true, Some(days)) = (self.is_enabled, &self.weekly_schedule) else { return Ok(()) };
        if days.is_empty() {
            return Err(Invalid::new("schedule.weeklySchedule", Reason::Empty));
        }
        let mut spans = days
            .iter()
            .flat_map(|(day, open)| open.hours.iter().flatten().map(move |hours| (day, hours)));
        match spans.find(|(_, hours)| hours.start == hours.end) {
            Some((day, _)) => {
                let field = format!("schedule.weeklySchedule.{day}.hours");
                let expected = "spans whose start and end differ";
                Err(Invalid::new(field, Reason::malformed(expected)))
            }
            None => Ok(()),
        }
    }
}

impl ClockTime {
    /// Parses a time such as `09:30 AM`.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Invalid> {
        let text = text.as_ref().trim();
        // The space before AM or PM is optional.
        let parse = |format| NaiveTime::parse_from_str(text, format).ok();
        let time = parse("%I:%M %p").or_else(|| parse("%I:%M%p"));
        time.filter(|_| is_clock(text))
            .map(Self)
            .ok_or_else(|| Invalid::new("hours", Reason::malformed("a time such as `09:30 AM`")))
    }
}

// `chrono` would also take minutes of one digit, and white space at each place.
fn is_clock(text: &str) -> bool {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = text.split_once(':').and_then(|(hour, rest)| {
        let (minute, half) = rest.split_at_checked(2)?;
        Some((hour, minute, half.strip_prefix(' ').unwrap_or(half)))
    });
    parts
        .is_some_and(|(hour, minute, half)| is_number(hour) && is_number(minute) && half.len() == 2)
}

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (is_pm, hour) = self.0.hour12();
        let half = if is_pm { "PM" } else { "AM" };
        write!(f, "{hour:02}:{:02} {half}", self.0.minute())
    }
}

impl From<ClockTime> for String {
    fn from(time: ClockTime) -> String {
        time.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_is_read_as_on_a_12_hour_clock() {
        for (text, canonical) in [
            ("09:00 AM", "09:00 AM"),
            ("9:05 pm", "09:05 PM"),
            ("12:00 AM", "12:00 AM"),
            ("12:30PM", "12:30 PM"),
        ] {
            let time: ClockTime = text.parse().unwrap();
            assert_eq!(time.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(time));
        }
        for bad in [
            "13:00 PM",
            "00:30 AM",
            "9 AM",
            "09:60 AM",
            "21:00",
            "",
            "9:5 AM",
            "09: 30 AM",
            "09:30  AM",
            "09:30\nAM",
            "é:30 AM",
            "09:3é AM",
        ] {
            assert!(bad.parse::<ClockTime>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_schedule_that_applies_names_a_day() {
        let day = r#"{"isEnabled":true,"hours":[{"start":"09:00 AM","end":"09:00 AM"}]}"#;
        let bad = [
            r#"{"isEnabled":true,"weeklySchedule":{}}"#.into(),
            format!(r#"{{"isEnabled":true,"weeklySchedule":{{"monday":{day}}}}}"#),
        ];
        for json in bad {
            let on: Schedule = serde_json::from_str(&json).unwrap();
            assert!(on.check().is_err(), "{json}");
            assert_eq!(Schedule { is_enabled: false, ..on }.check(), Ok(()));
        }
        assert_eq!(Schedule::open().check(), Ok(()));
        assert!(
            serde_json::from_str::<Schedule>(
                r#"{"isEnabled":true,"weeklySchedule":{"someday":{"isEnabled":true}}}"#
            )
            .is_err()
        );
    }

    proptest! {
        #[test]
        fn every_minute_of_a_day_is_read_as_it_is_written(minute in 0_u32..24 * 60) {
            let time = NaiveTime::from_hms_opt(minute / 60, minute % 60, 0).map(ClockTime).unwrap();
            prop_assert_eq!(time.to_string().parse(), Ok(time));
        }

        #[test]
        fn any_text_is_taken_or_refused(text in "\\PC*|[0-9]{1,2}:[0-9]{1,2} ?[AaPp][Mm]") {
            if let Ok(time) = text.parse::<ClockTime>() {
                prop_assert_eq!(time.to_string().parse(), Ok(time));
            }
        }
    }
}
