//! Expressions: a limit on operators, and calls in place of operators that enlarge values.

mod arguments;
mod brackets;
mod depth;
mod path;

use super::cursor::Cursor;
use super::edit::{Call, Change, RESERVED};
use super::engine::{FUNCTIONS, TESTS};
use super::lexer::Kind;
use super::names::Use;
use super::problem::Problem;
use super::scan::Scan;
use path::Path;

/// Maximum number of checked names in a path such as `payload.order.id`.
const MAX_PATH: usize = 8;

const WORDS: [&str; 10] =
    ["and", "or", "not", "if", "else", "elif", "in", "is", "for", "recursive"];
const COMPARISONS: [&str; 7] = ["==", "!=", "<", "<=", ">", ">=", "in"];
const CONSTANTS: [&str; 6] = ["true", "True", "false", "False", "none", "None"];
const LOOP_FIELDS: [&str; 9] =
    ["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"];
const LOOP_METHODS: [&str; 1] = ["cycle"];

/// Choice at the end of an expression: `if .. else ..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Allowed,
    /// `if` belongs to the statement.
    Refused,
}

// Precedence of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Logic,
    Sum,
    Joint,
    Product,
    Power,
}

// Operands of the operators of one level.
#[derive(Clone, Copy, Debug)]
struct Region {
    level: Level,
    call: Call,
    start: usize,
    open: bool,
}

/// Parser of the expressions of one tag.
pub(super) struct Expressions<'x, 't, 's> {
    pub(super) scan: &'x mut Scan<'s>,
    pub(super) cursor: Cursor<'t, 's>,
    operators: usize,
    nesting: usize,
    // Nesting at the start of the innermost brackets.
    base: usize,
    // Height of the brackets and calls inside them, as far as read.
    height: usize,
    // Last variable.
    lone: Option<Path<'s>>,
}

// Operands between two operators of logic.
struct Side<'s> {
    start: usize,
    // Token before it.
    before: &'s str,
    // Number of printed variables in front of it.
    shown: usize,
}

impl<'x, 't, 's> Expressions<'x, 't, 's> {
    pub(super) fn new(scan: &'x mut Scan<'s>, cursor: Cursor<'t, 's>) -> Self {
        Self { scan, cursor, operators: 0, nesting: 0, base: 0, height: 0, lone: None }
    }

    /// Reads the expression of a tag that prints it.
    pub(super) fn printed(mut self) -> Result<Cursor<'t, 's>, Problem> {
        self.part(Choice::Allowed, true)?;
        Ok(self.cursor)
    }

    /// Reads the value of a variable.
    pub(super) fn value(&mut self) -> Result<(), Problem> {
        let start = self.cursor.at();
        self.nested(|this| this.expression(Choice::Allowed))?;
        self.scan.edits.wrap(start, self.cursor.ended(), Call::Keep);
        Ok(())
    }

    /// Reads an expression whose value is not printed as it is.
    pub(super) fn expression(&mut self, choice: Choice) -> Result<(), Problem> {
        self.part(choice, false)
    }

    // Parses an expression: a whole one, or one in brackets. `prints` says whether its value is printed.
    fn part(&mut self, choice: Choice, prints: bool) -> Result<(), Problem> {
        self.nested(|this| this.operators(choice, prints))
    }

    // Parses operands and the operators between them.
    fn operators(&mut self, choice: Choice, prints: bool) -> Result<(), Problem> {
        let mut choices = 0_usize;
        let mut regions = [
            Region::new(Level::Sum, Call::Add),
            Region::new(Level::Joint, Call::Concat),
            Region::new(Level::Product, Call::Multiply),
        ];
        let mut level = Level::Logic;
        let mut side = Side { start: 0, before: "", shown: 0 };
        let (mut compared, mut before) = (false, "");
        loop {
            while level == Level::Logic && self.cursor.eat("not") {
                before = "not";
                self.recursive()?;
            }
            let start = self.cursor.at();
            if level == Level::Logic {
                side = Side { start, before, shown: self.scan.shown.len() };
            }
            regions.iter_mut().filter(|region| region.level > level).for_each(|region| {
                region.start = start;
            });
            self.operand(prints && matches!(before, "" | "~" | "else"))?;
            before = self.cursor.text();
            let next = self.operator(choice, &mut choices)?;
            if next.is_none_or(|next| next == Level::Logic) {
                compared = self.compare(side.start, compared)?;
                if !(matches!(side.before, "" | "else") && matches!(before, "" | ")" | "if")) {
                    self.scan.shown.truncate(side.shown);
                }
            }
            let Some(next) = next else { break };
            self.join(&mut regions, next)?;
            level = next;
        }
        self.close(&mut regions, Level::Logic, false);
        Ok(())
    }

    // Makes the text since `side` a call if an operator around it compares values. Returns whether
    // the next one does.
    fn compare(&mut self, side: usize, before: bool) -> Result<bool, Problem> {
        let (text, after) = (self.cursor.text(), self.cursor.text_after());
        let compares = COMPARISONS.contains(&text) || (text, after) == ("not", "in");
        if before || compares {
            self.scan.edits.wrap(side, self.cursor.ended(), Call::Read);
        }
        if compares && !before {
            self.deepen()?;
        }
        Ok(compares)
    }

