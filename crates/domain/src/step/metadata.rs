//! Settings of delays, digests and throttles.

use serde::{Deserialize, Serialize};

use crate::json::shape;
use crate::setters::setters;
use crate::vocabulary::{TimeUnit, Weekday, wire_enum};

/// Window of a digest, and grouping of its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DigestMetadata {
    /// Fixed time from the first event on.
    Regular(Window),
    /// Fixed time as well, but the first event after a quiet time passes at once.
    Backoff(Window),
    /// Until the next calendar time.
    Timed(TimedWindow),
}

shape! { DigestMetadata by "type" {
    "regular": {; Window },
    "backoff": {; Window },
    "timed": {; TimedWindow },
} }

/// Span of time that starts with an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named as in the specification")]
#[non_exhaustive]
pub struct Window {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_amount: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_unit: Option<TimeUnit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_mode: Option<bool>,
}

shape! { Window {
    "amount": amount, "unit": unit, "digestKey": digest_key, "backoff": backoff,
    "backoffAmount": backoff_amount, "backoffUnit": backoff_unit, "updateMode": update_mode,
} }

/// Span of time that ends at a calendar time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named as in the specification")]
#[non_exhaustive]
pub struct TimedWindow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed: Option<TimedConfig>,
}

shape! { TimedWindow { "amount": amount, "unit": unit, "digestKey": digest_key, "timed": timed } }

/// Calendar times at which a window ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named as in the specification")]
#[non_exhaustive]
pub struct TimedConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_time: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub week_days: Vec<Weekday>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub month_days: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<Ordinal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal_value: Option<OrdinalValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly_type: Option<MonthlyType>,
}

shape! { TimedConfig {
    "atTime": at_time, "weekDays": week_days, "monthDays": month_days, "ordinal": ordinal,
    "ordinalValue": ordinal_value, "monthlyType": monthly_type,
} }

wire_enum! {
    /// Number of a day among the days of its kind in a month.
    Ordinal, "ordinal":
    First = "1",
    Second = "2",
    Third = "3",
    Fourth = "4",
    Fifth = "5",
    Last = "last",
}

wire_enum! {
    /// Kind of day.
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

/// Length of a delay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DelayMetadata {
    /// Fixed length.
    Regular {
        /// Number of units.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amount: Option<u32>,
        /// Unit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<TimeUnit>,
    },
    /// Until a time in the payload.
    #[serde(rename_all = "camelCase")]
    Scheduled {
        /// Path of the time in the payload.
        delay_path: String,
    },
}

shape! { DelayMetadata by "type" {
    "regular": { "amount": Option<u32>, "unit": Option<TimeUnit> },
    "scheduled": { "delayPath": String },
} }

/// Limit of a throttle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ThrottleMetadata {
    /// Number of units in a window.
    pub amount: u32,
    /// Unit.
    pub unit: TimeUnit,
    /// Number of events that pass in a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u32>,
    /// Path in the payload whose values are counted separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_key: Option<String>,
}

shape! { ThrottleMetadata {
    "amount": amount, "unit": unit, "threshold": threshold, "throttleKey": throttle_key,
} }

impl Window {
    /// Returns a window of `amount` units.
    pub fn new(amount: u32, unit: TimeUnit) -> Self {
        Self { amount: Some(amount), unit: Some(unit), ..Self::default() }
    }
}

setters! { Window:
    /// Sets the field of the payload whose values are collected separately.
    digest_key: into(String);
    /// Lets the first event after a quiet time pass at once, or not.
    backoff: exact(bool);
    /// Sets the number of units in a quiet time.
    backoff_amount: exact(u32);
    /// Sets the unit of a quiet time.
    backoff_unit: exact(TimeUnit);
    /// Sets whether later events update the sent message.
    update_mode: exact(bool);
}

setters! { TimedWindow:
    /// Sets the number of units in the window.
    amount: exact(u32);
    /// Sets the unit.
    unit: exact(TimeUnit);
    /// Sets the field of the payload whose values are collected separately.
    digest_key: into(String);
    /// Sets the calendar times at which the window ends.
    timed: exact(TimedConfig);
}

setters! { TimedConfig:
    /// Sets the time of day, as in `09:30`.
    at_time: into(String);
    /// Sets the days of the week.
    week_days: each(Weekday);
    /// Sets the days of the month.
    month_days: each(String);
    /// Sets the number of the day among the days of its kind.
    ordinal: exact(Ordinal);
    /// Sets the kind of day.
    ordinal_value: exact(OrdinalValue);
    /// Sets the way to select the days of a month.
    monthly_type: exact(MonthlyType);
}

impl From<Window> for DigestMetadata {
    fn from(window: Window) -> Self {
        DigestMetadata::Regular(window)
    }
}

impl From<TimedWindow> for DigestMetadata {
    fn from(window: TimedWindow) -> Self {
        DigestMetadata::Timed(window)
    }
}

impl DelayMetadata {
    /// Returns a delay of `amount` units.
    pub fn lasting(amount: u32, unit: TimeUnit) -> Self {
        DelayMetadata::Regular { amount: Some(amount), unit: Some(unit) }
    }

    /// Returns a delay until the time in the payload at `delay_path`.
    pub fn until(delay_path: impl Into<String>) -> Self {
        DelayMetadata::Scheduled { delay_path: delay_path.into() }
    }
}

impl ThrottleMetadata {
    /// Returns a throttle with windows of `amount` units.
    pub fn new(amount: u32, unit: TimeUnit) -> Self {
        Self { amount, unit, threshold: None, throttle_key: None }
    }
}

setters! { ThrottleMetadata:
    /// Sets the number of events that pass in a window.
    threshold: exact(u32);
    /// Sets the field of the payload whose values are counted separately.
    throttle_key: into(String);
}
