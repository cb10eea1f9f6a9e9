//! Constructors and setters of steps.

use super::run_if;
use super::{
    ButtonTemplate, CustomMetadata, Delay, Digest, EmailBody, EmailTemplate, InAppTemplate,
    PushTemplate, Step, StepDefinition, StepKind, TextTemplate, Throttle, Variant, WorkflowStep,
};
use crate::condition::Rule;
use crate::content::{ButtonType, EmailBlock, EmailBlockStyles, EmailBlockType, TextAlign};
use crate::convert::IntoChecked;
use crate::error::{Invalid, Reason};
use crate::filter::Filter;
use crate::ids::{ContentId, LayoutIdentifier, StepId};
use crate::patch::Patch;
use crate::setters::setters;
use crate::template::Template;

impl Step {
    /// Returns a step with the action `kind`.
    pub fn new(kind: impl Into<StepKind>) -> Self {
        let definition = StepDefinition {
            uuid: None,
            name: None,
            active: true,
            should_stop_on_fail: false,
            filters: Vec::new(),
            run_if: None,
            kind: kind.into(),
            variants: Vec::new(),
            reply_callback: None,
        };
        Self { id: None, definition }
    }

    /// Returns a step that puts a message into the inbox. Its text is stored without escaping: a
    /// page that shows it escapes it.
    pub fn in_app(body: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        StepKind::in_app(body).map(Self::new)
    }

    /// Returns a step that sends an e-mail, whose body is HTML or a list of [`EmailBlock`]s.
    pub fn email(
        subject: impl IntoChecked<Template>,
        body: impl IntoChecked<EmailBody>,
    ) -> Result<Self, Invalid> {
        StepKind::email(subject, body).map(Self::new)
    }

    /// Sets the layout around an e-mail, in place of the default one.
    pub fn layout(self, layout: impl IntoChecked<LayoutIdentifier>) -> Result<Self, Invalid> {
        let layout = layout.into_checked()?;
        self.with_layout(Patch::Set(layout))
    }

    /// Sends an e-mail without a layout.
    pub fn without_layout(self) -> Result<Self, Invalid> {
        self.with_layout(Patch::Clear)
    }

    fn with_layout(mut self, layout: Patch<LayoutIdentifier>) -> Result<Self, Invalid> {
        let StepKind::Email { template } = &mut self.definition.kind else {
            return Err(Invalid::new("layoutId", Reason::malformed("part of an e-mail")));
        };
        template.layout_id = layout;
        Ok(self)
    }

    /// Returns a step that sends a text message.
    pub fn sms(body: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        StepKind::sms(body).map(Self::new)
    }

    /// Returns a step that sends a chat message.
    pub fn chat(body: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        StepKind::chat(body).map(Self::new)
    }

    /// Returns a step that sends a push message.
    pub fn push(
        title: impl IntoChecked<Template>,
        body: impl IntoChecked<Template>,
    ) -> Result<Self, Invalid> {
        StepKind::push(title, body).map(Self::new)
    }

    /// Returns a step that waits.
    pub fn delay(metadata: impl Into<Delay>) -> Self {
        Self::new(StepKind::Delay { metadata: metadata.into() })
    }

    /// Returns a step that collects events.
    pub fn digest(metadata: impl Into<Digest>) -> Self {
        Self::new(StepKind::Digest { metadata: metadata.into() })
    }

    /// Returns a step that lets a limited number of events pass.
    pub fn throttle(metadata: Throttle) -> Self {
        Self::new(StepKind::Throttle { metadata })
    }

    /// Returns a step that calls the function which the host has registered as `handler`.
    pub fn custom(handler: impl Into<String>) -> Self {
        Self::new(StepKind::Custom { metadata: CustomMetadata::new(handler) })
    }

    /// Sets the subject of an e-mail, or the line above a message in the inbox.
    pub fn subject(mut self, subject: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        self.definition.kind = self.definition.kind.subject(subject)?;
        Ok(self)
    }

    /// Sets the URL that a click on a message in the inbox opens.
    pub fn url(mut self, url: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        self.definition.kind = self.definition.kind.url(url)?;
        Ok(self)
    }

    /// Adds a button to a message in the inbox.
    pub fn button(
        mut self,
        kind: ButtonType,
        content: impl IntoChecked<Template>,
    ) -> Result<Self, Invalid> {
        self.definition.kind = self.definition.kind.button(kind, content)?;
        Ok(self)
    }

    /// Sets the label that the last button has once it was chosen.
    pub fn result_content(mut self, content: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        self.definition.kind = self.definition.kind.result_content(content)?;
        Ok(self)
    }

