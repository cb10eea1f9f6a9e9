//! Path of a value in a request.

use std::fmt;

use crate::error::Invalid;

/// Path of the whole request.
pub(crate) const BODY: &str = "body";

/// Path of a value: names of members, and indexes. It is formatted only for an error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'w> {
    Whole,
    Member(&'w Path<'w>, &'w str),
    Item(&'w Path<'w>, usize),
}

impl Path<'_> {
    /// Returns the path as text.
    pub(crate) fn named(&self) -> String {
        match self {
            Path::Whole => BODY.to_owned(),
            Path::Member(..) | Path::Item(..) => self.to_string(),
        }
    }

    /// Returns the refusal with this path in place of its own name, such as `timestamp`. A path
    /// inside of the value is appended.
    pub(crate) fn of(&self, invalid: Invalid) -> Invalid {
        match self {
            Path::Whole => invalid,
            Path::Member(..) | Path::Item(..) => {
                let inside = invalid.field.find(['.', '[']);
                let inside = inside.and_then(|at| invalid.field.get(at..)).unwrap_or_default();
                let field = format!("{self}{inside}");
                invalid.named(field)
            }
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Whole => Ok(()),
            Path::Member(Path::Whole, name) => shown(name, f),
            Path::Member(outer, name) => {
                write!(f, "{outer}.")?;
                shown(name, f)
            }
            Path::Item(outer, index) => write!(f, "{outer}[{index}]"),
        }
    }
}

// A client may send any name.
fn shown(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const MAX: usize = 64;
    let letters = name.chars().take(MAX);
    letters.into_iter().try_for_each(|letter| match letter {
        letter if letter.is_control() => write!(f, "{}", letter.escape_default()),
        letter => write!(f, "{letter}"),
    })?;
    if name.chars().nth(MAX).is_some() { f.write_str("...") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;

    #[test]
    fn a_way_is_written_as_in_javascript() {
        let to = Path::Member(&Path::Whole, "to");
        let first = Path::Item(&to, 0);
        assert_eq!(Path::Member(&first, "data").named(), "to[0].data");
        assert_eq!(Path::Whole.named(), "body");
        assert_eq!(Path::Item(&Path::Whole, 3).named(), "[3]");
    }

    #[test]
    fn a_value_is_called_what_it_is_called_where_it_was_given() {
        let path = Path::Member(&Path::Whole, "if");
        let of = |field| path.of(Invalid::new(field, Reason::Empty)).field;
        assert_eq!(of("condition"), "if");
        assert_eq!(of("condition.and[0]"), "if.and[0]");
        assert_eq!(Path::Whole.of(Invalid::new("limit", Reason::Empty)).field, "limit");
    }

    #[test]
    fn a_name_from_outside_is_shown_in_short() {
        let long = "x".repeat(1_000);
        assert_eq!(Path::Member(&Path::Whole, &long).named(), format!("{}...", "x".repeat(64)));
        assert_eq!(Path::Member(&Path::Whole, "a\nb").named(), "a\\nb");
    }
}
