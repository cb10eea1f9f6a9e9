//! The marks of sealing keys: whether the keys of an engine are those of the store.

use std::ops::ControlFlow;

use super::keys::KeyId;
use super::probe::{Evidence, evidence, first_key, is_empty, opens_none_of_the_first};
use super::seal::{Extent, Seal, key_of};
use crate::key::KeyPart;
use crate::range::EVERYTHING;
use crate::{Error, Order, Result, Snapshot, Table, Transaction, layout};

const MIXED: u8 = 0;
const WHOLE: u8 = 1;

/// The mark of a sealing key, as it is stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark {
    place: Vec<u8>,
    value: Vec<u8>,
}

impl Mark {
    /// Returns the marks of a store.
    pub(super) fn all(snapshot: &(impl Snapshot + ?Sized)) -> Result<Vec<Self>> {
        let mut marks = Vec::new();
        snapshot.scan(Table::Seals, &EVERYTHING, Order::Ascending, None, &mut |place, value| {
            marks.push(Self { place: place.to_vec(), value: value.to_vec() });
            ControlFlow::Continue(())
        })?;
        Ok(marks)
    }

    /// Puts the mark of `key`.
    fn put(
        transaction: &mut dyn Transaction,
        seal: &Seal,
        key: KeyId,
        extent: Extent,
    ) -> Result<()> {
        let place = layout::seal_mark(key.number());
        let extent = match extent {
            Extent::Mixed => MIXED,
            Extent::Whole => WHOLE,
        };
        let value = seal.close_with(key, Table::Seals, place.as_bytes(), &[extent])?;
        transaction.put(Table::Seals, place.as_bytes(), &value)
    }

    fn remove(&self, transaction: &mut dyn Transaction) -> Result<()> {
        transaction.delete(Table::Seals, &self.place)
    }

    /// Returns the key in whose place the mark is. The id of a key has four bytes, and nothing follows it.
    fn place_key(&self) -> Option<KeyId> {
        let mut rest = self.place.as_slice();
        u32::read(&mut rest).filter(|_| rest.is_empty()).map(KeyId::new)
    }

    /// Returns the key of the mark, or `None` if its place and its value do not name the same one: then it is
    /// damaged.
    pub(super) fn key(&self) -> Option<KeyId> {
        self.place_key().filter(|key| key_of(&self.value) == Some(*key))
    }

    /// Returns the keys of which this may be the mark.
    fn possible_keys(&self) -> impl Iterator<Item = KeyId> {
        let (place, value) = (self.place_key(), key_of(&self.value));
        place.into_iter().chain(value.filter(|key| place != Some(*key)))
    }

    /// Returns the extent that the mark says, or `None` if it does not open.
    ///
    /// # Errors
    ///
    /// [`Error::MissingKey`].
    fn extent(&self, seal: &Seal) -> Result<Option<Extent>> {
        let Some(key) = self.key() else { return Ok(None) };
        if seal.lacks(key) {
            return Err(Error::MissingKey { key });
        }
        let opened = seal.open(Table::Seals, &self.place, &self.value);
        Ok(match opened.ok().as_deref().map(Vec::as_slice) {
            Some([MIXED]) => Some(Extent::Mixed),
            Some([WHOLE]) => Some(Extent::Whole),
            Some(_) | None => None,
        })
    }
}

/// The marks of a store, and what they say together.
pub(super) struct Marks {
    all: Vec<Mark>,
    /// The places in `all` of those that do not open.
    damaged: Vec<usize>,
    is_new: bool,
    extent: Extent,
}

