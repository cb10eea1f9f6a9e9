//! Requests for workflows.

use serde::{Deserialize, Serialize};

use super::Workflow;
use crate::contact::Locale;
use crate::error::Invalid;
use crate::ids::WorkflowIdentifier;
use crate::json::{Object, shape};
use crate::page::{OrderBy, PageQuery};
use crate::patch::Patch;
use crate::preference::Preference;
use crate::query;
use crate::step::Step;
use crate::template::MissingVariables;
use crate::vocabulary::Severity;

/// New workflow.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::preference::Preference;
/// use tidings::step::Step;
/// use tidings::vocabulary::Channel;
/// use tidings::workflow::WorkflowCreate;
///
/// let create = WorkflowCreate::new("order-shipped", "Order shipped")?
///     .tags(["orders"])
///     .critical(true)
///     .preference(Preference::default().with(Channel::Sms, false))
///     .step(Step::in_app("Order {{ payload.order }} is on its way")?)
///     .step(Step::email("Order {{ payload.order }}", "<p>It is on its way.</p>")?);
/// assert_eq!(create.steps.len(), 2);
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkflowCreate {
    /// Identifier that triggers it, unique in the environment.
    #[serde(rename = "workflowId")]
    pub identifier: WorkflowIdentifier,
    /// Display name: 1 to 128 characters.
    pub name: String,
    /// Description: at most 256 characters.
    #[serde(default)]
    pub description: String,
    /// `true` if the workflow can be triggered. If absent, a new workflow can, as can one that a
    /// synchronization has deactivated. Another one keeps its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// `true` if the workflow is critical: subscribers cannot opt out of it.
    #[serde(default)]
    pub critical: bool,
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
    #[serde(default)]
    pub severity: Severity,
    /// Tags: at most 16 of at most 64 characters.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Preference: which channels may be used.
    #[serde(default)]
    pub preference_settings: Preference,
    /// Steps, in their order: at most 20.
    pub steps: Vec<Step>,
    /// Custom data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Object>,
    /// JSON Schema of the payload: at most 64 KiB. Where it lists `properties`, templates, conditions and
    /// settings of steps may name no other fields, unless `additionalProperties` allows them. Its defaults are
    /// not applied to the payload. Its references are pointers or names of anchors. A schema may refer to
    /// itself for a member or an item of the value, not for the value itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_schema: Option<Object>,
    /// `true` if payloads are checked against the schema. If absent, they are checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate_payload: Option<bool>,
}

shape! { WorkflowCreate {
    "workflowId": identifier, "name": name, "description": description, "active": active,
    "critical": critical, "isTranslationEnabled": is_translation_enabled,
    "defaultLocale": default_locale, "missingVariables": missing_variables, "severity": severity,
    "tags": tags, "preferenceSettings": preference_settings, "steps": steps, "data": data,
    "payloadSchema": payload_schema, "validatePayload": validate_payload,
} }

/// Partial update of a workflow. Absent fields keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named after the fields of `Workflow`")]
#[non_exhaustive]
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
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub default_locale: Patch<Locale>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_variables: Option<MissingVariables>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preference_settings: Option<Preference>,
    #[serde(rename = "preferences", skip_serializing_if = "Patch::is_keep")]
    pub operator_preference: Patch<Preference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Step>>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub data: Patch<Object>,
    /// JSON Schema of the payload. Its defaults are not applied to the payload.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub payload_schema: Patch<Object>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validate_payload: Option<bool>,
}

shape! { update WorkflowUpdate {
    "name": name, "description": description, "active": active, "critical": critical,
    "isTranslationEnabled": is_translation_enabled, "defaultLocale": default_locale,
    "missingVariables": missing_variables, "severity": severity, "tags": tags,
    "preferenceSettings": preference_settings, "preferences": operator_preference, "steps": steps,
    "data": data, "payloadSchema": payload_schema, "validatePayload": validate_payload,
} }

/// Query of workflows. A workflow must meet every condition that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowQuery {
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Tag.
    #[serde(deserialize_with = "query::search", skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// `true` selects workflows that can be triggered, `false` the others.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
}

shape! { WorkflowQuery {
    "tag": tag, "active": active as written;
    page by WorkflowQuery::ORDERS
} }

impl WorkflowUpdate {
    /// Refuses conditions with an unknown variable.
    pub(super) fn check_conditions(&self) -> Result<(), Invalid> {
        if let Some(settings) = &self.preference_settings {
            settings.check().map_err(|invalid| invalid.within("preferenceSettings"))?;
        }
        self.operator_preference.as_set().map_or(Ok(()), |preference| {
            preference.check().map_err(|invalid| invalid.within("preferences"))
        })
    }
}

impl WorkflowQuery {
    /// Fields that the list can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];

    /// Returns `true` if the query excludes workflows.
    #[doc(hidden)]
    pub fn is_filtered(&self) -> bool {
        self.tag.is_some() || self.active.is_some()
    }

    /// Returns `true` if `workflow` meets the conditions.
    #[doc(hidden)]
    pub fn matches(&self, workflow: &Workflow) -> bool {
        self.tag.as_ref().is_none_or(|tag| workflow.tags.contains(tag))
            && self.active.is_none_or(|active| workflow.active == active)
    }
}
