//! Contents of brackets: lists and maps.

use super::{Call, Change, Choice, Expressions, Problem};

impl Expressions<'_, '_, '_> {
    // Parses what is behind `(`, which is at `start`: a list, or an expression. `printed` says whether it is
    // printed.
    pub(super) fn parenthesized(&mut self, start: usize, printed: bool) -> Result<(), Problem> {
        let (shown, first) = (self.scan.shown.len(), self.cursor.at());
        if self.list(")", printed)? {
            self.scan.shown.truncate(shown);
            self.scan.edits.push(start, Change::Open(Call::List));
            return Ok(());
        }
        self.bracketed(start, first)
    }

    // Parses the content of brackets up to `close`. Returns `true` if it has commas or is empty. `printed`
    // says whether it is printed if it has none.
    pub(super) fn list(&mut self, close: &str, printed: bool) -> Result<bool, Problem> {
        let mut several = self.cursor.text() == close;
        while !self.cursor.eat(close) {
            self.part(Choice::Allowed, printed)?;
            if self.cursor.eat(",") {
                several = true;
            } else if self.cursor.text() != close {
                return Err(self.cursor.unexpected());
            }
        }
        Ok(several)
    }

    pub(super) fn map(&mut self) -> Result<(), Problem> {
        while !self.cursor.eat("}") {
            self.expression(Choice::Allowed)?;
            self.scan.edits.push(self.cursor.at(), Change::Separate(1));
            self.cursor.expect(":")?;
            self.expression(Choice::Allowed)?;
            if !self.cursor.eat(",") && self.cursor.text() != "}" {
                return Err(self.cursor.unexpected());
            }
        }
        Ok(())
    }
}
