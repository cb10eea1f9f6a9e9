//! Any JSON as a condition, over any data.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::rules;

fuzz_target!(|bytes: &[u8]| rules::run(&rules::decode(bytes)));
