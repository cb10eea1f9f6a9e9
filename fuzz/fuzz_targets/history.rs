//! The stores against a model.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::history::{self, Step};

fuzz_target!(|steps: Vec<Step>| history::run(&steps));
