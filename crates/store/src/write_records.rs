//! Writing records, with their index entries.

use crate::record::{Entries, Record, corrupt};
use crate::text_index::{self, TextChanges};
use crate::{Change, ChangeKind, Key, Result, Transaction};

/// Writing records with their index entries: implemented for every [`Transaction`].
pub trait WriteRecords: Transaction {
    /// Stores a record whose key is free, with its index entries.
    fn insert<R: Record>(&mut self, record: &R) -> Result<()> {
        let (key, value) = self.codec().encode(record)?;
        self.put(R::TABLE, key.as_bytes(), &value)?;
        for entry in Entries::of(record).iter() {
            self.put_bytes(&entry.key, &entry.value(&key))?;
        }
        text_index::add_all(self, &record.texts())?;
        self.changed(Change::new(ChangeKind::Inserted, &key).of(None, Some(record)));
        Ok(())
    }

    /// Stores `new` in place of `old`, which has the same key. Writes nothing if they are equal.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) if their keys differ.
    fn replace<R: Record>(&mut self, old: &R, new: &R) -> Result<()> {
        let mut texts = TextChanges::default();
        self.replace_but_texts(old, new, &mut texts)?;
        texts.make(self)
    }

    /// [`replace`](Self::replace) that leaves the indexes of texts as they are, and adds their changes to
    /// `texts`. They are made together, once for many records.
    ///
    /// # Errors
    ///
    /// As [`replace`](Self::replace).
    fn replace_but_texts<R: Record>(
        &mut self,
        old: &R,
        new: &R,
        texts: &mut TextChanges,
    ) -> Result<()> {
        if old == new {
            return Ok(());
        }
        let (key, value) = self.codec().encode(new)?;
        if old.key() != key {
            return Err(corrupt(R::TABLE, "a record keeps its key"));
        }
        self.put(R::TABLE, key.as_bytes(), &value)?;
        let (before, after) = (Entries::of(old), Entries::of(new));
        for entry in before.iter().filter(|entry| !after.contains(&entry.key)) {
            self.delete_key(&entry.key)?;
        }
        for entry in after.iter().filter(|entry| before.iter().all(|before| before != *entry)) {
            self.put_bytes(&entry.key, &entry.value(&key))?;
        }
        texts.note(old.texts(), new.texts());
        self.changed(Change::new(ChangeKind::Replaced, &key).of(Some(old), Some(new)));
        Ok(())
    }

    /// Removes a record and its index entries.
    fn remove<R: Record>(&mut self, record: &R) -> Result<()> {
        for entry in Entries::of(record).iter() {
            self.delete_key(&entry.key)?;
        }
        text_index::remove_all(self, &record.texts())?;
        let key = record.key();
        self.delete_key(&key)?;
        self.changed(Change::new(ChangeKind::Removed, &key).of(Some(record), None));
        Ok(())
    }

    /// Puts `value` under `key`.
    fn put_bytes<R>(&mut self, key: &Key<R>, value: &[u8]) -> Result<()> {
        self.put(key.table(), key.as_bytes(), value)
    }

    /// Removes the entry under `key`. Index entries that lead to it stay.
    fn delete_key<R>(&mut self, key: &Key<R>) -> Result<()> {
        self.delete(key.table(), key.as_bytes())
    }
}

impl<T: Transaction + ?Sized> WriteRecords for T {}
