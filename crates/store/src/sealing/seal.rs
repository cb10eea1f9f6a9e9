//! One value: sealed and opened.

use aes_gcm_siv::Nonce;
use aes_gcm_siv::aead::AeadInOut;
use parking_lot::RwLock;
use thiserror::Error;
use zeroize::Zeroizing;

use super::keys::{Cipher, KeyId, Keyring};
use crate::encoding::SEALED;
use crate::record::corrupt;
use crate::{Error, Result, Table};

/// The keys of a store, and the extent of its sealing.
#[derive(Debug)]
pub(crate) struct Seal {
    keyring: Keyring,
    // The extent of the sealing, and the era for which it is known.
    known: RwLock<(Extent, u64)>,
}

/// The extent of the sealing of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Some values may be plain.
    Mixed,
    /// All values are sealed, so that a plain one is forged.
    Whole,
}

/// The keys of a store, for one view of it.
///
/// Values that were plain when the view was taken are plain in it, also if they are sealed meanwhile. So
/// the extent is that from before. In a view of another era, it is what the marks in that view say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViewSeal<'s> {
    seal: &'s Seal,
    extent: Extent,
    era: u64,
}

/// Reason why a value does not open.
#[derive(Debug, Error)]
pub(super) enum Unopenable {
    /// The value has fewer bytes than a seal.
    #[error("its seal is cut off")]
    Cut,
    /// The engine does not have the key.
    #[error("it is sealed with key {0}, which the engine does not have")]
    UnknownKey(KeyId),
    /// The value was changed, or lies in another place than that which it was sealed for.
    #[error("its seal does not open: it was changed, or it belongs elsewhere")]
    Forged,
    /// The value is plain, and all values of the store are sealed.
    #[error("it is not sealed, and all values of the store are")]
    Plain,
}

const NONCE: usize = 12;
const TAG: usize = 16;
/// The encoding and the id of the key.
const HEAD: usize = 5;

impl Seal {
    /// Returns the seal of a store of mixed values.
    pub(super) const fn new(keyring: Keyring) -> Self {
        Self { keyring, known: RwLock::new((Extent::Mixed, 0)) }
    }

    /// Returns the keys.
    pub(super) const fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Sets the extent of the sealing in an era. Where all values are sealed, they stay so until its end: a
    /// comparison of the marks that has begun before may end behind that.
    pub(super) fn set_extent(&self, extent: Extent, era: u64) {
        let mut known = self.known.write();
        if *known != (Extent::Whole, era) {
            *known = (extent, era);
        }
    }

    /// Returns the keys for a view that is taken next.
    pub(super) fn of_next_view(&self) -> ViewSeal<'_> {
        let (extent, era) = *self.known.read();
        ViewSeal { seal: self, extent, era }
    }

    /// Returns `plain` sealed for its place, with the key that seals.
    pub(crate) fn close(&self, table: Table, key: &[u8], plain: &[u8]) -> Result<Vec<u8>> {
        self.close_with(self.keyring.current(), table, key, plain)
    }

    /// Returns `plain` sealed for its place with the key `id`.
    pub(super) fn close_with(
        &self,
        id: KeyId,
        table: Table,
        key: &[u8],
        plain: &[u8],
    ) -> Result<Vec<u8>> {
        let cipher = self.keyring.cipher(id);
        let cipher = cipher.ok_or_else(|| corrupt(table, Unopenable::UnknownKey(id)))?;
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|error| Error::Backend {
            backend: "sealing",
            action: "draw a nonce",
            source: error.into(),
        })?;
        let mut value = Vec::with_capacity(HEAD + NONCE + plain.len() + TAG);
        value.push(SEALED);
        value.extend(id.number().to_be_bytes());
        value.extend(nonce);
        value.extend_from_slice(plain);
        let content = value.get_mut(HEAD + NONCE..).unwrap_or_default();
        let tag = cipher
            .encrypt_inout_detached(&Nonce::from(nonce), &place(table, key), content.into())
            .map_err(|_| corrupt(table, "it is too long to be sealed"))?;
        value.extend_from_slice(&tag);
        Ok(value)
    }

    /// [`ViewSeal::open`] in a view that is taken now.
    pub(super) fn open(
        &self,
        table: Table,
        key: &[u8],
        value: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>> {
        self.of_next_view().open(table, key, value)
    }

    fn opened(
        &self,
        table: Table,
        key: &[u8],
        value: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Unopenable> {
        let (id, rest) = head_of(value).ok_or(Unopenable::Cut)?;
        let cipher = self.keyring.cipher(id).ok_or(Unopenable::UnknownKey(id))?;
        let (nonce, rest) = rest.split_first_chunk::<NONCE>().ok_or(Unopenable::Cut)?;
        let (content, tag) = rest.split_last_chunk::<TAG>().ok_or(Unopenable::Cut)?;
        let mut plain = Zeroizing::new(content.to_vec());
        decrypt(cipher, (nonce, tag), &place(table, key), &mut plain)?;
        Ok(plain)
    }

    /// Returns `true` if `value` is sealed with the key that seals.
    pub(super) fn is_current(&self, value: &[u8]) -> bool {
        key_of(value) == Some(self.keyring.current())
    }

    /// Returns `true` if the key of that id is not there.
    pub(crate) fn lacks(&self, key: KeyId) -> bool {
        self.keyring.cipher(key).is_none()
    }
}

impl<'s> ViewSeal<'s> {
    /// Returns the keys.
    pub(crate) const fn seal(self) -> &'s Seal {
        self.seal
    }

    /// Returns the era for which the extent is known.
    pub(super) const fn era(self) -> u64 {
        self.era
    }

    /// Returns the keys for a view of this extent.
    pub(super) const fn with_extent(self, extent: Extent) -> Self {
        Self { extent, ..self }
    }

    /// Returns what `value`, which lies under `key` of `table`, has sealed. A plain value of a store
    /// of mixed values is returned as it is.
    pub(crate) fn open(self, table: Table, key: &[u8], value: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let opened = match (value.split_first(), self.extent) {
            (Some((&SEALED, _)), _) => self.seal.opened(table, key, value),
            (_, Extent::Mixed) => Ok(Zeroizing::new(value.to_vec())),
            (_, Extent::Whole) => Err(Unopenable::Plain),
        };
        opened.map_err(|reason| corrupt(table, reason))
    }
}

/// Returns the id of the key of a sealed value. Returns `None` if `value` is plain, or has fewer bytes than a
/// seal.
pub(crate) fn key_of(value: &[u8]) -> Option<KeyId> {
    let (id, _) = head_of(value)?;
    (value.len() >= HEAD + NONCE + TAG).then_some(id)
}

fn decrypt(
    cipher: &Cipher,
    (nonce, tag): (&[u8; NONCE], &[u8; TAG]),
    place: &[u8],
    content: &mut [u8],
) -> Result<(), Unopenable> {
    cipher
        .decrypt_inout_detached(&Nonce::from(*nonce), place, content.into(), &(*tag).into())
        .map_err(|_| Unopenable::Forged)
}

// The id of the key of a sealed value, and what follows it.
fn head_of(value: &[u8]) -> Option<(KeyId, &[u8])> {
    let (&SEALED, rest) = value.split_first()? else { return None };
    let (id, rest) = rest.split_first_chunk()?;
    Some((KeyId::new(u32::from_be_bytes(*id)), rest))
}

// The associated data of a value. No name of a table has a zero byte.
fn place(table: Table, key: &[u8]) -> Vec<u8> {
    [table.name().as_bytes(), &[0], key].concat()
}
