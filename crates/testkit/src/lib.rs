//! Common parts of the tests: worlds, stores with planned failures, and histories.
//!
//! Histories and inputs come from bytes. A fuzz target reads the bytes from the fuzzer, a property
//! test from a strategy, a regression test from `fuzz/corpus`; all of them run them here. `.ci/fuzz`
//! looks for new ones. `CONTRIBUTING.md` lists the targets.
//!
//! A failing input belongs in `fuzz/corpus/<target>/`, under a name that names the failure. Targets
//! that take JSON or a record read text too, so a corpus can be written by hand.

use arbitrary::{Arbitrary, Unstructured};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::scale::{is_thorough, scaled};
pub use self::waiting::wait_until;

pub mod child;
pub mod dice;
pub mod disk;
pub mod effort;
pub mod entities;
pub mod facade;
pub mod files;
pub mod filters;
pub mod history;
pub mod holds;
pub mod interposed;
pub mod json;
pub mod keys;
pub mod kill;
pub mod linear;
pub mod model;
pub mod paged;
pub mod postgres;
#[cfg(unix)]
pub mod proxy;
pub mod reads;
pub mod records;
pub mod redb_page;
pub mod requests;
pub mod rules;
pub mod scale;
pub mod schedules;
pub mod sealed;
pub mod seeded;
pub mod segments;
pub mod tables;
pub mod targets;
pub mod templates;
pub mod waiting;
pub mod world;

/// The history that `bytes` stand for, just as the fuzzer reads them.
pub fn decode<Step: for<'a> Arbitrary<'a>>(bytes: &[u8]) -> Vec<Step> {
    Vec::arbitrary_take_rest(Unstructured::new(bytes)).unwrap_or_default()
}

/// The step that `bytes` stand for; those that are missing are zero.
pub fn step<Step: for<'a> Arbitrary<'a>>(bytes: &[u8]) -> Step {
    Step::arbitrary(&mut Unstructured::new(bytes)).expect("numbers and choices are never refused")
}

/// The input or record that `json` describes.
#[track_caller]
pub fn parsed<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("the input is well formed")
}
