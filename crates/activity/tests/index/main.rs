//! The activity index says what the notifications say, after any history and whatever fails.
//!
//! `TIDINGS_TEST_SCALE` multiplies how often the tests that roll dice do so.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use proptest::prelude::ProptestConfig;
use testkit::scaled;

mod damage;
mod faults;
mod full_size;
mod gaps;
mod history;
mod meanwhile;
mod power;
mod sample;
mod spans;
mod threads;
mod wanted;
mod world;

/// `cases`, as often as the scale says.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(scaled(cases)) }
}
