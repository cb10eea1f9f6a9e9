//! Codec of the values of records.
//!
//! Each value of a record is encoded and decoded here, with the table and the key of its entry. A
//! sealed value has table and key as associated data, so that a value does not open in another
//! place.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::ids::EnvironmentId;
use zeroize::Zeroizing;

use crate::record::{Excerpt, Record, corrupt};
use crate::sealing::{self, ViewSeal};
use crate::stored::{Readable, Stored};
use crate::{Key, Result, Table};

/// Codec of the values of records. Each view has the codec of its store.
#[derive(Clone, Copy, Debug)]
pub struct Codec<'s> {
    form: Form<'s>,
    // Set when a value is sealed with a key that is not there.
    locked: Option<&'s AtomicBool>,
}

#[derive(Clone, Copy, Debug)]
enum Form<'s> {
    Compact,
    Sealed(ViewSeal<'s>),
}

impl<'s> Codec<'s> {
    /// Writes values in few bytes.
    pub const COMPACT: Self = Self { form: Form::Compact, locked: None };

    /// Writes values in few bytes, and seals them.
    pub(crate) const fn sealed(seal: ViewSeal<'s>) -> Self {
        Self { form: Form::Sealed(seal), locked: None }
    }

    /// The codec that sets `locked` when it meets a value that is sealed with a key it does not have.
    pub(crate) const fn noting(self, locked: &'s AtomicBool) -> Self {
        Self { locked: Some(locked), ..self }
    }

    /// The entry of `record` in its table: key and value.
    pub fn encode<R: Record>(self, record: &R) -> Result<(Key<R>, Vec<u8>)> {
        let key = record.key();
        let compact =
            || record.packed(record.reserved_len()).map_err(|source| corrupt(R::TABLE, source));
        let value = match self.form {
            Form::Compact => compact()?,
            Form::Sealed(seal) => {
                seal.seal().close(R::TABLE, key.as_bytes(), &Zeroizing::new(compact()?))?
            }
        };
        Ok((key, value))
    }

    /// The record of an entry in its table. All forms are read.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the value is not readable, or if the record
    /// belongs under another key. Its scope may be wrong then.
    pub fn decode<R: Record>(self, key: &[u8], value: &[u8]) -> Result<R> {
        let record: R = self.fields(R::TABLE, key, value)?;
        if record.key().as_bytes() != key {
            return Err(corrupt(R::TABLE, "it belongs under another key"));
        }
        Ok(record)
    }

    /// Some fields of the record of an entry in its table, which is in this environment.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub fn decode_excerpt<E: Excerpt>(
        self,
        environment: EnvironmentId,
        key: &[u8],
        value: &[u8],
    ) -> Result<E> {
        let excerpt: E = self.fields(E::Of::TABLE, key, value)?;
        if excerpt.key(environment).as_bytes() != key {
            return Err(corrupt(E::Of::TABLE, "it belongs under another key"));
        }
        Ok(excerpt)
    }

    /// The record of an entry in its table, if some of its fields are `wanted`. Other records are not decoded
    /// as a whole. Returns `None` for a record that cannot be read, too.
    pub fn decode_if<E: Excerpt>(
        self,
        environment: EnvironmentId,
        (key, value): (&[u8], &[u8]),
        wanted: impl Fn(&E) -> bool,
    ) -> Option<E::Of> {
        let excerpt = self.decode_excerpt::<E>(environment, key, value).ok()?;
        if wanted(&excerpt) { self.decode(key, value).ok() } else { None }
    }

    fn fields<T: Readable>(self, table: Table, key: &[u8], value: &[u8]) -> Result<T> {
        if let Some(locked) = self.locked.filter(|_| self.lacks_key_of(value)) {
            locked.store(true, Ordering::Relaxed);
        }
        let plain = match self.form {
            Form::Compact => return read(table, value),
            Form::Sealed(seal) => seal.open(table, key, value)?,
        };
        read(table, &plain)
    }

    /// Returns `true` if `value` is sealed with a key that is not there. It may be sound.
    pub(crate) fn lacks_key_of(self, value: &[u8]) -> bool {
        match (self.form, sealing::key_of(value)) {
            (_, None) => false,
            (Form::Compact, Some(_)) => true,
            (Form::Sealed(seal), Some(key)) => seal.seal().lacks(key),
        }
    }
}

fn read<T: Readable>(table: Table, value: &[u8]) -> Result<T> {
    T::read(value).map_err(|source| corrupt(table, source))
}
