//! Operations on every entity against a model.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::effort::Effort;
use testkit::entities;

fuzz_target!(|bytes: &[u8]| entities::run(&testkit::decode(bytes), Effort::over(bytes)));
