//! Numbers by chance that are the same in every run.

/// Dice that fall the same way for the same seed.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice of that seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.roll(count as u64)).expect("it is below a `usize`")
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}
