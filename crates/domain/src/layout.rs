//! Layouts: frames around the e-mails of several workflows, with translations of their own.

mod frame;

use serde::{Deserialize, Serialize};

use crate::convert::IntoChecked;
use crate::environment::Home;
use crate::error::Invalid;
use crate::ids::{EnvironmentId, LayoutId, LayoutIdentifier, OrganizationId, line};
use crate::json::{is_default, shape};
use crate::page::{OrderBy, PageQuery};
use crate::patch::Patch;
use crate::query;
use crate::setters::{page_setters, setters};
use crate::template::Template;
use crate::time::{Dated, Timestamp, dated};

#[doc(hidden)]
pub use frame::{Frame, FrameRef, LayoutChoice};

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
    #[serde(rename = "layoutId")]
    pub identifier: LayoutIdentifier,
    /// Display name: 1 to 128 characters.
    pub name: String,
    /// `true` if the layout has translations.
    pub is_translation_enabled: bool,
    /// HTML around an e-mail, with `{{ content }}` for its body. If absent, the e-mail has no frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Template>,
    /// `true` if e-mails without a `layoutId` have this layout. At most one layout of an environment is the default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_default: bool,
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
    #[serde(rename = "layoutId")]
    pub identifier: LayoutIdentifier,
    /// Display name: 1 to 128 characters.
    pub name: String,
    /// `true` if the layout has translations. If absent, an existing layout keeps its value, and a
    /// new one has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_translation_enabled: Option<bool>,
    /// HTML around an e-mail, with `{{ content }}` for its body. If absent, an existing layout keeps
    /// its own. In JSON, `null` removes it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub body: Patch<Template>,
    /// `true` makes the layout the default one, in place of the present one. If absent, an existing
    /// layout stays what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_default: Option<bool>,
}

shape! { update LayoutUpsert {
    "layoutId": identifier, "name": name, "isTranslationEnabled": is_translation_enabled,
    "body": body, "isDefault": is_default,
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
        let mut body = None;
        upsert.body.apply(&mut body);
        Self {
            id,
            organization_id: home.organization_id.clone(),
            environment_id: home.environment_id,
            identifier: upsert.identifier,
            name: upsert.name,
            is_translation_enabled: upsert.is_translation_enabled.unwrap_or_default(),
            body,
            is_default: upsert.is_default.unwrap_or_default(),
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
        let mut body = self.body.clone();
        upsert.body.apply(&mut body);
        let is_default = upsert.is_default.unwrap_or(self.is_default);
        let name = upsert.name;
        let layout = Self { name, is_translation_enabled, body, is_default, ..self.clone() };
        layout.changed_from(self, now)
    }

    /// Returns the layout as one of those that are not the default.
    #[doc(hidden)]
    #[must_use]
    pub fn replaced(&self, now: Timestamp) -> Self {
        Self { is_default: false, ..self.clone() }.changed_from(self, now)
    }

    /// Returns the memory of its compiled template, in bytes: an upper bound, also if workflows with several
    /// effects of missing variables use it.
    #[doc(hidden)]
    pub fn prepared_weight(&self) -> usize {
        2 * self.body.as_ref().map_or(0, Template::prepared_weight)
    }

    /// Refuses a body with texts of translations if the layout has none.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        match &self.body {
            Some(body) if !self.is_translation_enabled => {
                body.check_untranslated().map_err(|invalid| invalid.named("body"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses a change that brings in texts of translations if the layout has none. A body that is
    /// unchanged may still name texts that were deleted.
    #[doc(hidden)]
    pub fn check_changed_from(&self, before: &Self) -> Result<(), Invalid> {
        let is_enabled = before.is_translation_enabled;
        if self.body == before.body && self.is_translation_enabled == is_enabled {
            return Ok(());
        }
        self.check()
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
        identifier: impl IntoChecked<LayoutIdentifier>,
        name: impl Into<String>,
    ) -> Result<Self, Invalid> {
        let identifier = identifier.into_checked()?;
        Ok(Self {
            identifier,
            name: name.into(),
            is_translation_enabled: None,
            body: Patch::Keep,
            is_default: None,
        })
    }

    /// Sets the HTML around an e-mail, with `{{ content }}` for its body.
    ///
    /// ```
    /// # extern crate tidings_domain as tidings;
    /// use tidings::layout::LayoutUpsert;
    ///
    /// let frame = "<h1>{{ workflow.name }}</h1>{{ content }}<p>The shop</p>";
    /// let layout = LayoutUpsert::new("frame", "Frame")?.body(frame)?.is_default(true);
    /// let error = LayoutUpsert::new("frame", "Frame")?.body("<h1>Hello</h1>").unwrap_err();
    /// assert_eq!(error.to_string(), "`body` must be a template with `{{ content }}`");
    /// # Ok::<(), tidings::error::Invalid>(())
    /// ```
    pub fn body(mut self, html: impl Into<String>) -> Result<Self, Invalid> {
        let body = Template::unchecked(html.into());
        frame::check(&body)?;
        self.body = body.into();
        Ok(self)
    }

    /// Refuses a name that is empty or too long, and a body that is no frame.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.body.as_set().map_or(Ok(()), frame::check)?;
        line("name", &self.name, Layout::MAX_NAME)
    }
}

setters! { LayoutUpsert:
    /// Switches translations on or off.
    translated @ is_translation_enabled: exact(bool);
    /// Removes the HTML around an e-mail, so that its body is alone.
    clear_body @ body: clear();
    /// Makes the layout the default one, or another one than that.
    is_default: exact(bool);
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
