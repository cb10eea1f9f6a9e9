//! References of a schema: where they lead, how many are followed, and which lead back to themselves.

use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::json::Object;
use crate::workflow::Workflow;

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// Keywords whose values are data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
/// Keywords whose values are objects with a schema for each name.
const BY_NAME: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose schemas check the same value.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// Maximum number of schemas that one value is checked against, in a schema with `unevaluatedProperties` or
/// `unevaluatedItems`.
const MAX_CHECKS: usize = 10_000;

/// A reference, by JSON pointers.
struct Reference {
    /// The pointer of the object with the reference.
    at: String,
    /// The pointer of the schema that it leads to. If that may be one of several, there is a reference to each.
    to: String,
}

/// Returns the number of references of `schema` by which a value and the values inside of it are
/// checked against the same schema, or an upper bound.
///
/// A payload is checked along at most as many ways for each level of its nesting.
pub(super) fn recursive(schema: &Value) -> usize {
    // More references are not compared with each other.
    const MAX_COMPARED: usize = 100;
    let references = references(schema).unwrap_or_default();
    if references.len() > MAX_COMPARED {
        return references.len();
    }
    references.iter().filter(|reference| reference.is_recursive(&references)).count()
}

/// Returns why payloads are not checked against `schema`, or `None` if its references are sound.
///
/// The library follows a reference again on each way that leads to it, so that references that lead
/// twice to the next one double with each. For `unevaluatedProperties` and `unevaluatedItems`, it checks
/// each alternative within the schema once more on each level. It keeps no results for texts and numbers,
/// so that a cycle at the same value is followed along each of its ways.
pub(super) fn problem(schema: &Value) -> Option<String> {
    let references = match references(schema) {
        Ok(references) => references,
        Err(problem) => return Some(problem),
    };
    let (most, deepest) = (Workflow::MAX_SCHEMA_REFERENCES, Object::MAX_DEPTH);
    let (followed, order) = Expansion::of_all(&references);
    if followed.count > most || followed.depth > deepest {
        return Some(format!(
            "more than {most} references are followed, or more than {deepest} one from another"
        ));
    }
    if leads_back_in_place(&references) {
        return Some("a reference leads back to itself without a step into the payload".into());
    }
    if has_unevaluated(schema) && CheckCounts::of_all(schema, &references, &order) > MAX_CHECKS {
        let names = UNEVALUATED.join("` or `");
        return Some(format!(
            "because of `{names}`, a value is checked against more than {MAX_CHECKS} schemas"
        ));
    }
    None
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
    /// The pointers of the parts. What a part refers to is in front of it, unless they are on a cycle.
    order: Vec<&'r str>,
}

impl<'r> Expansion<'r> {
    fn of_all(references: &'r [Reference]) -> (Followed, Vec<&'r str>) {
        let mut all = Self { references, known: HashMap::new(), order: Vec::new() };
        (all.of(""), all.order)
    }

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
        self.order.push(pointer);
        followed
    }
}

