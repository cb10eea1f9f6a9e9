//! HTML of the content of an e-mail.

use std::fmt::Write;

use super::{EmailBlock, EmailBlockType, MessageContent, TextAlign, plain};

impl MessageContent {
    /// Returns the HTML of an e-mail. Texts of blocks are HTML, and so are their URLs.
    #[must_use]
    pub fn html(&self) -> String {
        match self {
            MessageContent::Text(html) => html.clone(),
            MessageContent::Blocks(blocks) => blocks.iter().map(block).collect(),
        }
    }

    /// Returns the text of an e-mail without its HTML, for its text part.
    #[must_use]
    pub fn plain_text(&self) -> String {
        match self {
            MessageContent::Text(html) => plain::text_of(html),
            MessageContent::Blocks(_) => plain::text_of(&self.html()),
        }
    }
}

fn block(block: &EmailBlock<String>) -> String {
    let align = match block.styles.map(|styles| styles.text_align) {
        None => "",
        Some(TextAlign::Left) => " style=\"text-align: left\"",
        Some(TextAlign::Center) => " style=\"text-align: center\"",
        Some(TextAlign::Right) => " style=\"text-align: right\"",
    };
    let (mut html, content) = (format!("<p{align}>"), &block.content);
    // Writing into a text does not fail.
    let _ = match (block.kind, &block.url) {
        (EmailBlockType::Button, Some(url)) => {
            let url = url.replace('"', "&quot;");
            write!(html, "<a href=\"{url}\">{content}</a></p>")
        }
        (EmailBlockType::Button | EmailBlockType::Text, _) => write!(html, "{content}</p>"),
    };
    html
}
