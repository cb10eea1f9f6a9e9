//! Laws: what holds after any history, and whatever fails meanwhile.
//!
//! `TIDINGS_TEST_SCALE` multiplies how often the tests that roll dice do so, and from 2 on brings back what
//! others leave out, as `TIDINGS_FAULTS=all` brings back calls that do not fail. The histories are those of
//! `testkit`, so that what the fuzzer finds is replayed here.

use proptest::array::uniform24;
use proptest::prelude::*;
use testkit::facade::{Account, Op, Profile, Shape, Which, Who};
use testkit::scaled;
use testkit::{parsed, seeded};

mod all_or_nothing;
mod backends_agree;
mod check;
mod copies;
mod corpus;
mod damage;
mod deletion;
mod explain;
mod fan_out;
mod feed;
mod formats;
mod frozen;
mod full;
mod greed;
mod holds;
mod indexes_agree;
mod isolation;
mod kill;
mod large;
mod leases;
mod lies;
mod linear;
mod listed;
mod long_texts;
mod model;
mod pages;
mod power;
mod preference_case;
mod quarantine;
mod rare;
mod realistic;
mod reentry;
mod repair;
mod sealing;
mod secrets;
mod signatures;
mod spans;
mod stalled;
mod storm;
mod unreadable;
mod wreck;

/// Any call of the facade with any of the inputs that there are.
fn op() -> impl Strategy<Value = Op> {
    let bytes = || uniform24(any::<u8>());
    prop_oneof![
        2 => bytes().prop_map(|bytes| testkit::step(&bytes)),
        1 => bytes().prop_map(|bytes| Op::Ask(None, testkit::step(&bytes))),
        1 => bytes().prop_map(|bytes| Op::Ask(Some(bytes[23]), testkit::step(&bytes))),
        1 => bytes().prop_map(|bytes| Op::Activity(testkit::step(&bytes), bytes[23])),
    ]
}

/// What a history starts with if something is to come of what follows: workflows that can be
/// triggered, integrations that send, and somebody to send to.
fn beginning() -> Vec<Op> {
    let workflow = |which, steps| Op::CreateWorkflow(Which(which), Shape { steps, traits: 0 });
    let integration = |channel| {
        let name = Some(channel);
        Op::CreateIntegration(Account { channel, name, active: true, conditional: false })
    };
    let subscriber = |who| Op::CreateSubscriber(Who(who), Profile(0));
    vec![
        workflow(0, 0),
        workflow(1, 2),
        workflow(2, 3),
        integration(0),
        integration(1),
        subscriber(0),
        subscriber(1),
    ]
}

/// `cases`, as often as the scale says.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(scaled(cases)) }
}
