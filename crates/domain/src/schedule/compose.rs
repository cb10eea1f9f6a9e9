//! Schedules as a program writes them.

use std::collections::BTreeMap;

use super::{ClockTime, DaySchedule, Hours, Schedule};
use crate::convert::{IntoChecked, secret_conversions};
use crate::error::Invalid;
use crate::vocabulary::Weekday;

impl Schedule {
    /// Returns a schedule that applies, and that every hour of every day is open in.
    pub fn open() -> Self {
        Self { is_enabled: true, weekly_schedule: None }
    }

    /// Sets the hours of a day. Days without any are closed, once one day has some.
    #[must_use]
    pub fn day(mut self, day: Weekday, hours: DaySchedule) -> Self {
        self.weekly_schedule.get_or_insert_with(BTreeMap::new).insert(day, hours);
        self
    }
}

impl DaySchedule {
    /// Returns a day of which every hour is open.
    pub fn open() -> Self {
        Self { is_enabled: true, hours: None }
    }

    /// Returns a day of which no hour is open.
    pub fn closed() -> Self {
        Self { is_enabled: false, hours: None }
    }

    /// Adds a span of open hours, such as `09:00 AM` to `05:30 PM`. Other hours are closed.
    pub fn hours(
        mut self,
        start: impl IntoChecked<ClockTime>,
        end: impl IntoChecked<ClockTime>,
    ) -> Result<Self, Invalid> {
        self.hours.get_or_insert_default().push(Hours::new(start, end)?);
        Ok(self)
    }
}

impl Hours {
    /// Returns a span of hours, which goes past midnight where `end` comes before `start`.
    pub fn new(
        start: impl IntoChecked<ClockTime>,
        end: impl IntoChecked<ClockTime>,
    ) -> Result<Self, Invalid> {
        let start = start.into_checked().map_err(|invalid| invalid.named("start"))?;
        Ok(Self { start, end: end.into_checked().map_err(|invalid| invalid.named("end"))? })
    }
}

secret_conversions!(ClockTime);
