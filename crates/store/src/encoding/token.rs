//! Tokens of packed content.
//!
//! | byte | then | stands for |
//! |---|---|---|
//! | 0 | | end of a list or an object |
//! | 1, 2, 3 | | null, false, true |
//! | 4 | values, end | a list |
//! | 5 | keys with values, end | an object |
//! | 6 | number | an integer |
//! | 7 | number | a negative integer: -1 less the number |
//! | 8 | eight bytes, the lowest first | a number of 64 bits with a fraction |
//! | 9 | number of bytes, bytes | a text in UTF-8 |
//! | 10 | 16 bytes | a text that is a UUID |
//! | 11 | one byte, bytes | the same, if it starts as an earlier one does |
//! | 12 | seven bytes, the highest first | a text that is a time: its 17 digits as a number |
//! | 13 | one byte | the earlier time of that number |
//! | 14 | one byte | the word of that number, less 160 |
//! | 16 to 31 | | an integer from 0 to 15 |
//! | 32 to 95 | bytes | a text of 0 to 63 bytes |
//! | 96 to 255 | | one of the first 160 words |
//!
//! Numbers have seven bits in each byte, the lowest first. The highest bit of a byte says that more
//! follow. Of the byte behind 11, the high half is the number of an earlier UUID. The low half is the
//! number of bytes that are equal, less one. The others follow. The first 16 different UUIDs and the
//! first 16 different times of a value have such numbers.

pub(super) const END: u8 = 0;
pub(super) const NULL: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const TRUE: u8 = 3;
pub(super) const LIST: u8 = 4;
pub(super) const OBJECT: u8 = 5;
pub(super) const INTEGER: u8 = 6;
pub(super) const NEGATIVE: u8 = 7;
pub(super) const FLOAT: u8 = 8;
pub(super) const TEXT: u8 = 9;
pub(super) const ID: u8 = 10;
pub(super) const LIKE_ID: u8 = 11;
pub(super) const TIME: u8 = 12;
pub(super) const AGAIN: u8 = 13;
pub(super) const WORD: u8 = 14;

/// The tokens of the integers below [`SMALL_INTEGERS`] begin here.
pub(super) const SMALL_INTEGER: u8 = 16;
pub(super) const SMALL_INTEGERS: u8 = 16;

/// The tokens of texts of less than [`SHORT_TEXTS`] bytes begin here.
pub(super) const SHORT_TEXT: u8 = 32;
pub(super) const SHORT_TEXTS: u8 = 64;

/// The tokens of the first [`COMMON_WORDS`] words begin here.
pub(super) const COMMON_WORD: u8 = 96;
pub(super) const COMMON_WORDS: u8 = 160;
