//! Delays: steps that wait.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::{check_span, unreadable};
use super::lookup::{self, find, rooted};
use super::span::{NoEnd, Span};
use super::{StepDefinition, TimedConfig};
use crate::contact::TimeZone;
use crate::error::{Invalid, Reason};
use crate::json::{Object, shape};
use crate::setters::setters;
use crate::time::Timestamp;
use crate::vocabulary::{TimeUnit, wire_enum};

/// Length of a delay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delay {
    /// Fixed length.
    Regular(FixedDelay),
    /// Until a time in the payload.
    Scheduled(ScheduledDelay),
    /// Until a time in the payload, or for a span in the payload.
    Dynamic(DynamicDelay),
    /// Until the next calendar time.
    Timed(TimedDelay),
}

shape! { Delay by "type" {
    "regular": {; FixedDelay },
    "scheduled": {; ScheduledDelay },
    "dynamic": {; DynamicDelay },
    "timed": {; TimedDelay },
} }

/// Delay of a fixed length. Without an amount, or with 0, it is over at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct FixedDelay {
    /// Number of units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    /// Unit. Months are those of the calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    /// `true` if an end outside the subscriber's schedule moves to its next opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extend_to_schedule: Option<bool>,
}

shape! { FixedDelay {
    "amount": amount, "unit": unit, "extendToSchedule": extend_to_schedule,
} }

/// Delay until a time in the payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScheduledDelay {
    /// Path of the time in the payload, as in `order.due`. The time is ISO 8601.
    pub delay_path: String,
    /// What happens if the time has passed. If absent, the delay is over at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_past: Option<OnPast>,
    /// `true` if an end outside the subscriber's schedule moves to its next opening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extend_to_schedule: Option<bool>,
}

shape! { ScheduledDelay {
    "delayPath": delay_path, "onPast": on_past, "extendToSchedule": extend_to_schedule,
} }

/// Delay whose length is in the payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DynamicDelay {
    /// Path in the payload of a time in ISO 8601, or of an object with `amount` and `unit`.
    pub dynamic_key: String,
    /// What happens if the time has passed. If absent, the delay is over at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_past: Option<OnPast>,
    /// `true` if an end outside the subscriber's schedule moves to its next opening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extend_to_schedule: Option<bool>,
}

shape! { DynamicDelay {
    "dynamicKey": dynamic_key, "onPast": on_past, "extendToSchedule": extend_to_schedule,
} }

/// Delay until a calendar time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TimedDelay {
    /// Number of units between two times. If absent, 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    /// Unit: `minutes` to `months`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    /// Calendar times.
    pub timed: TimedConfig,
    /// `true` if an end outside the subscriber's schedule moves to its next opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extend_to_schedule: Option<bool>,
}

shape! { TimedDelay {
    "amount": amount, "unit": unit, "timed": timed, "extendToSchedule": extend_to_schedule,
} }

wire_enum! {
    /// What a delay does if its time has passed: `immediate` is over at once, `skip` skips the rest
    /// of the run, and `fail` fails.
    OnPast, "onPast":
    Immediate = "immediate",
    Skip = "skip",
    Fail = "fail",
}

/// End of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DelayEnd {
    /// The delay is over at once.
    Over,
    /// The delay lasts until this later time.
    #[non_exhaustive]
    Lasts {
        /// End.
        until: Timestamp,
    },
    /// The time of the payload has passed, and the rest of the run is skipped.
    Passed,
}

impl Delay {
    /// Returns a delay of `amount` units.
    pub fn lasting(amount: u32, unit: TimeUnit) -> Self {
        let (amount, unit) = (Some(amount), Some(unit));
        Self::Regular(FixedDelay { amount, unit, extend_to_schedule: None })
    }

    /// Returns a delay until the time in the payload at `delay_path`, as in `order.due`.
    pub fn until(delay_path: impl Into<String>) -> Self {
        let delay_path = delay_path.into();
        Self::Scheduled(ScheduledDelay { delay_path, on_past: None, extend_to_schedule: None })
    }

    /// Returns a delay until the time in the payload at `dynamic_key`, or for the `amount` and
    /// `unit` in the payload there.
    pub fn dynamic(dynamic_key: impl Into<String>) -> Self {
        let dynamic_key = dynamic_key.into();
        Self::Dynamic(DynamicDelay { dynamic_key, on_past: None, extend_to_schedule: None })
    }

    /// Sets what happens if the time in the payload has passed. Other delays never have one.
    #[must_use]
    pub fn on_past(mut self, on_past: OnPast) -> Self {
        match &mut self {
            Self::Scheduled(delay) => delay.on_past = Some(on_past),
            Self::Dynamic(delay) => delay.on_past = Some(on_past),
            Self::Regular(_) | Self::Timed(_) => {}
        }
        self
    }

    /// Moves an end outside the subscriber's schedule to its next opening, or leaves it.
    #[must_use]
    pub fn extend_to_schedule(mut self, extends: bool) -> Self {
        *match &mut self {
            Self::Regular(delay) => &mut delay.extend_to_schedule,
            Self::Scheduled(delay) => &mut delay.extend_to_schedule,
            Self::Dynamic(delay) => &mut delay.extend_to_schedule,
            Self::Timed(delay) => &mut delay.extend_to_schedule,
        } = Some(extends);
        self
    }

