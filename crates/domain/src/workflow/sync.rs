//! A whole set of workflows that the host application declares in its code.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::WorkflowCreate;
use crate::error::{Invalid, Reason, at_most_items};
use crate::ids::WorkflowIdentifier;
use crate::json::shape;
use crate::vocabulary::wire_enum;

/// Every workflow that the host application declares, and what becomes of those that it declares
/// no longer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkflowSync {
    /// Workflows: at most 1,000.
    pub workflows: Vec<WorkflowCreate>,
    /// What becomes of a workflow that was declared before and is not in the set.
    #[serde(default)]
    pub undeclared: Undeclared,
}

shape! { WorkflowSync { "workflows": workflows, "undeclared": undeclared } }

wire_enum! {
    /// What becomes of a workflow that is no longer declared.
    Undeclared, "undeclared":
    Keep = "keep",
    Deactivate = "deactivate",
    Delete = "delete",
}

#[expect(clippy::derivable_impls, reason = "the words are declared by a macro")]
impl Default for Undeclared {
    fn default() -> Self {
        Undeclared::Keep
    }
}

/// What came of a set of declared workflows. Each list is in the order of the declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowSyncReport {
    /// Workflows that are new.
    pub created: Vec<WorkflowIdentifier>,
    /// Workflows that were there and differed.
    pub changed: Vec<WorkflowIdentifier>,
    /// Workflows that were there and did not differ.
    pub unchanged: Vec<WorkflowIdentifier>,
    /// Workflows that were declared before and are not in the set, oldest first. The request says
    /// what becomes of them.
    pub undeclared: Vec<WorkflowIdentifier>,
}

impl WorkflowSync {
    /// The most workflows of one set.
    pub const MAX: usize = 1_000;

    /// Creates a set of workflows. Those that are no longer declared are kept.
    pub fn new(workflows: impl IntoIterator<Item = WorkflowCreate>) -> Self {
        Self { workflows: workflows.into_iter().collect(), undeclared: Undeclared::Keep }
    }

    /// Deactivates workflows that are no longer declared.
    #[must_use]
    pub fn deactivate_undeclared(self) -> Self {
        Self { undeclared: Undeclared::Deactivate, ..self }
    }

    /// Deletes workflows that are no longer declared.
    #[must_use]
    pub fn delete_undeclared(self) -> Self {
        Self { undeclared: Undeclared::Delete, ..self }
    }

    /// Refuses a set that is too large, or that names a workflow twice.
    pub fn check(&self) -> Result<(), Invalid> {
        at_most_items("workflows", &self.workflows, Self::MAX)?;
        let mut known = HashSet::new();
        let mut names = self.workflows.iter().map(|workflow| &workflow.workflow_id).enumerate();
        match names.find(|(_, name)| !known.insert(*name)) {
            Some((index, _)) => {
                Err(Invalid::new(format!("workflows[{index}].workflowId"), Reason::Repeated))
            }
            None => Ok(()),
        }
    }
}
