//! Workflows: the steps that run when an event is triggered.

mod check;
mod compose;
mod declare;
mod matching;
mod pause;
mod request;
mod slug;
mod steps;
mod sync;
mod trigger;

use std::mem;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::contact::Locale;
use crate::environment::Home;
use crate::error::Invalid;
use crate::ids::{
    ContentId, EnvironmentId, NotificationGroupId, OrganizationId, StepId, UserId, WorkflowId,
    WorkflowIdentifier,
};
use crate::json::Object;
use crate::preference::{ConditionData, Layers, Preference, WorkflowInfo, WorkflowName};
use crate::step::WorkflowStep;
use crate::template::{MissingVariables, Template, Variables};
use crate::time::{Dated, Timestamp, dated};
use crate::translation::Texts;
use crate::vocabulary::{Severity, StepType, wire_enum};

pub use crate::payload::PayloadSchema;
pub use request::{WorkflowCreate, WorkflowQuery, WorkflowUpdate};
pub use sync::{Undeclared, WorkflowSync, WorkflowSyncReport};
#[doc(hidden)]
pub use trigger::TriggerType;
pub use trigger::{NotificationTrigger, TriggerVariable};

/// Sequence of steps that a trigger runs for a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the specification has them")]
#[non_exhaustive]
pub struct Workflow {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: WorkflowId,
    /// Display name: 1 to 128 characters.
    pub name: String,
    /// Description: at most 256 characters.
    pub description: String,
    /// `true` if the workflow can be triggered.
    pub active: bool,
    /// `true` if the workflow is a draft. It is always `false`.
    pub draft: bool,
    /// Preference in the definition of the workflow.
    pub preference_settings: Preference,
    /// Preference of the operator, which decides before that of the definition.
    #[serde(rename = "preferences", default, skip_serializing_if = "Option::is_none")]
    pub operator_preference: Option<Preference>,
    /// `true` if the workflow is critical: subscribers cannot opt out of it.
    pub critical: bool,
    /// Tags: at most 16 of at most 64 characters.
    pub tags: Vec<String>,
    /// Steps, in their order: at most 20.
    pub steps: Vec<WorkflowStep>,
    /// Organization of the workflow.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// User that created the workflow.
    #[serde(rename = "_creatorId")]
    pub creator_id: UserId,
    /// Environment of the workflow.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Trigger of the workflow.
    pub triggers: [NotificationTrigger; 1],
    /// Id of the workflow's group.
    #[serde(rename = "_notificationGroupId")]
    pub notification_group_id: NotificationGroupId,
    /// Workflow that this one derives from. It is always absent.
    #[serde(rename = "_parentId", default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<WorkflowId>,
    /// `true` if the workflow is being deleted. Its deletion ends with the removal of the record.
    pub deleted: bool,
    /// Time at which its deletion began.
    pub deleted_at: Option<Timestamp>,
    /// User that deleted the workflow.
    pub deleted_by: Option<UserId>,
    /// Group. Always absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification_group: Option<NotificationGroup>,
    /// Custom data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Object>,
    /// State of the integrations of its channels. Always absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_integration_status: Option<Object>,
    /// JSON Schema of the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_schema: Option<PayloadSchema>,
    /// `true` if payloads are checked against the schema. Absent means `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate_payload: Option<bool>,
    /// `true` if the workflow has translations.
    #[serde(default)]
    pub is_translation_enabled: bool,
    /// Language for subscribers whose own one has no texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_locale: Option<Locale>,
    /// Effect of placeholders without a value.
    #[serde(default, skip_serializing_if = "MissingVariables::is_empty")]
    pub missing_variables: MissingVariables,
    /// Severity of its notifications.
    pub severity: Severity,
    /// Origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<WorkflowOrigin>,
    /// Time at which the workflow was paused. `None` if it is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// Time at which a synchronization deactivated the workflow, because its set did not declare it. The next
    /// declaration activates the workflow. `None` if `active` was set since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undeclared_at: Option<Timestamp>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Group of workflows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationGroup {
    /// Id given by the engine.
    #[serde(rename = "_id", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<NotificationGroupId>,
    /// Display name.
    pub name: String,
    /// Environment of the group.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Organization of the group.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Group that this one derives from.
    #[serde(rename = "_parentId", default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<NotificationGroupId>,
}

wire_enum! {
    /// Origin of a workflow.
    WorkflowOrigin, "origin":
    SvcCloud = "svc-cloud",
    SvcCloudV1 = "svc-cloud-v1",
    External = "external",
}

