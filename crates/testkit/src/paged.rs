//! The bytes of a file, in pages that copies share until one of them writes.

use std::sync::{Arc, LazyLock};

/// Size of a page of redb, in bytes.
pub const PAGE: usize = 4_096;

type Page = Arc<[u8; PAGE]>;

/// The bytes of a file. No page is copied until it is written.
#[derive(Clone, Debug, Default)]
pub struct Paged {
    /// Behind the end, the bytes of the last page are zero.
    pages: Vec<Page>,
    len: usize,
}

impl Paged {
    /// Number of bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }

    /// Copies the bytes from `offset` on, or returns `false` if there are too few.
    pub fn read(&self, offset: usize, mut out: &mut [u8]) -> bool {
        if offset.checked_add(out.len()).is_none_or(|end| end > self.len) {
            return false;
        }
        let mut at = offset;
        while !out.is_empty() {
            let page = &self.pages[at / PAGE][at % PAGE..];
            let (part, rest) = out.split_at_mut(page.len().min(out.len()));
            part.copy_from_slice(&page[..part.len()]);
            at += part.len();
            out = rest;
        }
        true
    }

    /// Writes `data` from `offset` on. The file grows if it ends before.
    pub fn write(&mut self, offset: usize, mut data: &[u8]) {
        self.set_len(self.len.max(offset + data.len()));
        let mut at = offset;
        while !data.is_empty() {
            let page = &mut self.pages[at / PAGE];
            let (part, rest) = data.split_at(data.len().min(PAGE - at % PAGE));
            match <[u8; PAGE]>::try_from(part) {
                Ok(whole) if Arc::get_mut(page).is_none() => *page = Arc::new(whole),
                _ => Arc::make_mut(page)[at % PAGE..][..part.len()].copy_from_slice(part),
            }
            at += part.len();
            data = rest;
        }
    }

    /// Cuts the file, or lets it grow by zeros.
    pub fn set_len(&mut self, len: usize) {
        static EMPTY: LazyLock<Page> = LazyLock::new(|| Arc::new([0; PAGE]));
        self.pages.resize_with(len.div_ceil(PAGE), || Arc::clone(&EMPTY));
        if len < self.len && !len.is_multiple_of(PAGE) {
            Arc::make_mut(&mut self.pages[len / PAGE])[len % PAGE..].fill(0);
        }
        self.len = len;
    }
}

impl From<Vec<u8>> for Paged {
    fn from(bytes: Vec<u8>) -> Self {
        let mut paged = Self::default();
        paged.write(0, &bytes);
        paged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    #[test]
    fn pages_hold_what_a_vector_holds() {
        let mut dice = Dice::new(7);
        let (mut paged, mut bytes) = (Paged::default(), Vec::new());
        for _ in 0..2_000 {
            let (before, held) = (paged.clone(), bytes.clone());
            let at = dice.below(4 * PAGE);
            if dice.below(3) == 0 {
                paged.set_len(at);
                bytes.resize(at, 0);
            } else {
                let data = vec![u8::try_from(dice.below(256)).unwrap(); dice.below(2 * PAGE)];
                paged.write(at, &data);
                bytes.resize(bytes.len().max(at + data.len()), 0);
                bytes[at..at + data.len()].copy_from_slice(&data);
            }
            assert!(paged.to_vec() == bytes, "the pages hold something else");
            assert!(before.to_vec() == held, "a copy has changed");
        }
        assert!(!paged.read(bytes.len(), &mut [0]), "there is nothing behind the end");
    }
}
