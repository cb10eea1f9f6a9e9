//! FNV-1a. Stored values contain it, so that it never changes.

/// The hash of some bytes, in 64 bits.
pub fn hash<'b>(bytes: impl IntoIterator<Item = &'b u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The hash of some bytes, in 32 bits.
pub fn hash32<'b>(bytes: impl IntoIterator<Item = &'b u8>) -> u32 {
    bytes
        .into_iter()
        .fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_hash_is_that_of_the_standard() {
        assert_eq!(super::hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(super::hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(super::hash32(b""), 0x811c_9dc5);
        assert_eq!(super::hash32(b"a"), 0xe40c_292c);
    }
}
