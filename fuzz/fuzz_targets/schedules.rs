//! Any schedule and any window or delay, in any time zone and at any instant.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::targets;

fuzz_target!(|bytes: &[u8]| targets::fuzz("schedules", bytes));
