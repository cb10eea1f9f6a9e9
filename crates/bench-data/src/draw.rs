//! Drawing lots, with the same results on every machine. Draws are made from bits here, because a
//! library of distributions may differ between versions and machines.

use std::fmt::Debug;

use domain::ids::v7;
use domain::time::Timestamp;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use uuid::Uuid;

use crate::profile::Ranked;

/// A sequence of lots.
#[derive(Clone, Debug)]
pub(crate) struct Lots(Pcg64Mcg);

/// Purpose of a sequence of draws. The sequences are independent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Times, workflows and recipients of triggers.
    Facts,
    /// Contents of triggers, and courses of jobs.
    Bodies,
    /// The subscriber of a rank.
    Subscriber,
    /// The workflow of a rank.
    Workflow,
    /// The topic of a rank.
    Topic,
    /// A trigger, by its number.
    Trigger,
    /// Triggers in no order.
    Calls,
}

/// Draws ranks as often as they come up.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    // Sum of the weights up to each rank. The first rank has weight 1.
    up_to: Vec<f64>,
    total: f64,
}

const TWO_TO_21: f64 = 2_097_152.0;
const TWO_TO_32: f64 = 4_294_967_296.0;

impl Lots {
    /// The lots that all others of `seed` come from.
    pub(crate) fn root(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// The lots for number `n` of `purpose`.
    pub(crate) fn new(root: u64, purpose: Purpose, n: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(root ^ (purpose as u64) << 56 ^ n))
    }

    /// 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// 128 bits.
    pub(crate) fn many_bits(&mut self) -> u128 {
        u128::from(self.bits()) << 64 | u128::from(self.bits())
    }

    /// A number from 0 on, less than 1.
    pub(crate) fn unit(&mut self) -> f64 {
        // A float holds 53 bits: 32 and 21.
        let bits = self.bits();
        let float = |bits: u64| f64::from(u32::try_from(bits).unwrap_or_default());
        (float(bits >> 32) + float(bits << 32 >> 43) / TWO_TO_21) / TWO_TO_32
    }

    /// A number from `low` to `high`.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        let numbers = high.saturating_sub(low) as u128 + 1;
        let above = (u128::from(self.bits()) * numbers) >> u64::BITS;
        low.saturating_add(usize::try_from(above).unwrap_or_default())
    }

    /// Returns `true` in `share` of all cases.
    pub(crate) fn happens(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// One of `things`.
    pub(crate) fn one_of<T: Copy + Default>(&mut self, things: &[T]) -> T {
        let place = self.between(0, things.len().saturating_sub(1));
        things.get(place).copied().unwrap_or_default()
    }

    /// Returns the waiting time for an event that may come at any moment, with the mean `mean`.
    pub(crate) fn wait(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// An id that was made at `at`.
    pub(crate) fn id<T: From<Uuid>>(&mut self, at: Timestamp) -> T {
        let millis = u64::try_from(at.as_millis()).unwrap_or_default();
        v7(millis, self.many_bits()).into()
    }
}

impl Ranks {
    pub(crate) fn new(ranked: Ranked) -> Self {
        let mut total = 0.0;
        let up_to = ranked.weights().map(|weight| {
            total += weight;
            total
        });
        let up_to = up_to.collect();
        Self { up_to, total }
    }

    pub(crate) fn draw(&self, lots: &mut Lots) -> usize {
        let point = lots.unit() * self.total;
        self.up_to.partition_point(|up_to| *up_to <= point).min(self.up_to.len() - 1)
    }
}

/// Returns a value made from input of this crate, which is well formed.
#[expect(clippy::expect_used, reason = "what it says is well formed, as its tests see")]
pub(crate) fn sound<T, E: Debug>(made: Result<T, E>) -> T {
    made.expect("what is made here is well formed")
}
