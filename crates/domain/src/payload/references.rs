//! References of a schema: where they lead, how many are followed, and which lead back to themselves.

use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::json::Object;
use crate::workflow::Workflow;

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];
const IDENTIFIERS: [&str; 2] = ["$id", "id"];

/// A reference, by JSON pointers.
struct Reference {
    /// The pointer of the object with the reference.
    at: String,
    /// The pointer of the schema that it leads to. One that may lead to several places is there once for each.
    to: String,
}

/// Returns the number of references of `schema` by which a value and the values inside of it are
/// checked against the same schema, or an upper bound.
///
/// A payload is checked along at most as many ways for each level of its nesting.
pub(super) fn recursive(schema: &Value) -> usize {
    // More references are not compared with each other.
    const MAX_COMPARED: usize = 100;
    let references = references(schema);
    if references.len() > MAX_COMPARED {
        return references.len();
    }
    references.iter().filter(|reference| reference.is_recursive(&references)).count()
}

/// Returns why the references of `schema` take too much work, or `None` if they do not.
///
/// The library compiles a schema once for each way that leads to it, so that references that lead
/// twice to the next one double with each. It keeps no results for texts and numbers, so that a
/// cycle at the same value is followed along each of its ways.
pub(super) fn problem(schema: &Value) -> Option<String> {
    let most = Workflow::MAX_SCHEMA_REFERENCES;
    let references = references(schema);
    let has_room = references.len() <= most;
    let followed = has_room
        .then(|| Expansion { references: &references, known: HashMap::new() }.of(""))
        .filter(|followed| followed.count <= most && followed.depth <= Object::MAX_DEPTH);
    if followed.is_none() {
        let deepest = Object::MAX_DEPTH;
        return Some(format!(
            "more than {most} references are followed, or more than {deepest} one from another"
        ));
    }
    leads_back_in_place(&references)
        .then(|| "a reference leads back to itself without a step into the payload".to_owned())
}

/// The references that are followed if each is replaced by the schema that it leads to.
#[derive(Clone, Copy, Default)]
struct Followed {
    /// Their number. One that leads back to a schema around it is not followed again.
    count: usize,
    /// The most of them that are followed one from another.
    depth: usize,
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

// Returns `true` if references lead back to one of them, and each is applied to the value that the one before
// it is applied to.
fn leads_back_in_place(references: &[Reference]) -> bool {
    let targets: HashSet<&str> = references.iter().map(|reference| &*reference.to).collect();
    // The targets that each target leads to.
    let mut next: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut entering: HashMap<&str, usize> = HashMap::new();
    for Reference { at, to } in references {
        let ends = at.match_indices('/').map(|(end, _)| end).chain([at.len()]);
        for (target, way) in ends.map(|end| at.split_at(end)) {
            if targets.contains(target) && is_in_place(way) {
                next.entry(target).or_default().push(to);
                *entering.entry(to).or_default() += 1;
            }
        }
    }
    // Targets that nothing leads to are on no cycle, and are removed one after the other.
    let mut open: Vec<_> = next.keys().copied().filter(|at| !entering.contains_key(at)).collect();
    while let Some(target) = open.pop() {
        for to in next.get(target).into_iter().flatten() {
            if let Some(count) = entering.get_mut(to) {
                *count -= 1;
                if *count == 0 {
                    open.push(to);
                }
            }
        }
    }
    entering.values().any(|count| *count > 0)
}

// Returns `true` if a schema is applied to the same value as the schema that has it at `way`, a pointer.
fn is_in_place(way: &str) -> bool {
    let mut segments = way.split('/').skip(1);
    while let Some(keyword) = segments.next() {
        match keyword {
            "not" | "if" | "then" | "else" => {}
            // Their schemas have an index or a name.
            "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => {
                segments.next();
            }
            _ => return false,
        }
    }
    true
}

// Returns the references of a schema, or some more than are allowed.
fn references(schema: &Value) -> Vec<Reference> {
    let (mut names, mut references) = (Names::default(), Vec::new());
    each_text(schema, "", &mut |keyword, text, at| names.add(keyword, text, at));
    each_text(schema, "", &mut |keyword, uri, at| {
        if REFERENCES.contains(&keyword) && references.len() <= Workflow::MAX_SCHEMA_REFERENCES {
            let to = names.targets(uri, at).into_iter();
            references.extend(to.map(|to| Reference { at: at.to_owned(), to }));
        }
    });
    references
}

/// What references name beside pointers.
#[derive(Default)]
struct Names {
    /// Anchors, with the pointers of their schemas.
    anchors: Vec<(String, String)>,
    /// The last segments of the URIs of documents within the schema, with their pointers.
    documents: Vec<(String, String)>,
}

