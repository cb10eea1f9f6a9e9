//! Steps of workflows: messages on channels, and actions in between.

mod calendar;
mod check;
mod compose;
mod custom;
mod delay;
mod digest;
mod lookup;
mod overrides;
mod references;
mod render;
mod results;
mod run_if;
mod span;
mod templates;
mod throttle;
mod timed;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Rule;
use crate::content::{ButtonType, Cta, EmailBlock, MessageContent};
use crate::error::{Invalid, Reason};
use crate::filter::Filter;
use crate::ids::{ContentId, LayoutIdentifier, StepId};
use crate::job::Detail;
use crate::json::{Shape, Shaped, is_default, shape};
use crate::patch::Patch;
use crate::template::Template;
use crate::vocabulary::{Channel, StepType};

pub use custom::CustomMetadata;
pub use delay::{Delay, DelayEnd, DynamicDelay, FixedDelay, OnPast, ScheduledDelay, TimedDelay};
#[doc(hidden)]
pub use digest::{Arrival, DigestState};
pub use digest::{Digest, DigestWindow, TimedWindow};
#[doc(hidden)]
pub use lookup::EventKey;
pub(crate) use lookup::find as find_in_payload;
pub(crate) use overrides::check_lengths;
pub(crate) use render::one_line;
pub(crate) use results::Parts;
#[doc(hidden)]
pub use results::{DigestEvent, Digested, StepOutput, StepResults};
#[doc(hidden)]
pub use span::NoEnd;
#[doc(hidden)]
pub use throttle::{Admission, Slot};
pub use throttle::{Throttle, ThrottleWindow};
pub use timed::{MonthlyType, NthDay, OrdinalValue, TimedConfig};

/// Step of a saved workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkflowStep {
    /// Id made by the engine.
    #[serde(rename = "_id")]
    pub id: StepId,
    /// Id of its content, made by the engine.
    #[serde(rename = "_templateId")]
    pub content_id: ContentId,
    /// Id of the step before it.
    #[serde(rename = "_parentId", default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<StepId>,
    /// Ids of the earlier steps whose results its conditions and templates refer to.
    #[serde(rename = "_awaitedStepIds", default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<StepId>,
    /// Part that the host application sets.
    #[serde(flatten)]
    pub definition: StepDefinition,
}

/// Part of a step that the host application sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StepDefinition {
    /// Id in the editor of the workflow, which no other step of the workflow has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Name by which conditions, overrides, previews and later declarations know the step, and which no
    /// other step of the workflow has. See [`Step::name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `true` if the step runs.
    #[serde(default = "yes")]
    pub active: bool,
    /// `true` if a failure of the step cancels those after it.
    #[serde(default)]
    pub should_stop_on_fail: bool,
    /// Conditions. The step runs if one of them holds, or if there are none.
    #[serde(default)]
    pub filters: Vec<Filter>,
    /// Condition in JSON Logic. The step runs if its value is truthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_if: Option<Rule>,
    /// Action.
    #[serde(flatten)]
    pub kind: StepKind,
    /// Alternative contents. The first active one of which a filter holds replaces the step's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// Address for replies. It is stored and shown: the engine receives no replies, and passes none
    /// on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_callback: Option<ReplyCallback>,
}

shape! { StepDefinition {
    "uuid": uuid, "name": name, "active": active, "shouldStopOnFail": should_stop_on_fail,
    "filters": filters, "runIf": run_if, "variants": variants, "replyCallback": reply_callback;
    kind
} }

/// Step in a new or updated workflow.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::filter::Filter;
/// use tidings::step::{Step, StepKind, Variant};
///
/// let email = Step::email("Order {{ payload.order }}", "<p>It is on its way.</p>")?
///     .name("mail")
///     .only_if(Filter::payload("express").equals(true))
///     .variant(
///         Variant::new(StepKind::email("Bestellung {{ payload.order }}", "<p>Unterwegs.</p>")?)
///             .only_if(Filter::subscriber("locale").like("de%")),
///     );
/// let error = Step::sms("{{ payload.order").unwrap_err();
/// assert_eq!(error.field, "template.body");
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Step {
    /// Id of the step that an update keeps. `None` for a new step.
    #[serde(rename = "_id", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<StepId>,
    /// Part that the host application sets.
    #[serde(flatten)]
    pub definition: StepDefinition,
}

shape! { Step { "_id": id; definition } }

/// Alternative content of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Variant {
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `true` if the content can be used.
    #[serde(default = "yes")]
    pub active: bool,
    /// Conditions. The content is used if one of them holds, and never if there are none.
    #[serde(default)]
    pub filters: Vec<Filter>,
    /// Action, of the same type as the step.
    #[serde(flatten)]
    pub kind: StepKind,
}

shape! { Variant { "name": name, "active": active, "filters": filters; kind } }

/// Address for replies to a message, which has no effect: the engine receives no replies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ReplyCallback {
    /// `true` if replies are passed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// URL for the replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

shape! { ReplyCallback { "active": active, "url": url } }

