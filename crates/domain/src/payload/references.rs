//! References of a schema that lead back to themselves.

use serde_json::Value;

const KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A reference, by JSON pointers.
struct Reference {
    /// The pointer of the object with the reference.
    at: String,
    /// The pointer of the schema that it leads to.
    to: String,
}

/// Returns the number of references of `schema` by which a value and the values inside of it are
/// checked against the same schema, or an upper bound.
///
/// A payload is checked along at most as many ways for each level of its nesting.
pub(super) fn recursive(schema: &Value) -> usize {
    // More references are not compared with each other.
    const MAX_COMPARED: usize = 100;
    let mut references = Vec::new();
    collect(schema, "", &mut references);
    if references.len() > MAX_COMPARED {
        return references.len();
    }
    references.iter().filter(|reference| reference.is_recursive(&references)).count()
}

fn collect(value: &Value, at: &str, references: &mut Vec<Reference>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(uri) if KEYWORDS.contains(&name.as_str()) => {
                        references.push(Reference { at: at.to_owned(), to: target(uri) });
                    }
                    value => {
                        let name = name.replace('~', "~0").replace('/', "~1");
                        collect(value, &format!("{at}/{name}"), references);
                    }
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{at}/{index}"), references);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the pointer that `uri` consists of, or that of the whole schema if it names its target
/// in another way.
fn target(uri: &str) -> String {
    let pointer = uri.strip_prefix('#').filter(|pointer| pointer.starts_with('/'));
    pointer.filter(|pointer| !pointer.contains('%')).unwrap_or_default().to_owned()
}

impl Reference {
    fn is_recursive(&self, references: &[Reference]) -> bool {
        let mut open = vec![self];
        let mut seen = vec![false; references.len()];
        while let Some(from) = open.pop() {
            for (reference, seen) in references.iter().zip(&mut seen) {
                if !*seen && reference.is_within(&from.to) {
                    if reference.at == self.at {
                        return true;
                    }
                    *seen = true;
                    open.push(reference);
                }
            }
        }
        false
    }

    fn is_within(&self, pointer: &str) -> bool {
        let rest = self.at.strip_prefix(pointer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One row per schema: the number of references that lead back to themselves.
    #[test]
    fn references_on_a_cycle_are_counted() {
        let to = |uri: &str| json!({ "$ref": uri });
        for (schema, expected) in [
            (json!({}), 0),
            (json!({ "properties": { "a": to("#/$defs/a") }, "$defs": { "a": {} } }), 0),
            (json!({ "properties": { "next": to("#") } }), 1),
            (json!({ "anyOf": [{ "items": to("#") }, { "properties": { "a": to("#") } }] }), 2),
            // The way in is not on the cycle, and `ab` does not lie within `a`.
            (
                json!({ "items": to("#/$defs/ab"), "$defs": { "a": {}, "ab": { "not": to("#/$defs/ab") } } }),
                1,
            ),
            (json!({ "$defs": { "a": to("#/$defs/b"), "b": { "items": to("#/$defs/a") } } }), 2),
            (json!({ "$defs": { "a": to("#/$defs/b"), "b": { "items": to("#/$defs/c") } } }), 0),
            (json!({ "$defs": { "a/b": { "items": to("#/$defs/a~1b") } } }), 1),
            // A name may lead to any place.
            (json!({ "$anchor": "top", "items": to("#top") }), 1),
            (json!({ "items": { "$dynamicRef": "#top" } }), 1),
        ] {
            assert_eq!(recursive(&schema), expected, "{schema}");
        }
    }
}
