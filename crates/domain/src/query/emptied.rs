//! Lists of a query that were set without values.

use std::collections::BTreeSet;

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

    /// Refuses a list that was set without values, and is still empty.
    pub(crate) fn check<T>(&self, field: &str, list: &[T]) -> Result<(), Invalid> {
        if list.is_empty() && self.0.contains(field) {
            return Err(Invalid::new(field, Reason::Empty));
        }
        Ok(())
    }
}

/// Implements the JSON of queries that serde has derived for themselves. In JSON, a list without values is absent,
/// and the query would select more. So it is refused as by the operations.
macro_rules! write_unless_emptied {
    ($($query:ident),+) => {$(
        impl serde::Serialize for $query {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.check_emptied().map_err(serde::ser::Error::custom)?;
                $query::serialize(self, to)
            }
        }

        impl<'de> serde::Deserialize<'de> for $query {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $query::deserialize(from)
            }
        }
    )+};
}

pub(crate) use write_unless_emptied;
