//! Encoding of the values of records.
//!
//! A value is a byte that names its encoding, and the content in that encoding:
//!
//! | byte | then |
//! |---|---|
//! | 1 | JSON, which is read and no longer written |
//! | 2 | packed content |
//! | 3 | number of bytes of padding at the end, as two bytes, the lowest first; packed content; the padding |
//! | 4 | number of bytes of the packed content, as four bytes, the lowest first; an LZ4 block of it |
//! | 5 | a sealed value of another encoding, see the module `sealing` |
//!
//! Packed content is a tree as JSON has it, in tokens. Names and other frequent texts are
//! words, which take a byte or two. UUIDs and times take fewer bytes than their text. What a record
//! serializes to is the same in all encodings.

mod reader;
mod texts;
mod token;
mod words;
mod writer;

use std::borrow::Cow;

use lz4_flex::block::{compress_prepend_size, decompress, uncompressed_size};
use serde::Serialize;
use serde::de::{self, DeserializeOwned, Expected, Unexpected};
use serde_json::error::Category;
use thiserror::Error;

use self::reader::Reader;
pub use self::writer::Unwritable;
use self::writer::Writer;

const JSON: u8 = 1;
const PACKED: u8 = 2;
const PADDED: u8 = 3;
const BLOCK: u8 = 4;
/// The encoding of a sealed value.
pub(crate) const SEALED: u8 = 5;

/// Length of packed content from which a block is tried, in bytes. Smaller content has few
/// repetitions.
const LARGE: usize = 1024;

/// Room for most records, in bytes.
const USUAL: usize = 512;

/// Maximum number of bytes that one byte of a block can expand to.
const MOST_OF_ONE: usize = 255;

/// Reason why a value is not readable.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The value is empty, without even an encoding.
    #[error("it is empty")]
    Empty,
    /// The encoding is one of a later version, or none.
    #[error("its encoding {0} is not known")]
    Encoding(u8),
    /// The value is sealed.
    #[error("it is sealed, and the engine has no keys")]
    Sealed,
    /// The JSON is not well-formed.
    #[error("its JSON {problem} at byte {column}")]
    Json {
        /// The kind of the problem.
        problem: &'static str,
        /// The place.
        column: usize,
    },
    /// The block states a length that no block of its size can expand to.
    #[error("its block says that it is longer than it can be")]
    TooLong,
    /// The block has fewer bytes in it than it states.
    #[error("its block is shorter than it says")]
    TooShort,
    /// The block is not an LZ4 block, or the padding is longer than the value.
    #[error("its block is not readable")]
    Block,
    /// The content is cut off.
    #[error("its content is not whole")]
    Cut,
    /// More bytes follow the content.
    #[error("something follows its content")]
    Rest,
    /// The token is one of a later version, or has no place here.
    #[error("its token {0} is not known")]
    Token(u8),
    /// The word is one of a later version.
    #[error("its word {0} is not known")]
    Word(u16),
    /// There is no earlier UUID or time of that number.
    #[error("it has no earlier id or time {0}")]
    Earlier(u8),
    /// A number has more than 64 bits.
    #[error("a number in it is too large")]
    Number,
    /// A text is not UTF-8.
    #[error("a text in it is not UTF-8")]
    Text,
    /// Lists and objects lie too deep in each other.
    #[error("its content is too deep")]
    TooDeep,
    /// The content is that of another record.
    #[error("{0}")]
    Record(String),
}

