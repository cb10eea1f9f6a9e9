//! Constructors and setters of translations.

use serde_json::Value;

use super::{
    ImportTexts, MasterJson, Resource, ResourceType, TranslationImport, TranslationQuery,
    TranslationUpsert,
};
use crate::contact::Locale;
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::ids::{LayoutRef, WorkflowRef};
use crate::json::{Object, dismantle, is_shallow};
use crate::setters::{page_setters, setters};

impl TranslationUpsert {
    /// Returns a translation of a workflow or a layout into one language.
    pub fn new(
        resource: Resource,
        locale: impl IntoChecked<Locale>,
        content: impl IntoChecked<Object>,
    ) -> Result<Self, Invalid> {
        let content = content.into_checked().map_err(|invalid| invalid.named("content"))?;
        Ok(Self { resource, locale: locale.into_checked()?, content })
    }
}

impl TranslationImport {
    /// Returns an import into a language, without texts.
    pub fn new(locale: impl IntoChecked<Locale>) -> Result<Self, Invalid> {
        Ok(Self { locale: locale.into_checked()?, master_json: MasterJson::default() })
    }

    /// Sets the texts of a workflow: an object of texts by name.
    #[must_use]
    pub fn workflow(mut self, workflow: impl Into<WorkflowRef>, texts: impl Into<Value>) -> Self {
        self.master_json.workflows.insert(workflow.into().into(), texts.into().into());
        self
    }

    /// Sets the texts of a layout: an object of texts by name.
    #[must_use]
    pub fn layout(mut self, layout: impl Into<LayoutRef>, texts: impl Into<Value>) -> Self {
        self.master_json.layouts.insert(layout.into().into(), texts.into().into());
        self
    }
}

impl From<Value> for ImportTexts {
    fn from(texts: Value) -> Self {
        if is_shallow(&texts, Object::MAX_DEPTH) {
            return Self(texts);
        }
        dismantle(texts);
        Self(Value::Null)
    }
}

impl From<ImportTexts> for Value {
    fn from(texts: ImportTexts) -> Self {
        texts.0
    }
}

setters! { TranslationQuery:
    /// Lists the translations of workflows, or those of layouts.
    resource_type: exact(ResourceType);
    /// Lists the translations of this resource, by its identifier.
    resource_id: into(String);
    /// Lists the translations into this language.
    locale: checked(Locale, "locale");
}

page_setters!(TranslationQuery);
