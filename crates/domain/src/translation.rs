//! Translations: texts of a workflow or a layout in one language.

mod compose;
mod plural;
mod texts;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::contact::Locale;
use crate::environment::Home;
use crate::error::{Invalid, Reason, Unit};
use crate::ids::{EnvironmentId, LayoutRef, OrganizationId, TranslationId, WorkflowRef};
use crate::json::{Object, Shape, Shaped, shape};
use crate::page::{OrderBy, PageQuery};
use crate::query;
use crate::time::{Dated, Timestamp, dated};
use crate::vocabulary::wire_enum;

#[doc(hidden)]
pub use texts::{Texts, chain};

/// Texts of a workflow or a layout in one language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Translation {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: TranslationId,
    /// Organization of the translation.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Environment of the translation.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Translated workflow or layout.
    #[serde(flatten)]
    pub resource: Resource,
    /// Language.
    pub locale: Locale,
    /// Texts by name. Names may be nested.
    pub content: Object,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change of the content.
    pub updated_at: Timestamp,
    #[serde(skip)]
    prepared: texts::Prepared,
}

/// Workflow or layout with translations, by its identifier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Identifier.
    pub resource_id: String,
    /// Type.
    pub resource_type: ResourceType,
}

shape! { Resource { "resourceId": resource_id, "resourceType": resource_type } }

wire_enum! {
    /// Type of a resource with translations.
    ResourceType, "resourceType":
    Workflow = "workflow",
    Layout = "layout",
}

/// All translations of a workflow or a layout. The group exists from the first translation of the
/// resource, or from switching translations on, until its deletion.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TranslationGroup {
    /// Environment of the group.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Translated workflow or layout.
    #[serde(flatten)]
    pub resource: Resource,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// New or changed translation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TranslationUpsert {
    /// Workflow by identifier, id or slug, or layout by identifier or id.
    #[serde(flatten)]
    pub resource: Resource,
    /// Language.
    pub locale: Locale,
    /// Texts by name, which replace the stored ones.
    pub content: Object,
}

shape! { TranslationUpsert { "locale": locale, "content": content; resource } }

/// Translations of many resources into one language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TranslationImport {
    /// Language.
    pub locale: Locale,
    /// Texts.
    pub master_json: MasterJson,
}

shape! { TranslationImport { "locale": locale, "masterJson": master_json } }

/// Texts of many resources, by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MasterJson {
    /// Texts of workflows.
    pub workflows: BTreeMap<String, ImportTexts>,
    /// Texts of layouts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub layouts: BTreeMap<String, ImportTexts>,
}

shape! { MasterJson { "workflows": workflows, "layouts": layouts } }

/// Texts of a resource in an import, by name. The import takes objects of texts, and lists a resource
/// with any other value as failed. A value that is nested deeper than an [`Object`] is kept as `null`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Value")]
pub struct ImportTexts(Value);

impl Serialize for ImportTexts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl Shaped for ImportTexts {
    fn shape() -> Shape {
        Value::shape()
    }
}

/// Result of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[must_use = "it has the resources that were refused"]
pub struct ImportResult {
    /// `true` if at least one resource was imported.
    pub success: bool,
    /// Message about the result.
    pub message: String,
    /// Imported resources, as named in the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub successful: Vec<String>,
    /// Failed resources, as named in the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// The error of each failed resource, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ImportProblem>,
    /// Imported resources whose texts have a mistake, with the first one of each. Such a text is passed over when
    /// a message is made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ImportProblem>,
}

/// Problem with a resource of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ImportProblem {
    /// The resource, as named in the request.
    #[serde(flatten)]
    pub resource: Resource,
    /// Text of the problem.
    pub message: String,
}

/// Query of translations. A translation must meet every condition that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TranslationQuery {
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Type of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<ResourceType>,
    /// Identifier of the resource.
    #[serde(deserialize_with = "query::search", skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    /// Language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<Locale>,
}

shape! { TranslationQuery {
    "resourceType": resource_type, "resourceId": resource_id, "locale": locale;
    page by TranslationQuery::ORDERS
} }

impl Resource {
    /// Returns a workflow, by its identifier, id or slug.
    pub fn workflow(workflow: impl Into<WorkflowRef>) -> Self {
        let resource_type = ResourceType::Workflow;
        Self { resource_id: workflow.into().into(), resource_type }
    }

    /// Returns a layout, by its identifier or id.
    pub fn layout(layout: impl Into<LayoutRef>) -> Self {
        let resource_type = ResourceType::Layout;
        Self { resource_id: layout.into().into(), resource_type }
    }
}

dated! { Translation }

impl Translation {
    /// Maximum size of the content as JSON text, in bytes.
    pub const MAX_CONTENT: usize = 1024 * 1024;

    /// Returns a new translation.
    #[doc(hidden)]
    pub fn new(id: TranslationId, home: &Home, upsert: TranslationUpsert, now: Timestamp) -> Self {
        Self {
            id,
            organization_id: home.organization_id.clone(),
            environment_id: home.environment_id,
            resource: upsert.resource,
            locale: upsert.locale,
            content: upsert.content,
            created_at: now,
            updated_at: now,
            prepared: texts::Prepared::default(),
        }
    }

