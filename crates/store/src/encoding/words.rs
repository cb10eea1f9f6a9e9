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
    table: [Option<u16>; PLACES],
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
        let mut table = [None; PLACES];
        for (number, word) in (0..).zip(&list) {
            let mut places = places(word.as_bytes());
            let free = places.find(|place| table.get(*place) == Some(&None));
            if let Some(place) = free.and_then(|place| table.get_mut(place)) {
                *place = Some(number);
            }
        }
        Self { list, longest, table }
    }

    fn number(&self, text: &str) -> Option<u16> {
        if text.len() > self.longest {
            return None;
        }
        for place in places(text.as_bytes()) {
            let number = (*self.table.get(place)?)?;
            if self.list.get(usize::from(number)) == Some(&text) {
                return Some(number);
            }
        }
        None
    }
}

/// Places in which a text may be, the first one first. The hash looks at three bytes and the length.
fn places(text: &[u8]) -> impl Iterator<Item = usize> {
    let byte = |at: usize| text.get(at).copied().map_or(0, usize::from);
    let (len, last) = (text.len(), text.len().saturating_sub(1));
    let hash = byte(0)
        .wrapping_mul(0x3d)
        .wrapping_add(byte(len / 2).wrapping_mul(0x1f7))
        .wrapping_add(byte(last).wrapping_mul(0x95))
        .wrapping_add(len.wrapping_mul(0x2b3));
    (0..PLACES).map(move |step| hash.wrapping_add(step) % PLACES)
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
        let sum = WORDS.list.join("\n").bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        assert_eq!((WORDS.list.len(), sum), (LEN, SUM));
    }

    const LEN: usize = 307;
    const SUM: u64 = 0x5d18_bc0e_f86d_021c;
}
