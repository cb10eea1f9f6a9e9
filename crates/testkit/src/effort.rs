//! How much a run looks at.

use domain::fnv;
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
        let hash = fnv::hash32(input);
        Self::Sampled(hash ^ hash >> 15)
    }

    /// Returns `true` in all runs, or in one of so many.
    pub fn is_one_of(self, runs: u32) -> bool {
        match self {
            Effort::Full => true,
            Effort::Sampled(hash) => hash.is_multiple_of(runs),
        }
    }

    /// All of `items`, or `count` neighbours. Where they begin says nothing of `is_one_of`.
    pub fn some_of<T>(self, items: &[T], count: usize) -> impl Iterator<Item = &T> {
        let (start, count) = match self {
            Effort::Full => (0, items.len()),
            Effort::Sampled(hash) => {
                (hash.wrapping_mul(0x9e37_79b1) as usize >> 12, count.min(items.len()))
            }
        };
        items.iter().cycle().skip(start % items.len().max(1)).take(count)
    }

    /// All of a history, or its first `few` steps, and in one of eight runs its first `many`.
    pub fn first_of<T>(self, steps: &[T], few: usize, many: usize) -> &[T] {
        let count = match self {
            Effort::Full => steps.len(),
            Effort::Sampled(_) if self.is_one_of(8) => many,
            Effort::Sampled(_) => few,
        };
        &steps[..count.min(steps.len())]
    }

    /// Checks the indexes of `store`, if every step is looked at.
    #[track_caller]
    pub fn check(self, store: &(impl Store + Clone)) {
        if self == Effort::Full {
            check_indexes(store);
        }
    }

    /// Checks the indexes of `store`, in one of so many runs of a fuzzer.
    #[track_caller]
    pub fn check_at_the_end(self, store: &(impl Store + Clone), runs: u32) {
        if self.is_one_of(runs) {
            check_indexes(store);
        }
    }
}
