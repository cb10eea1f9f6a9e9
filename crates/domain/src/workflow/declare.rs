//! Workflows that the host application declares in its code.

use super::{StepIds, Workflow, WorkflowCreate, WorkflowOrigin, WorkflowUpdate};
use crate::environment::Home;
use crate::error::Invalid;
use crate::ids::WorkflowId;
use crate::patch::Patch;
use crate::time::{Dated, Timestamp};

impl Workflow {
    /// Returns a new workflow that is declared in code.
    #[doc(hidden)]
    pub fn declared(
        id: WorkflowId,
        home: &Home,
        create: WorkflowCreate,
        new_step: impl FnMut() -> StepIds,
        now: Timestamp,
    ) -> Result<Self, Invalid> {
        let origin = Some(WorkflowOrigin::External);
        Ok(Self { origin, ..Self::new(id, home, create, new_step, now)? })
    }

    /// Returns the workflow after the declaration `create`. It is unchanged if nothing differs.
    ///
    /// The declaration replaces every field except `operator_preference`, and except an absent `active`: a
    /// workflow is activated if a synchronization has deactivated it. Its steps are matched to the stored ones.
    #[doc(hidden)]
    pub fn redeclared(
        &self,
        create: WorkflowCreate,
        new_step: impl FnMut() -> StepIds,
        now: Timestamp,
    ) -> Result<Self, Invalid> {
        let origin = Some(WorkflowOrigin::External);
        // An update cannot clear it.
        let validate_payload = create.validate_payload;
        let before = Self { validate_payload, origin, ..self.clone() };
        let mut update = WorkflowUpdate::from(create);
        update.active = update.active.or(self.undeclared_at.and(Some(true)));
        let declared = before.updated(update, new_step, now)?;
        Ok(declared.changed_from(self, now))
    }

    /// Returns `true` if the workflow is declared in code.
    #[doc(hidden)]
    pub fn is_declared(&self) -> bool {
        self.origin == Some(WorkflowOrigin::External)
    }

    /// Returns the workflow, deactivated until it is declared again. One that is inactive is unchanged.
    #[doc(hidden)]
    #[must_use]
    pub fn undeclared(&self, now: Timestamp) -> Self {
        if !self.active {
            return self.clone();
        }
        let undeclared_at = Some(now);
        Self { active: false, undeclared_at, ..self.clone() }.changed_from(self, now)
    }
}

impl From<WorkflowCreate> for WorkflowUpdate {
    /// Converts a declaration into the update that sets every declared field.
    fn from(create: WorkflowCreate) -> Self {
        let WorkflowCreate {
            identifier: _,
            name,
            description,
            active,
            critical,
            is_translation_enabled,
            default_locale,
            missing_variables,
            severity,
            tags,
            preference_settings,
            steps,
            data,
            payload_schema,
            validate_payload,
        } = create;
        Self {
            name: Some(name),
            description: Some(description),
            active,
            critical: Some(critical),
            is_translation_enabled: Some(is_translation_enabled),
            default_locale: default_locale.map_or(Patch::Clear, Patch::Set),
            missing_variables: Some(missing_variables),
            severity: Some(severity),
            tags: Some(tags),
            preference_settings: Some(preference_settings),
            operator_preference: Patch::Keep,
            steps: Some(steps),
            data: data.map_or(Patch::Clear, Patch::Set),
            payload_schema: payload_schema.map_or(Patch::Clear, Patch::Set),
            validate_payload,
        }
    }
}

#[cfg(test)]
mod tests;
