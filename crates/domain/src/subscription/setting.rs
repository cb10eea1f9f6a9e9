//! Settings of subscriptions for workflows.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{Subscribe, Subscription};
use crate::condition::Rule;
use crate::error::{Invalid, Reason, Unit, at_most_items};
use crate::ids::{WorkflowId, WorkflowRef};
use crate::json::{self, shape};
use crate::limits;
use crate::workflow::Workflow;

/// Setting of a subscription for some workflows. On the wire it may be just the name of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WorkflowSetting {
    /// Workflows.
    #[serde(flatten)]
    pub workflows: WorkflowChoice,
    /// `true` if the subscription admits the workflows, which is the default.
    pub enabled: bool,
    /// Condition that admits the workflows. It overrides `enabled`. Its variables are those of `payload`,
    /// `subscriber`, `actor`, `context` and `workflow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

/// Setting of a subscription for one workflow.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSetting {
    /// Id of the workflow.
    pub workflow_id: WorkflowId,
    /// `true` if the subscription admits the workflow.
    pub enabled: bool,
    /// Condition that admits the workflow. It overrides `enabled`.
    pub condition: Option<Rule>,
}

/// Selection of workflows of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub enum WorkflowChoice {
    /// One workflow.
    One {
        /// Identifier, id or slug.
        workflow_id: WorkflowRef,
    },
    /// All matching workflows.
    Matching {
        /// Filter.
        filter: WorkflowFilter,
    },
}

/// Filter of workflows. A workflow matches if any part of the filter selects it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowFilter {
    /// Identifiers, ids or slugs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workflow_ids: Vec<WorkflowRef>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

shape! { WorkflowFilter { "workflowIds": workflow_ids, "tags": tags } }

impl WorkflowSetting {
    /// Returns the setting for one of its workflows.
    #[doc(hidden)]
    pub fn about(&self, workflow_id: WorkflowId) -> ResolvedSetting {
        let (enabled, condition) = (self.enabled, self.condition.clone());
        ResolvedSetting { workflow_id, enabled, condition }
    }
}

impl ResolvedSetting {
    /// Returns the settings without repetition: the last one for a workflow, at the place of the
    /// first. Refuses settings for more than 100 workflows, and conditions of more than 64 KiB together.
    pub fn last_of_each(settings: Vec<Self>) -> Result<Vec<Self>, Invalid> {
        let mut places: HashMap<WorkflowId, usize> = HashMap::new();
        let mut last: Vec<Self> = Vec::new();
        for setting in settings {
            let place = *places.entry(setting.workflow_id).or_insert(last.len());
            match last.get_mut(place) {
                Some(before) => *before = setting,
                None => last.push(setting),
            }
        }
        at_most_items("preferences", &last, Subscription::MAX_PREFERENCES)?;
        let conditions = last.iter().filter_map(|setting| setting.condition.as_ref());
        let size = conditions.map(|rule| json::size(rule.source())).sum();
        limits::sized("preferences", size, Subscription::MAX_CONDITIONS_SIZE, Unit::Bytes)?;
        Ok(last)
    }
}

impl WorkflowChoice {
    /// Returns the identifiers, ids and slugs.
    pub fn names(&self) -> &[WorkflowRef] {
        match self {
            WorkflowChoice::One { workflow_id } => std::slice::from_ref(workflow_id),
            WorkflowChoice::Matching { filter } => &filter.workflow_ids,
        }
    }

    /// Returns the tags.
    pub fn tags(&self) -> &[String] {
        match self {
            WorkflowChoice::One { .. } => &[],
            WorkflowChoice::Matching { filter } => &filter.tags,
        }
    }

    /// Returns `true` if the tags select the workflow.
    #[doc(hidden)]
    pub fn chooses(&self, workflow: &Workflow) -> bool {
        workflow.tags.iter().any(|tag| self.tags().contains(tag))
    }
}

impl WorkflowFilter {
    fn check(&self) -> Result<(), Invalid> {
        if self.workflow_ids.is_empty() && self.tags.is_empty() {
            let reason = Reason::MissingUnless { other: "tags".into() };
            return Err(Invalid::new("workflowIds", reason));
        }
        at_most_items("workflowIds", &self.workflow_ids, Subscribe::MAX)?;
        at_most_items("tags", &self.tags, Subscribe::MAX)
    }
}

/// Refuses more than 100 settings or names of workflows, and malformed filters and conditions.
pub(super) fn check_settings(settings: &[WorkflowSetting]) -> Result<(), Invalid> {
    at_most_items("preferences", settings, Subscribe::MAX)?;
    for (index, setting) in settings.iter().enumerate() {
        if let WorkflowChoice::Matching { filter } = &setting.workflows {
            filter.check().map_err(|bad| bad.within(format!("preferences[{index}].filter")))?;
        }
        if let Some(rule) = &setting.condition {
            rule.check_names().map_err(|bad| bad.within(format!("preferences[{index}]")))?;
        }
    }
    // Each name is looked up.
    let names: HashSet<_> = settings.iter().flat_map(|setting| setting.workflows.names()).collect();
    if names.len() > Subscription::MAX_PREFERENCES {
        let reason = Reason::TooMany { max: Subscription::MAX_PREFERENCES };
        return Err(Invalid::new("preferences", reason));
    }
    Ok(())
}