    /// Sets the condition in JSON Logic. The step runs if its value is truthy.
    pub fn run_if(mut self, condition: impl IntoChecked<Rule>) -> Result<Self, Invalid> {
        let rule = condition.into_checked().map_err(run_if::named)?;
        self.definition.run_if = Some(rule);
        Ok(self)
    }
}

setters! { Step:
    /// Sets the id of the step that an update keeps.
    id: into(StepId);
    /// Sets the name of the step, which is more than a display name, and which no other step of the workflow
    /// may have:
    ///
    /// * Conditions and templates of later steps find the result of the step in `steps.<name>`, and the
    ///   overrides of a trigger its settings.
    /// * [`Preview`](crate::preview::Preview) and `resend` know the step by its name.
    /// * A workflow that is declared again matches its steps by their names and types. A step without a
    ///   name that matches none, such as behind an inserted step, is a new one. Waiting jobs of the
    ///   former one are skipped ([`Detail::StepDeleted`](crate::job::Detail::StepDeleted)).
    name @ definition.name: into(String);
    /// Sets the id in the editor of the workflow, which no other step of the workflow has.
    uuid @ definition.uuid: into(String);
    /// Activates or deactivates the step. An inactive one does not run.
    active @ definition.active: exact(bool);
    /// Sets whether the steps after this one are canceled if it fails.
    stop_on_fail @ definition.should_stop_on_fail: exact(bool);
    /// Adds a filter. The step runs only if this filter and all earlier ones hold.
    only_if @ definition.filters: all_of(Filter);
    /// Adds filters. The step runs only if one of these filters and all earlier ones hold. Without
    /// filters, nothing changes.
    only_if_any @ definition.filters: any_of(Filter);
    /// Adds an alternative content.
    variant @ definition.variants: push(Variant);
}

impl Variant {
    /// Returns an alternative content with the action `kind`, for a step of the same type.
    pub fn new(kind: impl Into<StepKind>) -> Self {
        Self { name: None, active: true, filters: Vec::new(), kind: kind.into() }
    }
}

setters! { Variant:
    /// Sets the display name.
    name: into(String);
    /// Activates or deactivates the content. An inactive one is not used.
    active: exact(bool);
    /// Adds a filter. The content is used only if this filter and all earlier ones hold.
    only_if @ filters: all_of(Filter);
    /// Adds filters. The content is used only if one of these filters and all earlier ones hold. Without
    /// filters, nothing changes.
    only_if_any @ filters: any_of(Filter);
}

impl StepKind {
    /// Puts a message into the inbox.
    #[doc(hidden)]
    pub fn in_app(body: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        let body = template("body", body)?;
        let template = InAppTemplate { subject: None, body, url: None, buttons: Vec::new() };
        Ok(Self::InApp { template })
    }

    /// Sends an e-mail, whose body is HTML or a list of [`EmailBlock`]s.
    #[doc(hidden)]
    pub fn email(
        subject: impl IntoChecked<Template>,
        body: impl IntoChecked<EmailBody>,
    ) -> Result<Self, Invalid> {
        let subject = template("subject", subject)?;
        let body = template("body", body)?;
        let (layout_id, disable_output_sanitization) = (Patch::Keep, false);
        Ok(Self::Email {
            template: EmailTemplate { subject, body, layout_id, disable_output_sanitization },
        })
    }

    /// Sends a text message.
    #[doc(hidden)]
    pub fn sms(body: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        Ok(Self::Sms { template: TextTemplate { body: template("body", body)? } })
    }

    /// Sends a chat message.
    #[doc(hidden)]
    pub fn chat(body: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        Ok(Self::Chat { template: TextTemplate { body: template("body", body)? } })
    }

    /// Sends a push message.
    #[doc(hidden)]
    pub fn push(
        title: impl IntoChecked<Template>,
        body: impl IntoChecked<Template>,
    ) -> Result<Self, Invalid> {
        let (title, body) = (template("title", title)?, template("body", body)?);
        Ok(Self::Push { template: PushTemplate { title, body } })
    }

    /// Sets the subject of an e-mail, or the line above a message in the inbox.
    #[doc(hidden)]
    pub fn subject(mut self, subject: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        let subject = template("subject", subject)?;
        match &mut self {
            Self::InApp { template } => template.subject = Some(subject),
            Self::Email { template } => template.subject = subject,
            other => return Err(other.lacks("subject")),
        }
        Ok(self)
    }

