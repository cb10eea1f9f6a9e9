//! Codec of the values of records.
//!
//! Each value of a record is encoded and decoded here, with the table and the key of its entry. A
//! sealed value has table and key as associated data, so that a value does not open in another
//! place.

use crate::record::{Record, corrupt};
use crate::{Key, Result, encoding};

/// Codec of the values of records. Each view has the codec of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codec {
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Compact,
}

impl Codec {
    /// Writes values in few bytes.
    pub const COMPACT: Self = Self { form: Form::Compact };

    /// Writes values as JSON.
    pub const JSON: Self = Self { form: Form::Json };

    /// The entry of `record` in its table: key and value.
    pub fn encode<R: Record>(self, record: &R) -> Result<(Key<R>, Vec<u8>)> {
        let json = serde_json::to_vec(record).map_err(|source| corrupt(R::TABLE, source))?;
        let value = match self.form {
            Form::Json => encoding::plain(&json),
            Form::Compact => encoding::encode_padded(&json, record.reserved_len()),
        };
        Ok((record.key(), value))
    }

    /// The record of an entry in its table. Both forms are read.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the value is not readable, or if the record
    /// belongs under another key. Its scope may be wrong then.
    pub fn decode<R: Record>(self, key: &[u8], value: &[u8]) -> Result<R> {
        let json = encoding::decode(value).map_err(|source| corrupt(R::TABLE, source))?;
        let record: R =
            serde_json::from_slice(&json).map_err(|source| corrupt(R::TABLE, source))?;
        if record.key().as_bytes() != key {
            return Err(corrupt(R::TABLE, "it belongs under another key"));
        }
        Ok(record)
    }
}
