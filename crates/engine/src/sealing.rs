//! Sealing of records with keys of the host.

use std::ops::ControlFlow;

pub use store::sealing::{KeyId, Keyring, Resealed, SealingKey};

use crate::{Engine, Progress, Rejection, Result, trace};

impl Engine {
    /// Seals with the key that seals all records that are plain or sealed with an old key, while
    /// other operations go on. A transaction seals up to 64 records. A run that was interrupted is
    /// started again, and passes by what it has sealed.
    ///
    /// At the end the old keys are needed no longer, and plain values do not open any more. If
    /// several engines write to one store, all of them have the new key as the one that seals
    /// before this call.
    ///
    /// ```
    /// use tidings::sealing::{Keyring, SealingKey};
    /// # use tidings::{Engine, store::memory::MemoryStore};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let keys = Keyring::new(1, SealingKey::from_bytes([1; 32]));
    /// # let engine = Engine::builder().sealing(keys).build(MemoryStore::default());
    /// assert!(engine.reseal()?.is_finished);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejection::NoSealingKeys`], if the engine has no keys.
    pub fn reseal(&self) -> Result<Resealed> {
        self.reseal_with(|_| ControlFlow::Continue(()))
    }

    /// [`reseal`](Self::reseal) that calls `progress` after each transaction, and after each 512 records
    /// that were looked at, and ends if `progress` breaks. The next call goes on with what is left.
    ///
    /// # Errors
    ///
    /// As [`reseal`](Self::reseal).
    pub fn reseal_with(
        &self,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Resealed> {
        trace::operation("engine.reseal", None, || {
            let sealable = self.parts.sealable().ok_or(Rejection::NoSealingKeys)?;
            let resealed = sealable.reseal(&mut progress)?;
            Ok(resealed.ok_or(Rejection::NoSealingKeys)?)
        })
    }
}
