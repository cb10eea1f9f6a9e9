//! The marks of sealing keys: whether the keys of an engine are those of the store.

use std::ops::ControlFlow;

use super::keys::KeyId;
use super::seal::{Extent, Seal, key_of};
use crate::key::Part;
use crate::range::EVERYTHING;
use crate::record::corrupt;
use crate::{Error, Order, Result, Snapshot, Table, Transaction, check, layout};

const MIXED: u8 = 0;
const WHOLE: u8 = 1;

/// Number of records of a table that are tried with a key whose mark does not open.
const TRIED: usize = 16;

/// The mark of a sealing key, as it is stored.
pub(super) struct Mark {
    pub(super) key: KeyId,
    value: Vec<u8>,
}

impl Mark {
    /// Returns the marks of a store.
    pub(super) fn all(snapshot: &(impl Snapshot + ?Sized)) -> Result<Vec<Self>> {
        let mut marks = Vec::new();
        snapshot.scan(Table::Seals, &EVERYTHING, Order::Ascending, None, &mut |key, value| {
            let id = u32::read(&mut &*key).map(KeyId::new);
            marks.push(id.map(|key| Self { key, value: value.to_vec() }));
            ControlFlow::Continue(())
        })?;
        let marks = marks.into_iter().collect::<Option<_>>();
        marks.ok_or_else(|| corrupt(Table::Seals, "a mark has no key"))
    }

    /// Puts the mark of the key that seals.
    pub(super) fn put(
        transaction: &mut dyn Transaction,
        seal: &Seal,
        extent: Extent,
    ) -> Result<()> {
        let key = layout::seal_mark(seal.keyring().current().number());
        let extent = match extent {
            Extent::Mixed => MIXED,
            Extent::Whole => WHOLE,
        };
        let value = seal.close(Table::Seals, key.as_bytes(), &[extent])?;
        transaction.put(Table::Seals, key.as_bytes(), &value)
    }

    /// Removes the mark of `key`.
    pub(super) fn remove(transaction: &mut dyn Transaction, key: KeyId) -> Result<()> {
        transaction.delete(Table::Seals, layout::seal_mark(key.number()).as_bytes())
    }

    /// Returns the extent that the mark says, or `None` if it does not open.
    ///
    /// # Errors
    ///
    /// [`Error::MissingKey`].
    pub(super) fn extent(&self, seal: &Seal) -> Result<Option<Extent>> {
        let (key, keyring) = (self.key, seal.keyring());
        keyring.cipher(key).ok_or(Error::MissingKey { key })?;
        let place = layout::seal_mark(key.number());
        // A plain mark is no mark.
        let is_sealed = self.value.first() == Some(&crate::encoding::SEALED);
        let opened = seal.open(Table::Seals, place.as_bytes(), &self.value);
        Ok(match opened.ok().filter(|_| is_sealed).as_deref().map(Vec::as_slice) {
            Some([MIXED]) => Some(Extent::Mixed),
            Some([WHOLE]) => Some(Extent::Whole),
            Some(_) | None => None,
        })
    }
}

/// Returns the extent that all marks say together. A store without entries is sealed as a whole. If a mark is
/// damaged or lost, and the key opens records, some records may be plain.
///
/// # Errors
///
/// [`Error::MissingKey`] and [`Error::WrongKey`].
pub(super) fn extent(
    snapshot: &(impl Snapshot + ?Sized),
    seal: &Seal,
    marks: &[Mark],
) -> Result<Extent> {
    if marks.is_empty() && is_empty(snapshot)? {
        return Ok(Extent::Whole);
    }
    let mut extent = if marks.is_empty() { Extent::Mixed } else { Extent::Whole };
    for mark in marks {
        match mark.extent(seal)? {
            Some(Extent::Whole) => {}
            Some(Extent::Mixed) => extent = Extent::Mixed,
            None if opens(snapshot, seal, mark.key)? == Some(true) => extent = Extent::Mixed,
            None => return Err(Error::WrongKey { key: mark.key }),
        }
    }
    for key in seal.keyring().ids().filter(|_| marks.is_empty()) {
        if opens(snapshot, seal, key)? == Some(false) {
            return Err(Error::WrongKey { key });
        }
    }
    Ok(extent)
}

/// Returns `true` if a record that is sealed with `key` opens, of the first ones in each table. Returns `None`
/// if there is none.
fn opens(snapshot: &(impl Snapshot + ?Sized), seal: &Seal, key: KeyId) -> Result<Option<bool>> {
    let mut opens = None;
    for table in Table::ALL.into_iter().filter(|table| check::has_records(*table)) {
        snapshot.scan(table, &EVERYTHING, Order::Ascending, Some(TRIED), &mut |place, value| {
            if key_of(value) == Some(key) {
                opens = Some(seal.open(table, place, value).is_ok());
            }
            if opens == Some(true) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if opens == Some(true) {
            break;
        }
    }
    Ok(opens)
}

fn is_empty(snapshot: &(impl Snapshot + ?Sized)) -> Result<bool> {
    let mut is_empty = true;
    for table in Table::ALL {
        snapshot.scan(table, &EVERYTHING, Order::Ascending, Some(1), &mut |_, _| {
            is_empty = false;
            ControlFlow::Break(())
        })?;
    }
    Ok(is_empty)
}
