//! Sealing: values of records that only a key opens.
//!
//! A sealed value is AES-256-GCM-SIV with the name of its table and its key as associated data, so
//! that it opens in its place only:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | the encoding of sealed values |
//! | 4 | id of the sealing key, the highest byte first |
//! | 12 | nonce: random bytes of the operating system |
//! | n | encrypted value of another encoding |
//! | 16 | tag |
//!
//! Values of records are sealed, all of them. Keys of entries, and what is derived from records, are
//! not: those are what scans sort and search by.
//!
//! The table `seals` has a mark for each sealing key that values may be sealed with. A mark is sealed with
//! its key, and says whether all values are sealed. The key of a damaged mark is right if it opens a record.
//! If no record names it, nothing is lost by any key, but a mark that looks whole may be that of another key:
//! the host has to say that it is sure of its own.

mod keys;
mod marks;
mod probe;
mod reseal;
mod seal;
mod sealable;

pub use self::keys::{KeyId, Keyring, SealingKey};
pub use self::reseal::Resealed;
pub(crate) use self::seal::{ViewSeal, key_of};
pub use self::sealable::Sealable;

#[cfg(test)]
mod tests;
