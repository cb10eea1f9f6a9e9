//! Ids and times in packed records: bytes, where JSON has texts.
//!
//! An id and a time are newtypes with the names that are here. A format that does not know the names
//! has texts. One that knows them has bytes, and no text to format and to parse.

use std::fmt;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

use crate::error::Invalid;
use crate::vocabulary::Word;

/// Name of the newtypes whose bytes are the 16 bytes of a UUID.
pub const ID: &str = "tidings id";
/// Name of the newtypes whose bytes are [`Digits`].
pub const TIME: &str = "tidings time";

/// The digits of a time in its wire form, as one number. The highest byte comes first.
pub type Digits = [u8; 7];

/// A value with a form of bytes.
pub(crate) trait Packed: FromStr<Err = Invalid> {
    /// Returns the value of these bytes. Returns `None` if there is none.
    fn unpack(bytes: &[u8]) -> Option<Self>;
}

/// Reads a value: its bytes, if the format knows the newtype `name`, or its text.
pub(crate) fn read<'de, T: Packed, D: Deserializer<'de>>(
    from: D,
    name: &'static str,
    expected: &'static str,
) -> Result<T, D::Error> {
    from.deserialize_newtype_struct(name, Either(Word::of(expected)))
}

/// Visitor of a text or of bytes.
struct Either<T>(Word<T>);

impl<'de, T: Packed> Visitor<'de> for Either<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        from.deserialize_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.0.visit_str(text)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        T::unpack(bytes).ok_or_else(|| E::invalid_value(Unexpected::Bytes(bytes), &self))
    }
}
