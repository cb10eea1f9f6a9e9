//! The stores cannot be told apart, nor from a model that is obviously right.

use proptest::array::uniform24;
use proptest::collection::vec;
use proptest::prelude::*;
use testkit::effort::Effort;
use testkit::history::{self, End, Op, Step};
use testkit::postgres::Server;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::scaled(64)))]

    #[test]
    fn after_any_history(steps in vec(step(), 0..12)) {
        history::run(&steps, Effort::Full);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::scaled(8)))]

    #[test]
    fn on_a_server_after_any_history(steps in vec(step(), 0..12)) {
        if let Some(server) = Server::wanted() {
            history::run_on_a_server(&steps, &server.place());
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![
        5 => Just(End::Commit),
        1 => Just(End::Abort),
        1 => Just(End::Fail),
        1 => Just(End::Panic),
    ];
    prop_oneof![
        12 => (vec(op(), 0..12), end).prop_map(|(ops, end)| Step::Write(ops, end)),
        1 => Just(Step::Reopen),
        1 => Just(Step::Restart),
    ]
}

/// Few tables and few keys, so that they meet.
pub fn op() -> impl Strategy<Value = Op> {
    uniform24(any::<u8>()).prop_map(|bytes| testkit::step(&bytes))
}
