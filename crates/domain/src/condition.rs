//! Conditions: rules in [JSON Logic](https://jsonlogic.com) over data.
//!
//! A rule is checked and compiled when it is made, so that one in memory can always be evaluated,
//! and costs little each time. An evaluation always ends and never fails: its depth is that of the
//! rule, and what it may look at and make is counted. Data is never taken for a rule.
//!
//! Values are converted into each other as the reference implementation in JavaScript does it.
//! `log` is not there, and neither are the properties of JavaScript values: `var` finds the members
//! of objects and the items of arrays, and no `length`.
//!
//! ```
//! use serde_json::json;
//! use tidings_domain::condition::{Rule, var};
//!
//! let large = var("order.total").greater_than(100);
//! let rule = Rule::try_from(large.and(var("order.country").is_in(["at", "de"])))?;
//! assert!(rule.holds(&json!({ "order": { "total": 120, "country": "at" } })));
//! assert!(!rule.holds(&json!({})));
//!
//! // JSON is the second way in.
//! let error = Rule::new(json!({ "!": { "equals": [1, 2] } })).unwrap_err();
//! assert_eq!(error.to_string(), "`condition.!` has no operator `equals`");
//! # Ok::<(), tidings_domain::error::Invalid>(())
//! ```

mod compile;
mod compose;
mod datum;
mod evaluate;
mod fuel;
mod number;
mod operation;
mod scope;

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::error::{Invalid, Reason, Unit};
use crate::json::{dismantle, is_shallow, size};

pub use compose::{Expression, var};

/// A rule in JSON Logic, compiled.
///
/// Clones share what was compiled. Two rules are equal if they were written the same.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub struct Rule(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: Value,
    root: operation::Node,
}

impl Rule {
    /// The deepest nesting of arrays and objects in a rule.
    pub const MAX_DEPTH: usize = 64;

    /// The most JSON values in a rule, the arrays and objects among them.
    pub const MAX_NODES: usize = 4096;

    /// The most that a rule may take as JSON text, in bytes.
    pub const MAX_SIZE: usize = 32 * 1024;

    /// Compiles `source`: an object with an operator and its arguments.
    ///
    /// An object with more members, or none, is an operator nowhere: the root must not be one, and
    /// inside of the rule it stands for itself.
    pub fn new(source: Value) -> Result<Self, Invalid> {
        if !is_shallow(&source, Self::MAX_DEPTH) {
            dismantle(source);
            return Err(Invalid::new("condition", Reason::TooDeep { max: Self::MAX_DEPTH }));
        }
        if size(&source) > Self::MAX_SIZE {
            let reason = Reason::TooLong { max: Self::MAX_SIZE, unit: Unit::Bytes };
            return Err(Invalid::new("condition", reason));
        }
        let root = compile::compile(&source)?;
        Ok(Self(Arc::new(Compiled { source, root })))
    }

    /// The rule as it was written.
    pub fn source(&self) -> &Value {
        &self.0.source
    }

    /// Whether the rule comes to `true` over `data`. Another value that JavaScript takes for true
    /// is not enough.
    pub fn holds(&self, data: &Value) -> bool {
        evaluate::holds(&self.0.root, data)
    }

    /// What the rule comes to over `data`: `null` if that takes too long, or is no JSON number.
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
