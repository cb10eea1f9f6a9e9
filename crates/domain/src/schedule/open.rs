//! Opening times of a schedule at an instant.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, Days, LocalResult, NaiveDate, NaiveDateTime, NaiveTime};
use chrono::{TimeZone as _, Utc};
use chrono_tz::Tz;

use super::{DaySchedule, Schedule};
use crate::contact::TimeZone;
use crate::time::Timestamp;
use crate::vocabulary::Weekday;
use crate::zone::{instant, local};

// Start and end of a span of open hours, on the clocks of a zone.
type Span = (NaiveDateTime, NaiveDateTime);

impl Schedule {
    /// Returns `true` if the schedule is open at an instant in a time zone.
    ///
    /// A schedule that is not enabled, or that names no day, is always open. An absent or disabled
    /// day is closed. A day without `hours` is open from midnight to midnight. A day with an empty
    /// list of hours is closed.
    ///
    /// A span includes its start and excludes its end. If the end comes before the start, the span
    /// ends on the next day. Of a time that clocks show twice, the first instant counts. A time
    /// that clocks skip is the instant of the skip.
    ///
    /// ```
    /// # extern crate tidings_domain as tidings;
    /// use tidings::contact::TimeZone;
    /// use tidings::schedule::{DaySchedule, Schedule};
    /// use tidings::vocabulary::Weekday;
    ///
    /// let office = DaySchedule::open().hours("09:00 AM", "05:00 PM")?;
    /// let schedule = Schedule::open().day(Weekday::Monday, office);
    /// let berlin = TimeZone::new("Europe/Berlin")?;
    /// assert!(schedule.is_open("2026-11-23T08:00:00Z".parse()?, berlin));
    /// assert!(!schedule.is_open("2026-11-23T16:00:00Z".parse()?, berlin));
    ///
    /// let next = schedule.next_opening("2026-11-23T16:00:00Z".parse()?, berlin);
    /// assert_eq!(next, Some("2026-11-30T08:00:00Z".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_open(&self, at: Timestamp, zone: TimeZone) -> bool {
        if self.is_always_open() {
            return true;
        }
        let at = DateTime::<Utc>::from(at).with_timezone(&Tz::from(zone));
        // Yesterday's hours may last until today, and clocks may go back over midnight.
        days_around(at.date_naive(), 1, 1)
            .flat_map(|day| self.spans(day))
            .any(|(start, end)| has_come(start, &at) && !has_come(end, &at))
    }

    /// Returns the first instant from `at` on at which the schedule is open in a time zone. Returns
    /// `at` if the schedule is open then, and `None` if it never opens.
    pub fn next_opening(&self, at: Timestamp, zone: TimeZone) -> Option<Timestamp> {
        // Clocks may skip a span in one week, but not in the next one as well.
        const DAYS_AHEAD: u64 = 15;
        if self.is_open(at, zone) {
            return Some(at);
        }
        let today = local(at, zone).date();
        let spans = days_around(today, 1, DAYS_AHEAD).flat_map(|day| self.spans(day));
        let starts: BTreeSet<_> = spans.filter_map(|(start, _)| instant(start, zone)).collect();
        starts.range(at..).copied().find(|start| self.is_open(*start, zone))
    }

    pub(super) fn is_always_open(&self) -> bool {
        !self.is_enabled || self.weekly_schedule.is_none()
    }

    fn spans(&self, date: NaiveDate) -> Vec<Span> {
        let days = self.weekly_schedule.as_ref();
        let day = days.and_then(|days| days.get(&Weekday::from(date.weekday())));
        day.map(|day| day.spans(date)).unwrap_or_default()
    }
}

impl DaySchedule {
    fn spans(&self, date: NaiveDate) -> Vec<Span> {
        let midnight = date.and_time(NaiveTime::MIN);
        let (true, Some(tomorrow)) = (self.is_enabled, date.checked_add_days(Days::new(1))) else {
            return Vec::new();
        };
        let Some(hours) = &self.hours else {
            return vec![(midnight, tomorrow.and_time(NaiveTime::MIN))];
        };
        let span = |hours: &super::Hours| {
            let last_day = if hours.end < hours.start { tomorrow } else { date };
            (date.and_time(hours.start.0), last_day.and_time(hours.end.0))
        };
        hours.iter().map(span).collect()
    }
}

fn days_around(date: NaiveDate, before: u64, after: u64) -> impl Iterator<Item = NaiveDate> {
    let first = date.checked_sub_days(Days::new(before)).unwrap_or(date);
    (0..=before + after).filter_map(move |days| first.checked_add_days(Days::new(days)))
}

// Returns `true` if clocks have reached `time` by the instant `at`.
fn has_come(time: NaiveDateTime, at: &DateTime<Tz>) -> bool {
    match at.timezone().from_local_datetime(&time) {
        LocalResult::Single(instant) | LocalResult::Ambiguous(instant, _) => instant <= *at,
        LocalResult::None => time <= at.naive_local(),
    }
}

impl From<chrono::Weekday> for Weekday {
    fn from(day: chrono::Weekday) -> Self {
        match day {
            chrono::Weekday::Mon => Weekday::Monday,
            chrono::Weekday::Tue => Weekday::Tuesday,
            chrono::Weekday::Wed => Weekday::Wednesday,
            chrono::Weekday::Thu => Weekday::Thursday,
            chrono::Weekday::Fri => Weekday::Friday,
            chrono::Weekday::Sat => Weekday::Saturday,
            chrono::Weekday::Sun => Weekday::Sunday,
        }
    }
}

#[cfg(test)]
mod tests;
