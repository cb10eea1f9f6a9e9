//! Events that a digest has collected.

use serde::{Deserialize, Serialize};

use crate::ids::DigestWindowId;
use crate::json;
use crate::plan::DigestedEvents;
use crate::step::{
    Digest, DigestEvent, DigestWindow, MonthlyType, NthDay, OrdinalValue, TimedConfig,
};
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
    pub events: Vec<DigestEvent>,
    /// Last event, if `events` does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event: Option<DigestEvent>,
    /// Number of all events. `events` has the first hundred at most, and fewer if they are large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_count: Option<u32>,
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
    /// Window of the events.
    #[serde(rename = "_windowId", default, skip_serializing_if = "Option::is_none")]
    pub window_id: Option<DigestWindowId>,
}

impl JobDigest {
    /// Returns the size of the events, in bytes.
    #[doc(hidden)]
    pub fn size(&self) -> usize {
        self.events.iter().chain(&self.last_event).map(json::size).sum()
    }

    /// Returns the settings of a digest, without events.
    #[doc(hidden)]
    pub fn of(metadata: &Digest) -> Self {
        match metadata {
            Digest::Regular(window) => Self::of_window(DigestType::Regular, window),
            Digest::Backoff(window) => Self::of_window(DigestType::Backoff, window),
            Digest::Timed(window) => Self {
                digest_key: window.digest_key.clone(),
                amount: window.amount,
                unit: window.unit,
                timed: window.timed.as_ref().map(JobTimed::of),
                ..Self::new(DigestType::Timed)
            },
        }
    }

    fn of_window(kind: DigestType, window: &DigestWindow) -> Self {
        Self {
            digest_key: window.digest_key.clone(),
            amount: window.amount,
            unit: window.unit,
            backoff: window.backoff,
            backoff_amount: window.backoff_amount,
            backoff_unit: window.backoff_unit,
            update_mode: window.update_mode,
            ..Self::new(kind)
        }
    }

    /// Returns the digest as long as its window is open: without events.
    #[doc(hidden)]
    #[must_use]
    pub fn open(&self) -> Self {
        Self { events: Vec::new(), last_event: None, event_count: None, ..self.clone() }
    }

    /// Largest number of events in a job. The last event of all comes on top, and
    /// `notifications().digest_events` has the others. A template knows how many there are:
    /// `{{ total_count - events | length }} more`.
    pub const MAX_EVENTS: usize = 100;

    /// Largest size of the events in a job, in bytes of JSON text. The first event is always there. The job is
    /// written anew with each entry of a log of its notification.
    pub const MAX_EVENTS_SIZE: usize = 1024 * 1024;

    /// Returns the window, if it has closed.
    #[doc(hidden)]
    pub fn closed_window(&self) -> Option<DigestWindowId> {
        self.window_id.filter(|_| self.event_count.is_some())
    }

    /// Adds the events of the window that has closed.
    #[doc(hidden)]
    pub fn collect(&mut self, digested: &DigestedEvents) {
        self.events.clone_from(&digested.events);
        self.last_event.clone_from(&digested.last);
        self.event_count = Some(digested.count);
    }

    /// Returns the empty digest of that kind.
    #[doc(hidden)]
    pub const fn new(kind: DigestType) -> Self {
        Self {
            kind,
            digest_key: None,
            amount: None,
            unit: None,
            events: Vec::new(),
            last_event: None,
            event_count: None,
            backoff: None,
            backoff_amount: None,
            backoff_unit: None,
            update_mode: None,
            timed: None,
            window_id: None,
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
    pub ordinal: Option<NthDay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal_value: Option<OrdinalValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly_type: Option<MonthlyType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_date: Option<String>,
}

impl JobTimed {
    // Days that are no numbers were refused when the workflow was saved.
    fn of(timed: &TimedConfig) -> Self {
        Self {
            at_time: timed.at_time.clone(),
            week_days: timed.week_days.clone(),
            month_days: timed.month_days.iter().filter_map(|day| day.parse().ok()).collect(),
            ordinal: timed.ordinal,
            ordinal_value: timed.ordinal_value,
            monthly_type: timed.monthly_type,
            cron_expression: timed.cron_expression.clone(),
            until_date: None,
        }
    }
}
