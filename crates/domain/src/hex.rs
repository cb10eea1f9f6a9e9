//! Bytes as hexadecimal digits.

use std::fmt;

/// Writes two digits for each byte.
pub fn write(bytes: impl IntoIterator<Item = u8>, out: &mut impl fmt::Write) -> fmt::Result {
    bytes.into_iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// Returns two digits for each byte.
pub fn text(bytes: impl IntoIterator<Item = u8>) -> String {
    let mut text = String::new();
    // Writing into a text does not fail.
    let _ = write(bytes, &mut text);
    text
}

/// Reads a byte from every two digits. A pair that is not two hexadecimal digits is `None`.
pub(crate) fn read(text: &str) -> impl Iterator<Item = Option<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    text.as_bytes().chunks(2).map(move |pair| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    })
}
