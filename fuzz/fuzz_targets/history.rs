//! The stores against a model.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::targets;

fuzz_target!(|bytes: &[u8]| targets::fuzz("history", bytes));
