//! Custom steps: functions of the host application.

use serde::{Deserialize, Serialize};

use super::StepDefinition;
use crate::error::{Invalid, Reason, at_most};
use crate::ids::plain;
use crate::json::shape;

/// Function of the host application that a custom step calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CustomMetadata {
    /// Name under which the host has registered the function.
    pub handler: String,
}

shape! { CustomMetadata { "handler": handler } }

impl CustomMetadata {
    /// Returns the settings of a step that calls `handler`.
    pub fn new(handler: impl Into<String>) -> Self {
        Self { handler: handler.into() }
    }

    /// Returns `true` if there is no name. The specification has steps without one.
    pub(super) const fn is_empty(&self) -> bool {
        self.handler.is_empty()
    }

    /// Refuses a name that is empty or too long, or that has control characters.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        if self.handler.trim().is_empty() {
            return Err(Invalid::new("handler", Reason::Empty));
        }
        at_most("handler", &self.handler, StepDefinition::MAX_NAME)?;
        plain("handler", &self.handler)
    }
}
