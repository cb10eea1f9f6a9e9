//! What a message says, and what it calls for.

use serde::{Deserialize, Serialize};

use crate::json::{Member, Object, Shape, Shaped, shape};
use crate::vocabulary::wire_enum;

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MessageContent {
    /// Text.
    Text(String),
    /// Paragraphs and buttons of an e-mail.
    Blocks(Vec<EmailBlock<String>>),
}

/// A paragraph or a button of an e-mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmailBlock<T> {
    /// Which of the two.
    #[serde(rename = "type")]
    pub kind: EmailBlockType,
    /// What it says.
    pub content: T,
    /// Where a button leads.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub url: Option<T>,
    /// How it looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub styles: Option<EmailBlockStyles>,
}

impl<T: Shaped> Shaped for EmailBlock<T> {
    fn shape() -> Shape {
        Shape::members::<Self>(
            const {
                &[
                    Member::of(&["type"], |it: &Self| &it.kind),
                    Member::of(&["content"], |it: &Self| &it.content),
                    Member::of(&["url"], |it: &Self| &it.url),
                    Member::of(&["styles"], |it: &Self| &it.styles),
                ]
            },
            &[],
        )
    }
}

// Written out because a derived default would ask for a default of `T`.
const fn none<T>() -> Option<T> {
    None
}

wire_enum! {
    /// What a block of an e-mail is.
    EmailBlockType, "type":
    Button = "button",
    Text = "text",
}

/// How a block of an e-mail looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmailBlockStyles {
    /// How its lines are set.
    pub text_align: TextAlign,
}

shape! { EmailBlockStyles { "textAlign": text_align } }

wire_enum! {
    /// How lines are set.
    TextAlign, "textAlign":
    Center = "center",
    Left = "left",
    Right = "right",
}

/// What a message calls for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Cta {
    /// What a click on it does.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<CtaType>,
    /// Where a click on it leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<CtaData>,
    /// What can be answered to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<CtaAction>,
}

wire_enum! {
    /// What a click on a message does.
    CtaType, "type":
    Redirect = "redirect",
}

/// Where a click on a message leads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CtaData {
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What can be answered to a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CtaAction {
    /// Whether it was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ActionStatus>,
    /// The answers to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<CtaButton>,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<CtaResult>,
}

wire_enum! {
    /// Whether a message was answered.
    ActionStatus, "status":
    Pending = "pending",
    Done = "done",
}

/// An answer to choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CtaButton {
    /// How it looks.
    #[serde(rename = "type")]
    pub kind: ButtonType,
    /// What it says.
    pub content: String,
    /// What it says once it was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_content: Option<String>,
}

wire_enum! {
    /// How a button looks.
    ButtonType, "type":
    Primary = "primary",
    Secondary = "secondary",
}

/// The answer to a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CtaResult {
    /// What was answered besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// The button that was chosen.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ButtonType>,
}

impl<T> EmailBlock<T> {
    /// The same block with every text replaced by what `f` makes of it.
    pub fn try_map<U, E>(&self, f: impl Fn(&T) -> Result<U, E>) -> Result<EmailBlock<U>, E> {
        Ok(EmailBlock {
            kind: self.kind,
            content: f(&self.content)?,
            url: self.url.as_ref().map(f).transpose()?,
            styles: self.styles,
        })
    }
}

impl Cta {
    /// What a message calls for that leads to `url` and can be answered with `action`.
    pub fn new(url: Option<String>, action: Option<CtaAction>) -> Self {
        let kind = url.as_ref().map(|_| CtaType::Redirect);
        Self { kind, data: url.map(|url| CtaData { url: Some(url) }), action }
    }
}

impl CtaAction {
    /// A choice of `buttons`, if there are any.
    pub fn pending(buttons: Vec<CtaButton>) -> Option<Self> {
        let status = Some(ActionStatus::Pending);
        (!buttons.is_empty()).then_some(Self { status, buttons, result: None })
    }
}
