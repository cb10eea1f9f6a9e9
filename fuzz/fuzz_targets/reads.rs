//! Any text as a request or a query of any kind.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::targets;

fuzz_target!(|bytes: &[u8]| targets::fuzz("reads", bytes));
