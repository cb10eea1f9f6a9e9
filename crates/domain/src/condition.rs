//! Conditions: rules in [JSON Logic](https://jsonlogic.com) over data.
//!
//! [`Rule::new`] checks and compiles a rule, so that evaluation is cheap. An evaluation always ends
//! and never fails. The rule bounds the depth, and a counter bounds steps and memory. Data is never
//! evaluated as a rule.
//!
//! Values convert into each other as in the reference implementation in JavaScript. There is no
//! `log`. Properties of JavaScript values are absent too: `var` finds members of objects and items
//! of arrays, but no `length`.
//!
//! ```
//! # extern crate tidings_domain as tidings;
//! use serde_json::json;
//! use tidings::condition::{Rule, var};
//!
//! let large = var("order.total").greater_than(100);
//! let rule = Rule::try_from(large.and(var("order.country").is_in(["at", "de"])))?;
//! assert!(rule.holds(&json!({ "order": { "total": 120, "country": "at" } })));
//! assert!(!rule.holds(&json!({})));
//!
//! // JSON is the second way in.
//! let error = Rule::new(json!({ "!": { "equals": [1, 2] } })).unwrap_err();
//! assert_eq!(error.to_string(), "`condition.!` has no operator `equals`");
//! # Ok::<(), tidings::error::Invalid>(())
//! ```

mod compile;
mod compose;
mod datum;
mod evaluate;
mod fuel;
mod names;
mod number;
mod operation;
mod scope;

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::error::{Invalid, Reason, Unit};
use crate::json::{dismantle, is_shallow, size};

pub use compose::{Expression, var};

/// Compiled rule in JSON Logic.
///
/// Clones share the compiled form. Two rules are equal if their sources are equal.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub struct Rule(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: Value,
    root: operation::Node,
}

impl Rule {
    /// Deepest nesting of arrays and objects in a rule.
    pub const MAX_DEPTH: usize = 64;

    /// Maximum number of JSON values in a rule, arrays and objects included.
    pub const MAX_NODES: usize = 4096;

    /// Maximum size of a rule as JSON text, in bytes.
    pub const MAX_SIZE: usize = 32 * 1024;

    /// Maximum number of steps of an evaluation. One with more steps has no result. A step is one
    /// node of the rule, one value of the data, or 64 bytes of text.
    pub const MAX_WORK: usize = 50_000;

    /// Deepest nesting of data that an evaluation copies or writes as text: the limit of
    /// `serde_json` for texts. An evaluation of deeper data has no result.
    pub const MAX_DATA_DEPTH: usize = 128;

    /// Compiles `source`: an object with one member, the operator and its arguments.
    ///
    /// An object with no member or with several is a literal. The root of a rule must be an
    /// operator.
    pub fn new(source: Value) -> Result<Self, Invalid> {
        if !is_shallow(&source, Self::MAX_DEPTH) {
            dismantle(source);
            return Err(Self::too_deep());
        }
        if size(&source) > Self::MAX_SIZE {
            let reason = Reason::TooLong { max: Self::MAX_SIZE, unit: Unit::Bytes };
            return Err(Invalid::new("condition", reason));
        }
        let root = compile::compile(&source)?;
        Ok(Self(Arc::new(Compiled { source, root })))
    }

    fn too_deep() -> Invalid {
        Invalid::new("condition", Reason::TooDeep { max: Self::MAX_DEPTH })
    }

    /// Returns the source of the rule.
    pub fn source(&self) -> &Value {
        &self.0.source
    }

    /// Returns `true` if the rule evaluates to `true` over `data`. Other truthy values do not
    /// count.
    pub fn holds(&self, data: &Value) -> bool {
        evaluate::holds(&self.0.root, data)
    }

    /// Returns `true` if the value of the rule over `data` is truthy: neither `false`, `null`, 0, an
    /// empty text nor an empty list. Returns `false` if the evaluation exceeds its steps.
    pub fn is_truthy(&self, data: &Value) -> bool {
        evaluate::is_truthy(&self.0.root, data)
    }

    /// Returns the value of the rule over `data`. Returns `null` if the evaluation exceeds its
    /// steps, or if the result is no JSON number.
    pub fn evaluate(&self, data: &Value) -> Value {
        evaluate::evaluate(&self.0.root, data)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source()
    }
}

impl Eq for Rule {}

impl TryFrom<Value> for Rule {
    type Error = Invalid;

    fn try_from(source: Value) -> Result<Self, Invalid> {
        Self::new(source)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.source().serialize(to)
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
