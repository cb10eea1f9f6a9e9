//! Fields that the JSON Schema of a payload lists, for the check of paths into payloads.

use serde_json::{Map, Value};

use crate::error::Reason;
use crate::json::Object;
use crate::suggest::nearest;

/// Root that a path into a payload may begin with.
pub(crate) const ROOT: &str = "payload.";

/// Name in a path that its object does not have: the schema lists the fields of the object.
pub(crate) struct Unlisted<'p, 's> {
    /// Path of the object, as in `payload.order`.
    pub(crate) place: String,
    /// Name.
    pub(crate) name: &'p str,
    /// Fields of the object.
    fields: &'s Map<String, Value>,
}

impl<'s> Unlisted<'_, 's> {
    /// Returns the names of the fields of the object.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'s str> {
        self.fields.keys().map(String::as_str)
    }
}

/// Returns the first name that leads nowhere in a path behind `payload`. The path is followed as long as
/// the schema lists all fields.
pub(crate) fn unlisted<'p, 's>(
    schema: &'s Object,
    path: impl IntoIterator<Item = &'p str>,
) -> Option<Unlisted<'p, 's>> {
    let mut schema: &Map<String, Value> = schema;
    let mut place = "payload".to_owned();
    for name in path {
        let fields = listed(schema)?;
        let Some(inside) = fields.get(name) else { return Some(Unlisted { place, name, fields }) };
        schema = inside.as_object()?;
        place = format!("{place}.{name}");
    }
    None
}

/// Refuses the path of a fact in the payload, as in `order.id` or `payload.order.id`, that the schema does not
/// list.
pub(crate) fn check_path(path: &str, schema: &Object) -> Result<(), Reason> {
    let check = |path: &str| match listed(schema) {
        // A member with this name, dots included, comes first.
        Some(fields) if fields.contains_key(path) => Ok(()),
        _ => check_names(path, schema),
    };
    match path.strip_prefix(ROOT) {
        Some(behind_root) if check(path).is_err() => check(behind_root),
        _ => check(path),
    }
}

/// Refuses the path of a variable in the payload that the schema does not list.
pub(crate) fn check_variable(path: &str, schema: &Object) -> Result<(), Reason> {
    path.strip_prefix(ROOT).map_or(Ok(()), |behind_root| check_names(behind_root, schema))
}

fn check_names(path: &str, schema: &Object) -> Result<(), Reason> {
    let Some(unlisted) = unlisted(schema, path.split('.')) else { return Ok(()) };
    let meant = nearest(unlisted.name, unlisted.fields());
    let suggestion = meant.map(|meant| format!("{}.{meant}", unlisted.place));
    Err(Reason::UnknownVariable { variable: format!("{ROOT}{path}"), suggestion })
}

// Returns the fields that the schema of an object lists. Returns `None` if it names others by other means.
fn listed(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    const OPEN: [&str; 12] = [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "not",
        "dependencies",
        "dependentSchemas",
        "patternProperties",
        "additionalProperties",
    ];
    let closed = |name: &&str| match schema.get(*name) {
        None => true,
        Some(value) => *name == "additionalProperties" && value == &Value::Bool(false),
    };
    OPEN.iter().all(closed).then(|| schema.get("properties")?.as_object())?
}
