//! Trying again, for a limited time and with growing pauses.

use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// First pause between two tries. Each further one is twice as long.
const FIRST: Duration = Duration::from_millis(2);

const LONGEST: Duration = Duration::from_millis(500);

/// Number of tries without a pause after stale reads. Further ones have pauses: two servers behind one address
/// contradict each other each time.
const STALE: u32 = 16;

/// The further tries that an operation may make.
#[derive(Debug)]
pub(crate) struct Retry {
    until: Option<Instant>,
    pause: Duration,
    /// Number of tries without a pause that are left.
    stale: u32,
}

impl Retry {
    pub(crate) fn new(time: Duration) -> Self {
        Self { until: Instant::now().checked_add(time), pause: FIRST, stale: STALE }
    }

    /// The end of the tries. Returns `None` if there is no end.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Calls `attempt` until it returns a result, a failure that another try would meet again, or the last
    /// failure before `time` is over.
    pub(crate) fn within<T>(
        time: Duration,
        mut attempt: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut retry = Self::new(time);
        loop {
            match attempt() {
                Err(failure) if retry.goes_on(&failure) => {}
                result => return result,
            }
        }
    }

    /// Waits before another try, unless it should be made at once. Returns `false` if there is no time left for
    /// one, or if it would fail again.
    pub(crate) fn goes_on(&mut self, failure: &Failure) -> bool {
        if failure.is_stale() && self.stale > 0 {
            self.stale -= 1;
            return true;
        }
        failure.may_go_on() && self.wait()
    }

    /// Waits before another try. Returns `false` if there is no time left for one.
    pub(crate) fn wait(&mut self) -> bool {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return false;
        }
        // Of two that were in each other's way, one comes first the next time.
        thread::sleep(self.pause / 2 + self.pause.mul_f64(share() / 2.0));
        self.pause = self.pause.saturating_mul(2).min(LONGEST);
        true
    }
}

/// A random number from 0 to 1.
fn share() -> f64 {
    f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stale_each_time_is_not_tried_for_ever() {
        let mut retry = Retry::new(Duration::from_millis(20));
        let tries = (0..10_000).take_while(|_| retry.goes_on(&Failure::stale())).count();
        assert!((16..100).contains(&tries), "{tries}");
    }
}
