//! Any text as a request or a query of any kind.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::effort::Effort;
use testkit::reads;

fuzz_target!(|bytes: &[u8]| reads::run(bytes, Effort::over(bytes)));
