//! Functions in place of operators that enlarge values.

use std::fmt::{self, Write};

use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{AutoEscape, Error, State};

use super::budget::{self, keep, left, refusal, spend, too_large};
use super::{missing, places, texts};

/// `a ~ b`: the texts of all values. `null` is an empty text. Beside markup, other texts are escaped.
pub(super) fn concat(state: &mut State<'_, '_>, values: Rest<Value>) -> Result<Value, Error> {
    let values = texts::settled(&values)?;
    let has_markup = has_markup(state, &values);
    let mut text = Text { text: String::new(), max: left(state) };
    for value in values.iter().filter(|value| !value.is_none()) {
        let missing = missing::in_place_of(state, value).transpose()?.map(Value::from);
        let value = missing.as_ref().unwrap_or(value);
        let written = if has_markup {
            text.write_str(&state.format(value.clone())?)
        } else {
            write!(text, "{value}")
        };
        written.map_err(|_| too_large())?;
    }
    spend(state, text.text.len())?;
    Ok(made(text.text, has_markup))
}

// Returns `true` if HTML is rendered, and one of the values is markup.
fn has_markup(state: &State<'_, '_>, values: &[Value]) -> bool {
    matches!(state.auto_escape(), AutoEscape::Html) && values.iter().any(Value::is_safe)
}

fn made(text: String, is_markup: bool) -> Value {
    if is_markup { Value::from_safe_string(text) } else { Value::from(text) }
}

/// `a + b`: a sum of numbers, or a concatenation of texts or lists.
pub(super) fn add(state: &mut State<'_, '_>, values: Rest<Value>) -> Result<Value, Error> {
    fold(state, &values, sum)
}

/// `a * b`: a product of numbers, or a repeated text.
pub(super) fn multiply(state: &mut State<'_, '_>, values: Rest<Value>) -> Result<Value, Error> {
    fold(state, &values, product)
}

/// `[a, b]`: a list.
pub(super) fn list(state: &mut State<'_, '_>, values: Rest<Value>) -> Result<Value, Error> {
    keep(state, Value::from(values.0))
}

/// `{a: b}`: a map.
pub(super) fn map(state: &mut State<'_, '_>, values: Rest<Value>) -> Result<Value, Error> {
    let pairs = values.as_chunks::<2>().0.iter().map(|[key, value]| (key.clone(), value.clone()));
    keep(state, Value::from_pairs(pairs))
}

/// Returns the value. Refuses one that is too large.
pub(super) fn kept(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    keep(state, value)
}

/// Returns the operand of a comparison. Refuses one that takes too long to read.
pub(super) fn read(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    budget::read(state, std::slice::from_ref(&value))?;
    Ok(value)
}

/// `a[b]`: the item. Undefined if there is none. `a[b:c]` and `a[b:c:d]`: the slice.
pub(super) fn item(
    state: &mut State<'_, '_>,
    value: Value,
    keys: Rest<Value>,
) -> Result<Value, Error> {
    match keys.as_slice() {
        [key] => item_at(state, value, key),
        bounds => places::slice(state, &texts::settle(&value)?, bounds),
    }
}

fn item_at(state: &mut State<'_, '_>, value: Value, key: &Value) -> Result<Value, Error> {
    if value.kind() == ValueKind::Iterable {
        budget::read(state, std::slice::from_ref(&value))?;
    }
    if value.is_undefined() {
        return Ok(value);
    }
    budget::read_texts(state, &[value.clone(), key.clone()])?;
    value.get_item(key)
}

type Operator = fn(&mut State<'_, '_>, &Value, &Value) -> Result<Value, Error>;

// Applies an operator to `values`, from left to right.
fn fold(state: &mut State<'_, '_>, values: &[Value], join: Operator) -> Result<Value, Error> {
    let values = texts::settled(values)?;
    let Some((first, others)) = values.split_first() else { return Ok(Value::UNDEFINED) };
    others.iter().try_fold(first.clone(), |left, right| join(state, &left, right))
}

fn sum(state: &mut State<'_, '_>, a: &Value, b: &Value) -> Result<Value, Error> {
    if let Some(sum) = arithmetic(a, b, i128::checked_add, |a, b| a + b) {
        return sum;
    }
    if a.as_str().is_some() && b.as_str().is_some() {
        return concat(state, Rest(vec![a.clone(), b.clone()]));
    }
    if is_list(a) && is_list(b) {
        let [a, b] = [a, b].map(|list| keep(state, list.clone()));
        let items = a?.try_iter()?.chain(b?.try_iter()?);
        return Ok(Value::from(items.collect::<Vec<_>>()));
    }
    Err(impossible('+', a, b))
}

fn product(state: &mut State<'_, '_>, a: &Value, b: &Value) -> Result<Value, Error> {
    if let Some(product) = arithmetic(a, b, i128::checked_mul, |a, b| a * b) {
        return product;
    }
    let (text, times) = if a.as_str().is_some() { (a, b) } else { (b, a) };
    match (text.as_str(), times.as_usize()) {
        (Some(text), Some(times)) => {
            spend(state, text.len().saturating_mul(times))?;
            Ok(Value::from(text.repeat(times)))
        }
        _ => Err(impossible('*', a, b)),
    }
}

// Returns `None` unless both are numbers or booleans.
fn arithmetic(
    a: &Value,
    b: &Value,
    whole: impl FnOnce(i128, i128) -> Option<i128>,
    real: impl FnOnce(f64, f64) -> f64,
) -> Option<Result<Value, Error>> {
    let (a, b) = (number(a), number(b));
    if a.kind() != ValueKind::Number || b.kind() != ValueKind::Number {
        return None;
    }
    if a.is_integer() && b.is_integer() {
        let (a, b) = (i128::try_from(a).ok()?, i128::try_from(b).ok()?);
        let result = whole(a, b).ok_or_else(|| refusal("a number is too large"));
        return Some(result.map(|number| i64::try_from(number).map_or(number.into(), Value::from)));
    }
    let (a, b) = (f64::try_from(a).ok()?, f64::try_from(b).ok()?);
    Some(Ok(Value::from(real(a, b))))
}

/// `a is divisibleby b`. Zero divides no number.
pub(super) fn is_divisible(a: &Value, b: &Value) -> bool {
    let whole = |a: i128, b: i128| Some(i128::from(b != 0 && a.wrapping_rem(b) == 0));
    let real = |a: f64, b: f64| f64::from(u8::from(a % b == 0.0));
    matches!(arithmetic(a, b, whole, real), Some(Ok(divisible)) if divisible.is_true())
}

// Returns `true` or `false` as 1 or 0.
fn number(value: &Value) -> Value {
    match value.kind() {
        ValueKind::Bool => Value::from(i64::from(value.is_true())),
        _ => value.clone(),
    }
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn impossible(operator: char, a: &Value, b: &Value) -> Error {
    refusal(format!("`{operator}` does not go with {} and {}", a.kind(), b.kind()))
}

// Text with a maximum length.
struct Text {
    text: String,
    max: usize,
}

impl Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.text.len() + more.len() > self.max {
            return Err(fmt::Error);
        }
        self.text.push_str(more);
        Ok(())
    }
}
