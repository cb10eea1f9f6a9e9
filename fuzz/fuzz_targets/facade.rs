//! The facade over one store against the facade over the other.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::facade::{self, Op};

fuzz_target!(|ops: Vec<Op>| facade::run(&ops));
