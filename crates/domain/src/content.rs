//! Content of a message, and its call to action.

mod html;
mod plain;

use serde::{Deserialize, Serialize};

use crate::json::{Member, Object, Shape, Shaped, shape};
use crate::time::Timestamp;
use crate::vocabulary::wire_enum;

/// Content of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MessageContent {
    /// Plain or HTML text.
    Text(String),
    /// Paragraphs and buttons of an e-mail.
    Blocks(Vec<EmailBlock<String>>),
}

impl MessageContent {
    /// Returns the size of the texts, in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            MessageContent::Text(text) => text.len(),
            MessageContent::Blocks(blocks) => blocks.iter().map(EmailBlock::size).sum(),
        }
    }
}

impl EmailBlock<String> {
    fn size(&self) -> usize {
        self.content.len() + self.url.as_ref().map_or(0, String::len)
    }
}

/// Paragraph or button of an e-mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmailBlock<T> {
    /// Kind of block.
    #[serde(rename = "type")]
    pub kind: EmailBlockType,
    /// Text of the block.
    pub content: T,
    /// URL that a button opens.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub url: Option<T>,
    /// Style of the block.
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

// A derived default would require `T: Default`.
const fn none<T>() -> Option<T> {
    None
}

wire_enum! {
    /// Kind of a block of an e-mail.
    EmailBlockType, "type":
    Button = "button",
    Text = "text",
}

/// Style of a block of an e-mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmailBlockStyles {
    /// Alignment of the lines.
    pub text_align: TextAlign,
}

shape! { EmailBlockStyles { "textAlign": text_align } }

wire_enum! {
    /// Alignment of lines.
    TextAlign, "textAlign":
    Center = "center",
    Left = "left",
    Right = "right",
}

/// Call to action of a message: a URL, buttons, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Cta {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<CtaType>,
    /// Target of a click.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<CtaData>,
    /// Buttons, and the chosen one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<CtaAction>,
}

impl Cta {
    /// Returns the size of the texts, in bytes.
    pub(crate) fn size(&self) -> usize {
        let url = self.data.as_ref().and_then(|data| data.url.as_ref()).map_or(0, String::len);
        let buttons = self.action.iter().flat_map(|action| &action.buttons);
        url + buttons.map(CtaButton::size).sum::<usize>()
    }
}

wire_enum! {
    /// Effect of a click on a message.
    #[doc(hidden)]
    CtaType, "type":
    Redirect = "redirect",
}

/// Target of a click on a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CtaData {
    /// URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Buttons of a message, and the chosen one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CtaAction {
    /// Progress of the choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ActionStatus>,
    /// Buttons to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<CtaButton>,
    /// Choice of the reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<CtaResult>,
}

wire_enum! {
    /// Progress of a choice.
    ActionStatus, "status":
    Pending = "pending",
    Done = "done",
}

/// Button of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CtaButton {
    /// Style of the button.
    #[serde(rename = "type")]
    pub kind: ButtonType,
    /// Label.
    pub content: String,
    /// Label once the button was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_content: Option<String>,
}

impl CtaButton {
    fn size(&self) -> usize {
        self.content.len() + self.result_content.as_ref().map_or(0, String::len)
    }
}

wire_enum! {
    /// Style of a button.
    ButtonType, "type":
    Primary = "primary",
    Secondary = "secondary",
}

/// Choice of a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CtaResult {
    /// Data that came with the choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// Chosen button.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ButtonType>,
    /// Time of the choice.
    #[serde(rename = "completedAt", skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

impl<T> EmailBlock<T> {
    /// Returns the block with `f` applied to every text.
    #[doc(hidden)]
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
    /// Returns a call to action that opens `url` and offers `action`.
    #[doc(hidden)]
    pub fn new(url: Option<String>, action: Option<CtaAction>) -> Self {
        let kind = url.as_ref().map(|_| CtaType::Redirect);
        Self { kind, data: url.map(|url| CtaData { url: Some(url) }), action }
    }
}

impl CtaAction {
    /// Returns a choice of `buttons`. Returns `None` if there are none.
    #[doc(hidden)]
    pub fn pending(buttons: Vec<CtaButton>) -> Option<Self> {
        let status = Some(ActionStatus::Pending);
        (!buttons.is_empty()).then_some(Self { status, buttons, result: None })
    }
}
