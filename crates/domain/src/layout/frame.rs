//! Frames: e-mails in their layouts.

use std::sync::Arc;

use super::Layout;
use crate::content::MessageContent;
use crate::error::{Invalid, Reason};
use crate::template::{Format, RenderError, Role, Template, Variables};
use crate::translation::Texts;

/// Layout that an e-mail wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutChoice {
    /// None.
    None,
    /// The default one of the environment.
    Default,
    /// The one of this identifier or id.
    Named(String),
}

/// Layout of an e-mail, with its texts.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Layout.
    pub layout: Arc<Layout>,
    /// Texts in the languages of the reader.
    pub texts: Texts,
}

/// Layout of an e-mail, as far as there is one.
#[derive(Clone, Copy, Debug)]
pub struct FrameRef<'a> {
    /// Name of the layout that the e-mail wants, if there is none of this name.
    pub missing: Option<&'a str>,
    /// Layout. In place of a missing one, it is the default one of the environment.
    pub frame: Option<&'a Frame>,
}

impl FrameRef<'_> {
    /// An e-mail without a layout.
    pub const BARE: Self = Self { missing: None, frame: None };

    /// Returns `true` if the e-mail has no layout, and wants none.
    pub(crate) const fn is_bare(self) -> bool {
        self.missing.is_none() && self.frame.is_none()
    }
}

impl Frame {
    /// Returns the HTML of an e-mail with this content.
    pub(crate) fn around(
        &self,
        content: &MessageContent,
        variables: &Variables,
    ) -> Result<String, RenderError> {
        let html = content.html();
        match &self.layout.body {
            Some(body) => {
                let variables = variables.clone().texts(self.texts.clone()).content(html);
                body.render(Format::Html, &variables)
            }
            None => Ok(html),
        }
    }
}

/// Refuses a body that does not compile, has unknown names, or has no place for the content.
pub(super) fn check(body: &Template) -> Result<(), Invalid> {
    body.check_as(Role::Frame).map_err(|invalid| invalid.named("body"))?;
    if body.uses().iter().any(|(root, _)| root == "content") {
        return Ok(());
    }
    Err(Invalid::new("body", Reason::malformed("a template with `{{ content }}`")))
}
