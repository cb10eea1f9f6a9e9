//! Payloads, and the JSON Schemas that workflows declare for them.

use crate::error::{Invalid, Reason, Unit};
use crate::json::Object;

/// The largest schema, in bytes of JSON.
const MAX_SCHEMA: usize = 64 * 1024;

/// Refuses what is no JSON Schema, or refers to another document.
pub(crate) fn check_schema(schema: &Object) -> Result<(), Invalid> {
    if schema.size() > MAX_SCHEMA {
        let reason = Reason::TooLong { max: MAX_SCHEMA, unit: Unit::Bytes };
        return Err(Invalid::new("payloadSchema", reason));
    }
    validation::compiled(schema).map(drop)
}

/// Refuses a payload that `schema` does not allow.
pub(crate) fn check(schema: &Object, payload: &Object) -> Result<(), Invalid> {
    validation::validate(&validation::compiled(schema)?, payload)
}

#[cfg(feature = "payload-schema")]
mod validation {
    use jsonschema::error::ValidationErrorKind;
    use jsonschema::paths::LocationSegment;
    use jsonschema::{PatternOptions, ValidationError, Validator};
    use serde_json::Value;

    use crate::error::{Invalid, Reason};
    use crate::json::Object;

    /// The longest description of what a schema asks for, in characters.
    const MAX_PROBLEM: usize = 500;

    // Patterns are matched in linear time, and nothing is fetched.
    pub(super) fn compiled(schema: &Object) -> Result<Validator, Invalid> {
        let schema = Value::from(schema.clone());
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        options.build(&schema).map_err(|error| Invalid::new("payloadSchema", reason(&error)))
    }

    pub(super) fn validate(validator: &Validator, payload: &Object) -> Result<(), Invalid> {
        let payload = Value::from(payload.clone());
        validator.validate(&payload).map_err(|error| {
            let mut way = String::from("payload");
            for segment in error.instance_path() {
                match segment {
                    LocationSegment::Property(name) => {
                        way.push('.');
                        way.push_str(&name);
                    }
                    LocationSegment::Index(index) => way.push_str(&format!("[{index}]")),
                }
            }
            match error.kind() {
                ValidationErrorKind::Required { property: Value::String(name) } => {
                    Invalid::new(format!("{way}.{name}"), Reason::Missing)
                }
                _ => Invalid::new(way, reason(&error)),
            }
        })
    }

    // Does not repeat the value.
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

    pub(super) fn validate((): &(), _: &Object) -> Result<(), Invalid> {
        Ok(())
    }
}

#[cfg(all(test, feature = "payload-schema"))]
mod tests;
