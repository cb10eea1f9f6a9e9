//! Histories, and what holds after each of their steps.
//!
//! A fuzzer makes a history up from bytes, a property test from a strategy, and a regression test
//! reads it from `corpus/`; all of them run it here. To look for new ones:
//!
//! ```text
//! cargo +nightly fuzz run history
//! cargo +nightly fuzz run facade
//! ```
//!
//! A stable compiler does it as well with `RUSTC_BOOTSTRAP=1`. What turns red goes into
//! `corpus/<target>/` under a name that says what it shows.

use arbitrary::{Arbitrary, Unstructured};

pub mod disk;
pub mod facade;
pub mod history;
pub mod tables;

/// The history that `bytes` stand for, just as the fuzzer reads them.
pub fn decode<Step: for<'a> Arbitrary<'a>>(bytes: &[u8]) -> Vec<Step> {
    Vec::arbitrary_take_rest(Unstructured::new(bytes)).unwrap_or_default()
}

/// The step that `bytes` stand for; those that are missing are zero.
pub fn step<Step: for<'a> Arbitrary<'a>>(bytes: &[u8]) -> Step {
    Step::arbitrary(&mut Unstructured::new(bytes)).expect("numbers and choices are never refused")
}
