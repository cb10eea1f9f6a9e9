//! Encoding of the JSON of a record: as it is, or in fewer bytes.
//!
//! A value is a byte that names its encoding, and the content in that encoding:
//!
//! | byte | then |
//! |---|---|
//! | 1 | JSON |
//! | 2 | number of bytes in the block, as four bytes, the lowest first; an LZ4 block |
//! | 3 | number of bytes of padding at the end, as two bytes; as 2; the padding |
//!
//! The content of the block is JSON in which ids and times are short. A text that is a UUID is byte
//! 1 and the 16 bytes of the UUID. A text that is a time is byte 2 and a number of seven bytes, the
//! highest first. The number is made of the 17 digits of the time. JSON has no such bytes of its
//! own.
//!
//! Matches in the block may reach back into `encoding/dictionary.txt`, as if it stood before the
//! content of the block. A change of that file is a change of the format.

use std::borrow::Cow;

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_with_dict, uncompressed_size};
use memchr::{memchr, memchr2};
use thiserror::Error;
use uuid::Uuid;

const DICTIONARY: &[u8] = include_bytes!("encoding/dictionary.txt");

const JSON: u8 = 1;
const BLOCK: u8 = 2;
const PADDED: u8 = 3;

// Bytes that stand for a quoted text in a block.
const ID: u8 = 1;
const TIME: u8 = 2;

// Smaller values are not worth the time.
const LEAST: usize = 128;

// Maximum number of bytes that one byte of a block can expand to.
const MOST_OF_ONE: usize = 255;

/// Reason why a value is not JSON.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The value is empty, without even an encoding.
    #[error("it is empty")]
    Empty,
    /// The encoding is one of a later version, or none.
    #[error("its encoding {0} is not known")]
    Encoding(u8),
    /// The block states a length that no block of its size can expand to.
    #[error("its block says that it is longer than it can be")]
    TooLong,
    /// The block has fewer bytes in it than it states.
    #[error("its block is shorter than it says")]
    TooShort,
    /// The content of the block is cut off.
    #[error("an id or a time in its block is not whole")]
    Cut,
    /// The block is not an LZ4 block.
    #[error("its block is not readable")]
    Block,
}

/// The value that has `json` as it is.
pub(crate) fn plain(json: &[u8]) -> Vec<u8> {
    [&[JSON], json].concat()
}

/// The value that stands for `json`.
pub fn encode(json: &[u8]) -> Vec<u8> {
    if json.len() >= LEAST {
        let block = compress_prepend_size_with_dict(&shortened(json), DICTIONARY);
        if block.len() < json.len() {
            return [&[BLOCK], block.as_slice()].concat();
        }
    }
    plain(json)
}

/// Encodes `json`, padded to `reserved_len` bytes. A record that grows up to that length stays on
/// its page of the file.
pub fn encode_padded(json: &[u8], reserved_len: usize) -> Vec<u8> {
    let value = encode(json);
    let padding =
        reserved_len.checked_sub(value.len() + 2).and_then(|padding| u16::try_from(padding).ok());
    match (value.split_first(), padding) {
        (Some((&BLOCK, block)), Some(padding)) => {
            let mut value = [&[PADDED], padding.to_le_bytes().as_slice(), block].concat();
            value.resize(reserved_len, 0);
            value
        }
        _ => value,
    }
}

/// The JSON that `value` stands for.
pub fn decode(value: &[u8]) -> Result<Cow<'_, [u8]>, Unreadable> {
    match value.split_first() {
        Some((&JSON, json)) => Ok(json.into()),
        Some((&BLOCK, block)) => Ok(written_out(&inflated(block)?)?.into()),
        Some((&PADDED, rest)) => {
            let (padding, rest) = rest.split_first_chunk().ok_or(Unreadable::Block)?;
            let block = rest.len().checked_sub(usize::from(u16::from_le_bytes(*padding)));
            let block = block.and_then(|len| rest.get(..len)).ok_or(Unreadable::Block)?;
            Ok(written_out(&inflated(block)?)?.into())
        }
        Some((&other, _)) => Err(Unreadable::Encoding(other)),
        None => Err(Unreadable::Empty),
    }
}

