//! What a transaction may touch, so that a store can run those side by side that touch nothing in
//! common.

use std::cell::Cell;
use std::fmt;
use std::ops::Bound::{Excluded, Included, Unbounded};

use domain::ids::EnvironmentId;

use crate::{
    Change, Codec, Error, KeyRange, Order, Result, Snapshot, Table, Transaction, Visit, VisitValue,
    key, layout,
};

/// What the body of a [`Store::write_within`](crate::Store::write_within) touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteScope {
    /// Any key.
    Everything,
    /// It changes keys of this environment only. It reads those, and keys of no environment.
    Environment(EnvironmentId),
}

impl WriteScope {
    fn may_read(self, table: Table, key: &[u8]) -> bool {
        match self {
            Self::Everything => true,
            Self::Environment(own) => {
                layout::environment_of(table, key).is_none_or(|environment| environment == own)
            }
        }
    }

    fn may_change(self, table: Table, key: &[u8]) -> bool {
        match self {
            Self::Everything => true,
            Self::Environment(own) => layout::environment_of(table, key) == Some(own),
        }
    }

    fn may_scan(self, table: Table, (start, end): &KeyRange) -> bool {
        let Self::Environment(own) = self else { return true };
        let (Included(start) | Excluded(start)) = start else { return false };
        let Some(all) = layout::prefix_of_environment(table, start) else { return false };
        let is_end = match end {
            Included(end) => end.starts_with(all),
            Excluded(end) => {
                end.starts_with(all) || key::upper_bound(all).is_some_and(|bound| *end == bound)
            }
            Unbounded => false,
        };
        is_end && layout::environment_of(table, all) == Some(own)
    }
}

/// A transaction of a body that has to stay within a scope. Notes if it does not.
pub struct Scoped<'t, T> {
    below: &'t mut T,
    scope: WriteScope,
    has_left: Cell<bool>,
}

impl<'t, T> Scoped<'t, T> {
    /// The transaction of a body, over that of the store.
    pub fn new(below: &'t mut T, scope: WriteScope) -> Self {
        Self { below, scope, has_left: Cell::new(false) }
    }

    /// Returns `true` if the body has left the scope. Its result is then worth nothing, and it has to
    /// run again within [`WriteScope::Everything`].
    pub fn has_left(&self) -> bool {
        self.has_left.get()
    }

    fn check(&self, is_within: bool) -> Result<()> {
        if is_within {
            return Ok(());
        }
        self.has_left.set(true);
        Err(outside())
    }
}

// What a body of another scope does is not done, and its error never gets to a caller.
fn outside() -> Error {
    Error::Backend {
        backend: "the store",
        action: "stay within the scope of a transaction",
        source: "a key is outside".into(),
    }
}

impl<T> fmt::Debug for Scoped<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoped").field("scope", &self.scope).finish_non_exhaustive()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<T: Snapshot> Snapshot for Scoped<'_, T> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.check(self.scope.may_read(table, key))?;
        self.below.get(table, key, visit)
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        self.check(keys.iter().all(|key| self.scope.may_read(table, key)))?;
        self.below.get_many(table, keys, visit)
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.check(self.scope.may_scan(table, range))?;
        self.below.scan(table, range, order, limit, visit)
    }

    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        let within = |(table, key): &(Table, Vec<u8>)| self.scope.may_read(*table, key);
        self.below.prefetch(&mut keys.filter(within))
    }

    fn era(&self) -> u64 {
        self.below.era()
    }

    fn stamp(&self) -> Option<u64> {
        self.below.stamp()
    }

    fn codec(&self) -> Codec<'_> {
        self.below.codec()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<T: Transaction> Transaction for Scoped<'_, T> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.check(self.scope.may_change(table, key))?;
        self.below.put(table, key, value)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.check(self.scope.may_change(table, key))?;
        self.below.delete(table, key)
    }

    fn changed(&mut self, change: Change) {
        self.below.changed(change);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn id(byte: u8) -> EnvironmentId {
        Uuid::from_bytes([byte; 16]).into()
    }

    #[test]
    fn a_scan_stays_within_an_environment() {
        let scope = WriteScope::Environment(id(7));
        let allows = |(table, range): (Table, KeyRange)| scope.may_scan(table, &range);
        let own = vec![7; 16];
        let next = [vec![7; 15], vec![8]].concat();
        let last = vec![u8::MAX; 16];
        let class = |key: &[u8]| [&[1], key].concat();
        let rows = [
            (Table::Triggers, Included(own.clone()), Excluded(next.clone()), true),
            (Table::Triggers, Excluded(own.clone()), Included([&own[..], b"x"].concat()), true),
            (Table::Triggers, Included(own.clone()), Included(next.clone()), false),
            (Table::Triggers, Included(own.clone()), Excluded([&next[..], b"x"].concat()), false),
            (Table::Triggers, Included(own.clone()), Unbounded, false),
            (Table::Triggers, Unbounded, Excluded(next.clone()), false),
            (Table::Triggers, Included(next.clone()), Excluded(last), false),
            (Table::Due, Included(class(&own)), Excluded(class(&next)), true),
            (Table::Due, Included(own.clone()), Excluded(next.clone()), false),
            (Table::Due, Included(vec![1]), Excluded(vec![2]), false),
            (Table::Environments, Included(own.clone()), Excluded(next.clone()), false),
            (Table::Quarantine, Included(own), Excluded(next), false),
        ];
        for (at, (table, start, end, expected)) in rows.into_iter().enumerate() {
            assert_eq!(allows((table, (start, end))), expected, "row {at}");
        }
    }
}
