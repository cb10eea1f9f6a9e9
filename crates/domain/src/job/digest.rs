//! Events that a digest has collected.

use serde::{Deserialize, Serialize};

use crate::json::Object;
use crate::step::{MonthlyType, Ordinal, OrdinalValue};
use crate::vocabulary::{TimeUnit, Weekday, wire_enum};

/// Events that a digest has collected, and its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as in the specification")]
#[non_exhaustive]
pub struct JobDigest {
    #[serde(rename = "type")]
    pub kind: DigestType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_amount: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_unit: Option<TimeUnit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_mode: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<JobTimed>,
}

impl JobDigest {
    /// Returns the empty digest of that kind.
    #[doc(hidden)]
    pub const fn new(kind: DigestType) -> Self {
        Self {
            kind,
            digest_key: None,
            amount: None,
            unit: None,
            events: Vec::new(),
            backoff: None,
            backoff_amount: None,
            backoff_unit: None,
            update_mode: None,
            timed: None,
        }
    }
}

wire_enum! {
    /// Type of a digest.
    DigestType, "type":
    Regular = "regular",
    Backoff = "backoff",
    Timed = "timed",
}

/// Calendar times at which a digest ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named as in the specification")]
#[non_exhaustive]
pub struct JobTimed {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_time: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub week_days: Vec<Weekday>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub month_days: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<Ordinal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal_value: Option<OrdinalValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly_type: Option<MonthlyType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_date: Option<String>,
}
