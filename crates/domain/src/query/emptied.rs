//! Lists of a query that were set without values.

use std::collections::BTreeSet;

use serde::ser::{Error, Serialize, Serializer};

use crate::error::{Invalid, Reason};

/// Names of the lists that a setter has left empty. In a request, an empty list is no filter. A list that a host
/// has computed, and that came out empty, must not select everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Emptied(BTreeSet<&'static str>);

impl Emptied {
    /// Notes whether the list `field` was set without values.
    pub(crate) fn note(&mut self, field: &'static str, is_empty: bool) {
        if is_empty {
            self.0.insert(field);
        } else {
            self.0.remove(field);
        }
    }

    /// Returns `true` if no list was set without values.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses a list that was set without values, and is still empty.
    pub(crate) fn check<T>(&self, field: &str, list: &[T]) -> Result<(), Invalid> {
        if list.is_empty() && self.0.contains(field) {
            return Err(Invalid::new(field, Reason::Empty));
        }
        Ok(())
    }
}

// In JSON, a list without values is absent, and the query would select more. So it cannot be written, also if the
// field itself was set since.
impl Serialize for Emptied {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.first() {
            Some(field) => Err(S::Error::custom(Invalid::new(*field, Reason::Empty))),
            None => to.serialize_unit(),
        }
    }
}