// Values may be secrets, so no reason quotes one.
impl de::Error for Unreadable {
    fn custom<T: std::fmt::Display>(reason: T) -> Self {
        Self::Record(reason.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Record(format!("{} in the place of {expected}", kind(&found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::Record(format!("a word in the place of one of {}", expected.join(", ")))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        Self::Record(format!("a field beside {}", expected.join(", ")))
    }
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        let problem = match error.classify() {
            Category::Io | Category::Syntax | Category::Data => "is not well-formed",
            Category::Eof => "is cut off",
        };
        Self::Json { problem, column: error.column() }
    }
}

const fn kind(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) => "a text",
        Unexpected::Bytes(_) => "bytes",
        Unexpected::Unit | Unexpected::Option => "nothing",
        Unexpected::Seq => "a list",
        Unexpected::Map => "an object",
        Unexpected::NewtypeStruct
        | Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant
        | Unexpected::Other(_) => "another value",
    }
}

/// The value that has `record` in few bytes, padded to `reserved_len` bytes. A record that grows up
/// to that length stays on its page of the file.
pub fn encode(record: &impl Serialize, reserved_len: usize) -> Result<Vec<u8>, Unwritable> {
    let head: &[u8] = if reserved_len > 0 { &[PADDED, 0, 0] } else { &[PACKED] };
    let mut value = Vec::with_capacity(USUAL.max(reserved_len));
    value.extend_from_slice(head);
    let value = packed_behind(value, record)?;
    let content = value.get(head.len()..).unwrap_or_default();
    Ok(block(content).unwrap_or_else(|| padded(value, reserved_len)))
}

/// Number of bytes of the packed content of `record`. Returns 0 if it cannot be written.
pub(crate) fn content_len(record: &impl Serialize) -> usize {
    packed_behind(Vec::with_capacity(USUAL), record).map_or(0, |content| content.len())
}

fn packed_behind(bytes: Vec<u8>, record: &impl Serialize) -> Result<Vec<u8>, Unwritable> {
    let mut writer = Writer::behind(bytes);
    record.serialize(&mut writer)?;
    Ok(writer.into_bytes())
}

/// The value that has `content` in a block, if that is shorter.
fn block(content: &[u8]) -> Option<Vec<u8>> {
    if content.len() < LARGE {
        return None;
    }
    let block = compress_prepend_size(content);
    (block.len() < content.len()).then(|| [&[BLOCK], block.as_slice()].concat())
}

fn padded(mut value: Vec<u8>, reserved_len: usize) -> Vec<u8> {
    let padding = u16::try_from(reserved_len.saturating_sub(value.len())).unwrap_or_default();
    if let [PADDED, low, high, ..] = value.as_mut_slice() {
        [*low, *high] = padding.to_le_bytes();
    }
    value.resize(value.len() + usize::from(padding), 0);
    value
}

/// The record that `value` has.
pub fn decode<T: DeserializeOwned>(value: &[u8]) -> Result<T, Unreadable> {
    match value.split_first() {
        Some((&JSON, json)) => unpacked(&packed_json(json)?),
        Some((&PACKED, content)) => unpacked(content),
        Some((&PADDED, rest)) => {
            let (padding, rest) = rest.split_first_chunk().ok_or(Unreadable::Block)?;
            let content = rest.len().checked_sub(usize::from(u16::from_le_bytes(*padding)));
            unpacked(content.and_then(|len| rest.get(..len)).ok_or(Unreadable::Block)?)
        }
        Some((&BLOCK, block)) => unpacked(&inflated(block)?),
        Some((&SEALED, _)) => Err(Unreadable::Sealed),
        Some((&other, _)) => Err(Unreadable::Encoding(other)),
        None => Err(Unreadable::Empty),
    }
}

fn unpacked<T: DeserializeOwned>(content: &[u8]) -> Result<T, Unreadable> {
    let mut reader = Reader::of(content);
    let record = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(record)
}

// Packs JSON, so that a record is read by one deserializer. The code of each is large.
fn packed_json(json: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let tree: serde_json::Value = serde_json::from_slice(json)?;
    packed_behind(Vec::with_capacity(json.len()), &tree).map_err(de::Error::custom)
}

fn inflated(block: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let (len, block) = uncompressed_size(block).map_err(|_| Unreadable::Block)?;
    // A length that the block cannot expand to gets no allocation.
    if len > block.len().saturating_mul(MOST_OF_ONE) {
        return Err(Unreadable::TooLong);
    }
    let bytes = decompress(block, len).map_err(|_| Unreadable::Block)?;
    if bytes.len() == len { Ok(bytes) } else { Err(Unreadable::TooShort) }
}

/// The JSON text of `value`.
pub fn json(value: &[u8]) -> Result<Cow<'_, [u8]>, Unreadable> {
    match value.split_first() {
        Some((&JSON, json)) => Ok(json.into()),
        _ => Ok(serde_json::to_vec(&decode::<serde_json::Value>(value)?)?.into()),
    }
}

#[cfg(test)]
mod tests;
