//! Layouts: what the e-mails of several workflows have around them. So far they are what
//! translations can be for, besides workflows.

use serde::{Deserialize, Serialize};

use crate::convert::IntoChecked;
use crate::environment::Home;
use crate::error::{Invalid, Reason, at_most};
use crate::ids::{EnvironmentId, LayoutId, LayoutIdentifier, OrganizationId, plain};
use crate::json::shape;
use crate::page::{OrderBy, PageQuery};
use crate::query;
use crate::setters::{page_setters, setters};
use crate::time::{Dated, Timestamp, dated};

/// What the e-mails of several workflows have around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Layout {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: LayoutId,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// The name that its environment knows it by. It stays as it is.
    pub layout_id: LayoutIdentifier,
    /// What people call it.
    pub name: String,
    /// Whether it is translated.
    pub is_translation_enabled: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A layout as it is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LayoutUpsert {
    /// The name that its environment knows it by.
    pub layout_id: LayoutIdentifier,
    /// What people call it: 1 to 128 characters.
    pub name: String,
    /// Whether it is translated. What is not said stays; at first it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_translation_enabled: Option<bool>,
}

shape! { LayoutUpsert {
    "layoutId": layout_id, "name": name, "isTranslationEnabled": is_translation_enabled,
} }

/// Which layouts are listed. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct LayoutQuery {
    /// Which page of them.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Those that are translated, or those that are not.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub is_translation_enabled: Option<bool>,
}

shape! { LayoutQuery {
    "isTranslationEnabled": is_translation_enabled as written; page by LayoutQuery::ORDERS
} }

dated! { Layout }

impl Layout {
    /// The longest name, in characters.
    pub const MAX_NAME: usize = 128;

    /// A layout that nobody has seen before.
    pub fn new(id: LayoutId, home: &Home, upsert: LayoutUpsert, now: Timestamp) -> Self {
        Self {
            id,
            organization_id: home.organization_id.clone(),
            environment_id: home.environment_id,
            layout_id: upsert.layout_id,
            name: upsert.name,
            is_translation_enabled: upsert.is_translation_enabled.unwrap_or_default(),
            created_at: now,
            updated_at: now,
        }
    }

    /// The layout as `upsert` says. One that says the same changes nothing.
    #[must_use]
    pub fn updated(&self, upsert: LayoutUpsert, now: Timestamp) -> Self {
        let is_translation_enabled =
            upsert.is_translation_enabled.unwrap_or(self.is_translation_enabled);
        let layout = Self { name: upsert.name, is_translation_enabled, ..self.clone() };
        layout.changed_from(self, now)
    }

    /// The layout, no longer translated.
    #[must_use]
    pub fn untranslated(&self, now: Timestamp) -> Self {
        Self { is_translation_enabled: false, ..self.clone() }.changed_from(self, now)
    }
}

impl LayoutUpsert {
    /// Returns a layout, by its identifier and its display name.
    pub fn new(
        layout_id: impl IntoChecked<LayoutIdentifier>,
        name: impl Into<String>,
    ) -> Result<Self, Invalid> {
        let layout_id = layout_id.into_checked()?;
        Ok(Self { layout_id, name: name.into(), is_translation_enabled: None })
    }

    /// Refuses a name that is empty or too long.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.name.is_empty() {
            return Err(Invalid::new("name", Reason::Empty));
        }
        at_most("name", &self.name, Layout::MAX_NAME)?;
        plain("name", &self.name)
    }
}

setters! { LayoutUpsert:
    /// Switches translations on or off.
    translated @ is_translation_enabled: exact(bool);
}

setters! { LayoutQuery:
    /// Lists those that are translated, or those that are not.
    translated @ is_translation_enabled: exact(bool);
}

page_setters!(LayoutQuery);

impl LayoutQuery {
    /// What the list can be sorted by.
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];

    /// Whether the query leaves any out.
    pub fn is_filtered(&self) -> bool {
        self.is_translation_enabled.is_some()
    }

    /// Whether `layout` belongs to the list.
    pub fn matches(&self, layout: &Layout) -> bool {
        self.is_translation_enabled.is_none_or(|enabled| layout.is_translation_enabled == enabled)
    }
}

#[cfg(test)]
mod tests;
