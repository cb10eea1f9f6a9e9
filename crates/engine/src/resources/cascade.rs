//! Removing what depends on something that is being deleted.

use store::{Order, Prefix, ReadRecords, Record, Table, Transaction, WriteRecords};

use crate::Result;
use crate::idempotency::Step;

/// The dependents that one transaction removes.
///
/// A few go together with what they depend on. More than that go before it, in transactions of
/// their own: a deletion that is interrupted leaves fewer of them behind, and goes on when it is
/// called again.
pub(crate) struct Cascade<'t> {
    txn: &'t mut dyn Transaction,
    left: usize,
}

impl<'t> Cascade<'t> {
    /// How many dependents one transaction removes.
    const AT_A_TIME: usize = 1_000;

    pub(crate) fn new(txn: &'t mut dyn Transaction) -> Self {
        Self { txn, left: Self::AT_A_TIME }
    }

    /// Removes the records whose entries in `table` share `prefix`, as long as there is room.
    pub(crate) fn remove<R: Record>(&mut self, table: Table, prefix: &Prefix) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        let range = prefix.range();
        let dependents: Vec<R> = self.txn.first(table, &range, Order::Ascending, self.left)?;
        self.left -= dependents.len();
        dependents.iter().try_for_each(|dependent| Ok(self.txn.remove(dependent)?))
    }

    /// Ends the deletion as `last` says if nothing depends on it any more, or else says that there
    /// is more to do.
    pub(crate) fn then<T>(
        self,
        last: impl FnOnce(&mut dyn Transaction) -> Result<T>,
    ) -> Result<Step<(), T>> {
        if self.left == 0 { Ok(Step::More(())) } else { last(self.txn).map(Step::Done) }
    }
}
