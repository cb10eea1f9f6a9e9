//! Checks of a step when its workflow is saved.

use super::{EmailBody, StepDefinition, StepKind, Variant, run_if};
use crate::error::{Invalid, Reason, at_most, at_most_items};
use crate::filter;
use crate::ids::plain;
use crate::workflow::Workflow;

impl StepDefinition {
    /// Maximum number of variants of a step.
    pub const MAX_VARIANTS: usize = 20;
    /// Longest display name of a step or a variant, and longest name of a handler, in characters.
    pub const MAX_NAME: usize = 128;
    /// Longest path in a payload, in characters.
    pub const MAX_PATH: usize = 1024;
    /// Longest cron expression, in characters.
    pub const MAX_CRON: usize = 128;
    /// Maximum number of integrations that a chat or push message goes to. The integrations behind
    /// them are left out. Each has a message of its own, and the messages of all steps of a
    /// notification are numbered in one byte.
    pub const MAX_INTEGRATIONS: usize = (u8::MAX as usize + 1) / Workflow::MAX_STEPS;
    /// Maximum number of devices and endpoints that a message goes to. Those behind them are left
    /// out.
    pub const MAX_DESTINATIONS: usize = 500;
    /// Maximum number of blocks of an e-mail.
    pub const MAX_BLOCKS: usize = 200;
    /// Maximum number of buttons of a message in the inbox.
    pub const MAX_BUTTONS: usize = 20;
    /// Longest delay and longest window of a digest or throttle, in days: ten years.
    pub const MAX_DAYS: u32 = 3_660;

    /// Refuses a step with too many variants, empty or overlong names, or invalid settings, conditions or
    /// templates.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.kind.check()?;
        check_name("name", self.name.as_deref())?;
        check_name("uuid", self.uuid.as_deref())?;
        filter::check_step(&self.filters)?;
        run_if::check(self.run_if.as_ref())?;
        at_most_items("variants", &self.variants, Self::MAX_VARIANTS)?;
        let mut variants = self.variants.iter().enumerate();
        variants.try_for_each(|(index, variant)| {
            let checked = variant.check(&self.kind);
            checked.map_err(|invalid| invalid.within(format!("variants[{index}]")))
        })
    }
}

impl StepKind {
    fn check(&self) -> Result<(), Invalid> {
        self.check_sizes()?;
        self.check_templates()?;
        let checked = match self {
            StepKind::Digest { metadata } => metadata.check(),
            StepKind::Delay { metadata } => metadata.check(),
            StepKind::Throttle { metadata } => metadata.check(),
            StepKind::Custom { metadata } => metadata.check(),
            StepKind::InApp { .. }
            | StepKind::Email { .. }
            | StepKind::Sms { .. }
            | StepKind::Chat { .. }
            | StepKind::Push { .. } => Ok(()),
        };
        checked.map_err(|invalid| invalid.within("metadata"))
    }

    // Refuses content with too many parts.
    fn check_sizes(&self) -> Result<(), Invalid> {
        match self {
            StepKind::InApp { template } => {
                let buttons = &template.buttons;
                at_most_items("template.buttons", buttons, StepDefinition::MAX_BUTTONS)
            }
            StepKind::Email { template } => match &template.body {
                EmailBody::Blocks(blocks) => {
                    at_most_items("template.body", blocks, StepDefinition::MAX_BLOCKS)
                }
                EmailBody::Html(_) => Ok(()),
            },
            StepKind::Sms { .. }
            | StepKind::Chat { .. }
            | StepKind::Push { .. }
            | StepKind::Digest { .. }
            | StepKind::Delay { .. }
            | StepKind::Throttle { .. }
            | StepKind::Custom { .. } => Ok(()),
        }
    }
}

impl Variant {
    fn check(&self, of: &StepKind) -> Result<(), Invalid> {
        check_name("name", self.name.as_deref())?;
        self.kind.check()?;
        filter::check_step(&self.filters)?;
        if self.kind.step_type() != of.step_type() {
            let expected = "the type of its step";
            return Err(Invalid::new("type", Reason::malformed(expected)));
        }
        Ok(())
    }
}

fn check_name(field: &str, name: Option<&str>) -> Result<(), Invalid> {
    let Some(name) = name else { return Ok(()) };
    if name.trim().is_empty() {
        return Err(Invalid::new(field, Reason::Empty));
    }
    at_most(field, name, StepDefinition::MAX_NAME)?;
    plain(field, name)
}

#[cfg(test)]
mod tests;
