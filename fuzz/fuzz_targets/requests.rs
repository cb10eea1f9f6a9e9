//! Any JSON as the request of any operation.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::effort::Effort;
use testkit::requests;

fuzz_target!(|bytes: &[u8]| requests::run(&requests::decode(bytes), Effort::over(bytes)));