    // Returns the level of the next operator, if there is one. Takes words, but leaves symbols.
    fn operator(&mut self, choice: Choice, choices: &mut usize) -> Result<Option<Level>, Problem> {
        let cursor = &self.cursor;
        Ok(Some(match cursor.text() {
            "or" | "and" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" => Level::Logic,
            "not" if cursor.text_after() == "in" => Level::Logic,
            "if" if choice == Choice::Allowed => {
                *choices += 1;
                Level::Logic
            }
            "else" if *choices > 0 => {
                *choices -= 1;
                Level::Logic
            }
            "+" | "-" => Level::Sum,
            "~" => Level::Joint,
            "*" | "/" | "//" | "%" => Level::Product,
            "**" => Level::Power,
            _ => return Ok(None),
        }))
    }

    // Takes an operator. One that enlarges values becomes a call with its operands.
    fn join(&mut self, regions: &mut [Region], level: Level) -> Result<(), Problem> {
        if self.cursor.text() == "if" {
            self.recursive()?;
        } else {
            self.count()?;
        }
        let grows = matches!(self.cursor.text(), "+" | "~" | "*");
        self.close(regions, level, grows);
        let operator = self.cursor.take()?;
        if operator.text == "not" {
            self.cursor.expect("in")?;
        }
        if !grows {
            return Ok(());
        }
        for region in regions.iter_mut().filter(|region| region.level == level && !region.open) {
            region.open = true;
            self.scan.edits.push(region.start, Change::Open(region.call));
            self.deepen()?;
        }
        self.scan.edits.push(operator.at, Change::Separate(operator.text.len()));
        Ok(())
    }

    // Ends the calls with operands that an operator of `level` does not join. An operator that
    // enlarges values continues the call of its level.
    fn close(&mut self, regions: &mut [Region], level: Level, grows: bool) {
        let end = self.cursor.ended();
        for region in regions.iter_mut().filter(|region| region.open) {
            if region.level > level || region.level == level && !grows {
                region.open = false;
                self.scan.edits.push(end, Change::Close);
            }
        }
    }

    // Parses an operand. Its variables are shown if it is `printed`, alone or joined by `~`, and has no sign
    // or test.
    fn operand(&mut self, printed: bool) -> Result<(), Problem> {
        let shown = self.scan.shown.len();
        let is_negative = self.cursor.text() == "-";
        while self.cursor.eat("-") {
            self.recursive()?;
        }
        self.element(printed && !is_negative)?;
        loop {
            if self.cursor.eat("|") {
                self.filter()?;
            } else if self.cursor.eat("is") {
                self.scan.shown.truncate(shown);
                self.test()?;
            } else {
                break;
            }
            self.count()?;
        }
        if !matches!(self.cursor.text(), "" | ")" | "~" | "if") {
            self.scan.shown.truncate(shown);
        }
        Ok(())
    }

    // Parses a value and the path behind it. `printed` says whether the value is.
    fn element(&mut self, printed: bool) -> Result<(), Problem> {
        let shown = self.scan.shown.len();
        self.lone = None;
        let start = self.cursor.at();
        let token = self.cursor.take()?;
        match (token.kind, token.text) {
            (Kind::Text, _) => {
                while self.cursor.peek().is_some_and(|next| next.kind == Kind::Text) {
                    self.cursor.take()?;
                }
            }
            (Kind::Number, _) => {}
            (Kind::Name, name) if CONSTANTS.contains(&name) => {}
            (Kind::Name, name) if WORDS.contains(&name) || name.starts_with(RESERVED) => {
                return Err(super::lexer::unexpected(name, token.at));
            }
            (Kind::Name, name) => self.variable(name, token.at)?,
            (Kind::Symbol, "(") => self.parenthesized(start, printed)?,
            (Kind::Symbol, "[") => {
                self.list("]", false)?;
                self.call(start, Call::List);
            }
            (Kind::Symbol, "{") => {
                self.map()?;
                self.call(start, Call::Map);
            }
            (Kind::Symbol, text) => return Err(super::lexer::unexpected(text, token.at)),
        }
        let is_variable = self.steps(start, shown)?;
        if printed && is_variable {
            // Brackets around a variable belong to it.
            self.scan.shown.truncate(shown);
            self.scan.shown.push((start, self.cursor.ended()));
        }
        Ok(())
    }

    // Parses the steps behind a value. Returns `true` if they and the value are a variable of the data.
    fn steps(&mut self, start: usize, shown: usize) -> Result<bool, Problem> {
        let mut is_variable =
            self.lone.as_ref().is_some_and(|lone| lone.start == start && lone.is_data);
        while matches!(self.cursor.text(), "." | "[") {
            is_variable &= self.step(start)?;
            // Only what is printed as it is can be shown.
            self.scan.shown.truncate(shown);
        }
        if self.cursor.text() == "(" {
            return Err(self.cursor.unexpected());
        }
        Ok(is_variable)
    }

    // Makes the text since `start`, in brackets, a call.
    fn call(&mut self, start: usize, call: Call) {
        self.scan.edits.push(start, Change::Open(call));
        self.scan.edits.push(start, Change::Bracket('('));
        self.scan.edits.push(self.cursor.ended() - 1, Change::Bracket(')'));
    }
}

impl Region {
    fn new(level: Level, call: Call) -> Self {
        Self { level, call, start: 0, open: false }
    }
}

fn known(kind: &str, name: &str, known: &[&str], at: usize) -> Result<(), Problem> {
    if known.contains(&name) {
        return Ok(());
    }
    Err(Problem::unknown(kind, name, known.iter().copied(), at))
}
