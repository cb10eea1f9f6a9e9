//! Calendar times at which a window or a delay ends.

use chrono::NaiveTime;
use serde::{Deserialize, Serialize};

use super::StepDefinition;
use super::calendar::{Calendar, Cron};
use super::span::check_amount;
use crate::error::{Invalid, Reason};
use crate::json::shape;
use crate::limits;
use crate::setters::setters;
use crate::vocabulary::{TimeUnit, Weekday, wire_enum};

/// Calendar times, on the clocks of the subscriber's time zone.
///
/// The rule is `cronExpression`, beside which an amount and a unit have no effect, or else follows
/// from the unit beside this configuration. Without a unit, it is months if there are days of a
/// month, weeks if there are days of a week, and days otherwise. With an amount of 2, every second
/// minute, hour, day, week or month counts: minutes and hours from midnight, the others from Monday,
/// 1970-01-05, or January 1970. A time comes at most [`StepDefinition::MAX_DAYS`] days after the one
/// before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TimedConfig {
    /// Time of day, as in `09:30`, in the time zone of the subscriber. If absent, midnight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_time: Option<String>,
    /// Days of the week. If empty, Monday.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub week_days: Vec<Weekday>,
    /// Days of the month: `1` to `31`. Months without such a day are passed over. If empty, the
    /// first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub month_days: Vec<String>,
    /// Number of the day among the days of its kind in a month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<NthDay>,
    /// Kind of the day that `ordinal` counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal_value: Option<OrdinalValue>,
    /// Way to select the days of a month: `each` of `monthDays`, or `on` the day of `ordinal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly_type: Option<MonthlyType>,
    /// Cron expression with five fields: minute, hour, day of the month, month, day of the week.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron_expression: Option<String>,
}

shape! { TimedConfig {
    "atTime": at_time, "weekDays": week_days, "monthDays": month_days, "ordinal": ordinal,
    "ordinalValue": ordinal_value, "monthlyType": monthly_type, "cronExpression": cron_expression,
} }

wire_enum! {
    /// Number of a day among the days of its kind in a month.
    NthDay, "ordinal":
    First = "1",
    Second = "2",
    Third = "3",
    Fourth = "4",
    Fifth = "5",
    Last = "last",
}

wire_enum! {
    /// Kind of day. A `weekday` is one of Monday to Friday, `weekend` a Saturday or a Sunday.
    OrdinalValue, "ordinalValue":
    Day = "day",
    Weekday = "weekday",
    Weekend = "weekend",
    Sunday = "sunday",
    Monday = "monday",
    Tuesday = "tuesday",
    Wednesday = "wednesday",
    Thursday = "thursday",
    Friday = "friday",
    Saturday = "saturday",
}

wire_enum! {
    /// Way to select the days of a month.
    MonthlyType, "monthlyType":
    Each = "each",
    On = "on",
}

setters! { TimedConfig:
    /// Sets the time of day, as in `09:30`.
    at_time: into(String);
    /// Sets the days of the week.
    week_days: each(Weekday);
    /// Sets the days of the month.
    month_days: each(String);
    /// Sets the number of the day among the days of its kind.
    ordinal: exact(NthDay);
    /// Sets the kind of day.
    ordinal_value: exact(OrdinalValue);
    /// Sets the way to select the days of a month.
    monthly_type: exact(MonthlyType);
    /// Sets the cron expression, as in `0 9 * * MON-FRI`.
    cron_expression: into(String);
}

impl TimedConfig {
    /// Returns the times of a cron expression, as in `0 9 * * MON-FRI`. The step is checked when its
    /// workflow is saved.
    pub fn cron(expression: impl Into<String>) -> Self {
        Self::default().cron_expression(expression)
    }

    /// Returns the calendar of this configuration and the `amount` and `unit` beside it. The fields
    /// in refusals are relative to those two.
    pub(super) fn calendar(
        &self,
        amount: Option<u32>,
        unit: Option<TimeUnit>,
    ) -> Result<Calendar, Invalid> {
        if let Some(expression) = &self.cron_expression {
            limits::text("timed.cronExpression", expression, StepDefinition::MAX_CRON)?;
            return Cron::new(expression).map(Calendar::Cron);
        }
        let unit = unit.unwrap_or_else(|| self.implied_unit());
        let every = amount.unwrap_or(1);
        check_every(every, unit)?;
        let at = || self.at_time.as_deref().map_or(Ok(NaiveTime::MIN), time_of_day);
        match unit {
            TimeUnit::Seconds => {
                let expected = "at least `minutes`";
                Err(Invalid::new("unit", Reason::malformed(expected)))
            }
            TimeUnit::Minutes => Ok(Calendar::Minutes(every)),
            TimeUnit::Hours => Ok(Calendar::Minutes(every * 60)),
            TimeUnit::Days => Ok(Calendar::Days { every, at: at()? }),
            TimeUnit::Weeks => {
                Ok(Calendar::Weeks { every, days: self.week_days.clone(), at: at()? })
            }
            TimeUnit::Months => match self.day()? {
                Some((ordinal, kind)) => Ok(Calendar::On { every, ordinal, kind, at: at()? }),
                None => Ok(Calendar::Each { every, days: self.days()?, at: at()? }),
            },
        }
    }

