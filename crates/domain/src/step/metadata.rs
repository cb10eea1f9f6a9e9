//! How the steps that send nothing wait, collect and let pass.

use serde::{Deserialize, Serialize};

use crate::json::shape;
use crate::setters::setters;
use crate::vocabulary::{TimeUnit, Weekday, wire_enum};

/// For how long a digest collects, and which events belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DigestMetadata {
    /// From the first event on, for a fixed time.
    Regular(Window),
    /// The same, but the first event after a quiet time goes on at once.
    Backoff(Window),
    /// Until the next occurrence of a time.
    Timed(TimedWindow),
}

shape! { DigestMetadata by "type" {
    "regular": {; Window },
    "backoff": {; Window },
    "timed": {; TimedWindow },
} }

/// A span of time that starts with an event.
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

/// A span of time that ends at a time of the calendar.
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

/// The times of the calendar at which a window ends.
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
    /// Which one of a month's days of a kind.
    Ordinal, "ordinal":
    First = "1",
    Second = "2",
    Third = "3",
    Fourth = "4",
    Fifth = "5",
    Last = "last",
}

wire_enum! {
    /// A kind of day.
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
    /// How the days of a month are named.
    MonthlyType, "monthlyType":
    Each = "each",
    On = "on",
}

/// How long a delay is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DelayMetadata {
    /// A fixed time.
    Regular {
        /// How many units.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amount: Option<u32>,
        /// The unit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<TimeUnit>,
    },
    /// Until a time that the payload names.
    #[serde(rename_all = "camelCase")]
    Scheduled {
        /// Where the payload names it.
        delay_path: String,
    },
}

shape! { DelayMetadata by "type" {
    "regular": { "amount": Option<u32>, "unit": Option<TimeUnit> },
    "scheduled": { "delayPath": String },
} }

/// How often a throttle lets pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ThrottleMetadata {
    /// How many units a window has.
    pub amount: u32,
    /// The unit.
    pub unit: TimeUnit,
    /// How many events pass in a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u32>,
    /// Where the payload names what is counted apart.
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
    /// Names the field of the payload whose values are collected apart.
    digest_key: into(String);
    /// Sets whether the first event after a quiet time goes on at once.
    backoff: exact(bool);
    /// Sets how many units a quiet time has.
    backoff_amount: exact(u32);
    /// Sets the unit of a quiet time.
    backoff_unit: exact(TimeUnit);
    /// Sets whether later events update what was sent.
    update_mode: exact(bool);
}

setters! { TimedWindow:
    /// Sets how many units the window has.
    amount: exact(u32);
    /// Sets the unit.
    unit: exact(TimeUnit);
    /// Names the field of the payload whose values are collected apart.
    digest_key: into(String);
    /// Sets the times of the calendar at which the window ends.
    timed: exact(TimedConfig);
}

setters! { TimedConfig:
    /// Sets the time of day, as in `09:30`.
    at_time: into(String);
    /// Sets the days of the week.
    week_days: each(Weekday);
    /// Sets the days of the month.
    month_days: each(String);
    /// Sets which of the days of a kind it is.
    ordinal: exact(Ordinal);
    /// Sets the kind of day.
    ordinal_value: exact(OrdinalValue);
    /// Sets how the days of a month are named.
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

    /// Returns a delay until the time that the payload holds at `delay_path`.
    pub fn until(delay_path: impl Into<String>) -> Self {
        DelayMetadata::Scheduled { delay_path: delay_path.into() }
    }
}

impl ThrottleMetadata {
    /// Returns a throttle of windows of `amount` units.
    pub fn new(amount: u32, unit: TimeUnit) -> Self {
        Self { amount, unit, threshold: None, throttle_key: None }
    }
}

setters! { ThrottleMetadata:
    /// Sets how many events pass in a window.
    threshold: exact(u32);
    /// Names the field of the payload whose values are counted apart.
    throttle_key: into(String);
}
