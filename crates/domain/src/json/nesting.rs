//! Values that may be nested deeper than the stack allows: they are followed with a list instead of
//! recursion.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Returns `true` if arrays and objects of `value` are nested at most `max` levels deep.
pub(crate) fn is_shallow(value: &Value, max: usize) -> bool {
    depth_within(value, max).is_some()
}

/// Returns the number of levels of arrays and objects. Returns `None` if there are more than `max`.
pub(crate) fn depth_within(value: &Value, max: usize) -> Option<usize> {
    let mut open = vec![(value, 1)];
    let mut deepest = 0;
    while let Some((value, level)) = open.pop() {
        match value {
            Value::Array(_) | Value::Object(_) if level > max => return None,
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(map) => open.extend(map.values().map(|item| (item, level + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
        }
        deepest = deepest.max(level);
    }
    Some(deepest)
}

/// Drops a value level by level. The derived drop would recurse once per level.
pub(crate) fn dismantle(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.into_iter().map(|(_, item)| item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Returns `true` if `value`, as JSON, is nested at most `max` levels deep. The walk ends there.
pub(crate) fn is_nested_within(value: &impl Serialize, max: usize) -> bool {
    let mut writer = Serializer::with_formatter(io::sink(), Levels { left: max });
    // Any other error is found again, with its message, by the conversion that follows.
    !value.serialize(&mut writer).is_err_and(|error| error.is_io())
}

struct Levels {
    left: usize,
}

impl Levels {
    fn enter(&mut self) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::InvalidData)?;
        Ok(())
    }
}

impl Formatter for Levels {
    fn begin_array<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.enter()
    }

    fn end_array<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.left += 1;
        Ok(())
    }

    fn begin_object<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.enter()
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.left += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One row per value: the number of its levels.
    #[test]
    fn levels_are_arrays_and_objects() {
        for (value, levels) in [
            (json!(1), 0),
            (json!([]), 1),
            (json!({}), 1),
            (json!([[], 1, { "a": "b" }]), 2),
            (json!({ "a": [{ "b": [] }], "c": [] }), 4),
        ] {
            assert_eq!(depth_within(&value, 9), Some(levels), "{value}");
            assert_eq!(depth_within(&value, levels), Some(levels), "{value}");
            assert!(is_nested_within(&value, levels), "{value}");
            if let Some(below) = levels.checked_sub(1) {
                assert_eq!(depth_within(&value, below), None, "{value}");
                assert!(!is_nested_within(&value, below), "{value}");
            }
        }
    }
}