/// Ids of a new step.
#[doc(hidden)]
pub type StepIds = (StepId, ContentId);

dated! { Workflow }

impl Workflow {
    /// Longest display name, in characters.
    pub const MAX_NAME: usize = 128;
    /// Longest description, in characters.
    pub const MAX_DESCRIPTION: usize = 256;
    /// Maximum number of tags.
    pub const MAX_TAGS: usize = 16;
    /// Longest tag, in characters.
    pub const MAX_TAG: usize = 64;
    /// Maximum number of steps.
    pub const MAX_STEPS: usize = 20;
    /// Largest JSON Schema of the payload, in bytes of JSON text.
    pub const MAX_PAYLOAD_SCHEMA: usize = 64 * 1024;
    /// Maximum number of references in the JSON Schema of the payload, where one to a schema with
    /// references counts with all of these. If there is `unevaluatedProperties` or `unevaluatedItems`, a value is
    /// checked against at most 10,000 schemas; one within these keywords counts again on each level.
    pub const MAX_SCHEMA_REFERENCES: usize = 10_000;

    /// Returns a new workflow. `new_step` makes the ids of its steps.
    #[doc(hidden)]
    pub fn new(
        id: WorkflowId,
        home: &Home,
        mut create: WorkflowCreate,
        new_step: impl FnMut() -> StepIds,
        now: Timestamp,
    ) -> Result<Self, Invalid> {
        let within = |invalid: Invalid| invalid.within("preferenceSettings");
        create.preference_settings.check().map_err(within)?;
        let steps = steps::saved(&[], mem::take(&mut create.steps), new_step)?;
        let workflow = Self::of(id, home, create, steps, now);
        workflow.check()?;
        workflow.check_fields()?;
        workflow.check_texts()?;
        Ok(workflow)
    }

