//! What the domain refuses, and why.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A value was refused by a domain rule.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("`{field}` {reason}")]
pub struct Invalid {
    /// The wire name of the field, with the way to it, as in `steps[2].template.body`.
    pub field: String,
    /// The rule it broke.
    pub reason: Reason,
}

impl Invalid {
    /// `field` broke the rule that `reason` names.
    pub fn new(field: impl Into<String>, reason: Reason) -> Self {
        Self { field: field.into(), reason }
    }

    /// The same refusal, seen from outside of `place`.
    #[must_use]
    pub fn within(self, place: impl fmt::Display) -> Self {
        Self { field: format!("{place}.{}", self.field), ..self }
    }

    /// The same refusal of a value that is called `field` where it was given.
    #[must_use]
    pub fn named(self, field: impl Into<String>) -> Self {
        Self { field: field.into(), ..self }
    }
}

/// The rule a value broke.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Reason {
    /// Nothing was given where something is required.
    #[error("is required")]
    Missing,
    /// Neither this nor the other one was given, and one of them is required.
    #[error("is required unless there is `{other}`")]
    MissingUnless {
        /// The other field.
        other: Cow<'static, str>,
    },
    /// The text or list has nothing in it.
    #[error("must not be empty")]
    Empty,
    /// The text is too long.
    #[error("must be at most {max} {unit} long")]
    TooLong {
        /// The longest allowed.
        max: usize,
        /// What is counted.
        unit: Unit,
    },
    /// The text or the JSON is larger than a limit that the host has set.
    #[error("must be at most {max} {unit} long, not {size}")]
    TooLarge {
        /// The longest allowed.
        max: usize,
        /// The length given.
        size: usize,
        /// What is counted.
        unit: Unit,
    },
    /// The list has too many items.
    #[error("must have at most {max} items")]
    TooMany {
        /// The most allowed.
        max: usize,
    },
    /// The number is out of bounds.
    #[error("must be between {min} and {max}")]
    OutOfRange {
        /// The smallest allowed.
        min: u64,
        /// The largest allowed.
        max: u64,
    },
    /// The text is not of the expected form.
    #[error("must be {expected}")]
    Malformed {
        /// The expected form, as in `an IANA time zone`.
        expected: Cow<'static, str>,
    },
    /// The word is not one of those allowed.
    #[error("must be one of {}", words.join(", "))]
    NotOneOf {
        /// The words allowed.
        words: Vec<String>,
    },
    /// The JSON value is nested too deeply.
    #[error("must be nested at most {max} levels deep")]
    TooDeep {
        /// The deepest allowed.
        max: usize,
    },
    /// The same value was given before.
    #[error("must not be given twice")]
    Repeated,
    /// Two values were given of which only one may be.
    #[error("must not be given together with `{other}`")]
    Excludes {
        /// The other field.
        other: Cow<'static, str>,
    },
    /// The end of a span comes before its start.
    #[error("must not come after `{end}`")]
    Reversed {
        /// The field that ends the span.
        end: Cow<'static, str>,
    },
    /// The template does not compile.
    #[error("is not a valid template: {problem}")]
    Template {
        /// What the template engine said, with the line.
        problem: String,
    },
    /// The rule names an operator that JSON Logic does not have.
    #[error("has no operator `{operator}`")]
    UnknownOperator {
        /// The operator.
        operator: String,
    },
    /// The operator is given too few arguments, or too many.
    #[error("must have {expected}")]
    Arguments {
        /// How many there must be, as in `2 or 3 arguments`.
        expected: Cow<'static, str>,
    },
    /// There is no field of that name.
    #[error("is not known{}", did_you_mean(suggestion.as_deref()))]
    Unknown {
        /// The known name that is probably meant.
        suggestion: Option<String>,
    },
    /// A rule was broken in JSON text, whose reader knows of it only what it says.
    #[error("{rule}")]
    InWords {
        /// The rule, as any other reason would say it.
        rule: String,
    },
    /// The JSON text is not what it should be.
    #[error("cannot be read: {problem}")]
    Unreadable {
        /// What the reader said.
        problem: String,
    },
    /// The value is known, and this version of the engine cannot act on it.
    #[error("is not supported by this version")]
    Unsupported,
}

impl Reason {
    /// The text is not of the form `expected`.
    pub fn malformed(expected: impl Into<Cow<'static, str>>) -> Self {
        Reason::Malformed { expected: expected.into() }
    }
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// What the length of a text is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Unit {
    Bytes,
    Characters,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Bytes => "bytes",
            Unit::Characters => "characters",
        })
    }
}

/// Refuses a text of more than `max` characters.
pub(crate) fn at_most(field: &str, text: &str, max: usize) -> Result<(), Invalid> {
    if text.chars().nth(max).is_some() {
        return Err(Invalid::new(field, Reason::TooLong { max, unit: Unit::Characters }));
    }
    Ok(())
}

/// Refuses a list of more than `max` items.
pub(crate) fn at_most_items<T>(field: &str, items: &[T], max: usize) -> Result<(), Invalid> {
    if items.len() > max {
        return Err(Invalid::new(field, Reason::TooMany { max }));
    }
    Ok(())
}
