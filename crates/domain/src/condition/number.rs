//! Numbers, parsed and formatted as in JavaScript.

use std::num::FpCategory;

use jsonlogic_rs::js_op;
use serde_json::Number;

/// Limit up to which `f64` represents every integer exactly: 2^53.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Parses all of `text`. Returns NaN if it is no number.
pub(super) fn from_text(text: &str) -> f64 {
    let text = text.trim();
    // Rust parses more than JavaScript, such as `inf`.
    if numeral(text).len() == text.len() { read(text) } else { f64::NAN }
}

/// Parses the beginning of `text`. Returns NaN if it has no number there.
pub(super) fn from_start(text: &str) -> f64 {
    match numeral(text.trim_start()) {
        "" => f64::NAN,
        numeral => read(numeral),
    }
}

fn read(numeral: &str) -> f64 {
    js_op::str_to_number(numeral).unwrap_or(f64::NAN)
}

// Returns the longest prefix that has the form of a number.
fn numeral(text: &str) -> &str {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = unsigned.strip_prefix("Infinity").unwrap_or_else(|| {
        let rest = after_digits(unsigned);
        let rest = rest.strip_prefix('.').map_or(rest, after_digits);
        after_exponent(rest).unwrap_or(rest)
    });
    text.strip_suffix(rest).unwrap_or(text)
}

fn after_digits(text: &str) -> &str {
    text.trim_start_matches(|character: char| character.is_ascii_digit())
}

fn after_exponent(text: &str) -> Option<&str> {
    let exponent = text.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let rest = after_digits(digits);
    (rest.len() < digits.len()).then_some(rest)
}

/// Returns `number` as a JSON number. Returns `None` if it is not finite.
pub(super) fn json(number: f64) -> Option<Number> {
    whole(number).map(Number::from).or_else(|| Number::from_f64(number))
}

fn whole(number: f64) -> Option<i64> {
    let is_whole = number.fract() == 0.0 && number.abs() <= WHOLE;
    #[expect(clippy::cast_possible_truncation, reason = "there is nothing to cut off")]
    is_whole.then_some(number as i64)
}

/// Returns `number` as a count of `length` items at most. A negative number counts from the end.
pub(super) fn portion(number: f64, length: usize) -> usize {
    let number = whole(number.trunc().clamp(-WHOLE, WHOLE)).unwrap_or(0);
    let count = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    if number < 0 { length.saturating_sub(count) } else { length.min(count) }
}

/// Returns the larger number. Returns NaN if one of them is NaN.
pub(super) fn max(number: f64, other: f64) -> f64 {
    if number.is_nan() || number > other { number } else { other }
}

/// Converts a count into a number.
pub(super) fn count(items: usize) -> f64 {
    f64::from(u32::try_from(items).unwrap_or(u32::MAX))
}

/// Formats a JSON number.
pub(super) fn text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float_text(float),
        _ => number.to_string(),
    }
}

/// Formats a number, which may be NaN or infinite.
pub(super) fn float_text(number: f64) -> String {
    match (number.classify(), number.abs()) {
        (FpCategory::Nan, _) => "NaN".into(),
        (FpCategory::Infinite, _) => format!("{}Infinity", if number < 0.0 { "-" } else { "" }),
        (FpCategory::Zero, _) => "0".into(),
        (_, 1e-6..1e21) => number.to_string(),
        (_, 1.0..) => format!("{number:e}").replace('e', "e+"),
        _ => format!("{number:e}"),
    }
}
