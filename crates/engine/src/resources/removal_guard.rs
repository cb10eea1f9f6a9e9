//! Removals in several transactions that have no end, because what they remove stays.

use store::{Error, Table};

use crate::Result;

/// Guard of a removal in several transactions: the entry with which the last one has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemovalGuard {
    first: Option<(Table, Vec<u8>)>,
    /// Number of transactions in a row that began with the same entry as the one before.
    repeats: u32,
}

impl RemovalGuard {
    /// Largest number of transactions in a row that may begin with an entry that was removed before.
    /// Another caller may create it again between two transactions.
    const REPEATS: u32 = 8;

    /// Returns `true` if a transaction has removed an entry.
    pub(crate) fn has_any(&self) -> bool {
        self.first.is_some()
    }

    /// Notes the first entry that a transaction removes.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`], if it was removed by each of the last transactions. Otherwise the loop
    /// over a damaged store would not end.
    pub(crate) fn note(&mut self, table: Table, key: &[u8]) -> Result<()> {
        let is_same = |(of, first): &(Table, Vec<u8>)| *of == table && first == key;
        let is_repeat = self.first.as_ref().is_some_and(is_same);
        self.repeats = if is_repeat { self.repeats + 1 } else { 0 };
        if self.repeats > Self::REPEATS {
            let (table, source) = (table.name(), "a removed record is still there".into());
            return Err(Error::Corrupt { table, source }.into());
        }
        self.first = Some((table, key.to_vec()));
        Ok(())
    }
}
