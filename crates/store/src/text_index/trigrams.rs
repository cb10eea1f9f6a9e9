//! The trigrams of the rows of a group.
//!
//! A trigram is three consecutive bytes of a text. It has one of 16,384 numbers, which several
//! trigrams share. Each number has a word, in which each row of the group has a bit, that of row 0
//! the lowest. A page has 64 words, the lowest byte of each first. A page without a bit is left
//! out.

/// Number of rows of a group.
pub(super) const ROWS: u8 = 64;

const WORDS: usize = 64;
const PAGES: usize = 256;

/// The place of the word of a trigram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WordPlace {
    pub(super) page: u8,
    word: usize,
}

/// The places of the words of the trigrams of `text`, which has NUL between texts.
pub(super) fn word_places(text: &[u8]) -> impl Iterator<Item = WordPlace> {
    let trigrams = text.windows(3).filter_map(<[u8]>::first_chunk);
    trigrams.filter(|trigram| !trigram.contains(&0)).map(|[one, two, three]| {
        let trigram = u32::from_le_bytes([*one, *two, *three, 0]);
        // The highest bits of a product with an odd number depend on all bits.
        let [low, high, ..] = (trigram.wrapping_mul(0x9e37_79b1) >> 18).to_le_bytes();
        WordPlace { page: high << 2 | low >> 6, word: usize::from(low) % WORDS }
    })
}

/// The word of `place` in its page. Returns `None` if the page has another length.
pub(super) fn word(page: &[u8], place: WordPlace) -> Option<u64> {
    let (words, rest) = page.as_chunks();
    let is_whole = words.len() == WORDS && rest.is_empty();
    words.get(place.word).filter(|_| is_whole).map(|word| u64::from_le_bytes(*word))
}

/// The words of all trigrams of a group.
#[derive(Debug)]
pub(super) struct Trigrams(Vec<u64>);

impl Trigrams {
    /// The words of the rows with these texts.
    pub(super) fn of<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Self {
        let mut words = vec![0; PAGES * WORDS];
        for (row, text) in texts.enumerate() {
            for WordPlace { page, word } in word_places(text) {
                if let Some(word) = words.get_mut(usize::from(page) * WORDS + word) {
                    *word |= 1 << row;
                }
            }
        }
        Self(words)
    }

    /// The pages that have a bit.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u8, Vec<u8>)> {
        let pages = (0..=u8::MAX).zip(self.0.chunks(WORDS));
        pages
            .filter(|(_, words)| words.iter().any(|word| *word != 0))
            .map(|(page, words)| (page, words.iter().flat_map(|word| word.to_le_bytes()).collect()))
    }
}
