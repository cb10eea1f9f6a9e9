//! Bounds of the operators of a tag, and of the nesting of its expressions.

use super::{Expressions, Problem};
use crate::template::Template;

const MAX_OPERATORS: usize = Template::MAX_OPERATORS;
const MAX_NESTING: usize = Template::MAX_NESTING;

impl Expressions<'_, '_, '_> {
    pub(super) fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let (nesting, base, height) = (self.nesting, self.base, std::mem::take(&mut self.height));
        self.deepen()?;
        (self.base, self.height) = (self.nesting, 0);
        read(self)?;
        (self.nesting, self.base) = (nesting, base);
        self.height = height.max(self.height + 1);
        Ok(())
    }

    // Counts brackets or a call. A call contains the brackets before its operator, too.
    pub(super) fn deepen(&mut self) -> Result<(), Problem> {
        self.nesting += 1;
        self.height += 1;
        let levels = self.nesting.max(self.base + self.height);
        if levels > MAX_NESTING {
            let what = format!("an expression is nested more than {MAX_NESTING} levels deep");
            return Err(Problem::new(what, self.cursor.at()));
        }
        self.scan.check_depth(levels, self.cursor.at())
    }

    // Counts an operator twice: the engine recurses when it reads the text, and again when it
    // compiles.
    pub(super) fn recursive(&mut self) -> Result<(), Problem> {
        self.count()?;
        self.count()
    }

    pub(super) fn count(&mut self) -> Result<(), Problem> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            let what = format!("a tag has more than {MAX_OPERATORS} operators");
            return Err(Problem::new(what, self.cursor.at()));
        }
        Ok(())
    }
}
