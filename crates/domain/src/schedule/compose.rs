//! Constructors of schedules.

use std::collections::BTreeMap;

use super::{ClockTime, DaySchedule, Hours, Outside, Schedule};
use crate::convert::{IntoChecked, secret_conversions};
use crate::error::Invalid;
use crate::vocabulary::{Channel, Weekday};

impl Schedule {
    /// Returns a schedule that applies, with every hour of every day open.
    pub fn open() -> Self {
        Self { is_enabled: true, weekly_schedule: None, outside: None }
    }

    /// Sets the hours of a day. Once one day is set, the other days are closed.
    #[must_use]
    pub fn day(mut self, day: Weekday, hours: DaySchedule) -> Self {
        self.weekly_schedule.get_or_insert_with(BTreeMap::new).insert(day, hours);
        self
    }

    /// Sets what happens to messages of a channel outside the open hours. The inbox is always open.
    #[must_use]
    pub fn with_outside(mut self, channel: Channel, outside: Outside) -> Self {
        self.outside.get_or_insert_with(BTreeMap::new).insert(channel, outside);
        self
    }
}

impl DaySchedule {
    /// Returns a day with every hour open.
    pub fn open() -> Self {
        Self { is_enabled: true, hours: None }
    }

    /// Returns a day without open hours.
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
    /// Returns a span of hours. It ends on the next day if `end` comes before `start`.
    pub fn new(
        start: impl IntoChecked<ClockTime>,
        end: impl IntoChecked<ClockTime>,
    ) -> Result<Self, Invalid> {
        let start = start.into_checked().map_err(|invalid| invalid.named("start"))?;
        Ok(Self { start, end: end.into_checked().map_err(|invalid| invalid.named("end"))? })
    }
}

secret_conversions!(ClockTime);
