//! Where the engine gets its names from.

use std::fmt;

use domain::ids::v7;
use domain::time::Timestamp;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Where randomness comes from.
pub trait Entropy: fmt::Debug + Send + Sync + 'static {
    /// Overwrites `bytes` with random ones.
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

/// The same bytes in every run, for tests and simulations. API keys made from it are no secret.
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    blocks: Mutex<u64>,
}

/// Makes ids that sort by creation.
#[derive(Debug)]
pub(crate) struct Ids {
    entropy: Box<dyn Entropy>,
    last: Mutex<Last>,
}

// The instant of the last id, and how many were made in it before.
#[derive(Debug, Default)]
struct Last {
    millis: u64,
    count: u32,
}

impl Entropy for OsEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        #[expect(clippy::expect_used, reason = "a system without randomness cannot go on")]
        getrandom::fill(bytes).expect("the operating system has randomness");
    }
}

impl SeededEntropy {
    /// The bytes that belong to `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, blocks: Mutex::new(0) }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        let mut blocks = self.blocks.lock();
        for chunk in bytes.chunks_mut(32) {
            let block = Sha256::new().chain_update(self.seed.to_be_bytes());
            let block = block.chain_update(blocks.to_be_bytes()).finalize();
            *blocks += 1;
            chunk.iter_mut().zip(block).for_each(|(byte, random)| *byte = random);
        }
    }
}

impl Ids {
    pub(crate) fn new(entropy: impl Entropy) -> Self {
        Self { entropy: Box::new(entropy), last: Mutex::default() }
    }

    /// A UUID of version 7 that sorts behind every one before it, also when the clock goes back.
    pub(crate) fn next<Id: From<Uuid>>(&self, now: Timestamp) -> Id {
        let (millis, count) = self.tick(u64::try_from(now.as_millis()).unwrap_or_default());
        // 74 bits besides the time: the count, and random ones.
        let tail = u128::from(count) << 42 | u128::from(self.random() >> 22);
        v7(millis, tail).into()
    }

    fn tick(&self, now: u64) -> (u64, u32) {
        let mut last = self.last.lock();
        if now > last.millis {
            *last = Last { millis: now, count: 0 };
        } else {
            last.count = last.count.saturating_add(1);
        }
        (last.millis, last.count)
    }

    /// A random number.
    pub(crate) fn random(&self) -> u64 {
        let mut random = [0; 8];
        self.entropy.fill(&mut random);
        u64::from_be_bytes(random)
    }

    /// `length` random letters and digits.
    pub(crate) fn text(&self, length: usize) -> String {
        const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let mut random = vec![0; length];
        self.entropy.fill(&mut random);
        let letter = |byte: u8| ALPHABET.get(usize::from(byte % 32)).copied().map(char::from);
        random.into_iter().filter_map(letter).collect()
    }

    /// A random number.
    pub(crate) fn jitter(&self) -> u16 {
        let mut random = [0; 2];
        self.entropy.fill(&mut random);
        u16::from_be_bytes(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_creation_even_when_the_clock_goes_back() {
        let ids = Ids::new(OsEntropy);
        let times = [5, 5, 5, 6, 4, 7].map(Timestamp::from_millis);
        let made: Vec<Uuid> = times.iter().map(|now| ids.next(*now)).collect();
        assert!(made.is_sorted());
        assert!(made.iter().all(|id| id.get_version_num() == 7));
        assert!(made.iter().all(|id| id.get_variant() == uuid::Variant::RFC4122));
    }

    #[test]
    fn a_seed_gives_the_same_ids_again() {
        let make = |seed| -> Uuid { Ids::new(SeededEntropy::new(seed)).next(Timestamp::MAX) };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
    }
}