/// Action of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepKind {
    /// Puts a message into the inbox.
    InApp {
        /// Content.
        template: InAppTemplate,
    },
    /// Sends an e-mail.
    Email {
        /// Content.
        template: EmailTemplate,
    },
    /// Sends a text message.
    Sms {
        /// Content.
        template: TextTemplate,
    },
    /// Sends a chat message.
    Chat {
        /// Content.
        template: TextTemplate,
    },
    /// Sends a push message.
    Push {
        /// Content.
        template: PushTemplate,
    },
    /// Collects events.
    Digest {
        /// Window and grouping.
        metadata: Digest,
    },
    /// Waits.
    Delay {
        /// Length.
        metadata: Delay,
    },
    /// Lets a limited number of events pass.
    Throttle {
        /// Limit.
        metadata: Throttle,
    },
    /// Calls a function of the host application.
    Custom {
        /// Name of the function.
        #[serde(default, skip_serializing_if = "CustomMetadata::is_empty")]
        metadata: CustomMetadata,
    },
}

shape! { StepKind by "type" {
    "in_app": { "template": InAppTemplate },
    "email": { "template": EmailTemplate },
    "sms": { "template": TextTemplate },
    "chat": { "template": TextTemplate },
    "push": { "template": PushTemplate },
    "digest": { "metadata": Digest },
    "delay": { "metadata": Delay },
    "throttle": { "metadata": Throttle },
    "custom": { "metadata": CustomMetadata },
} }

/// Content of a message in the inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InAppTemplate {
    /// Line above the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Template>,
    /// Text.
    pub body: Template,
    /// URL that a click opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Template>,
    /// Buttons below the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<ButtonTemplate>,
}

shape! { InAppTemplate { "subject": subject, "body": body, "url": url, "buttons": buttons } }

/// Button below a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ButtonTemplate {
    /// Style.
    #[serde(rename = "type")]
    pub kind: ButtonType,
    /// Label.
    pub content: Template,
    /// Label once the button was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_content: Option<Template>,
}

shape! { ButtonTemplate {
    "type": kind, "content": content, "resultContent": result_content,
} }

/// Content of an e-mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmailTemplate {
    /// Subject.
    pub subject: Template,
    /// Body: HTML, or blocks.
    pub body: EmailBody,
    /// Layout around the body. If absent, the default one of the environment. If `null`, none.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub layout_id: Patch<LayoutIdentifier>,
    /// `true` if values are inserted into the body without escaping their HTML.
    #[serde(default, skip_serializing_if = "is_default")]
    pub disable_output_sanitization: bool,
}

shape! { EmailTemplate {
    "subject": subject, "body": body, "layoutId": layout_id,
    "disableOutputSanitization": disable_output_sanitization,
} }

/// Body of an e-mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EmailBody {
    /// HTML.
    Html(Template),
    /// Paragraphs and buttons.
    Blocks(Vec<EmailBlock<Template>>),
}

impl Shaped for EmailBody {
    fn shape() -> Shape {
        Shape::choice(|body| match body {
            Value::Array(_) => Vec::<EmailBlock<Template>>::shape(),
            Value::String(_) => Template::shape(),
            _ => Shape::leaf(|_| {
                let expected = "a text or a list of blocks";
                Err(Invalid::new("body", Reason::malformed(expected)))
            }),
        })
    }
}

/// Content of a text message or a chat message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextTemplate {
    /// Text.
    pub body: Template,
}

shape! { TextTemplate { "body": body } }

/// Content of a push message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PushTemplate {
    /// Title.
    pub title: Template,
    /// Text.
    pub body: Template,
}

shape! { PushTemplate { "title": title, "body": body } }

/// Content of a step, rendered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Rendered {
    /// Subject of an e-mail, or line above a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Title of a push message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Text.
    pub content: MessageContent,
    /// Call to action of a message in the inbox.
    pub cta: Cta,
    /// Name of the variant, or the index of a variant without name. `None` for the step's own
    /// content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Warnings, such as for a missing text or a missing layout.
    pub warnings: Vec<ContentWarning>,
}

impl Rendered {
    /// Returns the size of the texts, in bytes.
    #[doc(hidden)]
    pub fn size(&self) -> usize {
        let lines = [&self.subject, &self.title].into_iter().flatten().map(String::len);
        lines.sum::<usize>() + self.content.size() + self.cta.size()
    }
}

/// Warning about the content of a message, which the log of its job has as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContentWarning {
    /// Entry of the log.
    pub detail: Detail,
    /// Key of a text, or name of a layout.
    pub subject: String,
}

impl StepKind {
    /// Returns the type of the step's jobs.
    pub const fn step_type(&self) -> StepType {
        match self {
            StepKind::InApp { .. } => StepType::InApp,
            StepKind::Email { .. } => StepType::Email,
            StepKind::Sms { .. } => StepType::Sms,
            StepKind::Chat { .. } => StepType::Chat,
            StepKind::Push { .. } => StepType::Push,
            StepKind::Digest { .. } => StepType::Digest,
            StepKind::Delay { .. } => StepType::Delay,
            StepKind::Throttle { .. } => StepType::Throttle,
            StepKind::Custom { .. } => StepType::Custom,
        }
    }

    /// Returns the channel of the step. Returns `None` if it sends nothing.
    pub const fn channel(&self) -> Option<Channel> {
        self.step_type().channel()
    }
}

/// Returns the refusal of a step that is none of those with these names. A step without a name is known
/// by its place.
pub(crate) fn unknown<'n>(names: impl Iterator<Item = Option<&'n str>>) -> Invalid {
    let word = |(place, name): (usize, Option<&str>)| {
        name.map_or_else(|| place.to_string(), str::to_owned)
    };
    let words: Vec<_> = names.enumerate().map(word).collect();
    let reason = if words.is_empty() {
        Reason::malformed("a step, and there is none")
    } else {
        Reason::NotOneOf { words }
    };
    Invalid::new("step", reason)
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
