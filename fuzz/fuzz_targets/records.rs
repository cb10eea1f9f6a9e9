//! Any bytes as what a table holds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::effort::Effort;
use testkit::records;

fuzz_target!(|bytes: &[u8]| records::run(records::decode(bytes), Effort::over(bytes)));
