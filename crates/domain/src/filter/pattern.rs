//! Patterns of `LIKE`.

use std::collections::BTreeMap;

use super::FieldFilterPart;
use crate::error::{Invalid, at_most};

/// Pattern of `LIKE` as an automaton. A state is one bit of a number: bit n is set if the first n
/// characters match. All states advance together, so one pass over the text suffices for every
/// pattern.
pub(super) struct Pattern {
    any: u128,
    only: BTreeMap<char, u128>,
    stay: u128,
    end: u128,
}

impl Pattern {
    /// Returns the automaton of `pattern`. Refuses a pattern that is too long.
    pub(super) fn new(pattern: &str) -> Result<Self, Invalid> {
        // The automaton has one state more than the pattern has characters.
        at_most("value", pattern, FieldFilterPart::MAX_PATTERN)?;
        let (mut any, mut only, mut stay, mut end) = (0, BTreeMap::new(), 0, 1);
        for character in pattern.chars() {
            match character {
                '%' => {
                    stay |= end;
                    continue;
                }
                '_' => any |= end,
                _ => *only.entry(fold(character)).or_default() |= end,
            }
            end <<= 1;
        }
        Ok(Self { any, only, stay, end })
    }

    /// Returns `true` if the whole of `text` has the form of the pattern, in any case.
    pub(super) fn fits(&self, text: &str) -> bool {
        let states = text.chars().map(fold).fold(1, |states, character| {
            let only = self.only.get(&character).copied().unwrap_or_default();
            (states & (self.any | only)) << 1 | (states & self.stay)
        });
        states & self.end != 0
    }
}

// A character may have several in lower case. The first one suffices, since `_` must match one
// character.
fn fold(character: char) -> char {
    character.to_lowercase().next().unwrap_or(character)
}
