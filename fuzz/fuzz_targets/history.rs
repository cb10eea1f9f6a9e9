//! The stores against a model.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::effort::Effort;
use testkit::history;

fuzz_target!(|bytes: &[u8]| history::run(&testkit::decode(bytes), Effort::over(bytes)));
