//! Texts without case, and the search for a part of one.

use memchr::memmem::Finder;

/// Returns `text` without case. The folded form of a part is a part of the folded form. So folding
/// works by single letters, by way of capitals, of which there are fewer.
pub fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Text that is part of other texts, in any case. It is searched for in folded texts.
#[derive(Clone, Debug)]
pub struct FoldedPart(Finder<'static>);

impl FoldedPart {
    /// The search for `part`.
    pub fn new(part: &str) -> Self {
        Self::of_folded(&fold(part))
    }

    /// The search for a part that is folded. Folding it again may give another one.
    pub fn of_folded(part: &str) -> Self {
        Self(Finder::new(part).into_owned())
    }

    /// The bytes of the folded part.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.needle()
    }

    /// Returns the first place of the part in folded texts.
    pub fn find_in(&self, texts: &[u8]) -> Option<usize> {
        self.0.find(texts)
    }
}
