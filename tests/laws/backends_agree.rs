//! The engine over memory and the engine over redb cannot be told apart, and neither can two runs.

use proptest::collection::vec;
use proptest::prelude::*;
use testkit::effort::Effort;
use testkit::facade::{self, Process};
use testkit::tables::dump;
use testkit::world::Backend;

use crate::{beginning, cases, op};

proptest! {
    #![proptest_config(cases(16))]

    /// Also when the file is opened again in between, and after the process was killed.
    #[test]
    fn after_any_history(ops in vec(op(), 0..40)) {
        facade::run(&[beginning(), ops].concat(), Effort::Full);
    }

    #[test]
    fn the_same_seed_and_the_same_history_give_the_same_bytes(ops in vec(op(), 0..40)) {
        let run = || {
            let mut process = Process::in_memory();
            let answers: Vec<_> = beginning().iter().chain(&ops).map(|op| process.run(*op)).collect();
            (answers, dump(&process.world.store))
        };
        prop_assert!(run() == run(), "{ops:?} runs differently the second time");
    }
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn on_a_server_after_any_history(ops in vec(op(), 0..40)) {
        if let Some(backend) = Backend::on_a_server() {
            facade::run_beside(Process::on(backend), &[beginning(), ops].concat(), Effort::Full);
        }
    }
}