    fn of(
        id: WorkflowId,
        home: &Home,
        create: WorkflowCreate,
        steps: Vec<WorkflowStep>,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            name: create.name,
            description: create.description,
            active: create.active.unwrap_or(true),
            draft: false,
            preference_settings: create.preference_settings,
            operator_preference: None,
            critical: create.critical,
            tags: create.tags,
            triggers: [NotificationTrigger::new(create.identifier, &steps)],
            steps,
            organization_id: home.organization_id.clone(),
            creator_id: UserId::host(),
            environment_id: home.environment_id,
            notification_group_id: Uuid::from(home.environment_id).into(),
            parent_id: None,
            deleted: false,
            deleted_at: None,
            deleted_by: None,
            notification_group: None,
            data: create.data,
            workflow_integration_status: None,
            payload_schema: create.payload_schema.map(PayloadSchema::new),
            validate_payload: create.validate_payload,
            is_translation_enabled: create.is_translation_enabled,
            default_locale: create.default_locale,
            missing_variables: create.missing_variables,
            severity: create.severity,
            origin: None,
            paused_at: None,
            undeclared_at: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the workflow after `update`. `new_step` makes the ids of new steps.
    #[doc(hidden)]
    pub fn updated(
        &self,
        update: WorkflowUpdate,
        new_step: impl FnMut() -> StepIds,
        now: Timestamp,
    ) -> Result<Self, Invalid> {
        let mut workflow = self.clone();
        update.check_conditions()?;
        if let Some(steps) = update.steps {
            workflow.steps = steps::saved(&self.steps, steps, new_step)?;
            workflow.triggers =
                [NotificationTrigger::new(self.identifier().clone(), &workflow.steps)];
        }
        workflow.name = update.name.unwrap_or(workflow.name);
        workflow.description = update.description.unwrap_or(workflow.description);
        if let Some(active) = update.active {
            workflow.active = active;
            workflow.undeclared_at = None;
        }
        workflow.critical = update.critical.unwrap_or(workflow.critical);
        workflow.is_translation_enabled =
            update.is_translation_enabled.unwrap_or(workflow.is_translation_enabled);
        update.default_locale.apply(&mut workflow.default_locale);
        workflow.missing_variables = update.missing_variables.unwrap_or(workflow.missing_variables);
        workflow.severity = update.severity.unwrap_or(workflow.severity);
        workflow.tags = update.tags.unwrap_or(workflow.tags);
        workflow.preference_settings =
            update.preference_settings.unwrap_or(workflow.preference_settings);
        update.operator_preference.apply(&mut workflow.operator_preference);
        update.data.apply(&mut workflow.data);
        update.payload_schema.map(PayloadSchema::new).apply(&mut workflow.payload_schema);
        workflow.validate_payload = update.validate_payload.or(workflow.validate_payload);
        workflow.check()?;
        if workflow.steps != self.steps || workflow.payload_schema != self.payload_schema {
            workflow.check_fields()?;
        }
        // The texts that a template names may have been deleted with all of the workflow's
        // translations.
        let was_enabled = self.is_translation_enabled;
        if workflow.steps != self.steps || workflow.is_translation_enabled != was_enabled {
            workflow.check_texts()?;
        }
        Ok(workflow.changed_from(self, now))
    }

    /// Returns `true` if the workflow is being deleted: nothing can be done with it, and nothing of it
    /// goes on.
    pub const fn is_deleted(&self) -> bool {
        self.deleted
    }

    /// Returns the workflow with a deletion that began at `now`, or that had begun before.
    #[doc(hidden)]
    #[must_use]
    pub fn deleted(&self, now: Timestamp) -> Self {
        let deleted_at = self.deleted_at.or(Some(now));
        Self { deleted: true, deleted_at, paused_at: None, ..self.clone() }.changed_from(self, now)
    }

    /// Returns the workflow without translations.
    #[doc(hidden)]
    #[must_use]
    pub fn untranslated(&self, now: Timestamp) -> Self {
        Self { is_translation_enabled: false, ..self.clone() }.changed_from(self, now)
    }

    /// Returns the memory of its compiled templates and schema, in bytes: an upper bound.
    #[doc(hidden)]
    pub fn prepared_weight(&self) -> usize {
        let templates = self.steps.iter().flat_map(|step| step.definition.templates());
        let schema = self.payload_schema.as_ref().map_or(0, PayloadSchema::prepared_weight);
        schema + templates.map(Template::prepared_weight).sum::<usize>()
    }

    /// Returns the variables of its templates, with their texts and the effect of missing ones.
    pub(crate) fn variables(&self, known: Variables, texts: Option<&Texts>) -> Variables {
        let variables = known.missing(self.missing_variables);
        match texts {
            Some(texts) => variables.texts(texts.clone()),
            None => variables,
        }
    }

    /// Returns the identifier that triggers the workflow.
    pub const fn identifier(&self) -> &WorkflowIdentifier {
        let [trigger] = &self.triggers;
        &trigger.identifier
    }

    /// Returns the layers that decide about the channels of the workflow. `global` and `specific`
    /// are preferences of the subscriber. Conditions count as met.
    #[doc(hidden)]
    pub fn layers<'a>(
        &'a self,
        global: Option<&'a Preference>,
        specific: Option<&'a Preference>,
    ) -> Layers<'a> {
        Layers {
            definition: Some(&self.preference_settings),
            operator: self.operator_preference.as_ref(),
            subscriber_global: global,
            subscriber_workflow: specific,
            critical: self.critical,
            data: ConditionData::AssumedToHold,
        }
    }

    /// Returns the step with this id.
    pub fn step(&self, id: StepId) -> Option<&WorkflowStep> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// Returns the active steps, in their order.
    #[doc(hidden)]
    pub fn active_steps(&self) -> impl Iterator<Item = &WorkflowStep> {
        self.steps.iter().filter(|step| step.definition.active)
    }

    /// Returns `true` if a condition or a template of a step refers to the result of another one.
    #[doc(hidden)]
    pub fn refers_to_results(&self) -> bool {
        self.steps.iter().any(|step| !step.awaits.is_empty())
    }

    /// Returns the types of the active steps, each once.
    #[doc(hidden)]
    pub fn step_types(&self) -> Vec<StepType> {
        let mut types: Vec<_> =
            self.active_steps().map(|step| step.definition.kind.step_type()).collect();
        types.sort_unstable();
        types.dedup();
        types
    }

    /// Returns the public part of the workflow, for subscribers.
    #[doc(hidden)]
    pub fn info(&self) -> WorkflowInfo {
        WorkflowInfo {
            id: self.id,
            identifier: self.identifier().clone(),
            name: self.name.clone(),
            critical: self.critical,
            tags: self.tags.clone(),
            data: self.data.clone(),
            severity: self.severity,
        }
    }
}

impl From<&Workflow> for WorkflowName {
    fn from(workflow: &Workflow) -> Self {
        Self {
            slug: workflow.slug(),
            identifier: workflow.identifier().clone(),
            name: workflow.name.clone(),
            updated_at: Some(workflow.updated_at),
        }
    }
}

#[cfg(test)]
mod tests;
