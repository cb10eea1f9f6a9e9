//! Trigger of a workflow, and the variables of its templates.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::WorkflowIdentifier;
use crate::step::WorkflowStep;
use crate::template::Template;
use crate::vocabulary::wire_enum;

/// Trigger of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationTrigger {
    #[serde(rename = "type")]
    kind: TriggerType,
    /// Identifier of the workflow.
    pub identifier: WorkflowIdentifier,
    /// Variables of the payload.
    pub variables: Vec<TriggerVariable>,
    /// Variables of the subscriber.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriber_variables: Vec<TriggerVariable>,
}

wire_enum! {
    /// Type of a workflow's trigger.
    #[doc(hidden)]
    TriggerType, "type":
    Event = "event",
}

/// Variable of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TriggerVariable {
    /// Name.
    pub name: String,
}

impl NotificationTrigger {
    /// Returns the trigger with the variables in the templates of `steps`.
    pub(super) fn new(identifier: WorkflowIdentifier, steps: &[WorkflowStep]) -> Self {
        let templates = steps.iter().flat_map(|step| step.definition.templates());
        let names: BTreeSet<String> = templates.flat_map(Template::variables).collect();
        let below = |prefix: &str| {
            let names = names.iter().filter_map(|name| name.strip_prefix(prefix));
            names.map(|name| TriggerVariable { name: name.into() }).collect()
        };
        Self {
            kind: TriggerType::Event,
            identifier,
            variables: below("payload."),
            subscriber_variables: below("subscriber."),
        }
    }
}
