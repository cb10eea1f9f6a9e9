//! Values of an evaluation, and their conversions as in JavaScript.

use std::borrow::Cow;
use std::cmp::Ordering;

use jsonlogic_rs::js_op;
use serde_json::Value;

use super::fuel::{Exhausted, Fuel};
use super::number;

/// Value from the rule or the data, or an intermediate result.
#[derive(Debug)]
pub(super) enum Datum<'v> {
    /// JSON value.
    Json(Cow<'v, Value>),
    /// Number that JSON cannot express. As `null`, the next comparison would convert it to 0.
    NotFinite(f64),
}

static NULL: Value = Value::Null;

impl Datum<'_> {
    pub(super) const NULL: Datum<'static> = Datum::Json(Cow::Owned(Value::Null));

    /// Returns the value as JSON: `null` for a number that is not finite.
    pub(super) fn json(&self) -> &Value {
        match self {
            Self::Json(value) => value,
            Self::NotFinite(_) => &NULL,
        }
    }

    /// Returns the value as owned JSON.
    pub(super) fn into_json(self, fuel: &mut Fuel) -> Result<Value, Exhausted> {
        match self {
            Self::Json(Cow::Owned(value)) => Ok(value),
            Self::Json(Cow::Borrowed(value)) => fuel.copy(value),
            Self::NotFinite(_) => Ok(Value::Null),
        }
    }

    /// Returns the items of an array, and none for any other value.
    pub(super) fn items(&self) -> &[Value] {
        self.json().as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns `true` if the value is `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Json(value) if value.is_null())
    }

    /// Returns `true` if the value is truthy. Unlike in JavaScript, an empty array is not.
    pub(super) fn is_truthy(&self) -> bool {
        match self {
            Self::NotFinite(number) => !number.is_nan(),
            Self::Json(value) => match &**value {
                Value::Null => false,
                Value::Bool(flag) => *flag,
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(_) => true,
            },
        }
    }

    /// Converts the value into a number.
    pub(super) fn number(&self, fuel: &mut Fuel) -> Result<f64, Exhausted> {
        match self {
            Self::NotFinite(number) => Ok(*number),
            Self::Json(value) => match &**value {
                Value::String(_) | Value::Array(_) => {
                    self.text(fuel).map(|text| number::from_text(&text))
                }
                value => Ok(js_op::to_number(value).unwrap_or(f64::NAN)),
            },
        }
    }

    /// Returns the number at the beginning of the value's text.
    pub(super) fn leading_number(&self, fuel: &mut Fuel) -> Result<f64, Exhausted> {
        match self.json() {
            Value::Number(_) => self.number(fuel),
            _ => self.text(fuel).map(|text| number::from_start(&text)),
        }
    }

    /// Converts the value into a text.
    pub(super) fn text(&self, fuel: &mut Fuel) -> Result<Cow<'_, str>, Exhausted> {
        match self {
            Self::NotFinite(number) => Ok(number::float_text(*number).into()),
            Self::Json(value) => match &**value {
                Value::String(text) => fuel.read(text).map(|()| text.into()),
                value => {
                    let mut text = String::new();
                    fuel.write(&mut text, value)?;
                    Ok(text.into())
                }
            },
        }
    }

    /// Returns `true` if the two are strictly equal, as by JavaScript's `===`.
    pub(super) fn is(&self, other: &Datum<'_>, fuel: &mut Fuel) -> Result<bool, Exhausted> {
        match (self, other) {
            (Self::Json(value), Datum::Json(other)) => same(value, other, fuel),
            (Self::NotFinite(number), Datum::NotFinite(other)) => Ok(equal(*number, *other)),
            (Self::Json(_), Datum::NotFinite(_)) | (Self::NotFinite(_), Datum::Json(_)) => {
                Ok(false)
            }
        }
    }

    /// Returns `true` if the two are loosely equal, as by JavaScript's `==`.
    pub(super) fn equals(&self, other: &Datum<'_>, fuel: &mut Fuel) -> Result<bool, Exhausted> {
        use Value::{Array, Bool, Null, Number, Object, String};
        let (Self::Json(value), Datum::Json(other_value)) = (self, other) else {
            return Ok(equal(self.number(fuel)?, other.number(fuel)?));
        };
        match (&**value, &**other_value) {
            (Null, _)
            | (_, Null)
            | (String(_), String(_))
            | (Array(_) | Object(_), Array(_) | Object(_)) => same(value, other_value, fuel),
            (String(_), Array(_) | Object(_)) | (Array(_) | Object(_), String(_)) => {
                Ok(self.text(fuel)? == other.text(fuel)?)
            }
            (Bool(_) | Number(_), _) | (_, Bool(_) | Number(_)) => {
                Ok(equal(self.number(fuel)?, other.number(fuel)?))
            }
        }
    }

    /// Returns the order of the two. Returns `None` if they cannot be compared.
    pub(super) fn order(
        &self,
        other: &Datum<'_>,
        fuel: &mut Fuel,
    ) -> Result<Option<Ordering>, Exhausted> {
        if self.is_textual() && other.is_textual() {
            return Ok(Some(self.text(fuel)?.cmp(&other.text(fuel)?)));
        }
        Ok(self.number(fuel)?.partial_cmp(&other.number(fuel)?))
    }

    /// Returns `true` if the value is a part of the text `whole`, or an item of the array `whole`.
    pub(super) fn is_in(&self, whole: &Datum<'_>, fuel: &mut Fuel) -> Result<bool, Exhausted> {
        if let Value::String(whole) = whole.json() {
            fuel.read(whole)?;
            return Ok(!whole.is_empty() && whole.contains(&*self.text(fuel)?));
        }
        let Self::Json(value) = self else { return Ok(false) };
        for item in whole.items() {
            fuel.spend(1)?;
            if same(value, item, fuel)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    // Arrays and objects are compared as texts.
    fn is_textual(&self) -> bool {
        matches!(
            self,
            Self::Json(value)
                if matches!(&**value, Value::String(_) | Value::Array(_) | Value::Object(_))
        )
    }
}

// Objects and arrays equal only themselves. `js_op` compares their addresses.
fn same(value: &Value, other: &Value, fuel: &mut Fuel) -> Result<bool, Exhausted> {
    if let (Value::String(text), Value::String(_)) = (value, other) {
        fuel.read(text)?;
    }
    Ok(js_op::strict_eq(value, other))
}

fn equal(number: f64, other: f64) -> bool {
    number.partial_cmp(&other).is_some_and(Ordering::is_eq)
}

impl<'v> From<&'v Value> for Datum<'v> {
    fn from(value: &'v Value) -> Self {
        Self::Json(Cow::Borrowed(value))
    }
}

impl From<Value> for Datum<'_> {
    fn from(value: Value) -> Self {
        Self::Json(Cow::Owned(value))
    }
}

impl From<bool> for Datum<'_> {
    fn from(flag: bool) -> Self {
        Value::Bool(flag).into()
    }
}

impl From<f64> for Datum<'_> {
    fn from(number: f64) -> Self {
        number::json(number).map_or(Self::NotFinite(number), |number| Value::Number(number).into())
    }
}
