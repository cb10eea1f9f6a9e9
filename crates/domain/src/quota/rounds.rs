//! Rounds: a place in the order in which lanes take turns, from the number of messages that each has.

/// Numbers of lanes with at least one message that waits, at least two, and so on. Their sums are kept as a
/// Fenwick tree.
#[derive(Debug, Default)]
pub(super) struct RoundCounts {
    sums: Vec<usize>,
}

impl RoundCounts {
    /// Adds a lane to those with at least `messages`.
    pub(super) fn add(&mut self, messages: usize) {
        while self.sums.len() < messages {
            let next = self.sums.len() + 1;
            let before = self.up_to(next - 1) - self.up_to(next - lowest_bit(next));
            self.sums.push(before);
        }
        for sum in self.of(messages) {
            if let Some(sum) = self.sums.get_mut(sum) {
                *sum += 1;
            }
        }
    }

    /// Takes a lane out of those with at least `messages`.
    pub(super) fn take(&mut self, messages: usize) {
        for sum in self.of(messages) {
            if let Some(sum) = self.sums.get_mut(sum) {
                *sum = sum.saturating_sub(1);
            }
        }
    }

    /// Returns the number of messages in the first `rounds` rounds: as many of each lane, if it has so many.
    pub(super) fn up_to(&self, rounds: usize) -> usize {
        let mut rest = rounds.min(self.sums.len());
        let mut messages = 0;
        while rest > 0 {
            messages += self.sums.get(rest - 1).copied().unwrap_or_default();
            rest -= lowest_bit(rest);
        }
        messages
    }

    // Places of the sums that a round is a part of.
    fn of(&self, round: usize) -> impl Iterator<Item = usize> + use<> {
        let rounds = self.sums.len();
        let next = |round: &usize| Some(round + lowest_bit(*round));
        let all = std::iter::successors(Some(round.max(1)), next);
        all.take_while(move |round| *round <= rounds).map(|round| round - 1)
    }
}

const fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes with 3, 1 and 2 messages.
    #[test]
    fn rounds_have_a_message_of_each_lane_that_has_so_many() {
        let mut rounds = RoundCounts::default();
        for lane in [3, 1, 2] {
            (1..=lane).for_each(|messages| rounds.add(messages));
        }
        assert_eq!([0, 1, 2, 3, 9].map(|count| rounds.up_to(count)), [0, 3, 5, 6, 6]);
        rounds.take(3);
        rounds.take(1);
        assert_eq!([1, 2, 3].map(|count| rounds.up_to(count)), [2, 4, 4]);
        (1..=100).for_each(|messages| rounds.add(messages));
        assert_eq!([1, 2, 64, 100].map(|count| rounds.up_to(count)), [3, 6, 68, 104]);
    }
}
