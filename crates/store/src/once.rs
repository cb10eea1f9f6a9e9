//! Keys that were read once, so that only what is read again is kept in memory.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of keys that are known.
const KEYS: usize = 4_096;

/// Keys that were read. A later key may take the place of an earlier one.
#[derive(Debug)]
pub struct Once(Box<[AtomicU64]>);

impl Once {
    /// Takes note of a key. Returns `true` if it was read before, as far as is known.
    pub fn has_read(&self, key: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        let at = usize::try_from(hash % KEYS as u64).unwrap_or_default();
        self.0.get(at).is_some_and(|slot| slot.swap(hash, Ordering::Relaxed) == hash)
    }
}

impl Default for Once {
    fn default() -> Self {
        Self((0..KEYS).map(|_| AtomicU64::new(0)).collect())
    }
}
