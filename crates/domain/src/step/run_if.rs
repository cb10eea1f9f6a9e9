//! Conditions of steps in JSON Logic.

use crate::condition::Rule;
use crate::error::Invalid;
use crate::json::Object;

/// Refuses a rule with a variable that the data of a step does not have.
pub(super) fn check(rule: Option<&Rule>) -> Result<(), Invalid> {
    rule.map_or(Ok(()), Rule::check_step_names).map_err(named)
}

/// Refuses a rule with a variable of the payload that its `schema` does not have.
pub(super) fn check_payload(rule: Option<&Rule>, schema: &Object) -> Result<(), Invalid> {
    rule.map_or(Ok(()), |rule| rule.check_payload(schema)).map_err(named)
}

/// Returns the refusal of a rule with its name on the wire in front of its path.
pub(super) fn named(invalid: Invalid) -> Invalid {
    let inside = invalid.field.strip_prefix("condition").unwrap_or_default();
    let field = format!("runIf{inside}");
    invalid.named(field)
}
