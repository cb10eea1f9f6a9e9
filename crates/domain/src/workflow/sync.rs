//! Set of all workflows that the host application declares in its code.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::WorkflowCreate;
use crate::error::{Invalid, Reason, at_most_items};
use crate::ids::WorkflowIdentifier;
use crate::json::shape;
use crate::vocabulary::wire_enum;

/// All workflows that the host application declares, and the treatment of those that are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkflowSync {
    /// Workflows: at most 1,000.
    pub workflows: Vec<WorkflowCreate>,
    /// Treatment of a workflow that an earlier set declared and this one does not.
    #[serde(default)]
    pub undeclared: Undeclared,
}

shape! { WorkflowSync { "workflows": workflows, "undeclared": undeclared } }

wire_enum! {
    /// Treatment of a workflow that is absent from the set.
    #[derive(Default)]
    Undeclared, "undeclared":
    #[default]
    Keep = "keep",
    Deactivate = "deactivate",
    Delete = "delete",
}

/// Result of a set of declared workflows. Each list is in the order of the declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowSyncReport {
    /// New workflows.
    pub created: Vec<WorkflowIdentifier>,
    /// Existing workflows that differed.
    pub changed: Vec<WorkflowIdentifier>,
    /// Existing workflows that did not differ.
    pub unchanged: Vec<WorkflowIdentifier>,
    /// Workflows of an earlier set that are absent from this one, oldest first.
    pub undeclared: Vec<WorkflowIdentifier>,
}

impl WorkflowSync {
    /// Maximum number of workflows in a set.
    pub const MAX: usize = 1_000;

    /// Returns a set of workflows. Declared workflows that are absent from it are kept.
    pub fn new(workflows: impl IntoIterator<Item = WorkflowCreate>) -> Self {
        Self { workflows: workflows.into_iter().collect(), undeclared: Undeclared::Keep }
    }

    /// Deactivates declared workflows that are absent from the set. A later declaration activates them again.
    /// Notifications that are under way go on, as do the chunks of a broadcast.
    #[must_use]
    pub fn deactivate_undeclared(self) -> Self {
        Self { undeclared: Undeclared::Deactivate, ..self }
    }

    /// Deletes declared workflows that are absent from the set.
    #[must_use]
    pub fn delete_undeclared(self) -> Self {
        Self { undeclared: Undeclared::Delete, ..self }
    }

    /// Refuses a set of more than 1,000 workflows, or with a repeated workflow.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        at_most_items("workflows", &self.workflows, Self::MAX)?;
        let mut known = HashSet::new();
        let mut names = self.workflows.iter().map(|workflow| &workflow.identifier).enumerate();
        match names.find(|(_, name)| !known.insert(*name)) {
            Some((index, _)) => {
                Err(Invalid::new(format!("workflows[{index}].workflowId"), Reason::Repeated))
            }
            None => Ok(()),
        }
    }
}
