//! Budget of an evaluation.

use serde_json::Value;

use super::{Rule, number};

/// Remaining steps of an evaluation.
///
/// A step is one node of the rule, one value of the data, or 64 bytes of text. It takes well below
/// a microsecond.
#[derive(Debug)]
pub(super) struct Fuel(usize);

/// The evaluation has used its steps, or the data is nested too deeply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exhausted;

impl Fuel {
    /// The steps of an evaluation.
    pub(super) const FULL: Self = Self(Rule::MAX_WORK);

    // Bytes of text that cost one step.
    const TEXT: usize = 64;

    /// Subtracts `steps`.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Exhausted> {
        self.0 = self.0.checked_sub(steps).ok_or(Exhausted)?;
        Ok(())
    }

    /// Subtracts the cost of reading `text`.
    pub(super) fn read(&mut self, text: &str) -> Result<(), Exhausted> {
        self.spend(text.len() / Self::TEXT)
    }

    /// Copies `value` and subtracts the cost.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, Exhausted> {
        self.copy_within(Rule::MAX_DATA_DEPTH, value)
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

    /// Appends `value` to `text`, formatted as in JavaScript, and subtracts the cost.
    pub(super) fn write(&mut self, text: &mut String, value: &Value) -> Result<(), Exhausted> {
        self.write_within(Rule::MAX_DATA_DEPTH, text, value)
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
