//! How often tests roll dice, and how long they work.

use std::env;
use std::fmt::Debug;
use std::ops::Mul;
use std::str::FromStr;

/// Returns `true` if `TIDINGS_TEST_SCALE` is more than 1.
///
/// # Panics
///
/// If the variable is not a number.
pub fn is_thorough() -> bool {
    scaled(1_u64) > 1
}

/// This number, multiplied by `TIDINGS_TEST_SCALE` if that is set.
///
/// # Panics
///
/// If the variable is not a number.
pub fn scaled<N: Mul<Output = N> + FromStr<Err: Debug>>(number: N) -> N {
    match env::var("TIDINGS_TEST_SCALE") {
        Ok(scale) => number * scale.parse().expect("the scale is a number"),
        Err(_) => number,
    }
}
