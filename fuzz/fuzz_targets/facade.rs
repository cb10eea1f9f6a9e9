//! The facade over one store against the facade over the other.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::effort::Effort;
use testkit::facade;

fuzz_target!(|bytes: &[u8]| facade::run(&testkit::decode(bytes), Effort::over(bytes)));