    /// Returns the translation with `content` in place of its own.
    #[doc(hidden)]
    #[must_use]
    pub fn with_content(&self, content: Object, now: Timestamp) -> Self {
        Self { content, prepared: texts::Prepared::default(), ..self.clone() }.changed(now)
    }

    /// Refuses content of more than 1 MiB, and values that are neither texts nor objects of texts.
    #[doc(hidden)]
    pub fn check_content(content: &Object) -> Result<(), Invalid> {
        if content.size() > Self::MAX_CONTENT {
            let reason = Reason::TooLong { max: Self::MAX_CONTENT, unit: Unit::Bytes };
            return Err(Invalid::new("content", reason));
        }
        content.iter().try_for_each(|(name, value)| {
            check_text(name, value).map_err(|invalid| invalid.within("content"))
        })
    }

    /// Refuses texts with a mistake in a placeholder. The payload of the workflow may have a JSON `schema`.
    #[doc(hidden)]
    pub fn check_templates(content: &Object, schema: Option<&Object>) -> Result<(), Invalid> {
        content.iter().try_for_each(|(name, value)| {
            check_template(name, value, schema).map_err(|invalid| invalid.within("content"))
        })
    }
}

// The depth of an object is bounded, and so is this recursion.
fn check_template(name: &str, value: &Value, schema: Option<&Object>) -> Result<(), Invalid> {
    match value {
        Value::String(text) => texts::check(text, schema).map_err(|invalid| invalid.named(name)),
        Value::Object(inner) => inner.iter().try_for_each(|(inside, value)| {
            check_template(inside, value, schema).map_err(|invalid| invalid.within(name))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Ok(()),
    }
}

// The depth of an object is bounded, and so is this recursion.
fn check_text(name: &str, value: &Value) -> Result<(), Invalid> {
    match value {
        Value::String(_) => Ok(()),
        Value::Object(inner) => inner.iter().try_for_each(|(inside, value)| {
            check_text(inside, value).map_err(|invalid| invalid.within(name))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(Invalid::new(name, Reason::malformed("a text, or texts by their names")))
        }
    }
}

impl TranslationGroup {
    /// Returns the group of a workflow or a layout.
    pub fn new(home: &Home, resource: Resource, now: Timestamp) -> Self {
        Self { environment_id: home.environment_id, resource, created_at: now }
    }
}

impl ImportTexts {
    /// Returns the texts as JSON.
    pub fn as_value(&self) -> &Value {
        &self.0
    }
}

impl TranslationImport {
    /// Maximum number of resources in an import.
    pub const MAX: usize = 1_000;

    /// Refuses an import of more than 1,000 resources.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        let MasterJson { workflows, layouts } = &self.master_json;
        if workflows.len() + layouts.len() > Self::MAX {
            return Err(Invalid::new("masterJson", Reason::TooMany { max: Self::MAX }));
        }
        Ok(())
    }

    /// Returns the resources and their texts, in a fixed order.
    #[doc(hidden)]
    pub fn resources(&self) -> impl Iterator<Item = (Resource, &Value)> {
        let MasterJson { workflows, layouts } = &self.master_json;
        let workflows = workflows.iter().map(|texts| (ResourceType::Workflow, texts));
        let layouts = layouts.iter().map(|texts| (ResourceType::Layout, texts));
        workflows.chain(layouts).map(|(resource_type, (id, content))| {
            (Resource { resource_id: id.clone(), resource_type }, content.as_value())
        })
    }
}

impl ImportProblem {
    /// Returns the problem with a resource.
    #[doc(hidden)]
    pub fn new(resource: Resource, problem: impl fmt::Display) -> Self {
        Self { resource, message: problem.to_string() }
    }
}

impl ImportResult {
    /// Returns the result of an import with `successful` resources, of which some have `warnings`, and the `errors`
    /// of the others.
    #[doc(hidden)]
    pub fn new(
        successful: Vec<String>,
        errors: Vec<ImportProblem>,
        warnings: Vec<ImportProblem>,
    ) -> Self {
        let failed: Vec<_> =
            errors.iter().map(|error| error.resource.resource_id.clone()).collect();
        let message = match (successful.len(), failed.len()) {
            (0, 0) => "no supported resources found".into(),
            (0, _) => "failed to import any resource".into(),
            (count, 0) => format!("imported {count} resource(s)"),
            (count, failed) => {
                format!("partial import: {count} resource(s) imported, {failed} failed")
            }
        };
        Self { success: !successful.is_empty(), message, successful, failed, errors, warnings }
    }
}

impl TranslationQuery {
    /// Fields that the list can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];

    /// Returns `true` if the query excludes translations.
    #[doc(hidden)]
    pub fn is_filtered(&self) -> bool {
        self.resource_type.is_some() || self.resource_id.is_some() || self.locale.is_some()
    }

    /// Returns `true` if `translation` meets the conditions.
    #[doc(hidden)]
    pub fn matches(&self, translation: &Translation) -> bool {
        let Resource { resource_id, resource_type } = &translation.resource;
        self.resource_type.is_none_or(|wanted| *resource_type == wanted)
            && self.resource_id.as_ref().is_none_or(|wanted| resource_id == wanted)
            && self.locale.as_ref().is_none_or(|wanted| translation.locale == *wanted)
    }
}

#[cfg(test)]
mod tests;
