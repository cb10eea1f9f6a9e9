//! Throttles: steps that let a limited number of events pass.

use serde::{Deserialize, Serialize};

use super::delay::{dynamic_end, within_reach};
use super::digest::check_span;
use super::lookup::{self, EventKey};
use super::span::{NoEnd, Span};
use crate::contact::TimeZone;
use crate::error::{Invalid, Reason};
use crate::json::{Object, shape};
use crate::setters::setters;
use crate::time::Timestamp;
use crate::vocabulary::{TimeUnit, wire_enum};

/// Limit of a throttle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Throttle {
    /// Number of units in a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    /// Unit. Months are those of the calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    /// Path in the payload of the window, in place of `amount` and `unit`: its end in ISO 8601, or
    /// an object with `amount` and `unit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic_key: Option<String>,
    /// Type of the window. If absent, fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_type: Option<ThrottleWindow>,
    /// Number of events that pass in a window. If absent, 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u32>,
    /// Path in the payload whose values are counted separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle_key: Option<String>,
}

shape! { Throttle {
    "amount": amount, "unit": unit, "dynamicKey": dynamic_key, "windowType": window_type,
    "threshold": threshold, "throttleKey": throttle_key,
} }

wire_enum! {
    /// Type of a throttle's window: a `fixed` one starts with the first event that passes, a
    /// `sliding` one with each of them.
    ThrottleWindow, "windowType":
    Fixed = "fixed",
    Sliding = "sliding",
}

/// Place in a window of a throttle, taken by an event that has passed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slot {
    /// Time from which on the slot does not count any more, and may be removed.
    pub until: Timestamp,
}

/// What a throttle does with an event.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The event passes and takes this slot. A window in the payload may be over: its slot is free at once.
    Admitted(Slot),
    /// The event does not pass.
    Refused {
        /// First time at which an event can pass.
        until: Timestamp,
    },
}

impl Throttle {
    /// Largest number of events that pass in a window.
    pub const MAX_THRESHOLD: u32 = 10_000;

    /// Returns a throttle that lets one event pass per `amount` units: `Throttle::per(1, TimeUnit::Hours)`
    /// is one an hour, and with `threshold(50)` up to 50.
    pub fn per(amount: u32, unit: TimeUnit) -> Self {
        Self { amount: Some(amount), unit: Some(unit), ..Self::default() }
    }

    /// Returns a throttle whose window is in the payload at `dynamic_key`: its end, or its `amount`
    /// and `unit`.
    pub fn dynamic(dynamic_key: impl Into<String>) -> Self {
        Self { dynamic_key: Some(dynamic_key.into()), ..Self::default() }
    }

    /// Refuses amounts, units and paths that are absent or invalid.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        if let Some(key) = &self.throttle_key {
            lookup::check_path("throttleKey", key)?;
        }
        if self.threshold.is_some_and(|threshold| !(1..=Self::MAX_THRESHOLD).contains(&threshold)) {
            let reason = Reason::OutOfRange { min: 1, max: Self::MAX_THRESHOLD.into() };
            return Err(Invalid::new("threshold", reason));
        }
        match &self.dynamic_key {
            None => check_span(("amount", self.amount), ("unit", self.unit)),
            Some(_) if self.amount.is_some() || self.unit.is_some() => {
                Err(Invalid::new("dynamicKey", Reason::Excludes { other: "amount".into() }))
            }
            Some(path) => lookup::check_path("dynamicKey", path),
        }
    }

    /// Returns the number of events that pass in a window.
    #[doc(hidden)]
    pub fn limit(&self) -> u32 {
        self.threshold.unwrap_or(1).max(1)
    }

    /// Returns what the throttle does with an event at `now`. `slots` are those of the events with
    /// the same key, in any order.
    #[doc(hidden)]
    pub fn admit(
        &self,
        slots: &[Slot],
        now: Timestamp,
        payload: &Object,
        zone: TimeZone,
    ) -> Result<Admission, NoEnd> {
        let mut taken: Vec<_> =
            slots.iter().map(|slot| slot.until).filter(|until| now < *until).collect();
        taken.sort_unstable();
        let threshold = self.limit() as usize;
        // A place is free when fewer than `threshold` slots are left.
        let leaving = taken.len().checked_sub(threshold).and_then(|last| taken.get(last));
        if let Some(until) = leaving {
            return Ok(Admission::Refused { until: *until });
        }
        let until = match (self.window_type.unwrap_or(ThrottleWindow::Fixed), taken.first()) {
            // All slots of a fixed window end with it.
            (ThrottleWindow::Fixed, Some(end)) => *end,
            (ThrottleWindow::Fixed, None) | (ThrottleWindow::Sliding, _) => {
                self.window_end(now, payload, zone)?
            }
        };
        Ok(Admission::Admitted(Slot { until }))
    }

    fn window_end(
        &self,
        now: Timestamp,
        payload: &Object,
        zone: TimeZone,
    ) -> Result<Timestamp, NoEnd> {
        let end = match &self.dynamic_key {
            Some(path) => dynamic_end(payload, path, now, zone)?,
            None => Span::of(self.amount, self.unit, "metadata")?.after(now, zone)?,
        };
        within_reach(end, now)?;
        Ok(end)
    }

    /// Returns the key of an event with this `payload`: events with equal keys are counted together.
    #[doc(hidden)]
    pub fn event_key(&self, payload: &Object) -> EventKey {
        EventKey::of(self.throttle_key.as_deref(), payload)
    }
}

setters! { Throttle:
    /// Sets the type of the window.
    window_type: exact(ThrottleWindow);
    /// Sets the number of events that pass in a window.
    threshold: exact(u32);
    /// Sets the path in the payload whose values are counted separately.
    throttle_key: into(String);
}

#[cfg(test)]
mod tests;