    /// Refuses a configuration without a calendar, fields that the calendar does not use, and times that
    /// are too far apart. A stored configuration is not checked.
    pub(super) fn check(&self, amount: Option<u32>, unit: Option<TimeUnit>) -> Result<(), Invalid> {
        let calendar = self.calendar(amount, unit)?;
        self.cron_expression.as_deref().map_or(Ok(()), Cron::check)?;
        self.check_unused(unit)?;
        if calendar.comes() {
            return Ok(());
        }
        let expected = format!("calendar times at most {} days apart", StepDefinition::MAX_DAYS);
        Err(Invalid::new("timed", Reason::malformed(expected)))
    }

    /// Refuses fields that the calendar of this configuration does not use.
    fn check_unused(&self, unit: Option<TimeUnit>) -> Result<(), Invalid> {
        let has_ordinal = self.ordinal.is_some() || self.ordinal_value.is_some();
        let given = [
            ("timed.atTime", self.at_time.is_some()),
            ("timed.weekDays", !self.week_days.is_empty()),
            ("timed.monthDays", !self.month_days.is_empty()),
            ("timed.ordinal", has_ordinal),
            ("timed.monthlyType", self.monthly_type.is_some()),
        ];
        let (used, by): (&[&str], _) = if self.cron_expression.is_some() {
            (&[], "timed.cronExpression")
        } else {
            let used: &[&str] = match unit.unwrap_or_else(|| self.implied_unit()) {
                TimeUnit::Seconds | TimeUnit::Minutes | TimeUnit::Hours => &[],
                TimeUnit::Days => &["timed.atTime"],
                TimeUnit::Weeks => &["timed.atTime", "timed.weekDays"],
                TimeUnit::Months if self.is_on() => {
                    &["timed.atTime", "timed.ordinal", "timed.monthlyType"]
                }
                TimeUnit::Months => &["timed.atTime", "timed.monthDays", "timed.monthlyType"],
            };
            (used, if self.is_on() { "timed.ordinal" } else { "unit" })
        };
        let mut given = given.iter().filter(|(_, is_given)| *is_given);
        match given.find(|(field, _)| !used.contains(field)) {
            Some((field @ "timed.ordinal", _)) if self.monthly_type.is_some() => {
                Err(Invalid::new(*field, Reason::Excludes { other: "timed.monthlyType".into() }))
            }
            Some((field, _)) => Err(Invalid::new(*field, Reason::Excludes { other: by.into() })),
            None => Ok(()),
        }
    }

    fn implied_unit(&self) -> TimeUnit {
        if !self.month_days.is_empty() || self.is_on() || self.monthly_type.is_some() {
            TimeUnit::Months
        } else if !self.week_days.is_empty() {
            TimeUnit::Weeks
        } else {
            TimeUnit::Days
        }
    }

    fn is_on(&self) -> bool {
        let has_ordinal = self.ordinal.is_some() || self.ordinal_value.is_some();
        self.monthly_type.map_or(has_ordinal, |kind| kind == MonthlyType::On)
    }

    fn day(&self) -> Result<Option<(NthDay, OrdinalValue)>, Invalid> {
        let missing = |field: &str| Invalid::new(field, Reason::Missing);
        if !self.is_on() {
            return Ok(None);
        }
        let ordinal = self.ordinal.ok_or_else(|| missing("timed.ordinal"))?;
        Ok(Some((ordinal, self.ordinal_value.ok_or_else(|| missing("timed.ordinalValue"))?)))
    }

    fn days(&self) -> Result<Vec<u32>, Invalid> {
        let day = |(index, day): (usize, &String)| {
            let number = day.parse().ok().filter(|day| (1..=31).contains(day));
            let expected = "a day of the month: `1` to `31`";
            let refusal =
                || Invalid::new(format!("timed.monthDays[{index}]"), Reason::malformed(expected));
            number.ok_or_else(refusal)
        };
        self.month_days.iter().enumerate().map(day).collect()
    }
}

// Minutes and hours are counted from midnight, and so must fit into a day.
fn check_every(every: u32, unit: TimeUnit) -> Result<(), Invalid> {
    let max = match unit {
        TimeUnit::Minutes => 24 * 60,
        TimeUnit::Hours => 24,
        TimeUnit::Seconds | TimeUnit::Days | TimeUnit::Weeks | TimeUnit::Months => {
            return check_amount("amount", every, unit);
        }
    };
    if (1..=max).contains(&every) {
        return Ok(());
    }
    Err(Invalid::new("amount", Reason::OutOfRange { min: 1, max: max.into() }))
}

fn time_of_day(text: &str) -> Result<NaiveTime, Invalid> {
    let expected = "a time such as `09:30`";
    // chrono also takes times of one digit, and white space.
    let is_whole = text.len() == 5 && text.bytes().filter(u8::is_ascii_digit).count() == 4;
    let time = NaiveTime::parse_from_str(text, "%H:%M").ok().filter(|_| is_whole);
    time.ok_or_else(|| Invalid::new("timed.atTime", Reason::malformed(expected)))
}
