//! Calendars: rules that name times on the clocks of a zone.

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use croner::parser::{CronParser, Seconds, Year};

use super::{NthDay, OrdinalValue, StepDefinition};
use crate::contact::TimeZone;
use crate::error::{Invalid, Reason};
use crate::time::Timestamp;
use crate::vocabulary::Weekday;
use crate::zone::{instant, local};

/// Rule that names times.
#[derive(Clone, Debug)]
pub(super) enum Calendar {
    /// Every so many minutes from midnight on.
    Minutes(u32),
    /// A time of every so many days.
    Days { every: u32, at: NaiveTime },
    /// A time of these days of every so many weeks.
    Weeks { every: u32, days: Vec<Weekday>, at: NaiveTime },
    /// A time of these days of every so many months.
    Each { every: u32, days: Vec<u32>, at: NaiveTime },
    /// A time of one day of every so many months.
    On { every: u32, ordinal: NthDay, kind: OrdinalValue, at: NaiveTime },
    /// Times of a cron expression.
    Cron(Cron),
}

/// Cron expression with five fields.
#[derive(Clone, Debug)]
pub(super) struct Cron(Box<croner::Cron>);

// Monday, 1970-01-05, in days from 0001-01-01, which is day 1.
const FIRST_MONDAY: i32 = 719_167;

impl Calendar {
    /// Returns the first time strictly after `after`, on the clocks of `zone`. Of a time that clocks
    /// show twice, the first instant counts. A time that clocks skip is the instant of the skip.
    /// Returns `None` if there is no time within [`StepDefinition::MAX_DAYS`].
    pub(super) fn next(&self, after: Timestamp, zone: TimeZone) -> Option<Timestamp> {
        let now = local(after, zone);
        // Times up to `now` have passed. The first day is that of `now`, hence one more.
        let days = now.date().iter_days().take(StepDefinition::MAX_DAYS as usize + 1);
        let times = days.filter(|day| self.has_day(*day)).flat_map(|day| self.times(day));
        let later = times.filter(|time| *time > now);
        later.filter_map(|time| instant(time, zone)).find(|time| *time > after)
    }

    /// Returns `true` if each time of the calendar is within reach of the one before: at most
    /// [`StepDefinition::MAX_DAYS`] later.
    pub(super) fn comes(&self) -> bool {
        // The Gregorian calendar repeats itself after 400 years. The first day of a year stands for all of
        // them: times that are far apart come once a year at most.
        let mut before = None;
        let mut first_days = (2000..2400).filter_map(|year| {
            let months = (1..=12).filter_map(|month| NaiveDate::from_ymd_opt(year, month, 1));
            let months = months.filter(|first| self.has_month(*first));
            let mut days = months.flat_map(|first| {
                first.iter_days().take_while(move |day| day.month() == first.month())
            });
            days.find(|day| self.has_day(*day))
        });
        let are_near = first_days.all(|day| {
            let since = before.replace(day).map_or(0, |before| (day - before).num_days());
            since <= i64::from(StepDefinition::MAX_DAYS)
        });
        are_near && before.is_some()
    }

    // Returns `false` if no day of a month is one of the calendar.
    fn has_month(&self, day: NaiveDate) -> bool {
        match self {
            Self::Minutes(_) | Self::Days { .. } | Self::Weeks { .. } => true,
            Self::Each { every, .. } | Self::On { every, .. } => is_multiple(month(day), *every),
            Self::Cron(cron) => cron.has_month(day),
        }
    }

    fn has_day(&self, day: NaiveDate) -> bool {
        let since_monday = day.num_days_from_ce() - FIRST_MONDAY;
        match self {
            Self::Minutes(_) => true,
            Self::Days { every, .. } => is_multiple(since_monday, *every),
            Self::Weeks { every, days, .. } => {
                let is_day = match days.as_slice() {
                    [] => day.weekday() == chrono::Weekday::Mon,
                    days => days.contains(&day.weekday().into()),
                };
                is_day && is_multiple(since_monday.div_euclid(7), *every)
            }
            Self::Each { every, days, .. } => {
                let is_day = match days.as_slice() {
                    [] => day.day() == 1,
                    days => days.contains(&day.day()),
                };
                is_day && is_multiple(month(day), *every)
            }
            Self::On { every, ordinal, kind, .. } => {
                is_multiple(month(day), *every) && is_nth(day, *ordinal, *kind)
            }
            Self::Cron(cron) => cron.has_day(day),
        }
    }

    // Returns the times of a day that the calendar has, earliest first.
    fn times(&self, day: NaiveDate) -> impl Iterator<Item = NaiveDateTime> + use<'_> {
        let minutes = match self {
            Self::Minutes(every) => Minutes { from: 0, every: *every },
            Self::Days { at, .. }
            | Self::Weeks { at, .. }
            | Self::Each { at, .. }
            | Self::On { at, .. } => Minutes { from: at.hour() * 60 + at.minute(), every: DAY },
            Self::Cron(_) => Minutes { from: 0, every: 1 },
        };
        let is_named = |minute: &u32| match self {
            Self::Cron(cron) => cron.has_minute(*minute),
            Self::Minutes(_)
            | Self::Days { .. }
            | Self::Weeks { .. }
            | Self::Each { .. }
            | Self::On { .. } => true,
        };
        let minutes = minutes.filter(is_named);
        minutes.filter_map(move |minute| day.and_hms_opt(minute / 60, minute % 60, 0))
    }
}

