//! What an evaluation may cost.

use serde_json::Value;

use super::number;

/// What is left to an evaluation, in steps.
///
/// A step is a part of the rule that is evaluated, a value that is looked at or made in passing, or
/// some text that is read or written. It takes well below a microsecond.
#[derive(Debug)]
pub(super) struct Fuel(usize);

/// An evaluation has cost as much as it may, or has met data that is nested too deeply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exhausted;

impl Fuel {
    /// Enough for a rule of the largest size ten times over, or for conditions on each of some
    /// thousand items, and gone in a few milliseconds.
    pub(super) const FULL: Self = Self(50_000);

    // As deep as JSON text can be nested for it to be read.
    const MAX_DEPTH: usize = 128;

    // How many bytes of text make up for a step.
    const TEXT: usize = 64;

    /// Takes away `steps`.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Exhausted> {
        self.0 = self.0.checked_sub(steps).ok_or(Exhausted)?;
        Ok(())
    }

    /// Takes away what it costs to go through `text`.
    pub(super) fn read(&mut self, text: &str) -> Result<(), Exhausted> {
        self.spend(text.len() / Self::TEXT)
    }

    /// A copy of `value`, paid for.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, Exhausted> {
        self.copy_within(Self::MAX_DEPTH, value)
    }

    fn copy_within(&mut self, depth: usize, value: &Value) -> Result<Value, Exhausted> {
        self.spend(1)?;
        let inside = depth.checked_sub(1).ok_or(Exhausted);
        Ok(match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(text) => {
                self.read(text)?;
                value.clone()
            }
            Value::Array(items) => {
                let inside = inside?;
                items.iter().map(|item| self.copy_within(inside, item)).collect::<Result<_, _>>()?
            }
            Value::Object(map) => {
                let inside = inside?;
                let mut copy = |(name, value): (&String, _)| {
                    self.read(name)?;
                    Ok((name.clone(), self.copy_within(inside, value)?))
                };
                Value::Object(map.iter().map(&mut copy).collect::<Result<_, _>>()?)
            }
        })
    }

    /// Writes `value` to the end of `text`, as JavaScript does it.
    pub(super) fn write(&mut self, text: &mut String, value: &Value) -> Result<(), Exhausted> {
        self.write_within(Self::MAX_DEPTH, text, value)
    }

    fn write_within(
        &mut self,
        depth: usize,
        text: &mut String,
        value: &Value,
    ) -> Result<(), Exhausted> {
        self.spend(1)?;
        match value {
            Value::Null => text.push_str("null"),
            Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
            Value::Number(number) => text.push_str(&number::text(number)),
            Value::String(part) => {
                self.read(part)?;
                text.push_str(part);
            }
            Value::Array(items) => {
                let inside = depth.checked_sub(1).ok_or(Exhausted)?;
                for (index, item) in items.iter().enumerate() {
                    text.push_str(if index == 0 { "" } else { "," });
                    if !item.is_null() {
                        self.write_within(inside, text, item)?;
                    }
                }
            }
            Value::Object(_) => text.push_str("[object Object]"),
        }
        Ok(())
    }
}
