//! Layouts: frames around the e-mails of several workflows. The engine keeps their names and translations.

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

/// Frame around the e-mails of several workflows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Layout {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: LayoutId,
    /// Organization of the layout.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Environment of the layout.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Identifier, unique in its environment. It never changes.
    pub layout_id: LayoutIdentifier,
    /// Display name: 1 to 128 characters.
    pub name: String,
    /// `true` if the layout has translations.
    pub is_translation_enabled: bool,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// New or changed layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LayoutUpsert {
    /// Identifier, unique in its environment.
    pub layout_id: LayoutIdentifier,
    /// Display name: 1 to 128 characters.
    pub name: String,
    /// `true` if the layout has translations. If absent, an existing layout keeps its value, and a
    /// new one has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_translation_enabled: Option<bool>,
}

shape! { LayoutUpsert {
    "layoutId": layout_id, "name": name, "isTranslationEnabled": is_translation_enabled,
} }

/// Query of layouts. A layout must meet every condition that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct LayoutQuery {
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    /// `true` selects layouts with translations, `false` those without.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub is_translation_enabled: Option<bool>,
}

shape! { LayoutQuery {
    "isTranslationEnabled": is_translation_enabled as written; page by LayoutQuery::ORDERS
} }

dated! { Layout }

impl Layout {
    /// Longest display name, in characters.
    pub const MAX_NAME: usize = 128;

    /// Returns a new layout.
    #[doc(hidden)]
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

    /// Returns the layout after `upsert`. An upsert without a difference changes nothing, not even
    /// the time.
    #[doc(hidden)]
    #[must_use]
    pub fn updated(&self, upsert: LayoutUpsert, now: Timestamp) -> Self {
        let is_translation_enabled =
            upsert.is_translation_enabled.unwrap_or(self.is_translation_enabled);
        let layout = Self { name: upsert.name, is_translation_enabled, ..self.clone() };
        layout.changed_from(self, now)
    }

    /// Returns the layout without translations.
    #[doc(hidden)]
    #[must_use]
    pub fn untranslated(&self, now: Timestamp) -> Self {
        Self { is_translation_enabled: false, ..self.clone() }.changed_from(self, now)
    }
}

impl LayoutUpsert {
    /// Returns a layout, by identifier and display name.
    pub fn new(
        layout_id: impl IntoChecked<LayoutIdentifier>,
        name: impl Into<String>,
    ) -> Result<Self, Invalid> {
        let layout_id = layout_id.into_checked()?;
        Ok(Self { layout_id, name: name.into(), is_translation_enabled: None })
    }

    /// Refuses a name that is empty or too long.
    #[doc(hidden)]
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
    /// Lists the layouts with translations, or those without.
    translated @ is_translation_enabled: exact(bool);
}

page_setters!(LayoutQuery);

impl LayoutQuery {
    /// Fields that the list can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];

    /// Returns `true` if the query excludes layouts.
    #[doc(hidden)]
    pub fn is_filtered(&self) -> bool {
        self.is_translation_enabled.is_some()
    }

    /// Returns `true` if `layout` meets the conditions.
    #[doc(hidden)]
    pub fn matches(&self, layout: &Layout) -> bool {
        self.is_translation_enabled.is_none_or(|enabled| layout.is_translation_enabled == enabled)
    }
}

#[cfg(test)]
mod tests;
