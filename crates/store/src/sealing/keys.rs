//! Keys that seal, and their ids.

use std::fmt;

use aes::Aes256;
use aes_gcm_siv::{AesGcmSiv, KeyInit};
use base64ct::{Base64, Encoding};
use domain::error::{Invalid, Reason};
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// Id of a sealing key. Each sealed value has the id of its key, so an id names one key for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(u32);

/// Secret key of 32 bytes that seals values. It is overwritten in memory on drop.
///
/// ```
/// # extern crate tidings_store as tidings;
/// use tidings::sealing::SealingKey;
///
/// // `openssl rand -base64 32`
/// let key = SealingKey::from_base64("bm90IGEgc2VjcmV0LCBidXQgdGhpcnR5LXR3byBieXQ=")?;
/// assert_eq!(format!("{key:?}"), "SealingKey(***)");
/// assert!(SealingKey::from_base64("c2hvcnQ=").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, ZeroizeOnDrop)]
pub struct SealingKey([u8; SealingKey::LENGTH]);

/// Keys of a sealed store: one that seals, and older ones that open what they have sealed.
pub struct Keyring {
    current: KeyId,
    is_for_sealed_only: bool,
    trusted: Vec<KeyId>,
    ciphers: Vec<(KeyId, Cipher)>,
}

pub(super) type Cipher = AesGcmSiv<Aes256>;

impl KeyId {
    /// Returns the id of that number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl SealingKey {
    /// Length of a key in bytes.
    pub const LENGTH: usize = 32;

    /// Returns the key of these bytes, which should be random.
    pub const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns the key whose bytes are in `text` as base64 with padding. White space around it is
    /// trimmed.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the text is not base64, or does not have 32 bytes.
    pub fn from_base64(text: impl AsRef<str>) -> Result<Self, Invalid> {
        let mut bytes = Zeroizing::new([0; Self::LENGTH]);
        let decoded = Base64::decode(text.as_ref().trim(), &mut *bytes);
        if decoded.is_ok_and(|decoded| decoded.len() == Self::LENGTH) {
            return Ok(Self(*bytes));
        }
        Err(Invalid::new("sealingKey", Reason::malformed("32 bytes in base64")))
    }

    fn cipher(&self) -> Cipher {
        Cipher::new(&self.0.into())
    }
}

impl Keyring {
    /// Returns the key `id`, which seals.
    pub fn new(id: impl Into<KeyId>, key: SealingKey) -> Self {
        let current = id.into();
        Self {
            current,
            is_for_sealed_only: false,
            trusted: Vec::new(),
            ciphers: vec![(current, key.cipher())],
        }
    }

    /// Adds a key that opens only.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if there is a key of that id.
    pub fn and_old(mut self, id: impl Into<KeyId>, key: SealingKey) -> Result<Self, Invalid> {
        let id = id.into();
        if self.cipher(id).is_some() {
            return Err(Invalid::new("keyId", Reason::Repeated));
        }
        self.ciphers.push((id, key.cipher()));
        Ok(self)
    }

    /// Returns the keys for a store whose records are all sealed: one that is new, or that `Engine::reseal`
    /// has sealed to the end. An engine with them does not open another one, so that nobody can add
    /// plain records by removing the marks of the keys.
    ///
    /// ```
    /// # extern crate tidings_store as tidings;
    /// use tidings::sealing::{Keyring, SealingKey};
    ///
    /// let keys = Keyring::new(1, SealingKey::from_bytes([7; 32])).sealed_only();
    /// # let _ = keys;
    /// ```
    #[must_use]
    pub const fn sealed_only(mut self) -> Self {
        self.is_for_sealed_only = true;
        self
    }

    /// Takes the key `id` of this keyring as that of the store, also if its mark does not open. A mark that
    /// is damaged cannot tell whether the key is right, if no record that the key has sealed opens: then the
    /// store is [`WrongKey`](crate::Error::WrongKey) with the right key, too. One start with these keys
    /// writes the mark anew, and later ones need no trust.
    ///
    /// With another key than that of the store, its records would look damaged, and a repair would put them
    /// into quarantine.
    ///
    /// ```
    /// # extern crate tidings_store as tidings;
    /// use tidings::sealing::{Keyring, SealingKey};
    ///
    /// let keys = Keyring::new(2, SealingKey::from_bytes([8; 32]))
    ///     .and_old(1, SealingKey::from_bytes([7; 32]))?
    ///     .trusted(2);
    /// # let _ = keys;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn trusted(mut self, id: impl Into<KeyId>) -> Self {
        self.trusted.push(id.into());
        self
    }

    /// Returns the id of the key that seals.
    pub const fn current(&self) -> KeyId {
        self.current
    }

    pub(super) const fn is_for_sealed_only(&self) -> bool {
        self.is_for_sealed_only
    }

    pub(super) fn trusts(&self, id: KeyId) -> bool {
        self.trusted.contains(&id)
    }

    /// Returns the ids of all keys.
    pub(super) fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.ciphers.iter().map(|(id, _)| *id)
    }

    pub(super) fn cipher(&self, id: KeyId) -> Option<&Cipher> {
        self.ciphers.iter().find(|(of, _)| *of == id).map(|(_, cipher)| cipher)
    }
}

impl From<u32> for KeyId {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(***)")
    }
}

// The debug text has the ids only.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<u32> = self.ids().map(KeyId::number).collect();
        f.debug_struct("Keyring").field("ids", &ids).finish_non_exhaustive()
    }
}
