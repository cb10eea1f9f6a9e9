//! Randomness, and the ids, names and keys that are made of it.

use std::array;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use domain::ids::v7;
use domain::time::Timestamp;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A source of random bytes. The engine calls it before a transaction, and never in one.
pub trait Entropy: fmt::Debug + Send + Sync + 'static {
    /// Overwrites `bytes` with random ones.
    fn fill(&self, bytes: &mut [u8]);

    // Returns `true` if another run may make the same bytes, and so the same ids.
    #[doc(hidden)]
    fn may_repeat(&self) -> bool {
        true
    }
}

// Each function is passed on, because the trait has defaults.
macro_rules! entropy_behind {
    ($($pointer:ident),+) => {$(
        #[deny(clippy::missing_trait_methods)]
        impl<E: Entropy + ?Sized> Entropy for $pointer<E> {
            fn fill(&self, bytes: &mut [u8]) {
                (**self).fill(bytes);
            }

            fn may_repeat(&self) -> bool {
                (**self).may_repeat()
            }
        }
    )+};
}

entropy_behind!(Arc, Box);

/// The operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

/// The same bytes in every run, for tests and simulations. API keys made from it are no secret. An
/// engine that opens an existing store needs another seed or a later time. The same seed at the same
/// time makes the same ids, which two records would share. A subscriber whose id is taken is refused
/// with [`Error::Conflict`](crate::Error::Conflict).
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    blocks: Mutex<u64>,
}

/// Draws seeds whose ids sort by the order of the draws.
#[derive(Debug)]
pub(crate) struct Seeds {
    entropy: Box<dyn Entropy>,
    last: Mutex<Span>,
}

/// Source of the random values of one transaction. Each run of the transaction's body gets the same values, and
/// makes the same ids.
pub(crate) struct Seed {
    secret: [[u8; 16]; 2],
    span: Span,
}

/// The ids and random bytes of one run of a transaction, in order.
pub(crate) struct TxRandom<'s> {
    seed: &'s Seed,
    ids: Cell<u32>,
    blocks: Cell<u64>,
    // The bytes of the last block that are left.
    rest: RefCell<Option<array::IntoIter<u8, 32>>>,
}

// The tails of one millisecond that belong to a seed: `SPAN` of them from `start` on.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    millis: u64,
    start: u128,
}

// A seed has 2^24 ids, each with 16 random bits.
const SPAN: u128 = 1 << 40;

// A UUID of version 7 has 74 bits besides its time.
const TAILS: u128 = 1 << 74;

impl Entropy for OsEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        #[expect(clippy::expect_used, reason = "a system without randomness cannot go on")]
        getrandom::fill(bytes).expect("the operating system has randomness");
    }

    fn may_repeat(&self) -> bool {
        false
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

impl Seeds {
    pub(crate) fn new(entropy: impl Entropy) -> Self {
        Self { entropy: Box::new(entropy), last: Mutex::default() }
    }

    /// Returns `true` if another run may make the same ids.
    pub(crate) fn may_repeat(&self) -> bool {
        self.entropy.may_repeat()
    }

    /// Draws a seed. Its ids sort behind those of every seed before it, also if the clock goes
    /// back.
    pub(crate) fn draw(&self, now: Timestamp) -> Seed {
        let mut random = [[0; 16]; 3];
        self.entropy.fill(random.as_flattened_mut());
        let [secret @ .., tail] = random;
        let millis = u64::try_from(now.as_millis()).unwrap_or_default();
        let mut last = self.last.lock();
        *last = last.next(millis, u128::from_be_bytes(tail));
        Seed { secret, span: *last }
    }
}

impl Span {
    // The span behind this one. The first of a millisecond starts at random in the lower half.
    fn next(self, now: u64, random: u128) -> Self {
        let start = random % (TAILS / 2);
        if now > self.millis {
            return Self { millis: now, start };
        }
        match self.start + SPAN {
            behind if behind <= TAILS - SPAN => Self { start: behind, ..self },
            _ => Self { millis: self.millis + 1, start },
        }
    }
}

impl Seed {
    /// Starts a run.
    pub(crate) fn start(&self) -> TxRandom<'_> {
        TxRandom { seed: self, ids: Cell::new(0), blocks: Cell::new(0), rest: RefCell::default() }
    }
}

