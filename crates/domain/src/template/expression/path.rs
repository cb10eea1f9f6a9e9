//! Paths: variables with the names behind them, items and slices.

use super::{Call, Change, Choice, Expressions, Kind, LOOP_FIELDS, LOOP_METHODS, Problem, known};
use super::{MAX_PATH, Use};
use crate::template::Template;
use crate::template::lexer::unexpected;
use crate::template::names::TEXTS;

/// Variable with the names behind it, and its place. Brackets around it belong to it.
#[derive(Clone, Debug)]
pub(super) struct Path<'s> {
    used: Use<'s>,
    /// `true` if it is neither a text of a translation nor a part of `loop`.
    pub(super) is_data: bool,
    pub(super) start: usize,
    end: usize,
}

impl<'s> Expressions<'_, '_, 's> {
    // Parses a variable with the names behind it, or a call.
    pub(super) fn variable(&mut self, root: &'s str, at: usize) -> Result<(), Problem> {
        let mut used = Use { root, path: Vec::new(), at };
        self.names(&mut used.path)?;
        if self.cursor.text() != "(" {
            return self.note(used, at);
        }
        match used.path.as_slice() {
            [] => self.function(used, at),
            [method] if root == "loop" => {
                known("method", method, &LOOP_METHODS, at)?;
                if self.cursor.text_after() == ")" {
                    return Err(Problem::new("`loop.cycle` needs values", at));
                }
                self.count()?;
                self.arguments().map(drop)
            }
            _ => Err(self.cursor.unexpected()),
        }
    }

    // Parses the names behind the brackets at `start`, if they contain only a variable. `first` is
    // the start of their content.
    pub(super) fn bracketed(&mut self, start: usize, first: usize) -> Result<(), Problem> {
        let last = self.cursor.before_last();
        let Some(mut lone) = self.lone.take() else { return Ok(()) };
        if (lone.start, lone.end) != (first, last) {
            return Ok(());
        }
        self.names(&mut lone.used.path)?;
        self.note(lone.used, start)
    }

    fn note(&mut self, used: Use<'s>, start: usize) -> Result<(), Problem> {
        if let ("loop", Some(field)) = (used.root, used.path.first()) {
            known("field of the loop", field, &LOOP_FIELDS, used.at)?;
        }
        let end = self.cursor.ended();
        let is_free = self.scan.note(used.clone());
        let is_text = is_free && used.root == TEXTS;
        if is_text {
            self.key(&used, end);
        }
        let is_data = !is_text && used.root != "loop";
        self.lone = Some(Path { used, is_data, start, end });
        Ok(())
    }

    // Makes `t.a.b` the item `t["a.b"]`, so that its key is known as a whole.
    fn key(&mut self, used: &Use<'s>, end: usize) {
        let names: usize = used.path.iter().map(|name| name.len() + 1).sum();
        let dot = used.at + used.root.len();
        if !used.path.is_empty() && dot + names == end {
            self.scan.edits.push(dot, Change::KeyStart);
            self.scan.edits.push(end, Change::KeyEnd);
        }
    }

    // Parses `.name` and `['name']`, up to an index or another step.
    fn names(&mut self, path: &mut Vec<&'s str>) -> Result<(), Problem> {
        while path.len() < MAX_PATH {
            if self.cursor.text() == "." && self.cursor.text_after() != "" {
                self.count()?;
                self.cursor.take()?;
                match self.member()? {
                    Some(name) => path.push(name),
                    None => break,
                }
            } else if let Some(name) = self.subscript() {
                self.count()?;
                path.push(name);
            } else {
                break;
            }
        }
        Ok(())
    }

    // Takes the name behind a dot. Returns `None` if it is an index.
    fn member(&mut self) -> Result<Option<&'s str>, Problem> {
        let name = self.cursor.take()?;
        match name.kind {
            Kind::Name => Ok(Some(name.text)),
            // The engine counts the characters of a text up to the index.
            Kind::Number if name.text.len() > Template::MAX_INDEX => {
                let what = format!("an index has more than {} digits", Template::MAX_INDEX);
                Err(Problem::new(what, name.at))
            }
            Kind::Number => Ok(None),
            Kind::Text | Kind::Symbol => Err(unexpected(name.text, name.at)),
        }
    }

    // Takes `['name']` if the next tokens have this form, and returns the name.
    fn subscript(&mut self) -> Option<&'s str> {
        let name = self.cursor.named_subscript()?;
        (0..3).for_each(|_| {
            let _ = self.cursor.take();
        });
        Some(name)
    }

    // Parses `.name`, `.0`, `[..]` or `[..:..]` behind the value that starts at `start`. Returns `false` for
    // a slice.
    pub(super) fn step(&mut self, start: usize) -> Result<bool, Problem> {
        self.count()?;
        if self.cursor.eat(".") {
            return self.member().map(|_| true);
        }
        let (bracket, literal) = (self.cursor.at(), self.cursor.literal_subscript());
        self.cursor.expect("[")?;
        if self.cursor.text() != ":" {
            self.expression(Choice::Allowed)?;
        }
        let slice = self.cursor.text() == ":";
        if slice {
            self.bounds(bracket)?;
        }
        self.cursor.expect("]")?;
        if slice || !literal {
            self.scan.edits.push(start, Change::Open(Call::Item));
            self.scan.edits.push(bracket, Change::Separate(1));
            self.scan.edits.push(self.cursor.ended() - 1, Change::Bracket(')'));
            self.deepen()?;
        }
        Ok(!slice)
    }

    // Parses the bounds of a slice from its first colon. An absent one becomes `none`.
    fn bounds(&mut self, bracket: usize) -> Result<(), Problem> {
        let mut absent = self.cursor.ended() == bracket + 1;
        for _ in 0..2 {
            let colon = self.cursor.at();
            if !self.cursor.eat(":") {
                break;
            }
            self.count()?;
            if absent {
                self.scan.edits.push(colon, Change::Absent);
            }
            self.scan.edits.push(colon, Change::Separate(1));
            absent = matches!(self.cursor.text(), ":" | "]");
            if !absent {
                self.expression(Choice::Allowed)?;
            }
        }
        if absent {
            self.scan.edits.push(self.cursor.at(), Change::Absent);
        }
        Ok(())
    }
}
