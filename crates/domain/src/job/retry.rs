//! Retries of failed attempts.

use std::time::Duration;

/// Number and intervals of the attempts to send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Maximum number of attempts. A fallback takes over at once if an integration has failed twice, or cannot send.
    /// A fallback that takes over after the last attempt has one more attempt.
    pub attempts: u32,
    /// Interval between the first attempt and the second. It doubles with every attempt, up to the longest one.
    pub first_interval: Duration,
    /// Longest interval between two attempts: an hour by default. A longer first interval stays as it is.
    pub longest_interval: Duration,
}

const HOUR: Duration = Duration::from_secs(60 * 60);

impl Default for RetryPolicy {
    /// Eight attempts within half an hour.
    fn default() -> Self {
        Self::new(8, Duration::from_secs(14))
    }
}

impl RetryPolicy {
    /// Returns the policy of so many [`attempts`](Self::attempts). The second attempt follows the first after
    /// `first_interval`.
    ///
    /// ```
    /// # extern crate tidings_domain as tidings;
    /// use std::time::Duration;
    /// use tidings::job::RetryPolicy;
    ///
    /// let policy = RetryPolicy::new(3, Duration::from_secs(60));
    /// assert_eq!(policy.attempts, 3);
    /// ```
    pub const fn new(attempts: u32, first_interval: Duration) -> Self {
        Self { attempts, first_interval, longest_interval: HOUR }
    }

    /// Sets the longest interval between two attempts.
    ///
    /// ```
    /// # extern crate tidings_domain as tidings;
    /// use std::time::Duration;
    /// use tidings::job::RetryPolicy;
    ///
    /// // For two days: after 14 seconds, 28, 56 and so on, and then every four hours.
    /// let policy = RetryPolicy::new(22, Duration::from_secs(14));
    /// let policy = policy.longest_interval(Duration::from_secs(4 * 60 * 60));
    /// # assert_eq!(policy.longest_interval.as_secs(), 14_400);
    /// ```
    #[must_use]
    pub const fn longest_interval(self, longest_interval: Duration) -> Self {
        Self { longest_interval, ..self }
    }

    /// Returns the wait after the attempt number `attempts`. Returns `None` if it was the last one.
    /// `jitter`, out of 65,536, shortens the wait by up to a quarter, so that simultaneous failures
    /// spread out.
    #[doc(hidden)]
    pub fn next(&self, attempts: u32, jitter: u16) -> Option<Duration> {
        if attempts >= self.attempts {
            return None;
        }
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let longest = self.longest_interval.max(self.first_interval);
        let interval = self.first_interval.saturating_mul(doubled).min(longest);
        Some(interval.saturating_sub(interval / 4 / (1 << 16) * u32::from(jitter)))
    }
}
