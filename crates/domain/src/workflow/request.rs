//! What is asked for about workflows.

use serde::{Deserialize, Serialize};

use super::Workflow;
use crate::ids::WorkflowIdentifier;
use crate::json::Object;
use crate::page::{OrderBy, PageQuery};
use crate::patch::Patch;
use crate::preference::Preference;
use crate::query;
use crate::step::{StepDefinition, StepUpdate};
use crate::vocabulary::Severity;

/// A new workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowCreate {
    /// The name that triggers it. No other workflow of the environment has it.
    pub workflow_id: WorkflowIdentifier,
    /// What people call it: 1 to 128 characters.
    pub name: String,
    /// What it is for: at most 256 characters.
    #[serde(default)]
    pub description: String,
    /// Whether it can be triggered. Absent means true for a new workflow, and unchanged for one
    /// that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// Whether it is critical: subscribers cannot opt out of it.
    #[serde(default)]
    pub critical: bool,
    /// Whether it is translated.
    #[serde(default)]
    pub is_translation_enabled: bool,
    /// How much its notifications matter.
    #[serde(default)]
    pub severity: Severity,
    /// What it is filed under: at most 16 words of at most 64 characters.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What it says about channels.
    #[serde(default)]
    pub preference_settings: Preference,
    /// What it does, in this order: at most 20 steps.
    pub steps: Vec<StepDefinition>,
    /// Custom data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Object>,
}

/// A partial update of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named after the fields of `Workflow`")]
pub struct WorkflowUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_translation_enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preference_settings: Option<Preference>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub preferences: Patch<Preference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepUpdate>>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub data: Patch<Object>,
}

/// Which workflows are listed. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkflowQuery {
    /// Which page of them.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Those filed under this word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Those that can be triggered, or those that cannot.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
}

impl WorkflowQuery {
    /// What the list can be sorted by.
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];

    /// Whether the query leaves any out.
    pub fn is_narrow(&self) -> bool {
        self.tag.is_some() || self.active.is_some()
    }

    /// Whether `workflow` belongs to the list.
    pub fn shows(&self, workflow: &Workflow) -> bool {
        self.tag.as_ref().is_none_or(|tag| workflow.tags.contains(tag))
            && self.active.is_none_or(|active| workflow.active == active)
    }
}
