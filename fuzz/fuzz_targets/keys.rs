//! Any cursor in any list, and how keys sort.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::keys::{self, Case};

fuzz_target!(|case: Case| keys::run(&case));
