//! Contents of brackets: lists and maps.

use super::{Change, Choice, Expressions, Problem};

impl Expressions<'_, '_, '_> {
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
