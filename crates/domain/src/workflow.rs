//! Workflows: what happens when an event is triggered.

mod compose;
mod declare;
mod matching;
mod request;
mod steps;
mod sync;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::environment::Home;
use crate::error::{Invalid, Reason, at_most, at_most_items};
use crate::ids::{
    EnvironmentId, NotificationGroupId, OrganizationId, StepId, TemplateId, UserId, WorkflowId,
    WorkflowIdentifier, plain,
};
use crate::json::Object;
use crate::payload;
use crate::preference::{ConditionData, Layers, Preference, WorkflowInfo, WorkflowName};
use crate::slug::{base62, from_base62, slugify};
use crate::step::WorkflowStep;
use crate::template::Template;
use crate::time::{Dated, Timestamp, dated};
use crate::vocabulary::{JobType, Severity, wire_enum};

pub use request::{WorkflowCreate, WorkflowQuery, WorkflowUpdate};
pub use sync::{Undeclared, WorkflowSync, WorkflowSyncReport};

/// A workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the specification has them")]
#[non_exhaustive]
pub struct Workflow {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: WorkflowId,
    /// What people call it.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Whether it can be triggered.
    pub active: bool,
    /// Whether it is still being written.
    pub draft: bool,
    /// What it says about channels, as its author defined it.
    pub preference_settings: Preference,
    /// What it says about channels, as it was set in a dashboard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferences: Option<Preference>,
    /// Whether it is critical: subscribers cannot opt out of it.
    pub critical: bool,
    /// What it is filed under.
    pub tags: Vec<String>,
    /// What it does, in this order.
    pub steps: Vec<WorkflowStep>,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Who created it.
    #[serde(rename = "_creatorId")]
    pub creator_id: UserId,
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// What sets it off.
    pub triggers: [NotificationTrigger; 1],
    /// The group it is listed under.
    #[serde(rename = "_notificationGroupId")]
    pub notification_group_id: NotificationGroupId,
    /// The workflow it was derived from.
    #[serde(rename = "_parentId", default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<WorkflowId>,
    /// Always false: a workflow that is deleted is gone.
    pub deleted: bool,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// Who deleted it.
    pub deleted_by: Option<UserId>,
    /// The group it is listed under, filled in where it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification_group: Option<NotificationGroup>,
    /// Custom data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Object>,
    /// Whether its channels can be sent on, filled in where it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_integration_status: Option<Object>,
    /// JSON Schema of the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_schema: Option<Object>,
    /// Whether payloads are checked against the schema. Absent means true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate_payload: Option<bool>,
    /// Whether it is translated.
    #[serde(default)]
    pub is_translation_enabled: bool,
    /// How much its notifications matter.
    pub severity: Severity,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<WorkflowOrigin>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What sets a workflow off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationTrigger {
    /// What kind of thing sets it off.
    #[serde(rename = "type")]
    pub kind: TriggerType,
    /// The name that triggers it.
    pub identifier: WorkflowIdentifier,
    /// What the payload may hold.
    pub variables: Vec<TriggerVariable>,
    /// What of the subscriber it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriber_variables: Vec<TriggerVariable>,
}

wire_enum! {
    /// What kind of thing sets a workflow off.
    TriggerType, "type":
    Event = "event",
}

/// A name that a template may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TriggerVariable {
    /// The name.
    pub name: String,
}

/// What workflows are listed under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationGroup {
    /// What the engine calls it.
    #[serde(rename = "_id", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<NotificationGroupId>,
    /// What people call it.
    pub name: String,
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// The group it was derived from.
    #[serde(rename = "_parentId", default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<NotificationGroupId>,
}

wire_enum! {
    /// Where a workflow came from.
    WorkflowOrigin, "origin":
    SvcCloud = "svc-cloud",
    SvcCloudV1 = "svc-cloud-v1",
    External = "external",
}

/// The ids of a new step.
pub type StepIds = (StepId, TemplateId);

dated! { Workflow }

impl Workflow {
    /// The longest name, in characters.
    pub const MAX_NAME: usize = 128;
    /// The longest description, in characters.
    pub const MAX_DESCRIPTION: usize = 256;
    /// The most tags.
    pub const MAX_TAGS: usize = 16;
    /// The longest tag, in characters.
    pub const MAX_TAG: usize = 64;
    /// The most steps.
    pub const MAX_STEPS: usize = 20;

    /// A workflow that nobody has seen before. `new_step` makes the ids of its steps.
    pub fn new(
        id: WorkflowId,
        home: &Home,
        create: WorkflowCreate,
        new_step: impl FnMut() -> StepIds,
        now: Timestamp,
    ) -> Result<Self, Invalid> {
        let steps = steps::saved(&[], create.steps, new_step)?;
        let workflow = Self {
            id,
            name: create.name,
            description: create.description,
            active: create.active.unwrap_or(true),
            draft: false,
            preference_settings: create.preference_settings,
            preferences: None,
            critical: create.critical,
            tags: create.tags,
            triggers: [NotificationTrigger::new(create.workflow_id, &steps)],
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
            payload_schema: create.payload_schema,
            validate_payload: create.validate_payload,
            is_translation_enabled: create.is_translation_enabled,
            severity: create.severity,
            origin: None,
            created_at: now,
            updated_at: now,
        };
        workflow.check()?;
        Ok(workflow)
    }

