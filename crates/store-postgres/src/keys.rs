//! The keys of a commit in one value: for each the number of its table, its length, and its bytes.

use store::Table;

use crate::heads::Changed;
use crate::tables::Tables;

/// Largest size of the keys of a commit. Of a larger one, other processes forget everything.
const MOST: usize = 256 << 10;

/// Returns `None` if there are too many keys.
pub(crate) fn encode(tables: &Tables, changes: &[Changed<'_>]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for (table, key, _) in changes {
        bytes.extend(tables.number(*table).to_be_bytes());
        bytes.extend(u32::try_from(key.len()).ok()?.to_be_bytes());
        bytes.extend(*key);
        if bytes.len() > MOST {
            return None;
        }
    }
    Some(bytes)
}

/// Returns `None` if the bytes are not readable. Tables of newer versions are left out.
pub(crate) fn decode(tables: &Tables, mut bytes: &[u8]) -> Option<Vec<(Table, Vec<u8>)>> {
    let mut keys = Vec::new();
    while let Some((number, rest)) = bytes.split_first_chunk() {
        let (len, rest) = rest.split_first_chunk()?;
        let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
        let (key, rest) = rest.split_at_checked(len)?;
        keys.extend(tables.table(i16::from_be_bytes(*number)).map(|table| (table, key.to_vec())));
        bytes = rest;
    }
    bytes.is_empty().then_some(keys)
}
