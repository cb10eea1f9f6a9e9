//! Any damage of a file and its log.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::effort::Effort;
use testkit::files;

fuzz_target!(|bytes: &[u8]| files::run(&testkit::step(bytes), Effort::over(bytes)));
