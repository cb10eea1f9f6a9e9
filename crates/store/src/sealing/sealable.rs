//! The store of an engine: a backend, with the keys of the engine.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use super::keys::Keyring;
use super::marks::{self, Mark};
use super::seal::Seal;
use crate::{
    Change, Codec, Error, HostTransaction, KeyRange, Listener, Order, ReadBody, Result, Snapshot,
    Store, Table, Transaction, Visit, VisitValue, WriteBody, WriteScope, records,
};

/// A store that seals the values of records if it has keys. Its first call compares the keys with
/// the marks of the store.
pub struct Sealable {
    pub(super) below: Arc<dyn Store>,
    pub(super) seal: Option<Seal>,
    is_checked: AtomicBool,
}

impl Sealable {
    /// Returns `below` with the keys of `keyring`. Without keys, values are plain.
    pub fn new(below: Arc<dyn Store>, keyring: Option<Keyring>) -> Self {
        Self { below, seal: keyring.map(Seal::new), is_checked: AtomicBool::new(false) }
    }

    /// Compares the keys with the marks of the store. Leaves a mark of the key that seals.
    ///
    /// # Errors
    ///
    /// [`Error::MissingKey`] and [`Error::WrongKey`].
    pub fn check(&self) -> Result<()> {
        match &self.seal {
            None => self.check_plain()?,
            Some(seal) => self.check_marks(seal)?,
        }
        self.is_checked.store(true, Ordering::Release);
        Ok(())
    }

    fn check_plain(&self) -> Result<()> {
        let marks = records::read(self.below.as_ref(), |snapshot| Mark::all(snapshot))?;
        marks.first().map_or(Ok(()), |mark| Err(Error::MissingKey { key: mark.key }))
    }

    // The mark of a new key says what the others say.
    fn check_marks(&self, seal: &Seal) -> Result<()> {
        let current = seal.keyring().current();
        let found = records::read(self.below.as_ref(), |snapshot| {
            let marks = Mark::all(snapshot)?;
            let extent = marks::extent(snapshot, seal, &marks)?;
            Ok::<_, Error>((extent, marks.iter().any(|mark| mark.key == current)))
        });
        let (mut extent, is_marked) = found?;
        if !is_marked {
            extent = records::write(self.below.as_ref(), |transaction| {
                let extent = marks::extent(transaction, seal, &Mark::all(transaction)?)?;
                Mark::put(transaction, seal, extent)?;
                Ok::<_, Error>(extent)
            })?;
        }
        seal.set_extent(extent);
        Ok(())
    }

    /// Runs `body` in a transaction of the host, with the keys of this store.
    pub fn write_in_host(
        &self,
        host: &mut dyn HostTransaction,
        scope: WriteScope,
        body: &mut WriteBody<'_>,
    ) -> Result<()> {
        let Some(seal) = self.checked()? else { return host.write_within(scope, body) };
        let codec = Codec::sealed(seal);
        host.write_within(scope, &mut |below| body(&mut Sealing { below, codec }))
    }

    pub(super) fn checked(&self) -> Result<Option<&Seal>> {
        if !self.is_checked.load(Ordering::Acquire) {
            self.check()?;
        }
        Ok(self.seal.as_ref())
    }
}

impl Store for Sealable {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        let Some(seal) = self.checked()? else { return self.below.read(body) };
        let codec = Codec::sealed(seal);
        self.below.read(&mut |below| body(&Sealing { below, codec }))
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.write_within(WriteScope::Everything, body)
    }

    fn write_within(&self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<()> {
        let Some(seal) = self.checked()? else { return self.below.write_within(scope, body) };
        let codec = Codec::sealed(seal);
        self.below.write_within(scope, &mut |below| body(&mut Sealing { below, codec }))
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
}

impl fmt::Debug for Sealable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sealable").field(&self.below).field(&self.seal).finish()
    }
}

/// A view of the store below, with a codec that seals.
struct Sealing<'s, V> {
    below: V,
    codec: Codec<'s>,
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

    fn codec(&self) -> Codec<'_> {
        self.codec
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
