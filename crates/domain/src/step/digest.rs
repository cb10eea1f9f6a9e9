//! Digests: steps that collect the events of a window.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::TimedConfig;
use super::lookup::{self, EventKey};
use super::span::{NoEnd, Span, check_amount};
use crate::contact::TimeZone;
use crate::error::{Invalid, Reason};
use crate::json::{Object, shape};
use crate::setters::setters;
use crate::time::Timestamp;
use crate::vocabulary::TimeUnit;

/// Window of a digest, and grouping of its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Digest {
    /// Fixed time from the first event on.
    Regular(DigestWindow),
    /// Fixed time as well, but the first event after a quiet time passes at once.
    Backoff(DigestWindow),
    /// Until the next calendar time.
    Timed(TimedWindow),
}

shape! { Digest by "type" {
    "regular": {; DigestWindow },
    "backoff": {; DigestWindow },
    "timed": {; TimedWindow },
} }

/// Span of time that starts with an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct DigestWindow {
    /// Number of units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    /// Unit. Months are those of the calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    /// Path in the payload whose values are collected separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest_key: Option<String>,
    /// `true` if the first event after a quiet time passes at once, as in [`Digest::Backoff`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<bool>,
    /// Number of units in a quiet time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_amount: Option<u32>,
    /// Unit of a quiet time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_unit: Option<TimeUnit>,
    /// `true` if the author of the workflow wants later events to update the sent message. It is
    /// stored and shown, and has no effect: each window has a message of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_mode: Option<bool>,
    /// `true` if an end outside the subscriber's schedule moves to its next opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extend_to_schedule: Option<bool>,
}

shape! { DigestWindow {
    "amount": amount, "unit": unit, "digestKey": digest_key, "backoff": backoff,
    "backoffAmount": backoff_amount, "backoffUnit": backoff_unit, "updateMode": update_mode,
    "extendToSchedule": extend_to_schedule,
} }

/// Span of time that ends at a calendar time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TimedWindow {
    /// Number of units between two times. If absent, 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    /// Unit: `minutes` to `months`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    /// Path in the payload whose values are collected separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest_key: Option<String>,
    /// Calendar times. If absent, each start of a unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed: Option<TimedConfig>,
    /// `true` if an end outside the subscriber's schedule moves to its next opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extend_to_schedule: Option<bool>,
}

shape! { TimedWindow {
    "amount": amount, "unit": unit, "digestKey": digest_key, "timed": timed,
    "extendToSchedule": extend_to_schedule,
} }

/// What a digest has of the events with one key.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestState {
    /// End of the latest window, if that is open.
    pub window_end: Option<Timestamp>,
    /// End of the latest window, if that has closed.
    pub closed_at: Option<Timestamp>,
    /// Time of the latest event, whatever came of it.
    pub last_event: Option<Timestamp>,
}

/// Effect of an event on a digest. The engine finds the window that the event joins.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The event joins the open window.
    Joins,
    /// The event opens a window that ends at this time.
    Opens(Timestamp),
    /// The event passes at once: it is the first one after a quiet time.
    Passes,
}

impl DigestState {
    // Nothing is known if the latest event is one of a clock that was ahead.
    fn as_of(self, now: Timestamp) -> Self {
        let is_ahead = self.last_event.is_some_and(|last| last.is_far_ahead_of(now));
        if is_ahead { Self::default() } else { self }
    }

    /// Returns the time of the latest event behind one at `now`. The time of a call that has waited for its
    /// transaction is before that of the event before it.
    #[doc(hidden)]
    pub fn last_event_behind(self, now: Timestamp) -> Timestamp {
        self.as_of(now).last_event.map_or(now, |last| last.max(now))
    }

    // Time from which on the next calendar time is one at which no window has closed. A call may have waited
    // for its transaction while the window was closed: its time is before the end of that window. A clock has
    // shown that end, which does not count if it is more than a day away: the clock was ahead.
    fn since_last_end(self, now: Timestamp) -> Timestamp {
        let sound = self.closed_at.filter(|end| !end.is_far_ahead_of(now));
        sound.map_or(now, |end| end.max(now))
    }
}