    /// Returns `true` if an end outside the subscriber's schedule moves to its next opening.
    #[doc(hidden)]
    pub fn extends_to_schedule(&self) -> bool {
        let extends = match self {
            Self::Regular(delay) => delay.extend_to_schedule,
            Self::Scheduled(delay) => delay.extend_to_schedule,
            Self::Dynamic(delay) => delay.extend_to_schedule,
            Self::Timed(delay) => delay.extend_to_schedule,
        };
        extends.unwrap_or_default()
    }

    /// Refuses amounts, units, paths and calendar times that are absent or invalid.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Regular(FixedDelay { amount: None | Some(0), .. }) => Ok(()),
            Self::Regular(delay) => check_span(("amount", delay.amount), ("unit", delay.unit)),
            Self::Scheduled(delay) => lookup::check_path("delayPath", &delay.delay_path),
            Self::Dynamic(delay) => lookup::check_path("dynamicKey", &delay.dynamic_key),
            Self::Timed(TimedDelay { amount, unit, timed, .. }) => {
                if *timed == TimedConfig::default() && unit.is_none() {
                    let reason = Reason::MissingUnless { other: "unit".into() };
                    return Err(Invalid::new("timed", reason));
                }
                timed.check(*amount, *unit)
            }
        }
    }

    /// Returns the path in the payload of its time or its span, with the name of the setting.
    pub(super) fn path(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Scheduled(delay) => Some(("delayPath", &delay.delay_path)),
            Self::Dynamic(delay) => Some(("dynamicKey", &delay.dynamic_key)),
            Self::Regular(_) | Self::Timed(_) => None,
        }
    }

    /// Returns the end of a delay that begins at `now`. `payload` is that of the trigger, and `zone`
    /// the time zone of the subscriber.
    #[doc(hidden)]
    pub fn end(&self, now: Timestamp, payload: &Object, zone: TimeZone) -> Result<DelayEnd, NoEnd> {
        let (end, on_past) = match self {
            Self::Regular(delay) => {
                (Span::of(delay.amount, delay.unit, "metadata")?.after(now, zone)?, None)
            }
            Self::Scheduled(delay) => {
                let (path, value) = required(payload, &delay.delay_path)?;
                (time(path, value)?, delay.on_past)
            }
            Self::Dynamic(delay) => {
                (dynamic_end(payload, &delay.dynamic_key, now, zone)?, delay.on_past)
            }
            Self::Timed(TimedDelay { amount, unit, timed, .. }) => {
                let calendar = timed.calendar(*amount, *unit);
                let calendar = calendar.map_err(|invalid| unreadable(&invalid))?;
                (calendar.next(now, zone).ok_or(NoEnd::TOO_FAR)?, None)
            }
        };
        if end < now {
            return match on_past.unwrap_or(OnPast::Immediate) {
                OnPast::Immediate => Ok(DelayEnd::Over),
                OnPast::Skip => Ok(DelayEnd::Passed),
                OnPast::Fail => Err(NoEnd::Past { at: end }),
            };
        }
        within_reach(end, now)?;
        Ok(if end == now { DelayEnd::Over } else { DelayEnd::Lasts { until: end } })
    }
}

/// Returns the end of a span that begins at `now`, as the payload says it at `path`: a time, or an
/// object with `amount` and `unit`. It may be in the past.
pub(super) fn dynamic_end(
    payload: &Object,
    path: &str,
    now: Timestamp,
    zone: TimeZone,
) -> Result<Timestamp, NoEnd> {
    let (path, value) = required(payload, path)?;
    let Value::Object(span) = value else { return time(path, value) };
    let expected = "a time, or an object with `amount` and `unit`";
    let amount = span.get("amount").and_then(Value::as_u64);
    let unit = span.get("unit").and_then(Value::as_str).and_then(|unit| unit.parse().ok());
    let (Some(amount), Some(unit)) = (amount, unit) else {
        return Err(NoEnd::Malformed { path, expected });
    };
    let amount = u32::try_from(amount).map_err(|_| NoEnd::TOO_FAR)?;
    Span { amount, unit }.after(now, zone)
}

/// Refuses an end that is too far from `now`.
pub(super) fn within_reach(end: Timestamp, now: Timestamp) -> Result<(), NoEnd> {
    let longest = Span { amount: StepDefinition::MAX_DAYS, unit: TimeUnit::Days };
    let last = longest.after(now, TimeZone::UTC).unwrap_or(Timestamp::MAX);
    if end > last { Err(NoEnd::TOO_FAR) } else { Ok(()) }
}

// Returns the value in the payload, and its path from the root on.
fn required<'p>(payload: &'p Object, path: &str) -> Result<(String, &'p Value), NoEnd> {
    match find(payload, path) {
        None | Some(Value::Null) => Err(NoEnd::missing(rooted(path))),
        Some(value) => Ok((rooted(path), value)),
    }
}

fn time(path: String, value: &Value) -> Result<Timestamp, NoEnd> {
    let time = value.as_str().and_then(|text| text.parse().ok());
    time.ok_or(NoEnd::Malformed { path, expected: Timestamp::EXPECTED })
}

setters! { TimedDelay:
    /// Sets the number of units between two times.
    amount: exact(u32);
    /// Sets the unit.
    unit: exact(TimeUnit);
    /// Sets whether an end outside the subscriber's schedule moves to its next opening.
    extend_to_schedule: exact(bool);
}

impl From<TimedDelay> for Delay {
    fn from(delay: TimedDelay) -> Self {
        Self::Timed(delay)
    }
}

/// Returns a delay until the next of these times.
impl From<TimedConfig> for Delay {
    fn from(timed: TimedConfig) -> Self {
        Self::Timed(TimedDelay { timed, ..TimedDelay::default() })
    }
}

#[cfg(test)]
mod tests;
