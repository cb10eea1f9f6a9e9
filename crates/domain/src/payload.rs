//! Payloads, and the JSON Schemas that workflows declare for them.

use crate::error::Invalid;
use crate::json::Object;
use crate::limits;
use crate::workflow::Workflow;

/// Refuses an object that is no JSON Schema, or that refers to another document.
pub(crate) fn check_schema(schema: &Object) -> Result<(), Invalid> {
    limits::object("payloadSchema", Some(schema), Workflow::MAX_PAYLOAD_SCHEMA)?;
    validation::compiled(schema).map(drop)
}

/// Refuses a payload that `schema` does not allow.
pub(crate) fn check(schema: &Object, payload: &Object) -> Result<(), Invalid> {
    validation::check(schema, payload)
}

#[cfg(feature = "payload-schema")]
mod validation {
    use jsonschema::error::ValidationErrorKind;
    use jsonschema::paths::LocationSegment;
    use jsonschema::{PatternOptions, ValidationError, Validator};
    use serde_json::Value;

    use crate::error::{Invalid, Reason};
    use crate::json::Object;

    /// Longest description of a violated schema, in characters.
    const MAX_PROBLEM: usize = 500;

    // Patterns are matched in linear time, and nothing is fetched.
    pub(super) fn compiled(schema: &Object) -> Result<Validator, Invalid> {
        let schema = Value::from(schema.clone());
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        options.build(&schema).map_err(|error| Invalid::new("payloadSchema", reason(&error)))
    }

    pub(super) fn check(schema: &Object, payload: &Object) -> Result<(), Invalid> {
        let payload = Value::from(payload.clone());
        compiled(schema)?.validate(&payload).map_err(|error| {
            let path: String = error.instance_path().into_iter().map(step).collect();
            let path = format!("payload{path}");
            match error.kind() {
                ValidationErrorKind::Required { property: Value::String(name) } => {
                    Invalid::new(format!("{path}.{name}"), Reason::Missing)
                }
                _ => Invalid::new(path, reason(&error)),
            }
        })
    }

    fn step(segment: LocationSegment<'_>) -> String {
        match segment {
            LocationSegment::Property(name) => format!(".{name}"),
            LocationSegment::Index(index) => format!("[{index}]"),
        }
    }

    // Leaves the value out, since it may be secret.
    fn reason(error: &ValidationError<'_>) -> Reason {
        let problem = error.masked().to_string().chars().take(MAX_PROBLEM).collect();
        Reason::Schema { problem }
    }
}

#[cfg(not(feature = "payload-schema"))]
mod validation {
    use crate::error::{Invalid, Reason};
    use crate::json::Object;

    pub(super) fn compiled(_: &Object) -> Result<(), Invalid> {
        Err(Invalid::new("payloadSchema", Reason::Unsupported))
    }

    pub(super) fn check(schema: &Object, _: &Object) -> Result<(), Invalid> {
        compiled(schema)
    }
}

#[cfg(all(test, feature = "payload-schema"))]
mod tests;
