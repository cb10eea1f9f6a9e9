//! References of a schema: those that lead back to themselves, and how many are followed.

use std::collections::HashMap;

use serde_json::Value;

const KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

/// Maximum number of references by something else than a pointer or an anchor. Where they lead is not
/// known, and they double 12 times at most.
const MAX_UNKNOWN: usize = 24;

/// A reference, by JSON pointers.
struct Reference {
    uri: String,
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

/// The references that are followed if each is replaced by the schema that it leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Followed {
    /// Their number.
    pub(super) count: usize,
    /// The most of them that are followed one from another.
    pub(super) depth: usize,
}

/// Counts the references that are followed. One that leads back to a schema around it is not.
///
/// The library compiles a schema once for each way that leads to it. References that lead twice to
/// the next one double with each.
pub(super) fn followed(schema: &Value) -> Followed {
    let (mut references, mut anchors) = (Vec::new(), HashMap::new());
    collect(schema, "", &mut references);
    collect_anchors(schema, "", &mut anchors);
    let mut unknown = 0;
    for reference in &mut references {
        match anchors.get(&reference.uri) {
            Some(at) => reference.to.clone_from(at),
            None if reference.to.is_empty() && reference.uri != "#" => unknown += 1,
            None => {}
        }
    }
    if unknown > MAX_UNKNOWN {
        return Followed { count: usize::MAX, depth: usize::MAX };
    }
    Expansion { references: &references, known: HashMap::new() }.of("")
}

/// The references of a schema, and what is followed from some of its parts.
struct Expansion<'r> {
    references: &'r [Reference],
    /// By the pointers of the parts. `None` while one is counted.
    known: HashMap<&'r str, Option<Followed>>,
}

impl<'r> Expansion<'r> {
    // Recurses once for each reference on the way. A schema has room for few thousand.
    fn of(&mut self, pointer: &'r str) -> Followed {
        if let Some(known) = self.known.get(pointer) {
            return known.unwrap_or_default();
        }
        self.known.insert(pointer, None);
        let mut followed = Followed::default();
        for reference in self.references.iter().filter(|reference| reference.is_within(pointer)) {
            let behind = self.of(&reference.to);
            followed.count = followed.count.saturating_add(1).saturating_add(behind.count);
            followed.depth = followed.depth.max(behind.depth + 1);
        }
        self.known.insert(pointer, Some(followed));
        followed
    }
}

// Adds the pointers of the schemas with names, under the references to them.
fn collect_anchors(value: &Value, at: &str, anchors: &mut HashMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(anchor) if ANCHORS.contains(&name.as_str()) => {
                        anchors.insert(format!("#{anchor}"), at.to_owned());
                    }
                    value => collect_anchors(value, &format!("{at}/{}", escaped(name)), anchors),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_anchors(item, &format!("{at}/{index}"), anchors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn collect(value: &Value, at: &str, references: &mut Vec<Reference>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(uri) if KEYWORDS.contains(&name.as_str()) => {
                        let (uri, to) = (uri.clone(), target(uri));
                        references.push(Reference { uri, at: at.to_owned(), to });
                    }
                    value => {
                        collect(value, &format!("{at}/{}", escaped(name)), references);
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
