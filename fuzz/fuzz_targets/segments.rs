//! Any damage of the activity index.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::effort::Effort;
use testkit::segments;

fuzz_target!(|bytes: &[u8]| segments::run(&testkit::decode(bytes), Effort::over(bytes)));
