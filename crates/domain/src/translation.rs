//! Translations: the texts of a workflow or a layout in one language.

mod compose;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contact::Locale;
use crate::environment::Home;
use crate::error::{Invalid, Reason, Unit};
use crate::ids::{EnvironmentId, OrganizationId, TranslationId};
use crate::json::{Object, shape};
use crate::page::{OrderBy, PageQuery};
use crate::time::{Dated, Timestamp, dated};
use crate::vocabulary::wire_enum;

/// The texts of a workflow or a layout in one language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Translation {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: TranslationId,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// What it is for.
    #[serde(flatten)]
    pub resource: Resource,
    /// The language.
    pub locale: Locale,
    /// The texts by their names, which may be nested.
    pub content: Object,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its content was last replaced.
    pub updated_at: Timestamp,
}

/// What a translation is for: a workflow or a layout, by the name that its environment knows it
/// by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Its identifier.
    pub resource_id: String,
    /// Which of the two it is.
    pub resource_type: ResourceType,
}

shape! { Resource { "resourceId": resource_id, "resourceType": resource_type } }

wire_enum! {
    /// What a translation can be for.
    ResourceType, "resourceType":
    Workflow = "workflow",
    Layout = "layout",
}

/// All translations of a workflow or a layout. It is there from the moment that the resource is to
/// be translated, or has a translation, until it is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TranslationGroup {
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// What it is for.
    #[serde(flatten)]
    pub resource: Resource,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A translation as it is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TranslationUpsert {
    /// What it is for: a workflow by its identifier, its id or its slug, or a layout by its
    /// identifier or its id.
    #[serde(flatten)]
    pub resource: Resource,
    /// The language.
    pub locale: Locale,
    /// The texts by their names, in place of those that were there.
    pub content: Object,
}

shape! { TranslationUpsert { "locale": locale, "content": content; resource } }

/// Translations of many resources into one language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TranslationImport {
    /// The language.
    pub locale: Locale,
    /// The texts.
    pub master_json: MasterJson,
}

shape! { TranslationImport { "locale": locale, "masterJson": master_json } }

/// The texts of many resources, by the names of the resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MasterJson {
    /// Those of workflows.
    pub workflows: BTreeMap<String, Value>,
    /// Those of layouts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub layouts: BTreeMap<String, Value>,
}

shape! { MasterJson { "workflows": workflows, "layouts": layouts } }

/// What came of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ImportResult {
    /// Whether at least one resource was imported.
    pub success: bool,
    /// The same, for people.
    pub message: String,
    /// The resources that were imported, as the import names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub successful: Vec<String>,
    /// The resources that were not imported, as the import names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// Which translations are listed. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TranslationQuery {
    /// Which page of them.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Those of workflows, or those of layouts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<ResourceType>,
    /// Those of this resource, by its identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    /// Those into this language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<Locale>,
}

shape! { TranslationQuery {
    "resourceType": resource_type, "resourceId": resource_id, "locale": locale;
    page by TranslationQuery::ORDERS
} }

impl Resource {
    /// Returns a workflow, by its identifier, id or slug.
    pub fn workflow(id: impl AsRef<str>) -> Self {
        let resource_type = ResourceType::Workflow;
        Self { resource_id: id.as_ref().into(), resource_type }
    }

    /// Returns a layout, by its identifier or id.
    pub fn layout(id: impl AsRef<str>) -> Self {
        let resource_type = ResourceType::Layout;
        Self { resource_id: id.as_ref().into(), resource_type }
    }
}

dated! { Translation }

impl Translation {
    /// The most that its content may take as JSON text, in bytes.
    pub const MAX_CONTENT: usize = 1024 * 1024;

    /// A translation that nobody has seen before.
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
        }
    }

    /// The translation with `content` in place of its own.
    #[must_use]
    pub fn with_content(&self, content: Object, now: Timestamp) -> Self {
        Self { content, ..self.clone() }.changed(now)
    }

    /// Refuses content that is too large, or that holds anything but texts by their names.
    pub fn check_content(content: &Object) -> Result<(), Invalid> {
        if content.size() > Self::MAX_CONTENT {
            let reason = Reason::TooLong { max: Self::MAX_CONTENT, unit: Unit::Bytes };
            return Err(Invalid::new("content", reason));
        }
        content.iter().try_for_each(|(name, value)| {
            check_text(name, value).map_err(|invalid| invalid.within("content"))
        })
    }
}

// An object is nested so deep at most that this comes to an end.
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

impl TranslationImport {
    /// The most resources of one import.
    pub const MAX: usize = 1_000;

    /// Refuses an import of too many resources.
    pub fn check(&self) -> Result<(), Invalid> {
        let MasterJson { workflows, layouts } = &self.master_json;
        if workflows.len() + layouts.len() > Self::MAX {
            return Err(Invalid::new("masterJson", Reason::TooMany { max: Self::MAX }));
        }
        Ok(())
    }

    /// The resources and their texts, in a fixed order.
    pub fn resources(&self) -> impl Iterator<Item = (Resource, &Value)> {
        let MasterJson { workflows, layouts } = &self.master_json;
        let workflows = workflows.iter().map(|texts| (ResourceType::Workflow, texts));
        let layouts = layouts.iter().map(|texts| (ResourceType::Layout, texts));
        workflows.chain(layouts).map(|(resource_type, (id, content))| {
            (Resource { resource_id: id.clone(), resource_type }, content)
        })
    }
}

impl ImportResult {
    /// What came of an import that worked for some resources and not for others.
    pub fn new(successful: Vec<String>, failed: Vec<String>) -> Self {
        let message = match (successful.len(), failed.len()) {
            (0, 0) => "no supported resources found".into(),
            (0, _) => "failed to import any resource".into(),
            (count, 0) => format!("imported {count} resource(s)"),
            (count, failed) => {
                format!("partial import: {count} resource(s) imported, {failed} failed")
            }
        };
        Self { success: !successful.is_empty(), message, successful, failed }
    }
}

impl TranslationQuery {
    /// What the list can be sorted by.
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];

    /// Whether the query leaves any out.
    pub fn is_filtered(&self) -> bool {
        self.resource_type.is_some() || self.resource_id.is_some() || self.locale.is_some()
    }

    /// Whether `translation` belongs to the list.
    pub fn matches(&self, translation: &Translation) -> bool {
        let Resource { resource_id, resource_type } = &translation.resource;
        self.resource_type.is_none_or(|wanted| *resource_type == wanted)
            && self.resource_id.as_ref().is_none_or(|wanted| resource_id == wanted)
            && self.locale.as_ref().is_none_or(|wanted| translation.locale == *wanted)
    }
}

#[cfg(test)]
mod tests;
