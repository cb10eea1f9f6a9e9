//! The marks of sealing keys: whether the keys of an engine are those of the store.

use std::ops::ControlFlow;

use super::keys::KeyId;
use super::seal::{Extent, Seal};
use crate::key::Part;
use crate::range::EVERYTHING;
use crate::record::corrupt;
use crate::{Error, Order, Result, Snapshot, Table, Transaction, layout};

const MIXED: u8 = 0;
const WHOLE: u8 = 1;

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

    /// Returns the extent that the mark says.
    ///
    /// # Errors
    ///
    /// [`Error::MissingKey`] and [`Error::WrongKey`].
    pub(super) fn extent(&self, seal: &Seal) -> Result<Extent> {
        let (key, keyring) = (self.key, seal.keyring());
        keyring.cipher(key).ok_or(Error::MissingKey { key })?;
        let place = layout::seal_mark(key.number());
        // A plain mark is no mark.
        let is_sealed = self.value.first() == Some(&crate::encoding::SEALED);
        let opened = seal.open(Table::Seals, place.as_bytes(), &self.value);
        match opened.ok().filter(|_| is_sealed).as_deref().map(Vec::as_slice) {
            Some([MIXED]) => Ok(Extent::Mixed),
            Some([WHOLE]) => Ok(Extent::Whole),
            Some(_) | None => Err(Error::WrongKey { key }),
        }
    }
}

/// Returns the extent that all marks say together. A store without entries is sealed as a whole.
pub(super) fn extent(
    snapshot: &(impl Snapshot + ?Sized),
    seal: &Seal,
    marks: &[Mark],
) -> Result<Extent> {
    let Some((first, others)) = marks.split_first() else {
        return Ok(if is_empty(snapshot)? { Extent::Whole } else { Extent::Mixed });
    };
    let mut extent = first.extent(seal)?;
    for mark in others {
        if mark.extent(seal)? == Extent::Mixed {
            extent = Extent::Mixed;
        }
    }
    Ok(extent)
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