fn inflated(block: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let (len, block) = uncompressed_size(block).map_err(|_| Unreadable::Block)?;
    // A length that the block cannot expand to gets no allocation.
    if len > block.len().saturating_mul(MOST_OF_ONE) {
        return Err(Unreadable::TooLong);
    }
    let bytes = decompress_with_dict(block, len, DICTIONARY).map_err(|_| Unreadable::Block)?;
    if bytes.len() == len { Ok(bytes) } else { Err(Unreadable::TooShort) }
}

fn shortened(json: &[u8]) -> Vec<u8> {
    let mut short = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, text)) = memchr(b'"', rest).and_then(|at| rest.split_at_checked(at)) {
        short.extend_from_slice(before);
        rest = if let Some((id, rest)) = id(text) {
            short.push(ID);
            short.extend_from_slice(id.as_bytes());
            rest
        } else if let Some((digits, rest)) = time(text) {
            short.push(TIME);
            short.extend_from_slice(&digits);
            rest
        } else {
            short.push(b'"');
            text.get(1..).unwrap_or_default()
        };
    }
    short.extend_from_slice(rest);
    short
}

fn written_out(short: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let mut json = Vec::with_capacity(short.len().saturating_mul(2));
    let mut rest = short;
    while let Some((before, mark)) =
        memchr2(ID, TIME, rest).and_then(|at| rest.split_at_checked(at))
    {
        json.extend_from_slice(before);
        rest = if let Some((&ID, bytes)) = mark.split_first() {
            let (id, rest) = bytes.split_first_chunk().ok_or(Unreadable::Cut)?;
            json.extend_from_slice(&id_text(*id));
            rest
        } else {
            let (digits, rest) =
                mark.get(1..).and_then(<[u8]>::split_first_chunk).ok_or(Unreadable::Cut)?;
            json.extend_from_slice(&time_text(*digits));
            rest
        };
    }
    json.extend_from_slice(rest);
    Ok(json)
}

type IdText = [u8; 38];

// The id that `json` starts with, and the rest. One that is written otherwise than `id_text` does
// is not taken for one.
fn id(json: &[u8]) -> Option<(Uuid, &[u8])> {
    let (text, rest) = json.split_first_chunk::<{ size_of::<IdText>() }>()?;
    let [_, digits @ .., b'"'] = text else { return None };
    let id = Uuid::try_parse_ascii(digits).ok()?;
    (id_text(id.into_bytes()) == *text).then_some((id, rest))
}

fn id_text(id: [u8; 16]) -> IdText {
    let mut text = [b'"'; size_of::<IdText>()];
    let [_, digits @ .., _] = &mut text;
    Uuid::from_bytes(id).hyphenated().encode_lower(digits);
    text
}

// A time whose digits are all zero.
const MIDNIGHT: TimeText = *br#""0000-00-00T00:00:00.000Z""#;

type TimeText = [u8; 26];
type Digits = [u8; 7];

// The digits of the time that `json` starts with, and the rest.
fn time(json: &[u8]) -> Option<(Digits, &[u8])> {
    let (text, rest) = json.split_first_chunk::<{ size_of::<TimeText>() }>()?;
    // Most texts are told from a time by their end alone.
    let [.., b'Z', b'"'] = text else { return None };
    let mut number = 0_u64;
    for (byte, form) in text.iter().zip(MIDNIGHT) {
        match form {
            b'0' if byte.is_ascii_digit() => number = number * 10 + u64::from(byte - b'0'),
            other if other == *byte && other != b'0' => {}
            _ => return None,
        }
    }
    match number.to_be_bytes() {
        [0, digits @ ..] => Some((digits, rest)),
        _ => None,
    }
}

fn time_text(digits: Digits) -> TimeText {
    let number = digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let mut left = number;
    let mut text = MIDNIGHT;
    for byte in text.iter_mut().rev().filter(|byte| **byte == b'0') {
        *byte += u8::try_from(left % 10).unwrap_or_default();
        left /= 10;
    }
    text
}

#[cfg(test)]
mod tests;
