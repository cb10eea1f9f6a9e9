//! How long a call tries again.

use std::thread;
use std::time::{Duration, Instant};

/// First pause between two tries. Each further one is twice as long.
const FIRST: Duration = Duration::from_millis(2);

const LONGEST: Duration = Duration::from_millis(500);

/// The time that is left for further tries.
#[derive(Debug)]
pub(crate) struct Patience {
    until: Option<Instant>,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(time: Duration) -> Self {
        Self { until: Instant::now().checked_add(time), pause: FIRST }
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