fn refused(expected: &'static str) -> Invalid {
    Invalid::new("timed.cronExpression", Reason::malformed(expected))
}

// Minutes in a day.
const DAY: u32 = 24 * 60;

// Every so many minutes of a day.
struct Minutes {
    from: u32,
    every: u32,
}

impl Iterator for Minutes {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let minute = Some(self.from).filter(|minute| *minute < DAY);
        self.from = self.from.saturating_add(self.every.max(1));
        minute
    }
}

fn is_multiple(number: i32, every: u32) -> bool {
    i64::from(number).rem_euclid(i64::from(every.max(1))) == 0
}

// Returns the number of months since January 1970.
fn month(day: NaiveDate) -> i32 {
    (day.year() - 1970) * 12 + i32::try_from(day.month0()).unwrap_or_default()
}

// Returns `true` for the day of its month that has this number among the days of its kind.
fn is_nth(day: NaiveDate, ordinal: NthDay, kind: OrdinalValue) -> bool {
    if !is_kind(day.weekday(), kind) {
        return false;
    }
    let in_month = |other: &NaiveDate| other.month() == day.month();
    let of_kind = |other: &NaiveDate| is_kind(other.weekday(), kind);
    let before = || day.iter_days().rev().skip(1).take_while(in_month).filter(of_kind).count();
    match ordinal {
        NthDay::First => before() == 0,
        NthDay::Second => before() == 1,
        NthDay::Third => before() == 2,
        NthDay::Fourth => before() == 3,
        NthDay::Fifth => before() == 4,
        NthDay::Last => !day.iter_days().skip(1).take_while(in_month).any(|other| of_kind(&other)),
    }
}

fn is_kind(day: chrono::Weekday, kind: OrdinalValue) -> bool {
    let day = Weekday::from(day);
    let is_weekend = matches!(day, Weekday::Saturday | Weekday::Sunday);
    match kind {
        OrdinalValue::Day => true,
        OrdinalValue::Weekday => !is_weekend,
        OrdinalValue::Weekend => is_weekend,
        OrdinalValue::Sunday => day == Weekday::Sunday,
        OrdinalValue::Monday => day == Weekday::Monday,
        OrdinalValue::Tuesday => day == Weekday::Tuesday,
        OrdinalValue::Wednesday => day == Weekday::Wednesday,
        OrdinalValue::Thursday => day == Weekday::Thursday,
        OrdinalValue::Friday => day == Weekday::Friday,
        OrdinalValue::Saturday => day == Weekday::Saturday,
    }
}

impl Cron {
    /// Refuses an expression with `+` in front of its weekdays, the fifth field. The parser reads it as days
    /// that are both a weekday and a day of the month, an extension that is not documented.
    pub(super) fn check(expression: &str) -> Result<(), Invalid> {
        let weekdays = expression.split_whitespace().nth(4).unwrap_or_default();
        if weekdays.contains('+') {
            return Err(refused("a cron expression without `+`"));
        }
        Ok(())
    }

    /// Parses an expression. Refuses one that names no day, or no time of a day.
    pub(super) fn new(expression: &str) -> Result<Self, Invalid> {
        let builder = CronParser::builder();
        let parser = builder.seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let parsed = parser.parse(expression).map(Box::new).map(Self);
        let cron = parsed
            .map_err(|_| refused("a cron expression with five fields, such as `0 9 * * 1-5`"))?;
        // The Gregorian calendar of these years has every month with every weekday at its start.
        let mut days = NaiveDate::from_ymd_opt(2000, 1, 1)
            .into_iter()
            .flat_map(|first| first.iter_days().take_while(|day| day.year() < 2028));
        let has_time = (0..DAY).any(|minute| cron.has_minute(minute));
        if has_time && days.any(|day| cron.has_day(day)) {
            return Ok(cron);
        }
        Err(refused("a time that comes"))
    }

    fn has_day(&self, day: NaiveDate) -> bool {
        let pattern = &self.0.pattern;
        let weekday = match day.weekday() {
            chrono::Weekday::Mon => croner::Weekday::Monday,
            chrono::Weekday::Tue => croner::Weekday::Tuesday,
            chrono::Weekday::Wed => croner::Weekday::Wednesday,
            chrono::Weekday::Thu => croner::Weekday::Thursday,
            chrono::Weekday::Fri => croner::Weekday::Friday,
            chrono::Weekday::Sat => croner::Weekday::Saturday,
            chrono::Weekday::Sun => croner::Weekday::Sunday,
        };
        self.has_month(day)
            && pattern.day_match(day.year(), day.month(), day.day(), weekday).unwrap_or(false)
    }

    fn has_month(&self, day: NaiveDate) -> bool {
        self.0.pattern.month_match(day.month()).unwrap_or(false)
    }

    fn has_minute(&self, minute: u32) -> bool {
        let pattern = &self.0.pattern;
        pattern.hour_match(minute / 60).unwrap_or(false)
            && pattern.minute_match(minute % 60).unwrap_or(false)
    }
}
