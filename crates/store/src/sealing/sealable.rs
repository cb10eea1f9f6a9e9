//! The store of an engine: a backend, with the keys of the engine.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use super::keys::{KeyId, Keyring};
use super::marks::{self, Mark, Marks};
use super::seal::{Extent, Seal, ViewSeal};
use crate::{
    Change, Codec, Decision, Error, HostTransaction, KeyRange, Listener, Order, ReadBody, Result,
    Snapshot, Store, Table, Transaction, Visit, VisitValue, WriteBody, WriteScope, run,
};

/// A store that seals the values of records if it has keys. Its first call compares the keys with
/// the marks of the store.
pub struct Sealable {
    pub(super) below: Arc<dyn Store>,
    pub(super) seal: Option<Seal>,
    is_checked: AtomicBool,
    // Set when a view is of another era than that in which the keys were compared.
    is_outdated: AtomicBool,
    // Set when a value is sealed with a key that is not there. It may be that of another engine, which
    // has begun to seal since the keys were compared.
    locked: AtomicBool,
}

impl Sealable {
    /// Returns `below` with the keys of `keyring`. Without keys, values are plain.
    pub fn new(below: Arc<dyn Store>, keyring: Option<Keyring>) -> Self {
        let [is_checked, is_outdated, locked] = [false; 3].map(AtomicBool::new);
        Self { below, seal: keyring.map(Seal::new), is_checked, is_outdated, locked }
    }

    /// Compares the keys with the marks of the store. Leaves a mark of the key that seals.
    ///
    /// # Errors
    ///
    /// [`Error::MissingKey`], [`Error::WrongKey`], and [`Error::PlainRecords`].
    pub fn check(&self) -> Result<()> {
        match &self.seal {
            None => self.check_plain()?,
            Some(seal) => self.check_marks(seal)?,
        }
        self.is_checked.store(true, Ordering::Release);
        Ok(())
    }

    fn check_plain(&self) -> Result<()> {
        run::read(self.below.as_ref(), |snapshot| marks::refuse(snapshot))
    }

    // Fails if the store has the mark of a key that is not there.
    fn check_keys(&self, snapshot: &dyn Snapshot) -> Result<()> {
        let lacks = |key: &KeyId| self.seal.as_ref().is_none_or(|seal| seal.lacks(*key));
        let marks = Mark::all(snapshot)?;
        let missing = marks.iter().find_map(|mark| mark.key().filter(lacks));
        missing.map_or(Ok(()), |key| Err(Error::MissingKey { key }))
    }

    // Fails if what a body has read is sealed with a key that is not there. Such a value looks damaged,
    // and it is damaged if no engine has left a mark of its key.
    fn check_read(&self, snapshot: &dyn Snapshot) -> Result<()> {
        if self.locked.load(Ordering::Relaxed) { self.check_keys(snapshot) } else { Ok(()) }
    }

    // The mark of a new key says what the others say. Damaged ones are written anew. Records are looked at on a
    // snapshot, since a look at all of them would hold the writer for long.
    fn check_marks(&self, seal: &Seal) -> Result<()> {
        loop {
            let (marks, era) = run::read(self.below.as_ref(), |snapshot| {
                Ok::<_, Error>((Marks::compared(snapshot, seal)?, snapshot.era()))
            })?;
            let extent = allowed(seal, marks.extent())?;
            let write = |transaction: &mut dyn Transaction| marks.renew(transaction, seal);
            if marks.are_sound(seal) || run::write(self.below.as_ref(), write)? {
                seal.set_extent(extent, era);
                return Ok(());
            }
        }
    }

