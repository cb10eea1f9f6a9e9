//! Checks of workflows that are saved, and of payloads.

use super::Workflow;
use crate::error::{Invalid, Reason, at_most, at_most_items};
use crate::ids::plain;
use crate::json::Object;
use crate::step::StepDefinition;

impl Workflow {
    /// Refuses names, tags and a schema that are not valid.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        if self.name.trim().is_empty() {
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
            if tag.trim().is_empty() {
                return Err(Invalid::new(field, Reason::Empty));
            }
            if self.tags.iter().take(index).any(|before| before == tag) {
                return Err(Invalid::new(field, Reason::Repeated));
            }
            plain(&field, tag)
        })?;
        self.check_schema()
    }

    /// Refuses steps that name fields of the payload that the schema does not list.
    pub(super) fn check_fields(&self) -> Result<(), Invalid> {
        let Some(schema) = &self.payload_schema else { return Ok(()) };
        self.check_steps(|step| step.check_payload(schema))
    }

    /// Refuses templates with texts of translations if the workflow has no translations.
    pub(super) fn check_texts(&self) -> Result<(), Invalid> {
        if self.is_translation_enabled {
            return Ok(());
        }
        self.check_steps(StepDefinition::check_untranslated)
    }

    fn check_steps(
        &self,
        check: impl Fn(&StepDefinition) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        let mut steps = self.steps.iter().enumerate();
        steps.try_for_each(|(index, step)| {
            check(&step.definition).map_err(|invalid| invalid.within(format!("steps[{index}]")))
        })
    }

    // Refuses an object that is no JSON Schema.
    fn check_schema(&self) -> Result<(), Invalid> {
        let Some(schema) = &self.payload_schema else { return Ok(()) };
        match self.validate_payload {
            Some(false) => schema.check_size(),
            Some(true) | None => schema.check(),
        }
    }

    /// Refuses a payload that the schema does not allow, with the path of the field, as in
    /// `payload.order.id`.
    #[doc(hidden)]
    pub fn check_payload(&self, payload: &Object) -> Result<(), Invalid> {
        match (&self.payload_schema, self.validate_payload) {
            (None, _) | (Some(_), Some(false)) => Ok(()),
            (Some(schema), _) => schema.check_payload(payload),
        }
    }
}
