//! Constructors and setters of workflows.

use super::{WorkflowCreate, WorkflowQuery, WorkflowUpdate};
use crate::contact::Locale;
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::ids::WorkflowIdentifier;
use crate::json::Object;
use crate::preference::Preference;
use crate::setters::{page_setters, setters};
use crate::step::Step;
use crate::template::MissingVariables;
use crate::vocabulary::Severity;

impl WorkflowCreate {
    /// Returns a workflow without steps, by identifier and display name.
    pub fn new(
        identifier: impl IntoChecked<WorkflowIdentifier>,
        name: impl Into<String>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            identifier: identifier.into_checked()?,
            name: name.into(),
            description: String::new(),
            active: None,
            critical: false,
            is_translation_enabled: false,
            default_locale: None,
            missing_variables: MissingVariables::default(),
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
    /// Sets whether the workflow can be triggered, also against what an operator has set. Triggers of an
    /// inactive one have no effect, and their receipts say `trigger_not_active`.
    active: exact(bool);
    /// Sets whether the workflow is critical: subscribers cannot opt out of it.
    critical: exact(bool);
    /// Switches translations on or off.
    translated @ is_translation_enabled: exact(bool);
    /// Sets the language for subscribers whose own one has no texts.
    default_locale: checked(Locale, "defaultLocale");
    /// Sets the effect of placeholders without a value.
    missing_variables: exact(MissingVariables);
    /// Sets the severity of its notifications.
    severity: exact(Severity);
    /// Sets the tags: at most 16 of at most 64 characters.
    tags: each(String);
    /// Sets the preference: which channels may be used.
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
    /// Sets whether the workflow can be triggered.
    active: exact(bool);
    /// Sets whether the workflow is critical.
    critical: exact(bool);
    /// Switches translations on or off.
    translated @ is_translation_enabled: exact(bool);
    /// Sets the language for subscribers whose own one has no texts.
    default_locale: checked(Locale, "defaultLocale");
    /// Removes the language for subscribers whose own one has no texts.
    clear_default_locale @ default_locale: clear();
    /// Sets the effect of placeholders without a value.
    missing_variables: exact(MissingVariables);
    /// Sets the severity of its notifications.
    severity: exact(Severity);
    /// Sets the tags: at most 16 of at most 64 characters.
    tags: each(String);
    /// Sets the preference in the definition: which channels may be used.
    preference @ preference_settings: exact(Preference);
    /// Sets the preference of the operator, which decides before that of the definition.
    operator_preference: exact(Preference);
    /// Removes the preference of the operator.
    clear_operator_preference @ operator_preference: clear();
    /// Sets the steps, which replace the stored ones: at most 20.
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
    /// Lists the workflows with this tag.
    tag: into(String);
    /// Lists the workflows that can be triggered, or those that cannot.
    active: exact(bool);
}

page_setters!(WorkflowQuery);