// Returns `true` if references that lead from a schema may lead to it again, with the same value.
fn leads_back_in_place(references: &[Reference]) -> bool {
    let targets: HashSet<&str> = references.iter().map(|reference| &*reference.to).collect();
    // The targets that each target leads to.
    let mut next: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut entering: HashMap<&str, usize> = HashMap::new();
    for Reference { at, to } in references {
        let ends = at.match_indices('/').map(|(end, _)| end).chain([at.len()]);
        for (target, rest) in ends.map(|end| at.split_at(end)) {
            if targets.contains(target) && is_in_place(rest) {
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

// Returns `true` if a schema checks the same value as the schema that has it at this pointer.
fn is_in_place(pointer: &str) -> bool {
    let mut segments = pointer.split('/');
    // A part of a name is not the way to another schema.
    if segments.next() != Some("") {
        return false;
    }
    while let Some(keyword) = segments.next() {
        match keyword {
            "not" | "if" | "then" | "else" => {}
            // Their schemas have an index or a name.
            "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies"
                if segments.next().is_some() => {}
            _ => return false,
        }
    }
    true
}

// Returns `true` if `at` is `pointer`, or leads to a part of what `pointer` leads to.
fn is_within(at: &str, pointer: &str) -> bool {
    let rest = at.strip_prefix(pointer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Number of checks for one value. A value inside of it counts once.
#[derive(Clone, Copy, Default)]
struct Checks {
    /// Those of a schema, and of all schemas that the value is checked against with it.
    all: usize,
    /// Those that tell which parts of the value the schema evaluates, for one with `unevaluatedProperties` or
    /// `unevaluatedItems` around it.
    evaluating: usize,
}

impl Checks {
    fn add(&mut self, inner: Self, is_in_place: bool) {
        self.all = self.all.saturating_add(inner.all);
        // The library checks each alternative before it looks into it.
        let evaluating = if is_in_place { inner.evaluating } else { 0 };
        self.evaluating = self.evaluating.saturating_add(inner.all).saturating_add(evaluating);
    }
}

/// The checks of a schema with `unevaluatedProperties` or `unevaluatedItems`.
struct CheckCounts<'r> {
    schema: &'r Value,
    /// The schemas that the references of a schema lead to, by its pointer.
    targets: HashMap<&'r str, Vec<&'r str>>,
    /// By the pointers of schemas to which references lead.
    known: HashMap<&'r str, Checks>,
}

impl<'r> CheckCounts<'r> {
    fn of_all(schema: &'r Value, references: &'r [Reference], order: &[&'r str]) -> usize {
        let mut targets: HashMap<&str, Vec<&str>> = HashMap::new();
        for Reference { at, to } in references {
            targets.entry(at).or_default().push(to);
        }
        let mut counts = Self { schema, targets, known: HashMap::new() };
        // Of schemas on a cycle, the first pass misses those that come later in the order.
        for _ in 0..2 {
            for pointer in order {
                let target = counts.schema.pointer(pointer);
                let checks = target.map(|target| counts.of(target, pointer));
                counts.known.insert(pointer, checks.unwrap_or_default());
            }
        }
        counts.known.get("").map_or(0, |whole| whole.all)
    }

    fn of(&self, schema: &Value, at: &str) -> Checks {
        let mut checks = Checks { all: 1, evaluating: 0 };
        match schema {
            Value::Object(keywords) => {
                for target in self.targets.get(at).into_iter().flatten() {
                    checks.add(self.known.get(target).copied().unwrap_or_default(), true);
                }
                for (keyword, value) in keywords {
                    let is_in_place = IN_PLACE.contains(&keyword.as_str());
                    each_schema(keyword, value, at, &mut |inner, at| {
                        checks.add(self.of(inner, at), is_in_place);
                    });
                }
                let unevaluated = UNEVALUATED.iter().filter(|name| keywords.contains_key(**name));
                for _ in unevaluated {
                    checks.all = checks.all.saturating_add(checks.evaluating);
                }
            }
            Value::Array(schemas) => {
                for (index, schema) in schemas.iter().enumerate() {
                    checks.add(self.of(schema, &format!("{at}/{index}")), true);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        checks
    }
}

// Returns `true` if a schema has `unevaluatedProperties` or `unevaluatedItems`.
fn has_unevaluated(schema: &Value) -> bool {
    let mut found = false;
    each_keyword(schema, "", &mut |keyword, _, _| found |= UNEVALUATED.contains(&keyword));
    found
}

/// The names by which references lead into a schema.
#[derive(Default)]
struct Names<'s> {
    /// The URI of the whole schema.
    own: Option<&'s str>,
    /// The names of anchors, and the pointers of their schemas.
    anchors: Vec<(&'s str, String)>,
    /// Whether a schema within the schema is a document of its own, which pointers and names would be relative to.
    has_documents: bool,
}

impl<'s> Names<'s> {
    fn of(schema: &'s Value) -> Self {
        let draft = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let is_old = draft.contains("draft-04");
        let id = if is_old { "id" } else { "$id" };
        // The name of an anchor is a URI with nothing but a fragment there.
        let has_named_ids = is_old || draft.contains("draft-06") || draft.contains("draft-07");
        let mut names = Self::default();
        each_keyword(schema, "", &mut |keyword, value, at| {
            let Value::String(text) = value else { return };
            if ANCHORS.contains(&keyword) {
                names.anchors.push((text, at.to_owned()));
            } else if keyword == id {
                match text.strip_prefix('#') {
                    Some(name) if has_named_ids => names.anchors.push((name, at.to_owned())),
                    _ if at.is_empty() => names.own = Some(text.trim_end_matches('#')),
                    _ => names.has_documents = true,
                }
            }
        });
        names
    }

    // Returns the part of a reference behind the URI of the whole schema. Returns `None` for another document.
    fn fragment<'u>(&self, uri: &'u str) -> Option<&'u str> {
        match self.own.and_then(|own| uri.strip_prefix(own)) {
            Some("") => Some(""),
            Some(rest) if rest.starts_with('#') => rest.strip_prefix('#'),
            Some(_) | None => uri.strip_prefix('#'),
        }
    }

    // Returns the pointers of the schemas that a reference may lead to.
    fn targets(&self, schema: &Value, uri: &str) -> Vec<String> {
        let Some(fragment) = self.fragment(uri) else { return Vec::new() };
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let named = self.anchors.iter().filter(|(name, _)| *name == fragment);
            return named.map(|(_, at)| at.clone()).collect();
        }
        let decoded = percent_decode_str(fragment).decode_utf8().ok();
        let pointer = decoded.filter(|pointer| schema.pointer(pointer).is_some());
        let plain = |segment: &str| escaped(&segment.replace("~1", "/").replace("~0", "~"));
        let pointer =
            pointer.map(|pointer| pointer.split('/').map(plain).collect::<Vec<_>>().join("/"));
        pointer.filter(|pointer| is_schema(pointer)).into_iter().collect()
    }
}

// Returns the references of a schema. Refuses one that is no pointer to a schema in it and no name of an anchor.
fn references(schema: &Value) -> Result<Vec<Reference>, String> {
    let mut found = Vec::new();
    each_keyword(schema, "", &mut |keyword, value, at| {
        if let (true, Value::String(uri)) = (REFERENCES.contains(&keyword), value) {
            found.push((uri, at.to_owned()));
        }
    });
    let names = Names::of(schema);
    if names.has_documents && !found.is_empty() {
        return Err(
            "a schema with references must not have other schemas with an `$id` in it".into()
        );
    }
    let mut references = Vec::new();
    for (uri, at) in found {
        let to = names.targets(schema, uri);
        if to.is_empty() {
            return Err(format!("the reference `{uri:.100}` leads to no part of the schema"));
        }
        references.extend(to.into_iter().map(|to| Reference { at: at.clone(), to }));
        if references.len() > Workflow::MAX_SCHEMA_REFERENCES {
            break;
        }
    }
    Ok(references)
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

// Calls `found` with each keyword of the schema at `at`, and of those within it: the keyword, its value, and the
// pointer of its schema.
fn each_keyword<'s>(schema: &'s Value, at: &str, found: &mut impl FnMut(&'s str, &'s Value, &str)) {
    match schema {
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                found(keyword, value, at);
                each_schema(keyword, value, at, &mut |inner, at| each_keyword(inner, at, found));
            }
        }
        Value::Array(schemas) => {
            for (index, schema) in schemas.iter().enumerate() {
                each_keyword(schema, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

// Calls `found` with each schema that a keyword of the schema at `at` has, or with the list of them, and its
// pointer.
fn each_schema<'s>(
    keyword: &str,
    value: &'s Value,
    at: &str,
    found: &mut dyn FnMut(&'s Value, &str),
) {
    let inner = format!("{at}/{}", escaped(keyword));
    match value {
        _ if DATA.contains(&keyword) => {}
        Value::Object(schemas) if BY_NAME.contains(&keyword) => {
            for (name, schema) in schemas {
                found(schema, &format!("{inner}/{}", escaped(name)));
            }
        }
        Value::Object(_) | Value::Array(_) => found(value, &inner),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

// Returns `true` if a pointer leads to a schema, or to a list of schemas, of which `each_keyword` is told.
fn is_schema(pointer: &str) -> bool {
    let mut segments = pointer.split('/').skip(1);
    while let Some(keyword) = segments.next() {
        let leads_on = match keyword {
            _ if DATA.contains(&keyword) => false,
            _ if BY_NAME.contains(&keyword) => segments.next().is_some(),
            // A keyword with schemas, or the index of one of these.
            _ => true,
        };
        if !leads_on {
            return false;
        }
    }
    true
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
        for (schema, is_endless) in [
            (json!({ "allOf": [to("#")] }), true),
            (json!({ "$anchor": "top", "not": to("#top") }), true),
            (json!({ "$id": "https://example.org/top", "oneOf": [{ "if": to("#") }] }), true),
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
            (
                json!({ "items": to("#/$defs/a~1b"), "$defs": { "a/b": { "not": to("#/$defs/a~1b") } } }),
                true,
            ),
            (
                json!({ "items": to("#/$defs/ab"), "$defs": { "a": { "not": to("#/$defs/ab") }, "ab": to("#/$defs/a") } }),
                true,
            ),
            (
                json!({ "items": to("#/$defs/a"), "$defs": { "a": {}, "a/not": to("#/$defs/a~1not") } }),
                true,
            ),
        ] {
            let endless = "a reference leads back to itself without a step into the payload";
            assert_eq!(problem(&schema).as_deref(), is_endless.then_some(endless), "{schema}");
        }
    }

    /// References whose target the library may find in another way than this module are refused.
    #[test]
    fn a_reference_is_a_pointer_into_the_schema_or_the_name_of_an_anchor() {
        let with = |uri: &str, more: Value| {
            let mut schema =
                json!({ "items": { "$ref": uri }, "$defs": { "a": [true], "~b": true } });
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            problem(&schema).is_none()
        };
        let id = |uri: &str| json!({ "not": { "$id": uri } });
        let of = |draft: &str, keyword: &str, uri: &str| {
            let draft = format!("http://json-schema.org/draft-{draft}/schema#");
            json!({ "$schema": draft, "not": { keyword: uri } })
        };
        for (uri, more, is_sound) in [
            ("#/$defs/a/0", json!({}), true),
            ("#/$defs/a/00", json!({}), false),
            ("#/$defs/a/+0", json!({}), false),
            ("#/$defs/~0b", json!({}), true),
            ("#/%24defs/~0b", json!({}), true),
            ("#/$defs/b", json!({}), false),
            ("/#/$defs/a/0", json!({}), false),
            ("https://json-schema.org/draft-07/schema#", json!({}), false),
            ("#", json!({ "$id": "urn:list" }), true),
            ("#top", json!({ "$anchor": "top" }), true),
            ("#%74op", json!({ "$anchor": "top" }), false),
            ("#top", id("#top"), false),
            ("#top", of("07", "$id", "#top"), true),
            ("#top", of("04", "id", "#top"), true),
            ("#top", of("04", "$id", "#top"), false),
            ("#", id("urn:inner"), false),
            ("#", of("04", "id", "a"), false),
            ("#", of("07", "id", "a"), true),
            // The whole schema has a URI.
            ("urn:list#/$defs/~0b", json!({ "$id": "urn:list" }), true),
            ("urn:list", json!({ "$id": "urn:list#" }), true),
            ("urn:lists", json!({ "$id": "urn:list" }), false),
            ("urn:list", json!({}), false),
            // Data are no schemas, but for the names of properties.
            ("#", json!({ "default": { "$id": "a", "$ref": "a" } }), true),
            (
                "#",
                json!({ "not": { "examples": [{ "$id": "a" }], "enum": [{ "$ref": "a" }] } }),
                true,
            ),
            ("#", json!({ "properties": { "default": { "$id": "a" } } }), false),
            ("#/properties/default", json!({ "properties": { "default": {} } }), true),
            ("#/not/default", json!({ "not": { "default": {} } }), false),
            ("#/$defs", json!({}), false),
        ] {
            assert_eq!(with(uri, more.clone()), is_sound, "{uri} {more}");
        }
    }

    /// Without a bound, a value would be checked for years.
    #[test]
    fn unevaluated_schemas_check_a_value_a_limited_number_of_times() {
        let around = |inner: Value| json!({ "anyOf": [inner], "unevaluatedProperties": {} });
        let nested = |count| (0..count).fold(json!({ "type": "object" }), |inner, _| around(inner));
        // Each schema has the next one behind so many levels of alternatives.
        let chain = |count: usize, levels: usize| {
            let mut defs = serde_json::Map::new();
            for number in 0..count {
                let next = json!({ "$ref": format!("#/$defs/s{}", number + 1) });
                let alternatives = (0..levels).fold(next, |inner, _| json!({ "anyOf": [inner] }));
                defs.insert(format!("s{number}"), around(alternatives));
            }
            defs.insert(format!("s{count}"), json!({}));
            json!({ "$ref": "#/$defs/s0", "$defs": defs })
        };
        let through_values = |count: usize| {
            (0..count).fold(json!({}), |inner, _| around(json!({ "properties": { "a": inner } })))
        };
        let to = |uri: &str| json!({ "$ref": uri });
        for (schema, is_sound) in [
            (nested(6), true),
            (nested(30), false),
            (chain(2, 8), true),
            (chain(6, 29), false),
            (through_values(5), true),
            (through_values(15), false),
            (json!({ "properties": { "a": nested(5), "b": nested(5) } }), true),
            // The library keeps the results of a schema that refers to itself.
            (json!({ "anyOf": [{ "items": to("#") }], "unevaluatedItems": false }), true),
            // These are names of properties.
            (
                json!({ "dependentSchemas": { "unevaluatedItems": {}, "allOf": { "items": to("#") } } }),
                true,
            ),
        ] {
            assert_eq!(problem(&schema).is_none(), is_sound, "{schema}");
        }
    }

    /// Whichever schema of a cycle is counted first, what leads into the cycle counts all of it.
    #[test]
    fn the_checks_of_a_cycle_are_counted_from_each_of_its_schemas() {
        let around = |inner: Value| json!({ "anyOf": [inner], "unevaluatedItems": {} });
        let nested =
            |inner: Value| (0..9).fold(json!({ "items": inner }), |inner, _| around(inner));
        let to = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
        for first in ["a", "b", "c"] {
            let defs = json!({ "a": nested(to("b")), "b": nested(to("a")), "c": nested(to("b")) });
            let schema = json!({ "properties": { "0": to(first), "1": to("c") }, "$defs": defs });
            assert!(problem(&schema).is_some(), "{first}");
        }
    }
}
