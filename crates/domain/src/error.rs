//! Refusals of domain rules.

mod excerpt;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::time::Timestamp;

#[doc(hidden)]
pub use excerpt::excerpt;

/// Refusal of a value by a domain rule.
///
/// The path and each text of the reason have at most 1,024 bytes. The middle of a longer one is cut
/// out.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("`{field}` {reason}")]
#[non_exhaustive]
pub struct Invalid {
    /// Wire path of the field, as in `steps[2].template.body`.
    pub field: String,
    /// Rule that the value breaks.
    pub reason: Reason,
}

impl Invalid {
    /// Returns the refusal of `field` for `reason`.
    pub fn new(field: impl Into<String>, reason: Reason) -> Self {
        Self { field: excerpt(field.into()), reason: reason.bounded() }
    }

    /// Returns the refusal with the path of `place` in front of its own.
    #[doc(hidden)]
    #[must_use]
    pub fn within(self, place: impl fmt::Display) -> Self {
        Self { field: excerpt(format!("{place}.{}", self.field)), ..self }
    }

    /// Returns the refusal with `field` in place of its path.
    #[doc(hidden)]
    #[must_use]
    pub fn named(self, field: impl Into<String>) -> Self {
        Self { field: excerpt(field.into()), ..self }
    }
}

/// Rule that a value breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Reason {
    /// A required value is absent.
    #[error("is required")]
    Missing,
    /// This field and the other one are absent, and one of them is required.
    #[error("is required unless there is `{other}`")]
    MissingUnless {
        /// Other field.
        other: Cow<'static, str>,
    },
    /// The text or list is empty.
    #[error("must not be empty")]
    Empty,
    /// The text is too long.
    #[error("must be at most {max} {unit} long")]
    TooLong {
        /// Maximum length.
        max: usize,
        /// Unit of the length.
        unit: Unit,
    },
    /// The text or the JSON is larger than its limit.
    #[error("must be at most {max} {unit} long, not {size}")]
    TooLarge {
        /// Maximum size.
        max: usize,
        /// Size of the value.
        size: usize,
        /// Unit of the size.
        unit: Unit,
    },
    /// The list has too many items.
    #[error("must have at most {max} items")]
    TooMany {
        /// Maximum number of items.
        max: usize,
    },
    /// The notifications of an event have too much content.
    #[error("leads to more than {max} bytes of payloads, overrides and messages in one event")]
    TooMuch {
        /// Maximum size of the content.
        max: usize,
    },
    /// The number is out of bounds.
    #[error("must be between {min} and {max}")]
    OutOfRange {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// The text does not have the expected form.
    #[error("must be {expected}")]
    Malformed {
        /// Expected form, as in `an IANA time zone`.
        expected: Cow<'static, str>,
    },
    /// The word is not one of those allowed.
    #[error("must be one of {}", words.join(", "))]
    NotOneOf {
        /// Allowed words.
        words: Vec<String>,
    },
    /// The JSON value is nested too deeply.
    #[error("must be nested at most {max} levels deep")]
    TooDeep {
        /// Maximum depth.
        max: usize,
    },
    /// The value occurs twice.
    #[error("must not be given twice")]
    Repeated,
    /// This field and the other one exclude each other.
    #[error("must not be given together with `{other}`")]
    Excludes {
        /// Other field.
        other: Cow<'static, str>,
    },
    /// The end of a span comes before its start.
    #[error("must not come after `{end}`")]
    Reversed {
        /// Field with the end of the span.
        end: Cow<'static, str>,
    },
    /// The template does not compile, or uses a name that does not exist.
    #[error("is not a valid template: {problem}")]
    Template {
        /// Message of the template engine, with the line.
        problem: String,
    },
    /// The value does not match its JSON Schema.
    #[error("does not match the schema: {problem}")]
    Schema {
        /// Rule of the schema.
        problem: String,
    },
    /// The rule has an operator that JSON Logic does not define.
    #[error("has no operator `{operator}`")]
    UnknownOperator {
        /// Operator.
        operator: String,
    },
    /// The variable leads nowhere, whatever the data.
    #[error("has no variable `{variable}`{}", did_you_mean(suggestion.as_deref()))]
    UnknownVariable {
        /// Path of the variable.
        variable: String,
        /// Path with the closest known name.
        suggestion: Option<String>,
    },
    /// The operator has too few arguments, or too many.
    #[error("must have {expected}")]
    Arguments {
        /// Expected number, as in `2 or 3 arguments`.
        expected: Cow<'static, str>,
    },
    /// The field does not exist.
    #[error("is not known{}", did_you_mean(suggestion.as_deref()))]
    Unknown {
        /// Closest known name.
        suggestion: Option<String>,
    },
    /// A rule refuses the value, and the JSON reader passes on its message only.
    #[error("{rule}")]
    InWords {
        /// Message of the rule, as another reason would print it.
        rule: String,
    },
    /// The JSON text cannot be read.
    #[error("cannot be read: {problem}")]
    Unreadable {
        /// Message of the reader.
        problem: String,
    },
    /// The call has no pages: it is about all items that match.
    #[error("must not be given: this call is about all that match, not about a page")]
    NoPages,
    /// The value is valid, but the library was built without a feature that it needs.
    #[error("needs the cargo feature `{feature}` of `tidings`")]
    MissingFeature {
        /// Feature.
        feature: Cow<'static, str>,
    },
}

impl Reason {
    /// Returns the reason for a text that does not have the form `expected`.
    pub fn malformed(expected: impl Into<Cow<'static, str>>) -> Self {
        Reason::Malformed { expected: expected.into() }
    }
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Unit of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
#[non_exhaustive]
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

/// Refuses an interval that ends before it starts. Either end may be open.
pub(crate) fn in_order(
    (start, earliest): (&str, Option<Timestamp>),
    (end, latest): (&'static str, Option<Timestamp>),
) -> Result<(), Invalid> {
    if earliest.zip(latest).is_some_and(|(earliest, latest)| earliest > latest) {
        return Err(Invalid::new(start, Reason::Reversed { end: end.into() }));
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
