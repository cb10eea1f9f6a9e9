//! Waiting for other threads, processes and servers.

use std::thread;
use std::time::{Duration, Instant};

/// Time in which what a test waits for has to happen, on the busiest machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
///
/// # Panics
///
/// If it does not hold within [`PATIENCE`].
#[track_caller]
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "this has not happened in {PATIENCE:?}");
        thread::sleep(Duration::from_millis(1));
    }
}