impl Digest {
    /// Refuses amounts, units, paths and calendar times that are absent or invalid.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        if let Some(key) = self.digest_key() {
            lookup::check_path("digestKey", key)?;
        }
        match self {
            Self::Regular(window) => {
                window.check()?;
                match window.backoff {
                    Some(true) => window.check_backoff(),
                    Some(false) | None => Ok(()),
                }
            }
            Self::Backoff(window) => {
                window.check()?;
                window.check_backoff()
            }
            Self::Timed(TimedWindow { amount, unit, timed, .. }) => {
                let Some(timed) = timed else {
                    let reason = Reason::MissingUnless { other: "unit".into() };
                    unit.ok_or_else(|| Invalid::new("timed", reason))?;
                    return TimedConfig::default().calendar(*amount, *unit).map(drop);
                };
                timed.check(*amount, *unit)
            }
        }
    }

    /// Returns the end of a window that an event opens at `opened_at`: a later time. `zone` is the
    /// time zone of the subscriber.
    #[doc(hidden)]
    pub fn window_end(&self, opened_at: Timestamp, zone: TimeZone) -> Result<Timestamp, NoEnd> {
        match self {
            Self::Regular(window) | Self::Backoff(window) => {
                let span = Span::of(window.amount, window.unit, "metadata")?;
                if span.amount == 0 {
                    return Err(NoEnd::missing("metadata.amount"));
                }
                // A month may end at a time that clocks have shown before.
                let end = span.after(opened_at, zone)?;
                if end > opened_at { Ok(end) } else { Err(NoEnd::TOO_FAR) }
            }
            Self::Timed(TimedWindow { amount, unit, timed, .. }) => {
                let calendar = timed.clone().unwrap_or_default().calendar(*amount, *unit);
                let calendar = calendar.map_err(|invalid| unreadable(&invalid))?;
                calendar.next(opened_at, zone).ok_or(NoEnd::TOO_FAR)
            }
        }
    }

    /// Returns what the digest does with an event at `now`. An open window takes it, also after a
    /// quiet time. At its end, a window is no longer open, and no other one closes at the same calendar
    /// time. A clock that was ahead by more than a day leaves nothing that counts.
    #[doc(hidden)]
    pub fn arrival(
        &self,
        state: DigestState,
        now: Timestamp,
        zone: TimeZone,
    ) -> Result<Arrival, NoEnd> {
        let state = state.as_of(now);
        if state.window_end.is_some_and(|end| now < end) {
            return Ok(Arrival::Joins);
        }
        if self.is_first_after_quiet(state.last_event, now, zone)? {
            return Ok(Arrival::Passes);
        }
        let opened_at = match self {
            Self::Timed(_) => state.since_last_end(now),
            Self::Regular(_) | Self::Backoff(_) => now,
        };
        self.window_end(opened_at, zone).map(Arrival::Opens)
    }

    // The look-back excludes its start: an event that is exactly that old leaves the time quiet.
    fn is_first_after_quiet(
        &self,
        last_event: Option<Timestamp>,
        now: Timestamp,
        zone: TimeZone,
    ) -> Result<bool, NoEnd> {
        let Some(quiet) = self.quiet_time()? else { return Ok(false) };
        let Some(last_event) = last_event else { return Ok(true) };
        Ok(quiet.after(last_event, zone)? <= now)
    }

    /// Returns `true` if an event at `now` or later does not depend on one at `last_event`.
    #[doc(hidden)]
    pub fn forgets(&self, last_event: Timestamp, now: Timestamp) -> bool {
        match self.quiet_time() {
            Ok(Some(quiet)) => {
                // In another time zone it is another day, less than a day away. Months may end in another
                // month then, which is up to three days shorter.
                let days = if quiet.unit == TimeUnit::Months { 4 } else { 1 };
                let difference = Duration::from_secs(days * 24 * 60 * 60);
                let end = quiet.after(last_event, TimeZone::UTC);
                end.is_ok_and(|end| end.after(difference) <= now)
            }
            Ok(None) | Err(_) => true,
        }
    }

    // Returns the look-back of a digest with backoff.
    fn quiet_time(&self) -> Result<Option<Span>, NoEnd> {
        match self {
            Self::Backoff(window)
            | Self::Regular(window @ DigestWindow { backoff: Some(true), .. }) => {
                let (amount, unit) = (window.backoff_amount, window.backoff_unit);
                let span = amount.zip(unit).map(|(amount, unit)| Span { amount, unit });
                span.map(Some).ok_or_else(|| NoEnd::missing("metadata.backoffAmount"))
            }
            Self::Regular(_) | Self::Timed(_) => Ok(None),
        }
    }

    /// Returns `true` if the first event after a quiet time passes at once.
    #[doc(hidden)]
    pub fn has_backoff(&self) -> bool {
        match self {
            Self::Backoff(_) => true,
            Self::Regular(window) => window.backoff == Some(true),
            Self::Timed(_) => false,
        }
    }

    /// Returns the key of an event with this `payload`: events with equal keys are collected
    /// together.
    #[doc(hidden)]
    pub fn event_key(&self, payload: &Object) -> EventKey {
        EventKey::of(self.digest_key(), payload)
    }

    /// Returns `true` if an end outside the subscriber's schedule moves to its next opening.
    #[doc(hidden)]
    pub fn extends_to_schedule(&self) -> bool {
        let extends = match self {
            Self::Regular(window) | Self::Backoff(window) => window.extend_to_schedule,
            Self::Timed(window) => window.extend_to_schedule,
        };
        extends.unwrap_or_default()
    }

    /// Returns the path in the payload by which the digest collects events.
    pub(super) fn digest_key(&self) -> Option<&str> {
        match self {
            Self::Regular(window) | Self::Backoff(window) => window.digest_key.as_deref(),
            Self::Timed(window) => window.digest_key.as_deref(),
        }
    }
}

