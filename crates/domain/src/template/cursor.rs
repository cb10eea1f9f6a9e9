//! Cursor over the tokens of a tag.

use super::Template;
use super::edit::RESERVED;
use super::lexer::{Kind, Tag, Token, unexpected};
use super::problem::Problem;

/// Cursor over the tokens of a tag.
#[derive(Debug)]
pub(super) struct Cursor<'t, 's> {
    tag: &'t Tag<'s>,
    next: usize,
}

impl<'t, 's> Cursor<'t, 's> {
    pub(super) fn new(tag: &'t Tag<'s>) -> Self {
        Self { tag, next: 0 }
    }

    /// Returns the next token. Returns `None` at the end of the tag.
    pub(super) fn peek(&self) -> Option<Token<'s>> {
        self.tag.tokens.get(self.next).copied()
    }

    /// Returns the text of the next token. It is empty at the end of the tag.
    pub(super) fn text(&self) -> &'s str {
        self.peek().map_or("", |token| token.text)
    }

    /// Returns the text of the token after the next one.
    pub(super) fn text_after(&self) -> &'s str {
        self.tag.tokens.get(self.next + 1).map_or("", |token| token.text)
    }

    /// Returns the start of the next token, in bytes.
    pub(super) fn at(&self) -> usize {
        self.peek().map_or(self.tag.end, |token| token.at)
    }

    /// Returns the end of the last token, in bytes.
    pub(super) fn ended(&self) -> usize {
        let last = self.next.checked_sub(1).and_then(|last| self.tag.tokens.get(last));
        last.map_or(self.tag.at, Token::end)
    }

    /// Returns the end of the token before the last one, in bytes.
    pub(super) fn before_last(&self) -> usize {
        let token = self.next.checked_sub(2).and_then(|token| self.tag.tokens.get(token));
        token.map_or(self.tag.at, Token::end)
    }

    /// Returns the number of tokens before the next one.
    pub(super) fn place(&self) -> usize {
        self.next
    }

    /// Returns the tokens from `place` up to the next one.
    pub(super) fn since(&self, place: usize) -> &'t [Token<'s>] {
        self.tag.tokens.get(place..self.next).unwrap_or_default()
    }

    /// Returns the name in `['name']` if the next tokens have this form.
    pub(super) fn named_subscript(&self) -> Option<&'s str> {
        let [open, name, close] = self.tag.tokens.get(self.next..self.next + 3)? else {
            return None;
        };
        let name = (open.text == "[" && name.kind == Kind::Text && close.text == "]")
            .then(|| name.text.get(1..name.text.len() - 1))??;
        (!name.contains('\\')).then_some(name)
    }

    /// Returns `true` if the next tokens are `['name']` or `[0]`, with a short number.
    pub(super) fn literal_subscript(&self) -> bool {
        let Some([_, key, close]) = self.tag.tokens.get(self.next..self.next + 3) else {
            return false;
        };
        let short = key.kind == Kind::Number && key.text.len() <= Template::MAX_INDEX;
        close.text == "]" && (key.kind == Kind::Text || short)
    }

    /// Takes the next token.
    pub(super) fn take(&mut self) -> Result<Token<'s>, Problem> {
        let token = self.peek().ok_or_else(|| self.unexpected())?;
        self.next += 1;
        Ok(token)
    }

    /// Takes the next token, if it is `text`.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let eaten = self.text() == text;
        self.next += usize::from(eaten);
        eaten
    }

    /// Takes the next token. Refuses a token that is not `text`.
    pub(super) fn expect(&mut self, text: &str) -> Result<(), Problem> {
        if self.eat(text) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Takes the next token. Refuses a token that is not a name.
    pub(super) fn name(&mut self) -> Result<Token<'s>, Problem> {
        match self.peek() {
            Some(token) if token.kind == Kind::Name => self.take(),
            _ => Err(self.unexpected()),
        }
    }

    /// Takes the next token. Refuses a token that is not a name, and a name of the engine.
    pub(super) fn free_name(&mut self) -> Result<Token<'s>, Problem> {
        if self.text().starts_with(RESERVED) { Err(self.unexpected()) } else { self.name() }
    }

    /// Refuses remaining tokens.
    pub(super) fn finish(&self) -> Result<(), Problem> {
        if self.peek().is_none() { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Returns the problem of an unexpected token.
    pub(super) fn unexpected(&self) -> Problem {
        match self.peek() {
            Some(token) => unexpected(token.text, token.at),
            None => Problem::new("a tag ends too early", self.tag.end),
        }
    }
}
