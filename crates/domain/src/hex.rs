//! Bytes as hexadecimal digits.

use std::fmt;

/// Writes two digits for each byte.
pub fn write(bytes: impl IntoIterator<Item = u8>, out: &mut impl fmt::Write) -> fmt::Result {
    bytes.into_iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// Reads a byte from every two digits. What is no byte is `None`.
pub(crate) fn read(text: &str) -> impl Iterator<Item = Option<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    text.as_bytes().chunks(2).map(move |pair| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    })
}