/// Returns the reason for settings of a calendar that were never checked.
pub(super) fn unreadable(invalid: &Invalid) -> NoEnd {
    NoEnd::Malformed { path: format!("metadata.{}", invalid.field), expected: "a calendar time" }
}

impl DigestWindow {
    /// Returns a window of `amount` units.
    pub fn new(amount: u32, unit: TimeUnit) -> Self {
        Self { amount: Some(amount), unit: Some(unit), ..Self::default() }
    }

    fn check(&self) -> Result<(), Invalid> {
        check_span(("amount", self.amount), ("unit", self.unit))
    }

    fn check_backoff(&self) -> Result<(), Invalid> {
        check_span(("backoffAmount", self.backoff_amount), ("backoffUnit", self.backoff_unit))
    }
}

/// Refuses an absent or invalid amount or unit.
pub(super) fn check_span(
    (amount_field, amount): (&str, Option<u32>),
    (unit_field, unit): (&str, Option<TimeUnit>),
) -> Result<(), Invalid> {
    let missing = |field: &str| Invalid::new(field, Reason::Missing);
    let amount = amount.ok_or_else(|| missing(amount_field))?;
    check_amount(amount_field, amount, unit.ok_or_else(|| missing(unit_field))?)
}

setters! { DigestWindow:
    /// Sets the path in the payload whose values are collected separately.
    digest_key: into(String);
    /// Lets the first event after a quiet time pass at once, or not.
    backoff: exact(bool);
    /// Sets the number of units in a quiet time.
    backoff_amount: exact(u32);
    /// Sets the unit of a quiet time.
    backoff_unit: exact(TimeUnit);
    /// Sets whether later events should update the sent message, which is stored and has no effect.
    update_mode: exact(bool);
    /// Sets whether an end outside the subscriber's schedule moves to its next opening.
    extend_to_schedule: exact(bool);
}

setters! { TimedWindow:
    /// Sets the number of units between two times.
    amount: exact(u32);
    /// Sets the unit.
    unit: exact(TimeUnit);
    /// Sets the path in the payload whose values are collected separately.
    digest_key: into(String);
    /// Sets the calendar times at which the window ends.
    timed: exact(TimedConfig);
    /// Sets whether an end outside the subscriber's schedule moves to its next opening.
    extend_to_schedule: exact(bool);
}

impl From<DigestWindow> for Digest {
    fn from(window: DigestWindow) -> Self {
        Digest::Regular(window)
    }
}

impl From<TimedWindow> for Digest {
    fn from(window: TimedWindow) -> Self {
        Digest::Timed(window)
    }
}

/// Returns a window that ends at the next of these times.
impl From<TimedConfig> for Digest {
    fn from(timed: TimedConfig) -> Self {
        TimedWindow::default().timed(timed).into()
    }
}

#[cfg(test)]
mod tests;
