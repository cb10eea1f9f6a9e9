//! Problems of templates: what is wrong, and where.

use crate::suggest::nearest;

/// What is wrong with a template, and where.
#[derive(Debug)]
pub(super) struct Problem {
    what: String,
    at: usize,
}

impl Problem {
    /// `what` is wrong at the byte offset `at`.
    pub(super) fn new(what: impl Into<String>, at: usize) -> Self {
        Self { what: what.into(), at }
    }

    /// `word` is none of the `known` words of this kind.
    pub(super) fn unknown<'k>(
        kind: &str,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
        at: usize,
    ) -> Self {
        Self::new(format!("unknown {kind}{}", meant(word, known)), at)
    }

    /// The problem, with the line of `source` that it is in.
    pub(super) fn in_line_of(&self, source: &str) -> String {
        let line = source.get(..self.at).unwrap_or_default().matches('\n').count() + 1;
        format!("{} in line {line}", self.what)
    }
}

/// `word` in quotes, with the known word that was probably meant.
pub(super) fn meant<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let meant = nearest(word, known).map(|meant| format!(" (did you mean `{meant}`?)"));
    format!(" `{word}`{}", meant.unwrap_or_default())
}
