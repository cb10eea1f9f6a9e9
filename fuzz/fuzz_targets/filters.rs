//! Any step filters, over any facts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::filters;

fuzz_target!(|bytes: &[u8]| filters::run(&filters::decode(bytes)));
