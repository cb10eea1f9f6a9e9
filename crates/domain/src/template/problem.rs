//! Problems of templates, with their place.

use crate::suggest::nearest;

/// Problem of a template, with its place.
#[derive(Debug)]
pub(super) struct Problem {
    what: String,
    at: usize,
}

impl Problem {
    /// Returns the problem `what` at the byte offset `at`.
    pub(super) fn new(what: impl Into<String>, at: usize) -> Self {
        Self { what: what.into(), at }
    }

    /// Returns the problem of `word`, which is none of the `known` words of this kind.
    pub(super) fn unknown<'k>(
        kind: &str,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
        at: usize,
    ) -> Self {
        Self::new(format!("unknown {kind}{}", meant(word, known)), at)
    }

    /// Returns the problem with a hint, if there is one.
    pub(super) fn with(self, hint: Option<String>) -> Self {
        let Some(hint) = hint else { return self };
        Self { what: format!("{}: {hint}", self.what), ..self }
    }

    /// Returns the problem as text, with its line in `source`.
    pub(super) fn in_line_of(&self, source: &str) -> String {
        let line = source.get(..self.at).unwrap_or_default().matches('\n').count() + 1;
        format!("{} in line {line}", self.what)
    }
}

/// Returns `word` in quotes, with the closest known word.
pub(super) fn meant<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let meant = nearest(word, known).map(did_you_mean);
    format!(" `{word}`{}", meant.unwrap_or_default())
}

/// Returns the word that was meant, behind what was written.
pub(super) fn did_you_mean(meant: &str) -> String {
    format!(" (did you mean `{meant}`?)")
}
