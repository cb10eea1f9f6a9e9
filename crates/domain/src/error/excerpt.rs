//! Texts of callers in errors, cut to a length.

use std::borrow::Cow;

use super::Reason;

/// Longest text of a caller in an error, in bytes.
const MAX: usize = 1024;

/// Number of names in a list of an error.
const MAX_WORDS: usize = 100;

/// Returns `text`, or its beginning and its end if it is longer than 1,024 bytes.
pub fn excerpt(text: String) -> String {
    const MARK: &str = "...";
    if text.len() <= MAX {
        return text;
    }
    let half = (MAX - MARK.len()) / 2;
    let start = (0..=half).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let end = (text.len() - half..=text.len()).find(|at| text.is_char_boundary(*at));
    let (start, end) = (text.get(..start), end.and_then(|end| text.get(end..)));
    format!("{}{MARK}{}", start.unwrap_or_default(), end.unwrap_or_default())
}

fn shortened(text: Cow<'static, str>) -> Cow<'static, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text),
        Cow::Owned(text) => Cow::Owned(excerpt(text)),
    }
}

impl Reason {
    /// Returns the reason with texts of bounded length.
    pub(super) fn bounded(self) -> Self {
        match self {
            Self::MissingUnless { other } => Self::MissingUnless { other: shortened(other) },
            Self::Malformed { expected } => Self::Malformed { expected: shortened(expected) },
            Self::NotOneOf { words } => {
                let words = words.into_iter().take(MAX_WORDS).map(excerpt).collect();
                Self::NotOneOf { words }
            }
            Self::Excludes { other } => Self::Excludes { other: shortened(other) },
            Self::Reversed { end } => Self::Reversed { end: shortened(end) },
            Self::Template { problem } => Self::Template { problem: excerpt(problem) },
            Self::Schema { problem } => Self::Schema { problem: excerpt(problem) },
            Self::UnknownOperator { operator } => {
                Self::UnknownOperator { operator: excerpt(operator) }
            }
            Self::UnknownVariable { variable, suggestion } => Self::UnknownVariable {
                variable: excerpt(variable),
                suggestion: suggestion.map(excerpt),
            },
            Self::Arguments { expected } => Self::Arguments { expected: shortened(expected) },
            Self::Unknown { suggestion } => Self::Unknown { suggestion: suggestion.map(excerpt) },
            Self::InWords { rule } => Self::InWords { rule: excerpt(rule) },
            Self::MissingFeature { feature } => {
                Self::MissingFeature { feature: shortened(feature) }
            }
            Self::Unreadable { problem } => Self::Unreadable { problem: excerpt(problem) },
            same @ (Self::Missing
            | Self::Empty
            | Self::TooLong { .. }
            | Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::TooMuch { .. }
            | Self::OutOfRange { .. }
            | Self::TooDeep { .. }
            | Self::Repeated
            | Self::NoPages) => same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row per text: the length of its excerpt.
    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        for (text, length) in [
            ("x".repeat(MAX), MAX),
            ("x".repeat(MAX + 1), MAX - 1),
            ("\u{fc}".repeat(MAX), MAX - 1),
            ("\u{1f600}".repeat(MAX), MAX - 5),
        ] {
            assert_eq!(excerpt(text).len(), length);
        }
        let cut = excerpt(format!("begin{}end", "x".repeat(MAX)));
        assert!(cut.starts_with("begin") && cut.ends_with("end") && cut.contains("x...x"));
    }
}
