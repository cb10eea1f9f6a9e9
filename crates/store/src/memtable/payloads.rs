//! The payloads that the entries of a memtable point into.

use std::sync::Arc;

/// Number of payloads that a clone shares or copies together.
const BLOCK: usize = 64;

/// A list that grows at its end. A clone copies one block at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Payloads(Vec<Arc<Vec<Arc<Vec<u8>>>>>);

impl Payloads {
    pub(super) fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * BLOCK + last.len())
    }

    /// Adds `payload`, and returns its number.
    pub(super) fn push(&mut self, payload: Arc<Vec<u8>>) -> u32 {
        let number = self.len();
        match self.0.last_mut().filter(|last| last.len() < BLOCK) {
            Some(last) => Arc::make_mut(last).push(payload),
            None => self.0.push(Arc::new(vec![payload])),
        }
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The payload with that number.
    pub(super) fn get(&self, number: u32) -> &[u8] {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let block = self.0.get(number / BLOCK);
        block
            .and_then(|block| block.get(number % BLOCK))
            .map(|it| it.as_slice())
            .unwrap_or_default()
    }
}