impl Marks {
    /// Compares the keys with the marks. A store without entries is sealed as a whole. If a mark is damaged or
    /// lost, and its key may be used, some records may be plain.
    ///
    /// # Errors
    ///
    /// [`Error::MissingKey`] and [`Error::WrongKey`].
    pub(super) fn compared(snapshot: &(impl Snapshot + ?Sized), seal: &Seal) -> Result<Self> {
        let marks = Mark::all(snapshot)?;
        let is_new = marks.is_empty() && is_empty(snapshot)?;
        let (mut damaged, mut is_lost) = (Vec::new(), marks.is_empty() && !is_new);
        let mut extent = if is_lost { Extent::Mixed } else { Extent::Whole };
        for (index, mark) in marks.iter().enumerate() {
            let said = mark.extent(seal)?;
            if said != Some(Extent::Whole) {
                extent = Extent::Mixed;
            }
            if said.is_none() {
                is_lost |= mark.possible_keys().next().is_none();
                look_for_key(snapshot, seal, mark)?;
                damaged.push(index);
            }
        }
        for key in seal.keyring().ids().filter(|key| is_lost && !seal.keyring().trusts(*key)) {
            if opens_none_of_the_first(snapshot, seal, key)? {
                return Err(Error::WrongKey { key });
            }
        }
        Ok(Self { all: marks, damaged, is_new, extent })
    }

    /// Returns the extent that all marks say together.
    pub(super) const fn extent(&self) -> Extent {
        self.extent
    }

    /// Returns `true` if there is a mark of the key that seals, and none is damaged.
    pub(super) fn are_sound(&self, seal: &Seal) -> bool {
        let current = Some(seal.keyring().current());
        self.damaged.is_empty() && self.all.iter().any(|mark| mark.key() == current)
    }

    /// Puts the mark of the key that seals, and those of other keys whose marks are damaged. Removes damaged
    /// marks of keys that the engine does not have. Returns `false`, and changes nothing, if the marks are
    /// others by now.
    pub(super) fn renew(&self, transaction: &mut dyn Transaction, seal: &Seal) -> Result<bool> {
        let is_outdated =
            Mark::all(transaction)? != self.all || (self.is_new && !is_empty(transaction)?);
        if is_outdated {
            return Ok(false);
        }
        for mark in self.damaged.iter().filter_map(|index| self.all.get(*index)) {
            mark.remove(transaction)?;
            if let Some(key) = mark.place_key().filter(|key| !seal.lacks(*key)) {
                Mark::put(transaction, seal, key, Extent::Mixed)?;
            }
        }
        Mark::put(transaction, seal, seal.keyring().current(), self.extent)?;
        Ok(true)
    }

    /// Puts the mark of the key that seals in the place of all marks: everything is sealed with it.
    pub(super) fn replace(&self, transaction: &mut dyn Transaction, seal: &Seal) -> Result<()> {
        if self.all.len() == 1 && self.are_sound(seal) && self.extent == Extent::Whole {
            return Ok(());
        }
        for mark in &self.all {
            mark.remove(transaction)?;
        }
        Mark::put(transaction, seal, seal.keyring().current(), Extent::Whole)
    }
}

/// Looks for records of the keys of a damaged mark.
fn look_for_key(snapshot: &(impl Snapshot + ?Sized), seal: &Seal, mark: &Mark) -> Result<()> {
    // A mark of the right form may be sound, and the key another one.
    let is_doubtful = mark.key().is_some();
    for key in mark.possible_keys().filter(|key| !seal.keyring().trusts(*key) || seal.lacks(*key)) {
        let lacks = seal.lacks(key);
        match evidence(snapshot, seal, key)? {
            Evidence::Opens => {}
            Evidence::Unused if lacks || !is_doubtful => {}
            Evidence::Unused | Evidence::OpensNone | Evidence::Unknown => {
                return Err(if lacks {
                    Error::MissingKey { key }
                } else {
                    Error::WrongKey { key }
                });
            }
        }
    }
    Ok(())
}

/// Fails if the store has a mark, and the engine has no keys.
pub(super) fn refuse(snapshot: &(impl Snapshot + ?Sized)) -> Result<()> {
    let marks = Mark::all(snapshot)?;
    let named = marks.iter().find_map(|mark| mark.key().or_else(|| mark.possible_keys().next()));
    let key = match named {
        None if !marks.is_empty() => first_key(snapshot)?,
        named => named,
    };
    key.map_or(Ok(()), |key| Err(Error::MissingKey { key }))
}