    /// The workflow after `update`. `new_step` makes the ids of steps that it did not have before.
    pub fn updated(
        &self,
        update: WorkflowUpdate,
        new_step: impl FnMut() -> StepIds,
        now: Timestamp,
    ) -> Result<Self, Invalid> {
        let mut workflow = self.clone();
        if let Some(steps) = update.steps {
            workflow.steps = steps::saved(&self.steps, steps, new_step)?;
            workflow.triggers =
                [NotificationTrigger::new(self.identifier().clone(), &workflow.steps)];
        }
        workflow.name = update.name.unwrap_or(workflow.name);
        workflow.description = update.description.unwrap_or(workflow.description);
        workflow.active = update.active.unwrap_or(workflow.active);
        workflow.critical = update.critical.unwrap_or(workflow.critical);
        workflow.is_translation_enabled =
            update.is_translation_enabled.unwrap_or(workflow.is_translation_enabled);
        workflow.severity = update.severity.unwrap_or(workflow.severity);
        workflow.tags = update.tags.unwrap_or(workflow.tags);
        workflow.preference_settings =
            update.preference_settings.unwrap_or(workflow.preference_settings);
        update.preferences.apply(&mut workflow.preferences);
        update.data.apply(&mut workflow.data);
        update.payload_schema.apply(&mut workflow.payload_schema);
        workflow.validate_payload = update.validate_payload.or(workflow.validate_payload);
        workflow.check()?;
        Ok(workflow.changed_from(self, now))
    }

    /// The workflow, no longer translated.
    #[must_use]
    pub fn untranslated(&self, now: Timestamp) -> Self {
        Self { is_translation_enabled: false, ..self.clone() }.changed_from(self, now)
    }

    fn check(&self) -> Result<(), Invalid> {
        if self.name.is_empty() {
            return Err(Invalid::new("name", Reason::Empty));
        }
        at_most("name", &self.name, Self::MAX_NAME)?;
        plain("name", &self.name)?;
        at_most("description", &self.description, Self::MAX_DESCRIPTION)?;
        at_most_items("tags", &self.tags, Self::MAX_TAGS)?;
        let mut tags = self.tags.iter().enumerate();
        tags.try_for_each(|(index, tag)| {
            let field = format!("tags[{index}]");
            at_most(&field, tag, Self::MAX_TAG)?;
            plain(&field, tag)
        })?;
        self.check_schema()
    }

    // Refuses a schema that is none, and templates that name fields that it does not have.
    fn check_schema(&self) -> Result<(), Invalid> {
        let Some(schema) = &self.payload_schema else { return Ok(()) };
        if self.validate_payload != Some(false) {
            payload::check_schema(schema)?;
        }
        let mut steps = self.steps.iter().enumerate();
        steps.try_for_each(|(index, step)| {
            let checked = step.definition.check_payload(schema);
            checked.map_err(|invalid| invalid.within(format!("steps[{index}]")))
        })
    }

    /// Refuses a payload that the schema does not allow, with the way to the field, as in
    /// `payload.order.id`.
    pub fn check_payload(&self, payload: &Object) -> Result<(), Invalid> {
        match (&self.payload_schema, self.validate_payload) {
            (None, _) | (Some(_), Some(false)) => Ok(()),
            (Some(schema), _) => payload::check(schema, payload),
        }
    }

    /// The name that triggers it.
    pub const fn identifier(&self) -> &WorkflowIdentifier {
        let [trigger] = &self.triggers;
        &trigger.identifier
    }

    /// Its name in URLs.
    pub fn slug(&self) -> String {
        format!("{}{SLUG}{}", slugify(&self.name), base62(self.id.into()))
    }

    /// The id that ends `slug`, if it is one.
    pub fn id_in_slug(slug: &str) -> Option<WorkflowId> {
        let (_, id) = slug.rsplit_once(SLUG)?;
        from_base62(id).map(WorkflowId::from)
    }

    /// The layers that decide about its channels: its own, and the subscriber's `global` and
    /// `specific` preferences. Conditions are taken to hold.
    pub fn layers<'a>(
        &'a self,
        global: Option<&'a Preference>,
        specific: Option<&'a Preference>,
    ) -> Layers<'a> {
        Layers {
            definition: Some(&self.preference_settings),
            dashboard: self.preferences.as_ref(),
            subscriber_global: global,
            subscriber_workflow: specific,
            critical: self.critical,
            data: ConditionData::AssumedToHold,
        }
    }

    /// The step of that id.
    pub fn step(&self, id: StepId) -> Option<&WorkflowStep> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// The steps that are run, in their order.
    pub fn active_steps(&self) -> impl Iterator<Item = &WorkflowStep> {
        self.steps.iter().filter(|step| step.definition.active)
    }

    /// What its active steps do, each kind of thing once.
    pub fn job_types(&self) -> Vec<JobType> {
        let mut types: Vec<_> =
            self.active_steps().map(|step| step.definition.kind.job_type()).collect();
        types.sort_unstable();
        types.dedup();
        types
    }

    /// What a subscriber may know about it.
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

/// What stands between the name and the id in a workflow's slug.
const SLUG: &str = "_wf_";

impl NotificationTrigger {
    // What `identifier` triggers may use whatever the templates of its steps name.
    fn new(identifier: WorkflowIdentifier, steps: &[WorkflowStep]) -> Self {
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
