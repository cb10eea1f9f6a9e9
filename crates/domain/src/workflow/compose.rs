//! Workflows as a program writes them.

use super::{WorkflowCreate, WorkflowQuery, WorkflowUpdate};
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::ids::WorkflowIdentifier;
use crate::json::Object;
use crate::preference::Preference;
use crate::setters::{page_setters, setters};
use crate::step::Step;
use crate::vocabulary::Severity;

impl WorkflowCreate {
    /// Returns a workflow without steps, by the identifier that triggers it and its display name.
    pub fn new(
        workflow_id: impl IntoChecked<WorkflowIdentifier>,
        name: impl Into<String>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            workflow_id: workflow_id.into_checked()?,
            name: name.into(),
            description: String::new(),
            active: None,
            critical: false,
            is_translation_enabled: false,
            severity: Severity::default(),
            tags: Vec::new(),
            preference_settings: Preference::default(),
            steps: Vec::new(),
            data: None,
            payload_schema: None,
            validate_payload: None,
        })
    }
}

setters! { WorkflowCreate:
    /// Sets the description: at most 256 characters.
    description: into(String);
    /// Switches the workflow on, also where an operator has switched it off.
    active: flag(true);
    /// Switches the workflow off: it cannot be triggered.
    inactive @ active: flag(false);
    /// Makes the workflow critical: subscribers cannot opt out of it.
    critical: flag(true);
    /// Switches translations on.
    translated @ is_translation_enabled: flag(true);
    /// Sets how much its notifications matter.
    severity: exact(Severity);
    /// Sets the tags: at most 16 of at most 64 characters.
    tags: each(String);
    /// Sets which channels may be used.
    preference @ preference_settings: exact(Preference);
    /// Adds a step behind the others: at most 20.
    step @ steps: push(Step);
    /// Sets the steps, in their order: at most 20.
    steps: each(Step);
    /// Sets custom data.
    data: checked(Object, "data");
    /// Sets the JSON Schema of the payload: at most 64 KiB.
    payload_schema: checked(Object, "payloadSchema");
    /// Sets whether payloads are checked against the schema.
    validate_payload: exact(bool);
}

setters! { WorkflowUpdate:
    /// Sets the display name: 1 to 128 characters.
    name: into(String);
    /// Sets the description: at most 256 characters.
    description: into(String);
    /// Sets whether it can be triggered.
    active: exact(bool);
    /// Sets whether it is critical.
    critical: exact(bool);
    /// Sets whether it is translated.
    translated @ is_translation_enabled: exact(bool);
    /// Sets how much its notifications matter.
    severity: exact(Severity);
    /// Sets the tags: at most 16 of at most 64 characters.
    tags: each(String);
    /// Sets which channels may be used, as its author defines it.
    preference @ preference_settings: exact(Preference);
    /// Sets which channels may be used, as an operator defines it.
    preferences: exact(Preference);
    /// Removes what an operator has set about channels.
    clear_preferences @ preferences: clear();
    /// Sets the steps, in place of those before: at most 20.
    steps: each(Step);
    /// Sets custom data.
    data: checked(Object, "data");
    /// Sets the JSON Schema of the payload: at most 64 KiB.
    payload_schema: checked(Object, "payloadSchema");
    /// Sets whether payloads are checked against the schema.
    validate_payload: exact(bool);
    /// Removes custom data.
    clear_data @ data: clear();
    /// Removes the JSON Schema of the payload.
    clear_payload_schema @ payload_schema: clear();
}

setters! { WorkflowQuery:
    /// Lists those with this tag.
    tag: into(String);
    /// Lists those that can be triggered.
    active: flag(true);
    /// Lists those that cannot be triggered.
    inactive @ active: flag(false);
}

page_setters!(WorkflowQuery);
