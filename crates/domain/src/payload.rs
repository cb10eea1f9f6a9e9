//! Payloads, and the JSON Schemas that workflows declare for them.

pub(crate) mod fields;

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::json::Object;
use crate::limits;
use crate::workflow::Workflow;
use validation::Prepared;

/// JSON Schema of the payloads of a workflow.
///
/// Deserialization does not check a schema, so that workflows are read quickly. The first payload
/// compiles the schema, and clones share its compiled form.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PayloadSchema {
    object: Object,
    #[serde(skip)]
    prepared: Prepared,
}

// Bytes of a compiled schema for each byte of its JSON text.
const PREPARED_WEIGHT: usize = 64;

impl PayloadSchema {
    /// Returns `object` as a schema, unchecked.
    pub(crate) fn new(object: Object) -> Self {
        Self { object, prepared: Prepared::default() }
    }

    /// Refuses a schema that is too large.
    pub(crate) fn check_size(&self) -> Result<(), Invalid> {
        limits::object("payloadSchema", Some(&self.object), Workflow::MAX_PAYLOAD_SCHEMA)
    }

    /// Refuses an object that is too large or no JSON Schema, or that refers to another document.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        self.check_size()?;
        validation::compiled(&self.object).map(drop)
    }

    /// Returns an estimate of the memory of the compiled schema, in bytes.
    pub(crate) fn prepared_weight(&self) -> usize {
        PREPARED_WEIGHT * self.object.size()
    }

    /// Refuses a payload that the schema does not allow.
    pub(crate) fn check_payload(&self, payload: &Object) -> Result<(), Invalid> {
        self.prepared.check(&self.object, payload)
    }
}

impl Deref for PayloadSchema {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

impl PartialEq for PayloadSchema {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object
    }
}

impl Eq for PayloadSchema {}

impl fmt::Debug for PayloadSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PayloadSchema").field(&self.object).finish()
    }
}

#[cfg(feature = "payload-schema")]
mod references;

#[cfg(feature = "payload-schema")]
mod validation {
    use std::sync::{Arc, OnceLock};

    use jsonschema::error::ValidationErrorKind;
    use jsonschema::paths::LocationSegment;
    use jsonschema::{PatternOptions, ValidationError, Validator};
    use serde_json::Value;

    use super::references;
    use crate::error::{Invalid, Reason};
    use crate::json::{Object, is_shallow};

    /// Longest description of a violated schema, in characters.
    const MAX_PROBLEM: usize = 500;

    // Patterns are matched in linear time, and nothing is fetched.
    pub(super) fn compiled(schema: &Object) -> Result<Validator, Invalid> {
        let schema = Value::from(schema.clone());
        if let Some(problem) = references::problem(&schema) {
            return Err(Invalid::new("payloadSchema", Reason::Schema { problem }));
        }
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        options.build(&schema).map_err(|error| Invalid::new("payloadSchema", reason(&error)))
    }

    /// Compiled form of one schema. Clones share it.
    #[derive(Clone, Default)]
    pub(super) struct Prepared(OnceLock<Arc<Validator>>);

    impl Prepared {
        /// Refuses a payload that `schema` does not allow. A failure to compile is not kept.
        pub(super) fn check(&self, schema: &Object, payload: &Object) -> Result<(), Invalid> {
            let validator = if let Some(validator) = self.0.get() {
                validator
            } else {
                let validator = Arc::new(compiled(schema)?);
                self.0.get_or_init(|| validator)
            };
            validate(validator, schema, payload)
        }

        #[cfg(test)]
        pub(super) fn is_compiled(&self) -> bool {
            self.0.get().is_some()
        }
    }

    fn validate(validator: &Validator, schema: &Object, payload: &Object) -> Result<(), Invalid> {
        let size = payload.size();
        let payload = Value::from(payload.clone());
        if validator.is_valid(&payload) {
            return Ok(());
        }
        if !is_shallow(&payload, max_explained_depth(schema, size)) {
            let problem = "the value is nested too deep for the field to be found".into();
            return Err(Invalid::new("payload", Reason::Schema { problem }));
        }
        validator.validate(&payload).map_err(|error| {
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

    /// Returns the deepest nesting of an invalid payload of `size` bytes whose field is looked for.
    ///
    /// To tell whether a payload is valid takes time in proportion to its size, because results are
    /// kept for each of its objects and lists. To find the field, the library follows each alternative of the
    /// schema again. Their number grows by a factor with each level, if the schema refers to itself
    /// at several places.
    fn max_explained_depth(schema: &Object, size: usize) -> usize {
        const MAX_FOLLOWED: usize = 1 << 20;
        match references::recursive(&Value::from(schema.clone())) {
            0 | 1 => Object::MAX_DEPTH,
            factor => (MAX_FOLLOWED / size).max(1).ilog(factor) as usize,
        }
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
        Err(Invalid::new(
            "payloadSchema",
            Reason::MissingFeature { feature: "payload-schema".into() },
        ))
    }

    #[derive(Clone, Default)]
    pub(super) struct Prepared(());

    impl Prepared {
        #[expect(clippy::unused_self, reason = "the feature has a compiled form here")]
        pub(super) fn check(&self, schema: &Object, _: &Object) -> Result<(), Invalid> {
            compiled(schema)
        }
    }
}

#[cfg(all(test, feature = "payload-schema"))]
mod tests;
