//! How the steps that send nothing wait, collect and let pass.

use serde::{Deserialize, Serialize};

use crate::vocabulary::{TimeUnit, Weekday, vocabulary};

/// For how long a digest collects, and which events belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DigestMetadata {
    /// From the first event on, for a fixed time.
    Regular(Window),
    /// The same, but the first event after a quiet time goes on at once.
    Backoff(Window),
    /// Until the next occurrence of a time.
    Timed(TimedWindow),
}

/// A span of time that starts with an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named as in the specification")]
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

/// A span of time that ends at a time of the calendar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named as in the specification")]
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

/// The times of the calendar at which a window ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named as in the specification")]
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

vocabulary! {
    /// Which one of a month's days of a kind.
    Ordinal, "ordinal":
    First = "1",
    Second = "2",
    Third = "3",
    Fourth = "4",
    Fifth = "5",
    Last = "last",
}

vocabulary! {
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

vocabulary! {
    /// How the days of a month are named.
    MonthlyType, "monthlyType":
    Each = "each",
    On = "on",
}

/// How long a delay is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
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

/// How often a throttle lets pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