impl Names {
    fn add(&mut self, keyword: &str, text: &str, at: &str) {
        if ANCHORS.contains(&keyword) {
            self.anchors.push((text.to_owned(), at.to_owned()));
        } else if IDENTIFIERS.contains(&keyword) {
            let (document, anchor) = text.split_once('#').unwrap_or((text, ""));
            if !anchor.is_empty() {
                self.anchors.push((anchor.to_owned(), at.to_owned()));
            }
            if !document.is_empty() {
                self.documents.push((last_segment(document).to_owned(), at.to_owned()));
            }
        }
    }

    // Returns the pointers of all schemas that a reference may lead to.
    fn targets(&self, uri: &str, at: &str) -> Vec<String> {
        let (document, fragment) = uri.split_once('#').unwrap_or((uri, ""));
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let named = self.anchors.iter().filter(|(name, _)| *name == fragment);
            return named.map(|(_, pointer)| pointer.clone()).collect();
        }
        let all = || self.documents.iter();
        let is_named = |(name, _): &&(String, String)| name == last_segment(document);
        let documents: Vec<_> = if document.is_empty() {
            all().filter(|(_, pointer)| is_within(at, pointer)).collect()
        } else if all().any(|document| is_named(&document)) {
            return all()
                .filter(is_named)
                .map(|(_, pointer)| format!("{pointer}{fragment}"))
                .collect();
        } else {
            all().collect()
        };
        let pointers =
            documents.into_iter().map(|(_, pointer)| &**pointer).filter(|at| !at.is_empty());
        pointers.chain([""]).map(|pointer| format!("{pointer}{fragment}")).collect()
    }
}

fn last_segment(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or_default()
}

// Calls `found` with each member that is a text: its name, the text, and the pointer of its object.
fn each_text(value: &Value, at: &str, found: &mut impl FnMut(&str, &str, &str)) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) => found(name, text, at),
                    value => {
                        let name = name.replace('~', "~0").replace('/', "~1");
                        each_text(value, &format!("{at}/{name}"), found);
                    }
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_text(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

// Returns `true` if `at` is `pointer`, or the pointer of something within it.
fn is_within(at: &str, pointer: &str) -> bool {
    let rest = at.strip_prefix(pointer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
        is_within(&self.at, pointer)
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
            (json!({ "items": { "$dynamicRef": "#top" }, "$dynamicAnchor": "top" }), 1),
            (json!({ "$id": "urn:list", "items": to("urn:list") }), 1),
            // Another document may be any part.
            (json!({ "items": to("other") }), 1),
        ] {
            assert_eq!(recursive(&schema), expected, "{schema}");
        }
    }

    /// One row per schema: whether a reference leads back to itself at the same value.
    #[test]
    fn a_cycle_without_a_step_into_the_payload_is_a_problem() {
        let to = |uri: &str| json!({ "$ref": uri });
        let defs =
            |a: Value, b: Value| json!({ "items": to("#/$defs/a"), "$defs": { "a": a, "b": b } });
        let inner = |uri: &str| json!({ "$id": "urn:a", "$defs": { "c": { "not": to("#/$defs/d") }, "d": to(uri) } });
        for (schema, is_endless) in [
            (json!({ "allOf": [to("#")] }), true),
            (json!({ "$anchor": "top", "not": to("#top") }), true),
            (json!({ "$id": "#top", "if": to("#top") }), true),
            (json!({ "$id": "https://example.org/top", "oneOf": [to("top")] }), true),
            (
                json!({ "dependentSchemas": { "name": { "$dynamicRef": "#top" } }, "$dynamicAnchor": "top" }),
                true,
            ),
            (json!({ "items": to("#"), "allOf": [{ "properties": { "a": to("#") } }] }), false),
            (defs(json!({ "anyOf": [to("#/$defs/b")] }), json!({ "then": to("#/$defs/a") })), true),
            (
                defs(json!({ "anyOf": [to("#/$defs/b")] }), json!({ "contains": to("#/$defs/a") })),
                false,
            ),
            (defs(to("#/$defs/b"), json!({})), false),
            // A part of a schema refers to that schema, or to itself.
            (defs(json!({ "not": { "else": to("#/$defs/a/not") } }), json!({})), true),
            (
                json!({ "items": to("#/$defs/a%20b"), "$defs": { "a b": { "not": to("#/$defs/a%20b") } } }),
                true,
            ),
            // A pointer starts at the document around it.
            (defs(inner("#/$defs/c"), json!({})), true),
            (defs(inner("#/$defs/e"), json!({})), false),
            (
                json!({ "$id": "urn:b", "allOf": [to("urn:a")], "$defs": { "a": { "$id": "urn:a" } } }),
                false,
            ),
        ] {
            assert_eq!(problem(&schema).is_some(), is_endless, "{schema}");
        }
    }
}
