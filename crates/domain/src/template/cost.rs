//! Costs of renderings.

use super::Template;
use super::budget::NODE;

/// Cost of a rendering, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// Number of steps.
    fuel: u64,
    /// Weight of the values that were made or read, in bytes.
    weight: usize,
}

impl Cost {
    /// Highest cost of one rendering.
    pub(super) const OF_A_RENDERING: Self = Self::new(Template::MAX_WORK, Template::MAX_WEIGHT);
    /// Highest cost of all templates of a message.
    pub(super) const OF_A_MESSAGE: Self =
        Self::new(Template::MAX_MESSAGE_WORK, Template::MAX_MESSAGE_WEIGHT);

    pub(super) const fn new(fuel: u64, weight: usize) -> Self {
        Self { fuel, weight }
    }

    /// Returns the cost of a text that is made.
    pub(super) const fn of_text(text: &str) -> Self {
        Self::new(0, NODE + text.len())
    }

    /// Returns the sum of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            fuel: self.fuel.saturating_add(other.fuel),
            weight: self.weight.saturating_add(other.weight),
        }
    }

    /// Returns the cost with `weight` in addition.
    pub(super) fn with(self, weight: usize) -> Self {
        self.and(Self::new(0, weight))
    }

    pub(super) fn exceeds(self, most: Self) -> bool {
        self.fuel > most.fuel || self.weight > most.weight
    }
}
