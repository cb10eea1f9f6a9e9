//! Arguments of filters, tests and functions.

use super::{Choice, Expressions, Problem, TESTS, Use, WORDS, known};
use crate::template::engine::FILTERS;
use crate::template::filters;
use crate::template::lexer::Kind;
use crate::template::names::TEXTS;
use crate::template::signatures::{Argument, Called, Literal};

impl<'s> Expressions<'_, '_, 's> {
    // Parses the name of a filter and its arguments.
    pub(super) fn filter(&mut self) -> Result<(), Problem> {
        let filter = self.cursor.name()?;
        known("filter", filter.text, FILTERS, filter.at)?;
        if filter.text == TEXTS {
            self.scan.note(Use { root: TEXTS, path: Vec::new(), at: filter.at });
        }
        let arguments = self.arguments_if_any()?;
        let called = Called { what: "filter", name: filter.text, at: filter.at };
        called.check(filters::filter(filter.text).unwrap_or_default(), &arguments)
    }

    // Parses the name of a test and its arguments. A single one needs no brackets.
    pub(super) fn test(&mut self) -> Result<(), Problem> {
        if self.cursor.eat("not") {
            self.count()?;
        }
        let test = self.cursor.name()?;
        known("test", test.text, TESTS, test.at)?;
        let (place, at) = (self.cursor.place(), self.cursor.at());
        while self.cursor.eat("-") {
            self.recursive()?;
        }
        let starts = self.cursor.peek().is_some_and(|next| match next.kind {
            Kind::Name => !WORDS.contains(&next.text),
            Kind::Number | Kind::Text => true,
            Kind::Symbol => matches!(next.text, "[" | "{"),
        });
        let arguments = if starts {
            self.nested(|this| this.element(false))?;
            let literal = Literal::of(self.cursor.since(place));
            vec![Argument { name: None, literal, at }]
        } else {
            self.arguments_if_any()?
        };
        let called = Called { what: "test", name: test.text, at: test.at };
        called.check(filters::test(test.text).unwrap_or_default(), &arguments)
    }

    // Parses the arguments of the function `used`.
    pub(super) fn function(&mut self, used: Use<'s>, at: usize) -> Result<(), Problem> {
        let name = used.root;
        known("function", name, super::FUNCTIONS, at)?;
        let parameters: &[_] = if name == TEXTS {
            self.scan.note(used);
            &filters::TEXT
        } else {
            &filters::RANGE
        };
        self.count()?;
        let arguments = self.arguments()?;
        Called { what: "function", name, at }.check(parameters, &arguments)
    }

    fn arguments_if_any(&mut self) -> Result<Vec<Argument<'s>>, Problem> {
        if self.cursor.text() == "(" { self.arguments() } else { Ok(Vec::new()) }
    }

    pub(super) fn arguments(&mut self) -> Result<Vec<Argument<'s>>, Problem> {
        let mut arguments = Vec::new();
        self.cursor.expect("(")?;
        while !self.cursor.eat(")") {
            let at = self.cursor.at();
            let mut name = None;
            if self.cursor.text_after() == "=" {
                name = Some(self.cursor.free_name()?.text);
                self.cursor.take()?;
            }
            let place = self.cursor.place();
            self.expression(Choice::Allowed)?;
            arguments.push(Argument { name, literal: Literal::of(self.cursor.since(place)), at });
            if !self.cursor.eat(",") && self.cursor.text() != ")" {
                return Err(self.cursor.unexpected());
            }
        }
        Ok(arguments)
    }
}
