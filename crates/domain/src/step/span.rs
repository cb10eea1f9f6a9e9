//! Spans of time: an amount and a unit.

use std::time::Duration;

use chrono::Months;
use thiserror::Error;

use super::StepDefinition;
use crate::contact::TimeZone;
use crate::error::{Invalid, Reason};
use crate::time::Timestamp;
use crate::vocabulary::TimeUnit;
use crate::zone::{instant, local};

/// Reason why a delay or a window has no end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoEnd {
    /// The value that says the end is absent.
    #[error("`{path}` is required")]
    Missing {
        /// Path of the value, as in `payload.order.due`.
        path: String,
    },
    /// The value that says the end is neither a time nor a span.
    #[error("`{path}` must be {expected}")]
    Malformed {
        /// Path of the value, as in `payload.order.due`.
        path: String,
        /// Expected form.
        expected: &'static str,
    },
    /// The end has passed.
    #[error("the time {at} has passed")]
    Past {
        /// End.
        at: Timestamp,
    },
    /// The end is too far away.
    #[error("the end is more than {max_days} days away")]
    TooFar {
        /// Longest delay or window, in days.
        max_days: u32,
    },
}

impl NoEnd {
    pub(super) const TOO_FAR: Self = Self::TooFar { max_days: StepDefinition::MAX_DAYS };

    pub(super) fn missing(path: impl Into<String>) -> Self {
        Self::Missing { path: path.into() }
    }
}

/// Span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) amount: u32,
    pub(super) unit: TimeUnit,
}

const DAY: u64 = 24 * 60 * 60;

impl Span {
    /// Returns the span of the fields `amount` and `unit` below `place`. A span of 0 needs no unit,
    /// and an absent amount is 0.
    pub(super) fn of(
        amount: Option<u32>,
        unit: Option<TimeUnit>,
        place: &str,
    ) -> Result<Self, NoEnd> {
        match (amount.unwrap_or(0), unit) {
            (0, unit) => Ok(Self { amount: 0, unit: unit.unwrap_or(TimeUnit::Seconds) }),
            (amount, Some(unit)) => Ok(Self { amount, unit }),
            (_, None) => Err(NoEnd::missing(format!("{place}.unit"))),
        }
    }

    /// Returns the time `self` after `start`. Months are those of the calendar in `zone`: a day that
    /// the month does not have is its last one. The other units have a fixed length.
    pub(super) fn after(self, start: Timestamp, zone: TimeZone) -> Result<Timestamp, NoEnd> {
        if self.amount > most(self.unit) {
            return Err(NoEnd::TOO_FAR);
        }
        let Some(seconds) = seconds(self.unit) else {
            let months = local(start, zone).checked_add_months(Months::new(self.amount));
            let end = months.and_then(|end| instant(end, zone)).ok_or(NoEnd::TOO_FAR)?;
            // Clocks may show a time twice, and `start` may be the second one.
            return Ok(if self.amount == 0 { start } else { end });
        };
        let span = Duration::from_secs(seconds * u64::from(self.amount));
        let end = start.after(span);
        if end.since(start) < span { Err(NoEnd::TOO_FAR) } else { Ok(end) }
    }
}

/// Refuses a number of units that is not between 1 and the longest span.
pub(super) fn check_amount(field: &str, amount: u32, unit: TimeUnit) -> Result<(), Invalid> {
    let max = most(unit);
    if (1..=max).contains(&amount) {
        return Ok(());
    }
    Err(Invalid::new(field, Reason::OutOfRange { min: 1, max: max.into() }))
}

/// Returns the number of units in the longest span.
pub(super) fn most(unit: TimeUnit) -> u32 {
    let days = StepDefinition::MAX_DAYS;
    let units = match seconds(unit) {
        Some(seconds) => u64::from(days) * DAY / seconds,
        // The longest years there are.
        None => u64::from(days / 366 * 12),
    };
    u32::try_from(units).unwrap_or(u32::MAX)
}

// Returns the length of a unit, in seconds. Returns `None` for months.
const fn seconds(unit: TimeUnit) -> Option<u64> {
    match unit {
        TimeUnit::Seconds => Some(1),
        TimeUnit::Minutes => Some(60),
        TimeUnit::Hours => Some(60 * 60),
        TimeUnit::Days => Some(DAY),
        TimeUnit::Weeks => Some(7 * DAY),
        TimeUnit::Months => None,
    }
}
