//! Laws: what holds after any history, and whatever fails meanwhile.
//!
//! `TIDINGS_TEST_SCALE` multiplies how often the tests that roll dice do so. The histories are
//! those of `fuzz/`, so that what the fuzzer finds is replayed here.

use std::env;

use fuzz::facade::{Account, Op, Shape, Which};
use proptest::array::uniform24;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;

mod all_or_nothing;
mod backends_agree;
mod corpus;
mod damage;
mod faulty;
mod formats;
mod indexes_agree;
mod kill;
mod model;
mod seeded;

/// Any call of the facade with any of the inputs that there are.
fn op() -> impl Strategy<Value = Op> {
    uniform24(any::<u8>()).prop_map(|bytes| fuzz::step(&bytes))
}

/// What a history starts with if something is to come of what follows: workflows that can be
/// triggered, and integrations that send.
fn beginning() -> Vec<Op> {
    let workflow = |which, steps| Op::CreateWorkflow(Which(which), Shape { steps, traits: 0 });
    let integration = |channel| {
        Op::CreateIntegration(Account { channel, name: None, active: true, conditional: false })
    };
    vec![workflow(0, 0), workflow(1, 2), workflow(2, 3), integration(0), integration(1)]
}

/// `cases`, as often as the scale says.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases * scale()) }
}

fn scale() -> u32 {
    env::var("TIDINGS_TEST_SCALE").map_or(1, |scale| scale.parse().unwrap())
}

/// The input or record that `json` describes.
#[track_caller]
fn parsed<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}
