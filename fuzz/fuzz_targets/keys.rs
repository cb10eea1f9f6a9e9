//! Any cursor in any list, and how keys sort.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::targets;

fuzz_target!(|bytes: &[u8]| targets::fuzz("keys", bytes));