    /// Sets the URL that a click on a message in the inbox opens.
    #[doc(hidden)]
    pub fn url(mut self, url: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        self.inbox("url")?.url = Some(template("url", url)?);
        Ok(self)
    }

    /// Adds a button to a message in the inbox.
    #[doc(hidden)]
    pub fn button(
        mut self,
        kind: ButtonType,
        content: impl IntoChecked<Template>,
    ) -> Result<Self, Invalid> {
        let buttons = &mut self.inbox("buttons")?.buttons;
        let place = format!("buttons[{}].content", buttons.len());
        let content = template(&place, content)?;
        buttons.push(ButtonTemplate { kind, content, result_content: None });
        Ok(self)
    }

    /// Sets the label that the last button has once it was chosen.
    #[doc(hidden)]
    pub fn result_content(mut self, content: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        let buttons = &mut self.inbox("buttons")?.buttons;
        let place = format!("buttons[{}].resultContent", buttons.len().saturating_sub(1));
        let content = template(&place, content)?;
        let missing = || Invalid::new("template.buttons", Reason::Missing);
        buttons.last_mut().ok_or_else(missing)?.result_content = Some(content);
        Ok(self)
    }

    fn inbox(&mut self, field: &str) -> Result<&mut InAppTemplate, Invalid> {
        match self {
            Self::InApp { template } => Ok(template),
            other => Err(other.lacks(field)),
        }
    }

    fn lacks(&self, field: &str) -> Invalid {
        let expected = format!("left out of a step of type `{}`", self.step_type());
        Invalid::new(format!("template.{field}"), Reason::malformed(expected))
    }
}

fn template<T>(field: &str, value: impl IntoChecked<T>) -> Result<T, Invalid> {
    value.into_checked().map_err(|invalid| invalid.named(format!("template.{field}")))
}

impl WorkflowStep {
    /// Returns the step of a saved workflow with this `definition`.
    #[doc(hidden)]
    pub fn new(id: StepId, content_id: ContentId, definition: StepDefinition) -> Self {
        Self { id, content_id, parent_id: None, awaits: Vec::new(), definition }
    }
}

/// Returns the step for an update that keeps it.
impl From<&WorkflowStep> for Step {
    fn from(step: &WorkflowStep) -> Self {
        Self { id: Some(step.id), definition: step.definition.clone() }
    }
}

impl From<StepKind> for Step {
    fn from(kind: StepKind) -> Self {
        Self::new(kind)
    }
}

impl EmailBlock<Template> {
    /// Returns a paragraph.
    pub fn text(content: impl IntoChecked<Template>) -> Result<Self, Invalid> {
        let content = content.into_checked().map_err(|invalid| invalid.named("content"))?;
        Ok(Self { kind: EmailBlockType::Text, content, url: None, styles: None })
    }

    /// Returns a button that opens `url`.
    pub fn button(
        content: impl IntoChecked<Template>,
        url: impl IntoChecked<Template>,
    ) -> Result<Self, Invalid> {
        let url = url.into_checked().map_err(|invalid| invalid.named("url"))?;
        Ok(Self { kind: EmailBlockType::Button, url: Some(url), ..Self::text(content)? })
    }

    /// Sets the alignment of the lines.
    #[must_use]
    pub fn aligned(self, text_align: TextAlign) -> Self {
        Self { styles: Some(EmailBlockStyles { text_align }), ..self }
    }
}

impl From<Template> for EmailBody {
    fn from(html: Template) -> Self {
        EmailBody::Html(html)
    }
}

impl From<Vec<EmailBlock<Template>>> for EmailBody {
    fn from(blocks: Vec<EmailBlock<Template>>) -> Self {
        EmailBody::Blocks(blocks)
    }
}

impl<const N: usize> From<[EmailBlock<Template>; N]> for EmailBody {
    fn from(blocks: [EmailBlock<Template>; N]) -> Self {
        EmailBody::Blocks(blocks.into())
    }
}

impl TryFrom<&str> for EmailBody {
    type Error = Invalid;

    fn try_from(html: &str) -> Result<Self, Invalid> {
        Template::new(html).map(EmailBody::Html)
    }
}

impl TryFrom<String> for EmailBody {
    type Error = Invalid;

    fn try_from(html: String) -> Result<Self, Invalid> {
        Template::new(html).map(EmailBody::Html)
    }
}

impl TryFrom<&String> for EmailBody {
    type Error = Invalid;

    fn try_from(html: &String) -> Result<Self, Invalid> {
        Template::new(html.as_str()).map(EmailBody::Html)
    }
}
