//! Sealing what is there anew with the key that seals, while other operations go on.

use std::ops::ControlFlow;

use super::marks::Marks;
use super::seal::{Extent, Seal, ViewSeal};
use super::sealable::Sealable;
use crate::{
    Error, OnProgress, Order, Progress, Range, Result, Table, Transaction, batch, check, run,
};

/// Result of a resealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "it says whether the resealing is finished"]
pub struct Resealed {
    /// The number of records that were looked at.
    pub seen: u64,
    /// The number of them that were sealed anew.
    pub resealed: u64,
    /// The number of them that do not open. They are left as they are.
    pub unreadable: u64,
    /// `true` if everything was looked at, so that old keys are needed no longer.
    pub is_finished: bool,
}

/// Number of entries that are looked at on one snapshot.
const SEEN: usize = 512;
/// Number of values that one transaction seals.
const AT_ONCE: usize = 64;
/// Bytes of values behind which a transaction takes no other one.
const BYTES: usize = 256 << 10;

impl Sealable {
    /// Seals with the key that seals what is plain or sealed with an old key, a few values in a
    /// transaction. Then the marks of the old keys are removed, and plain values do not open. A run
    /// that was interrupted starts again, and passes by what it has sealed.
    ///
    /// Returns `None` if the store has no keys.
    pub fn reseal(&self, progress: &mut OnProgress<'_>) -> Result<Option<Resealed>> {
        let Some(seal) = self.checked()? else { return Ok(None) };
        let mut run = Run { store: self, seal, seen: 0, resealed: 0, unreadable: 0 };
        loop {
            let era = run::read(self.below.as_ref(), |snapshot| Ok::<_, Error>(snapshot.era()))?;
            for table in Table::ALL.into_iter().filter(|table| check::has_records(*table)) {
                if run.table(table, progress)?.is_break() {
                    return Ok(Some(run.ended(false)));
                }
            }
            if self.finish(seal, era)? {
                return Ok(Some(run.ended(true)));
            }
        }
    }

    // Returns `false` if what was sealed in the era may be lost.
    fn finish(&self, seal: &Seal, era: u64) -> Result<bool> {
        let is_whole = run::write(self.below.as_ref(), |transaction| {
            if transaction.era() != era {
                return Ok(false);
            }
            // Another engine may have begun to seal with a key that is not there.
            Marks::compared(transaction, seal)?.replace(transaction, seal)?;
            Ok::<_, Error>(true)
        })?;
        if is_whole {
            seal.set_extent(Extent::Whole, era);
        }
        Ok(is_whole)
    }
}

struct Run<'s> {
    store: &'s Sealable,
    seal: &'s Seal,
    seen: u64,
    resealed: u64,
    unreadable: u64,
}

/// A value that is not sealed with the key that seals.
struct Stale {
    key: Vec<u8>,
    len: usize,
    /// Number of entries of the batch up to this one.
    seen: u64,
}

/// Entries that were looked at.
struct Looked {
    /// Values that are not sealed with the key that seals.
    stale: Vec<Stale>,
    /// The last key, if others may follow it.
    last: Option<Vec<u8>>,
    seen: u64,
}

impl Run<'_> {
    fn table(&mut self, table: Table, progress: &mut OnProgress<'_>) -> Result<ControlFlow<()>> {
        let mut behind = None;
        loop {
            let batch = self.look(table, behind.as_deref())?;
            let mut stale = batch.stale.as_slice();
            while let Some((part, rest)) = few(stale) {
                self.reseal(table, part)?;
                stale = rest;
                // The last part is told with the batch.
                let Some(last) = part.last().filter(|_| !stale.is_empty()) else { break };
                if progress(Progress::of_rows(table, self.seen + last.seen)).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            self.seen += batch.seen;
            if batch.seen > 0 && progress(Progress::of_rows(table, self.seen)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            behind = batch.last;
            if behind.is_none() {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    // A damaged index of a file may lead back. What lies behind it was not looked at, and may be plain.
    fn look(&self, table: Table, behind: Option<&[u8]>) -> Result<Looked> {
        let range = Range::of_table(table, behind);
        let entries = (table, range.bytes(), Order::Ascending);
        run::read(self.store.below.as_ref(), |snapshot| {
            let (mut stale, mut seen) = (Vec::new(), 0);
            let last = batch::visit(snapshot, entries, SEEN, &mut |key, value| {
                seen += 1;
                if !self.seal.is_current(value) {
                    stale.push(Stale { key: key.to_vec(), len: value.len(), seen });
                }
                ControlFlow::Continue(())
            })?;
            Ok(Looked { stale, last, seen })
        })
    }

    // The values may have changed since they were looked at.
    fn reseal(&mut self, table: Table, stale: &[Stale]) -> Result<()> {
        self.store.checked()?;
        let seal = self.seal.of_next_view();
        let (resealed, unreadable) = run::write(self.store.below.as_ref(), |transaction| {
            let seal = self.store.of_view(seal, &*transaction)?;
            let (mut resealed, mut unreadable) = (0, 0);
            for Stale { key, .. } in stale {
                match renewed(seal, transaction, (table, key))? {
                    Renewed::Not => {}
                    Renewed::Unreadable => unreadable += 1,
                    Renewed::Value(value) => {
                        transaction.put(table, key, &value)?;
                        resealed += 1;
                    }
                }
            }
            Ok::<_, Error>((resealed, unreadable))
        })?;
        self.resealed += resealed;
        self.unreadable += unreadable;
        Ok(())
    }

    fn ended(&self, is_finished: bool) -> Resealed {
        let Self { seen, resealed, unreadable, .. } = *self;
        Resealed { seen, resealed, unreadable, is_finished }
    }
}

fn renewed(
    seal: ViewSeal<'_>,
    transaction: &mut dyn Transaction,
    (table, key): (Table, &[u8]),
) -> Result<Renewed> {
    let mut value = None;
    transaction.get(table, key, &mut |found| value = Some(found.to_vec()))?;
    let Some(value) = value.filter(|value| !seal.seal().is_current(value)) else {
        return Ok(Renewed::Not);
    };
    match seal.open(table, key, &value) {
        Ok(plain) => Ok(Renewed::Value(seal.seal().close(table, key, &plain)?)),
        Err(Error::Corrupt { .. }) => Ok(Renewed::Unreadable),
        Err(other) => Err(other),
    }
}

/// What becomes of one value.
enum Renewed {
    /// It is gone, or sealed with the key that seals.
    Not,
    /// It does not open.
    Unreadable,
    /// It is sealed anew.
    Value(Vec<u8>),
}

/// The values for one transaction, and the others. Returns `None` if there are no values.
fn few(stale: &[Stale]) -> Option<(&[Stale], &[Stale])> {
    let mut bytes = 0;
    let fits = |one: &&Stale| {
        let fits = bytes < BYTES;
        bytes += one.len;
        fits
    };
    let count = stale.iter().take(AT_ONCE).take_while(fits).count();
    stale.split_at_checked(count).filter(|(part, _)| !part.is_empty())
}
