//! Removal of the dependents of a deleted record.

use store::{Order, Prefix, ReadRecords, Record, WriteRecords};

use crate::Result;
use crate::idempotency::Step;
use crate::tx::Tx;

/// The dependents that one transaction removes.
///
/// A few dependents are removed together with the record. More dependents are removed before the
/// record, in transactions of their own. An interrupted deletion leaves fewer dependents behind,
/// and another call continues.
pub(crate) struct Cascade<'c, 't> {
    tx: &'c mut Tx<'t>,
    left: usize,
}

impl<'c, 't> Cascade<'c, 't> {
    /// Largest number of dependents that one transaction removes.
    const AT_A_TIME: usize = 1_000;

    pub(crate) fn new(tx: &'c mut Tx<'t>) -> Self {
        Self { tx, left: Self::AT_A_TIME }
    }

    /// Removes the records of the entries with `prefix`, as many as are left for this transaction.
    pub(crate) fn remove<R: Record>(&mut self, prefix: &Prefix<R>) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        let dependents = self.tx.first(&prefix.range(), Order::Ascending, self.left)?;
        self.left -= dependents.len();
        dependents.iter().try_for_each(|dependent| Ok(self.tx.remove(dependent)?))
    }

    /// Ends the deletion with `last` if nothing depends on it any more. Otherwise there is more to
    /// do.
    pub(crate) fn then<T>(
        self,
        last: impl FnOnce(&mut Tx<'t>) -> Result<T>,
    ) -> Result<Step<(), T>> {
        if self.left == 0 { Ok(Step::More(())) } else { last(self.tx).map(Step::Done) }
    }
}