    // The keys for `view`. Commits that were lost before it may have sealed values, or left marks.
    pub(super) fn of_view<'s>(
        &self,
        seal: ViewSeal<'s>,
        view: &(impl Snapshot + ?Sized),
    ) -> Result<ViewSeal<'s>> {
        if view.era() == seal.era() {
            return Ok(seal);
        }
        self.is_outdated.store(true, Ordering::Release);
        let extent = Marks::compared(view, seal.seal())?.extent();
        Ok(seal.with_extent(allowed(seal.seal(), extent)?))
    }

    // Shows `below` to `body` with keys of this store.
    fn show(
        &self,
        (below, seal): (&dyn Snapshot, Option<ViewSeal<'_>>),
        body: &mut ReadBody<'_>,
    ) -> Result<()> {
        let seal = seal.map(|seal| self.of_view(seal, below)).transpose()?;
        body(&self.sealing(below, seal))?;
        self.check_read(below)
    }

    // Runs `body` with keys of this store.
    fn run(
        &self,
        (below, seal): (&mut dyn Transaction, Option<ViewSeal<'_>>),
        body: &mut WriteBody<'_>,
    ) -> Result<Decision> {
        let seal = seal.map(|seal| self.of_view(seal, &*below)).transpose()?;
        let mut sealing = self.sealing(below, seal);
        let decision = body(&mut sealing)?;
        self.check_read(sealing.below)?;
        Ok(decision)
    }

    fn sealing<'s, V>(&'s self, below: V, seal: Option<ViewSeal<'s>>) -> Sealing<'s, V> {
        Sealing { below, seal, locked: &self.locked }
    }

    // The keys for a view that is taken next.
    fn of_next_view(&self) -> Result<Option<ViewSeal<'_>>> {
        Ok(self.checked()?.map(Seal::of_next_view))
    }

    /// Runs `body` in a transaction of the host, with the keys of this store.
    pub fn write_in_host(
        &self,
        host: &mut dyn HostTransaction,
        scope: WriteScope,
        body: &mut WriteBody<'_>,
    ) -> Result<()> {
        // The transaction of the host may hold the writer, so that no mark is written in a new era.
        self.check_once()?;
        let seal = self.seal.as_ref().map(Seal::of_next_view);
        host.write_within(scope, &mut |below| self.run((below, seal), body))
    }

    /// Returns the keys, which are compared again in a new era: the mark of the key that seals may be lost.
    pub(super) fn checked(&self) -> Result<Option<&Seal>> {
        self.check_once()?;
        if self.is_outdated.swap(false, Ordering::AcqRel) {
            self.check().inspect_err(|_| self.is_outdated.store(true, Ordering::Release))?;
        }
        Ok(self.seal.as_ref())
    }

    fn check_once(&self) -> Result<()> {
        if self.is_checked.load(Ordering::Acquire) { Ok(()) } else { self.check() }
    }
}

/// Fails if the keys are not for a store of this extent.
fn allowed(seal: &Seal, extent: Extent) -> Result<Extent> {
    match extent {
        Extent::Mixed if seal.keyring().is_for_sealed_only() => Err(Error::PlainRecords),
        Extent::Mixed | Extent::Whole => Ok(extent),
    }
}

impl Store for Sealable {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        let seal = self.of_next_view()?;
        self.below.read(&mut |below| self.show((below, seal), body))
    }

    fn read_pure(&self, body: &mut ReadBody<'_>) -> Result<()> {
        let seal = self.of_next_view()?;
        self.below.read_pure(&mut |below| self.show((below, seal), body))
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.write_within(WriteScope::Everything, body)
    }

    fn write_within(&self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<()> {
        // The first transaction of an era seals nothing: the mark of the key comes before that.
        for is_last in [false, true] {
            let (seal, mut has_run) = (self.of_next_view()?, true);
            self.below.write_within(scope, &mut |below| {
                has_run = is_last || seal.is_none_or(|seal| seal.era() == below.era());
                if has_run {
                    return self.run((below, seal), body);
                }
                self.is_outdated.store(true, Ordering::Release);
                Ok(Decision::Abort)
            })?;
            if has_run {
                break;
            }
        }
        Ok(())
    }

    fn runs_side_by_side(&self) -> bool {
        self.below.runs_side_by_side()
    }

    fn now(&self) -> Option<SystemTime> {
        self.below.now()
    }

    fn listen(&self, listener: Listener) {
        self.below.listen(listener);
    }

    fn forget_history(&self, scope: WriteScope) -> Result<()> {
        self.below.forget_history(scope)
    }
}

impl fmt::Debug for Sealable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sealable").field(&self.below).field(&self.seal).finish()
    }
}

/// A view of the store below, with a codec that seals if there are keys.
struct Sealing<'s, V> {
    below: V,
    seal: Option<ViewSeal<'s>>,
    locked: &'s AtomicBool,
}

impl<V: Deref<Target: Snapshot>> Snapshot for Sealing<'_, V> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.below.get(table, key, visit)
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
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
        self.below.scan(table, range, order, limit, visit)
    }

    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        self.below.prefetch(keys)
    }

    fn era(&self) -> u64 {
        self.below.era()
    }

    fn stamp(&self) -> Option<u64> {
        self.below.stamp()
    }

    fn codec(&self) -> Codec<'_> {
        let codec = self.seal.map_or_else(|| self.below.codec(), Codec::sealed);
        codec.noting(self.locked)
    }
}

impl Transaction for Sealing<'_, &mut dyn Transaction> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.below.put(table, key, value)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.below.delete(table, key)
    }

    fn changed(&mut self, change: Change) {
        self.below.changed(change);
    }
}
