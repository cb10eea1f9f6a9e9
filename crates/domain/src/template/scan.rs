//! Scan of a template before it is compiled.
//!
//! The engine parses and runs templates recursively, and builds texts of any length. The scan
//! bounds the depth and the length of expressions and statements, and refuses unknown constructs.
//! Operators that enlarge values become calls of bounded functions.

use std::collections::HashSet;
use std::mem;

use super::Template;
use super::cursor::Cursor;
use super::edit::{Call, Change, Edits};
use super::expression::{Choice, Expressions};
use super::lexer::{Lexer, Tag};
use super::names::Use;
use super::problem::Problem;

const MAX_TAGS: usize = Template::MAX_TAGS;
const MAX_BLOCKS: usize = Template::MAX_BLOCKS;
const MAX_ELIFS: usize = Template::MAX_ELIFS;
const MAX_DEPTH: usize = Template::MAX_DEPTH;
/// Share of a level of an expression in the depth.
const LEVEL: usize = 7;
/// Share of a statement in the depth.
const BLOCK: usize = 4;

const STATEMENTS: [&str; 12] = [
    "for",
    "endfor",
    "if",
    "elif",
    "else",
    "endif",
    "set",
    "with",
    "endwith",
    "autoescape",
    "endautoescape",
    "raw",
];

/// Result of a scan.
#[derive(Debug)]
pub(super) struct Scan<'s> {
    pub(super) edits: Edits,
    /// Variables that the template does not set.
    pub(super) uses: Vec<Use<'s>>,
    /// Start and end of each variable that is printed, without its filters, in order.
    pub(super) shown: Vec<(usize, usize)>,
    blocks: Vec<Block<'s>>,
    // Names set outside of all blocks.
    names: HashSet<&'s str>,
}

// Statement that has not ended yet.
#[derive(Debug)]
struct Block<'s> {
    kind: BlockKind,
    at: usize,
    names: HashSet<&'s str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    For,
    If,
    // `elif` of a condition.
    ElseIf,
    // `else` of a condition or loop.
    Else,
    With,
    AutoEscape,
}

impl<'s> Scan<'s> {
    /// Scans all of `source`.
    pub(super) fn of(source: &'s str) -> Result<Self, Problem> {
        let (edits, uses, shown, blocks, names) = Default::default();
        let mut scan = Self { edits, uses, shown, blocks, names };
        let mut lexer = Lexer::new(source);
        let mut tags = 0;
        while let Some(tag) = lexer.next_tag()? {
            tags += 1;
            if tags > MAX_TAGS {
                return Err(Problem::new(format!("there are more than {MAX_TAGS} tags"), tag.at));
            }
            if tag.statement {
                scan.statement(&tag)?;
            } else {
                Expressions::new(&mut scan, Cursor::new(&tag)).printed()?.finish()?;
            }
        }
        match scan.blocks.last() {
            Some(block) => Err(Problem::new("a statement has no end", block.at)),
            None => Ok(scan),
        }
    }

    /// Records the use of a variable. Returns `false` if the template sets it.
    pub(super) fn note(&mut self, used: Use<'s>) -> bool {
        let mut names = self.blocks.iter().map(|block| &block.names).chain([&self.names]);
        let is_free = !names.any(|names| names.contains(used.root));
        if is_free {
            self.uses.push(used);
        }
        is_free
    }

    /// Makes each variable that is printed an argument of a call, together with its name.
    pub(super) fn watch(&mut self) {
        for (start, end) in mem::take(&mut self.shown) {
            self.edits.push(end, Change::Name(start, end));
            self.edits.wrap(start, end, Call::Shown);
        }
    }

