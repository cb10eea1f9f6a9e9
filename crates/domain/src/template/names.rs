//! Variables of templates, and the check of their names.

use serde_json::{Map, Value};

use super::problem::{Problem, meant};
use crate::json::Object;
use crate::known::{CONTEXT_FIELDS, ROOTS, SUBSCRIBER_FIELDS, WORKFLOW_FIELDS};

/// Use of a variable in a template.
#[derive(Clone, Debug)]
pub(super) struct Use<'s> {
    /// First name.
    pub(super) root: &'s str,
    /// Names behind the first one.
    pub(super) path: Vec<&'s str>,
    /// Start, in bytes.
    pub(super) at: usize,
}

impl Use<'_> {
    /// Refuses an unknown variable. `payload` is the schema of the payload, if the workflow has
    /// one.
    pub(super) fn check(&self, payload: Option<&Object>) -> Result<(), Problem> {
        let field = |place: &str, name: &str, known: &[&str]| {
            if known.contains(&name) {
                return Ok(());
            }
            let what = format!("`{place}` has no field{}", meant(name, known.iter().copied()));
            Err(Problem::new(what, self.at))
        };
        match (self.root, self.path.as_slice()) {
            ("subscriber" | "actor", [name, ..]) => field(self.root, name, &SUBSCRIBER_FIELDS),
            ("workflow", [name, ..]) => field(self.root, name, &WORKFLOW_FIELDS),
            ("context", [kind, name, ..]) => {
                field(&format!("context.{kind}"), name, &CONTEXT_FIELDS)
            }
            ("payload", path) => self.check_payload(path, payload),
            (root, _) if ROOTS.contains(&root) => Ok(()),
            (root, _) => Err(Problem::unknown("variable", root, ROOTS, self.at)),
        }
    }

    // Follows the path through the schema, as long as the schema lists all fields.
    fn check_payload(&self, path: &[&str], schema: Option<&Object>) -> Result<(), Problem> {
        let mut schema: Option<&Map<String, Value>> = schema.map(|schema| &**schema);
        let mut place = String::from("payload");
        for name in path {
            let Some(fields) = schema.and_then(fields) else { return Ok(()) };
            let Some(inside) = fields.get(*name) else {
                let known = fields.keys().map(String::as_str);
                let what = format!("`{place}` has no field{}", meant(name, known));
                return Err(Problem::new(what, self.at));
            };
            schema = inside.as_object();
            place = format!("{place}.{name}");
        }
        Ok(())
    }
}

// Returns the fields of an object with this schema. Returns `None` if it may have others.
fn fields(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    const OPEN: [&str; 10] = [
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "not",
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
