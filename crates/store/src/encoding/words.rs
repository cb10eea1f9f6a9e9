//! Words: texts that records have often, and their numbers.
//!
//! `words.txt` has one in a line. The number of a word is that of its line, from zero. A change of a
//! line is a change of the format. New words come at the end.

use std::sync::LazyLock;

static WORDS: LazyLock<Words> = LazyLock::new(|| Words::of(include_str!("words.txt")));

/// Places of the table: a power of two, and more than twice as many as there are words.
const PLACES: usize = 1024;

struct Words {
    list: Vec<&'static str>,
    /// Length of the longest word, in bytes.
    longest: usize,
    /// The number of a word in the place of its hash, or in the next one that was free.
    numbers: [Option<u16>; PLACES],
}

/// The number of `text`, if it is a word.
pub(super) fn number(text: &str) -> Option<u16> {
    WORDS.number(text)
}

/// The word of that number.
pub(super) fn word(number: u16) -> Option<&'static str> {
    WORDS.list.get(usize::from(number)).copied()
}

impl Words {
    fn of(lines: &'static str) -> Self {
        let list: Vec<_> = lines.lines().collect();
        let longest = list.iter().map(|word| word.len()).max().unwrap_or_default();
        let mut numbers = [None; PLACES];
        for (number, word) in (0..).zip(&list) {
            let mut place = hash(word.as_bytes());
            while let Some(Some(_)) = numbers.get(place % PLACES) {
                place += 1;
            }
            if let Some(free) = numbers.get_mut(place % PLACES) {
                *free = Some(number);
            }
        }
        Self { list, longest, numbers }
    }

    fn number(&self, text: &str) -> Option<u16> {
        if text.len() > self.longest {
            return None;
        }
        let mut place = hash(text.as_bytes());
        // Most places are free, so that the next free one is near.
        while let Some(number) = *self.numbers.get(place % PLACES)? {
            if self.list.get(usize::from(number)) == Some(&text) {
                return Some(number);
            }
            place += 1;
        }
        None
    }
}

/// The place in which a text is, unless another one is there. The hash looks at three bytes and the
/// length.
fn hash(text: &[u8]) -> usize {
    let (Some(first), Some(last)) = (text.first(), text.last()) else { return 0 };
    let middle = text.get(text.len() / 2).unwrap_or(first);
    let [first, middle, last] = [first, middle, last].map(|byte| usize::from(*byte));
    first * 0x3d + middle * 0x1f7 + last * 0x95 + text.len() * 0x2b3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_has_its_number() {
        for (number, word) in (0..).zip(&WORDS.list) {
            assert_eq!(super::number(word), Some(number), "{word}");
            assert_eq!(super::word(number), Some(*word));
        }
        assert!(WORDS.list.len() * 2 < PLACES);
        for other in ["", "_i", "_ids", "Email", &"a".repeat(1_000)] {
            assert_eq!(super::number(other), None, "{other}");
        }
        assert_eq!(super::word(u16::try_from(WORDS.list.len()).unwrap()), None);
    }

    /// Values name words by their numbers.
    #[test]
    fn the_words_are_as_they_were() {
        let sum = domain::fnv::hash(WORDS.list.join("\n").as_bytes());
        assert_eq!((WORDS.list.len(), sum), (LEN, SUM));
    }

    const LEN: usize = 307;
    const SUM: u64 = 0x5d18_bc0e_f86d_021c;
}
