//! Removal of the dependents of a deleted record.

use domain::idempotency::CallOutcome;
use serde::Serialize;
use store::{DamageScan, Prefix, Record, Referent, Step, WriteRecords};

use super::removal_guard::RemovalGuard;
use crate::Result;
use crate::damage;
use crate::idempotency::json;
use crate::tx::Tx;

/// The dependents that one transaction removes.
///
/// A few dependents are removed together with the record. More dependents are removed before the
/// record, in transactions of their own. An interrupted deletion leaves fewer dependents behind,
/// and another call continues.
pub(crate) struct Cascade<'c, 't> {
    tx: &'c mut Tx<'t>,
    left: usize,
    before: &'c Removed,
    removed: Removed,
    /// `true` if this transaction has removed a dependent.
    has_begun: bool,
    damaged: Damaged,
}

/// What becomes of a dependent that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// It is put into quarantine.
    Kept,
    /// It is removed, as an erasure demands.
    Erased,
}

/// What the transactions of a deletion have removed so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    guard: RemovalGuard,
    /// The last search for index entries of dependents that cannot be read. It is over before these are
    /// removed, so that another call finds them after an interruption.
    scan: Option<DamageScan>,
}

/// Progress of the deletion of a record that each transaction looks up by its name. Another call may have
/// deleted the record, and a third one may have given the name to a new record, which stays.
#[derive(Clone, Debug)]
pub(crate) struct Deleting<I> {
    /// The id of the record. `None` before the first transaction.
    of: Option<I>,
    removed: Removed,
}

impl<I> Default for Deleting<I> {
    fn default() -> Self {
        Self { of: None, removed: Removed::default() }
    }
}

impl<I> Deleting<I> {
    /// The deletion of the record of this id, of which another call has removed something.
    pub(crate) fn of(id: I) -> Self {
        Self { of: Some(id), removed: Removed::default() }
    }

    /// Returns `true` if no transaction has found the record.
    pub(crate) const fn is_new(&self) -> bool {
        self.of.is_none()
    }
}

impl<I: Serialize> Deleting<I> {
    /// The outcome of a call that has begun the deletion.
    pub(crate) fn outcome(&self) -> Result<CallOutcome> {
        self.of.as_ref().map_or(Ok(CallOutcome::Begun), |id| json(id).map(CallOutcome::BegunOn))
    }
}

impl<I: PartialEq> Deleting<I> {
    /// Returns `true` if the record was deleted since the transaction before. `id` is that of the record with
    /// the name now.
    pub(crate) fn is_over(&self, id: Option<I>) -> bool {
        self.of.is_some() && self.of != id
    }

    /// What the transactions so far have removed.
    pub(crate) const fn removed(&self) -> &Removed {
        &self.removed
    }

    /// Returns the step of a transaction that has found the record of this id.
    pub(crate) fn after<T>(step: Step<Removed, T>, id: I) -> Step<Self, T> {
        step.map_more(|removed| Self { of: Some(id), removed })
    }
}

impl<'c, 't> Cascade<'c, 't> {
    /// Largest number of dependents that one transaction removes.
    const AT_A_TIME: usize = 500;

    /// Largest number of index entries that one transaction of a search looks at.
    const ENTRIES: usize = 4_096;

    /// Starts to remove dependents, behind those that the transaction before has removed. None are removed
    /// before a search is over.
    pub(crate) fn new(tx: &'c mut Tx<'t>, before: &'c Removed) -> Self {
        let is_over = before.scan.as_ref().is_none_or(DamageScan::is_over);
        let left = if is_over { Self::AT_A_TIME } else { 0 };
        let (removed, has_begun, damaged) = (before.clone(), false, Damaged::Kept);
        Self { tx, left, before, removed, has_begun, damaged }
    }

    /// Sets what becomes of dependents that cannot be read.
    pub(crate) fn with(self, damaged: Damaged) -> Self {
        Self { damaged, ..self }
    }

    /// Removes the records of the entries with `prefix`, as many as are left for this transaction.
    /// One that cannot be read is put into quarantine.
    ///
    /// # Errors
    ///
    /// Those of [`RemovalGuard::note`], with the first of them.
    pub(crate) fn remove<R: Record>(&mut self, prefix: &Prefix<R>) -> Result<()> {
        self.remove_by(prefix, |tx, dependent| Ok(tx.remove(dependent)?))
    }

    /// Removes the records of the entries with `prefix` as [`remove`](Self::remove) does, by a function that
    /// removes one of them.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    pub(crate) fn remove_by<R: Record>(
        &mut self,
        prefix: &Prefix<R>,
        remove: impl Fn(&mut Tx<'_>, &R) -> Result<()>,
    ) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        let range = prefix.range();
        let entries = store::dependents(&*self.tx, &range, self.left)?;
        let scan = DamageScan::of(&entries, &range);
        if scan.as_ref().is_some_and(|scan| !self.has_scanned(scan)) {
            (self.left, self.removed.scan) = (0, scan);
            return Ok(());
        }
        self.left -= entries.len();
        if let Some(first) = entries.first().filter(|_| !self.has_begun) {
            self.removed.guard.note(range.table(), &first.key)?;
            self.has_begun = true;
        }
        for entry in &entries {
            match &entry.referent {
                Referent::Record(dependent) => remove(self.tx, dependent)?,
                Referent::Other(_) | Referent::Unreadable(_) | Referent::Missing => {
                    match self.damaged {
                        Damaged::Kept => damage::take_out(&mut self.tx.draft, entry, &range)?,
                        Damaged::Erased => entry.take_out(self.tx, &range)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn has_scanned(&self, scan: &DamageScan) -> bool {
        self.before.scan.as_ref().is_some_and(|before| before.covers(scan))
    }

    /// Returns `true` if this transaction or an earlier one has removed a dependent.
    pub(crate) fn has_removed(&self) -> bool {
        self.removed.guard.has_any()
    }

    /// Ends the deletion with `last` if nothing depends on it any more. Otherwise there is more to
    /// do.
    pub(crate) fn then<T>(
        mut self,
        last: impl FnOnce(&mut Tx<'t>) -> Result<T>,
    ) -> Result<Step<Removed, T>> {
        if self.left > 0 {
            return last(self.tx).map(Step::Done);
        }
        if let Some(scan) = self.removed.scan.as_mut().filter(|scan| !scan.is_over()) {
            scan.step(self.tx, Self::ENTRIES)?;
        }
        Ok(Step::More(self.removed))
    }
}