impl TxRandom<'_> {
    /// The next id: a UUID of version 7 that sorts behind the ids before it.
    pub(crate) fn id<Id: From<Uuid>>(&self) -> Id {
        let count = self.ids.get();
        self.ids.set(count.saturating_add(1));
        let Span { millis, start } = self.seed.span;
        let step = ((u128::from(count) << 16) % SPAN) | u128::from(self.jitter());
        v7(millis, start + step).into()
    }

    /// A random number.
    pub(crate) fn random(&self) -> u64 {
        let mut random = [0; 8];
        self.fill(&mut random);
        u64::from_be_bytes(random)
    }

    /// A random number of 16 bits.
    pub(crate) fn jitter(&self) -> u16 {
        let mut random = [0; 2];
        self.fill(&mut random);
        u16::from_be_bytes(random)
    }

    /// `length` random letters and digits.
    pub(crate) fn text(&self, length: usize) -> String {
        const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let mut random = vec![0; length];
        self.fill(&mut random);
        let letter = |byte: u8| ALPHABET.get(usize::from(byte % 32)).copied().map(char::from);
        random.into_iter().filter_map(letter).collect()
    }

    // No byte is used twice.
    fn fill(&self, bytes: &mut [u8]) {
        let mut rest = self.rest.borrow_mut();
        for byte in bytes {
            let next = rest.as_mut().and_then(Iterator::next);
            *byte = next.unwrap_or_else(|| {
                let block = rest.insert(self.block().into_iter());
                block.next().unwrap_or_default()
            });
        }
    }

    // The next 32 bytes. The hash is one-way, so ids that are shown say nothing about keys of the
    // same run.
    fn block(&self) -> [u8; 32] {
        let count = self.blocks.get();
        self.blocks.set(count + 1);
        let block = Sha256::new().chain_update(self.seed.secret.as_flattened());
        block.chain_update(count.to_be_bytes()).finalize().into()
    }
}

// The bytes lead to API keys, so the debug text omits them.
impl fmt::Debug for TxRandom<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TxRandom").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_creation_even_when_the_clock_goes_back() {
        let seeds = Seeds::new(OsEntropy);
        let times = [5, 5, 5, 6, 4, 7].map(Timestamp::from_millis);
        let made: Vec<Uuid> = times.iter().flat_map(|now| three(&seeds.draw(*now))).collect();
        assert!(made.is_sorted());
        assert!(made.iter().all(|id| id.get_version_num() == 7));
        assert!(made.iter().all(|id| id.get_variant() == uuid::Variant::RFC4122));
    }

    #[test]
    fn ids_go_on_into_the_next_millisecond_when_one_is_full() {
        let full = Span { millis: 5, start: TAILS - SPAN };
        let behind = full.next(5, u128::MAX);
        assert_eq!((behind.millis, behind.start), (6, TAILS / 2 - 1));
        assert_eq!(behind.next(6, 0).start, behind.start + SPAN);
    }

    #[test]
    fn a_seed_gives_the_same_ids_again() {
        let draw = |seed| Seeds::new(SeededEntropy::new(seed)).draw(Timestamp::MAX);
        assert_eq!(three(&draw(1)), three(&draw(1)));
        assert_ne!(three(&draw(1)), three(&draw(2)));
    }

    #[test]
    fn a_run_that_starts_again_makes_the_same() {
        let seed = Seeds::new(OsEntropy).draw(Timestamp::MAX);
        let run = || {
            let random = seed.start();
            (
                random.id::<Uuid>(),
                random.text(40),
                random.random(),
                random.jitter(),
                random.id::<Uuid>(),
            )
        };
        assert_eq!(run(), run());
    }

    fn three(seed: &Seed) -> [Uuid; 3] {
        let random = seed.start();
        [(); 3].map(|()| random.id())
    }
}
