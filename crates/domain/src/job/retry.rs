//! When a provider that cannot send right now is tried again.

use std::time::Duration;

/// How often, and at which intervals, a provider that cannot send right now is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often in all.
    pub attempts: u32,
    /// The time between the first try and the second. It doubles with every try.
    pub first_interval: Duration,
}

impl Default for RetryPolicy {
    /// Eight tries within half an hour.
    fn default() -> Self {
        Self { attempts: 8, first_interval: Duration::from_secs(14) }
    }
}

impl RetryPolicy {
    /// How long to wait after the try number `attempts`; nothing if it was the last one.
    /// `jitter`, out of 65 536, takes up to a quarter off, so that what failed together is not
    /// tried together.
    pub fn next(&self, attempts: u32, jitter: u16) -> Option<Duration> {
        if attempts >= self.attempts {
            return None;
        }
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let interval = self.first_interval.saturating_mul(doubled);
        Some(interval.saturating_sub(interval / 4 / (1 << 16) * u32::from(jitter)))
    }
}
