//! How much a run looks at.

use store::Store;

use crate::tables::check_indexes;

/// How much a run looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Everything, after each step: what a test does with an input that has been found.
    Full,
    /// A part that depends on a hash of the input: what a fuzzer does, which makes many runs.
    Sampled(u32),
}

impl Effort {
    /// The effort of a fuzzer over an input.
    pub fn over(input: &[u8]) -> Self {
        // FNV-1a.
        let add = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        let hash = input.iter().fold(0x811c_9dc5, add);
        Self::Sampled(hash ^ hash >> 15)
    }

    /// Returns `true` in all runs, or in one of so many.
    pub fn is_one_of(self, runs: u32) -> bool {
        match self {
            Effort::Full => true,
            Effort::Sampled(hash) => hash.is_multiple_of(runs),
        }
    }

    /// All of `items`, or `count` neighbours.
    pub fn some_of<T>(self, items: &[T], count: usize) -> impl Iterator<Item = &T> {
        let (start, count) = match self {
            Effort::Full => (0, items.len()),
            Effort::Sampled(hash) => (hash as usize / 64, count.min(items.len())),
        };
        items.iter().cycle().skip(start % items.len().max(1)).take(count)
    }

    /// All of a history, or its first `count` steps.
    pub fn first_of<T>(self, steps: &[T], count: usize) -> &[T] {
        match self {
            Effort::Full => steps,
            Effort::Sampled(_) => &steps[..count.min(steps.len())],
        }
    }

    /// Checks the indexes of `store`, if every step is looked at.
    #[track_caller]
    pub fn check(self, store: &(impl Store + Clone)) {
        if self == Effort::Full {
            check_indexes(store);
        }
    }

    /// Checks the indexes of `store`, if the end of this run is looked at.
    #[track_caller]
    pub fn check_at_the_end(self, store: &(impl Store + Clone)) {
        if self.is_one_of(64) {
            check_indexes(store);
        }
    }
}