    fn expression<'t>(
        &mut self,
        cursor: Cursor<'t, 's>,
        choice: Choice,
    ) -> Result<Cursor<'t, 's>, Problem> {
        let mut expressions = Expressions::new(self, cursor);
        expressions.expression(choice)?;
        Ok(expressions.cursor)
    }

    fn statement(&mut self, tag: &Tag<'s>) -> Result<(), Problem> {
        let mut cursor = Cursor::new(tag);
        let word = cursor.name()?;
        match word.text {
            "for" => return self.for_loop(cursor, tag.at),
            "set" => return self.set(cursor),
            "with" => return self.with(cursor, tag.at),
            "if" => self.open(BlockKind::If, tag.at)?,
            "elif" => match self.kind() {
                Some(BlockKind::If | BlockKind::ElseIf) => {
                    self.open(BlockKind::ElseIf, tag.at)?;
                }
                _ => return Err(misplaced(word.text, word.at)),
            },
            "autoescape" => self.open(BlockKind::AutoEscape, tag.at)?,
            "else" => {
                self.otherwise(word.at)?;
                return cursor.finish();
            }
            "endfor" | "endif" | "endwith" | "endautoescape" => {
                self.end(word.text, word.at)?;
                return cursor.finish();
            }
            other => return Err(Problem::unknown("statement", other, STATEMENTS, word.at)),
        }
        self.expression(cursor, Choice::Refused)?.finish()
    }

    fn kind(&self) -> Option<BlockKind> {
        self.blocks.last().map(|block| block.kind)
    }

    /// Refuses an expression of `levels` that is too deep for the statements around it.
    pub(super) fn check_depth(&self, levels: usize, at: usize) -> Result<(), Problem> {
        let elifs = self.elifs();
        let blocks = self.blocks.len() - elifs;
        if levels * LEVEL + blocks * BLOCK + elifs <= MAX_DEPTH {
            return Ok(());
        }
        Err(Problem::new("an expression and the statements around it are nested too deep", at))
    }

    fn elifs(&self) -> usize {
        self.blocks.iter().filter(|block| block.kind == BlockKind::ElseIf).count()
    }

    fn open(&mut self, kind: BlockKind, at: usize) -> Result<(), Problem> {
        let elifs = self.elifs();
        if kind == BlockKind::ElseIf && elifs == MAX_ELIFS {
            return Err(Problem::new(format!("there are more than {MAX_ELIFS} `elif`"), at));
        }
        if kind != BlockKind::ElseIf && self.blocks.len() - elifs == MAX_BLOCKS {
            let what = format!("statements are nested more than {MAX_BLOCKS} levels deep");
            return Err(Problem::new(what, at));
        }
        self.blocks.push(Block { kind, at, names: HashSet::new() });
        Ok(())
    }

    fn otherwise(&mut self, at: usize) -> Result<(), Problem> {
        let block = self.blocks.last_mut().ok_or_else(|| misplaced("else", at))?;
        match block.kind {
            BlockKind::For => block.names.clear(),
            BlockKind::If | BlockKind::ElseIf => {}
            BlockKind::Else | BlockKind::With | BlockKind::AutoEscape => {
                return Err(misplaced("else", at));
            }
        }
        self.open(BlockKind::Else, at)
    }

    fn end(&mut self, word: &str, at: usize) -> Result<(), Problem> {
        let last = |kind: BlockKind| match word {
            "endfor" => kind == BlockKind::For,
            "endif" => kind == BlockKind::If,
            "endwith" => kind == BlockKind::With,
            _ => kind == BlockKind::AutoEscape,
        };
        while let Some(block) = self.blocks.pop() {
            if last(block.kind) {
                self.keep_names(block);
                return Ok(());
            }
            if !matches!(block.kind, BlockKind::Else | BlockKind::ElseIf) {
                break;
            }
            self.keep_names(block);
        }
        Err(misplaced(word, at))
    }

    // Names set in a condition stay known behind it.
    fn keep_names(&mut self, block: Block<'s>) {
        if matches!(block.kind, BlockKind::If | BlockKind::ElseIf | BlockKind::Else) {
            self.locals().extend(block.names);
        }
    }

    fn locals(&mut self) -> &mut HashSet<&'s str> {
        match self.blocks.last_mut() {
            Some(block) => &mut block.names,
            None => &mut self.names,
        }
    }

    fn for_loop(&mut self, mut cursor: Cursor<'_, 's>, at: usize) -> Result<(), Problem> {
        let names = targets(&mut cursor)?;
        cursor.expect("in")?;
        let mut expressions = Expressions::new(self, cursor);
        expressions.expression(Choice::Refused)?;
        let mut cursor = expressions.cursor;
        self.open(BlockKind::For, at)?;
        self.locals().extend(names);
        if cursor.eat("if") {
            cursor = self.expression(cursor, Choice::Allowed)?;
        }
        self.locals().insert("loop");
        cursor.finish()
    }

    fn set(&mut self, mut cursor: Cursor<'_, 's>) -> Result<(), Problem> {
        let names = targets(&mut cursor)?;
        if cursor.text() != "=" {
            return Err(Problem::new("`set` needs `=` and a value", cursor.at()));
        }
        cursor.expect("=")?;
        let mut expressions = Expressions::new(self, cursor);
        expressions.value()?;
        expressions.cursor.finish()?;
        self.locals().extend(names);
        Ok(())
    }

    fn with(&mut self, cursor: Cursor<'_, 's>, at: usize) -> Result<(), Problem> {
        self.open(BlockKind::With, at)?;
        let mut expressions = Expressions::new(self, cursor);
        while expressions.cursor.peek().is_some() {
            let name = expressions.cursor.free_name()?.text;
            expressions.cursor.expect("=")?;
            expressions.value()?;
            expressions.scan.locals().insert(name);
            if !expressions.cursor.eat(",") {
                expressions.cursor.finish()?;
            }
        }
        Ok(())
    }
}

fn misplaced(word: &str, at: usize) -> Problem {
    Problem::new(format!("`{word}` has nothing that it belongs to"), at)
}

// Parses names that are set.
fn targets<'s>(cursor: &mut Cursor<'_, 's>) -> Result<Vec<&'s str>, Problem> {
    let mut names = vec![cursor.free_name()?.text];
    while cursor.eat(",") {
        names.push(cursor.free_name()?.text);
    }
    Ok(names)
}
