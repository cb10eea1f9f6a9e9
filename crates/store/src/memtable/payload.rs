//! Changes as bytes: the content of a log record.
//!
//! ```text
//! for each table:  length of its name (1), name, number of changes (4), changes
//! for each change: length of the key (4), length of the value or `REMOVED` (4), key, value
//! ```
//!
//! Numbers are little-endian. Tables have names, because a later version numbers them differently.

use std::sync::Arc;

use thiserror::Error;

use crate::Table;
use crate::overlay::Changes;

/// The length that stands for the removal of a key.
const REMOVED: u32 = u32::MAX;

/// Number of bytes of a length.
const NUMBER: usize = size_of::<u32>();

/// The bytes are no changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a record of the log is malformed")]
pub(crate) struct Malformed;

/// A place in a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slice {
    start: u32,
    len: u32,
}

/// A change in a payload: its table, its key, and its value or `None` for a removal.
pub(super) type EncodedChange = (Table, Slice, Option<Slice>);

/// Changes as a payload, and the place of each one in it. What was just encoded needs no decoding.
pub(crate) struct Encoded {
    pub(crate) payload: Arc<Vec<u8>>,
    /// In the order of tables and keys.
    pub(super) places: Vec<EncodedChange>,
}

impl Slice {
    /// The place of `bytes` behind `payload`, where this puts them. Records of 4 GiB do not fit into a log,
    /// so that no place is cut.
    fn appended(payload: &mut Vec<u8>, bytes: &[u8]) -> Self {
        let at = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let slice = Slice { start: at(payload.len()), len: at(bytes.len()) };
        payload.extend_from_slice(bytes);
        slice
    }

    /// The bytes of `payload` in this place.
    pub(super) fn of(self, payload: &[u8]) -> &[u8] {
        let start = index(self.start);
        payload.get(start..start.saturating_add(index(self.len))).unwrap_or_default()
    }
}

/// The length of `changes` as a payload, in bytes.
pub(crate) fn encoded_len(changes: &Changes) -> usize {
    let tables = changes.tables().map(|(table, changes)| {
        let changes = changes.iter();
        let lens =
            changes.map(|(key, change)| 2 * NUMBER + key.len() + change.map_or(0, <[u8]>::len));
        1 + table.name().len() + NUMBER + lens.sum::<usize>()
    });
    tables.sum()
}

/// Encodes `changes`, whose [`encoded_len`] is `len`.
pub(crate) fn encode(changes: &Changes, len: usize) -> Encoded {
    let mut payload = Vec::with_capacity(len);
    let number_of_places = changes.tables().map(|(_, changes)| changes.iter().len()).sum();
    let mut places = Vec::with_capacity(number_of_places);
    for (table, changes) in changes.tables() {
        let name = table.name().as_bytes();
        payload.extend(u8::try_from(name.len()).unwrap_or(u8::MAX).to_le_bytes());
        payload.extend(name);
        payload.extend(number(changes.iter().len()));
        for (key, change) in changes.iter() {
            payload.extend(number(key.len()));
            payload.extend(change.map_or(REMOVED.to_le_bytes(), |value| number(value.len())));
            let key = Slice::appended(&mut payload, key);
            let value = change.map(|value| Slice::appended(&mut payload, value));
            places.push((table, key, value));
        }
    }
    Encoded { payload: Arc::new(payload), places }
}

/// Calls `visit` with each change in `payload`, in the order of tables and keys.
pub(super) fn decode(
    payload: &[u8],
    mut visit: impl FnMut(EncodedChange),
) -> Result<(), Malformed> {
    let (mut reader, mut tables) = (Reader { payload, at: 0 }, Table::ALL.as_slice());
    while !reader.is_over() {
        let [len] = reader.array()?;
        let name = reader.slice(len.into())?.of(payload);
        let table = named(name, tables).ok_or(Malformed)?;
        tables = behind(table);
        for _ in 0..reader.number()? {
            let (key, value) = (reader.number()?, reader.number()?);
            let key = reader.slice(key)?;
            let value = if value == REMOVED { None } else { Some(reader.slice(value)?) };
            visit((table, key, value));
        }
    }
    Ok(())
}

struct Reader<'p> {
    payload: &'p [u8],
    at: u32,
}

impl Reader<'_> {
    fn is_over(&self) -> bool {
        index(self.at) >= self.payload.len()
    }

    fn slice(&mut self, len: u32) -> Result<Slice, Malformed> {
        let slice = Slice { start: self.at, len };
        self.at = self.at.checked_add(len).ok_or(Malformed)?;
        if index(self.at) > self.payload.len() { Err(Malformed) } else { Ok(slice) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let slice = self.slice(u32::try_from(N).unwrap_or(u32::MAX))?;
        slice.of(self.payload).try_into().map_err(|_| Malformed)
    }

    fn number(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }
}

/// The table of that name. `likely` is searched first: the tables of a payload are in the order of
/// [`Table::ALL`], unless another version has written it.
fn named(name: &[u8], likely: &[Table]) -> Option<Table> {
    let all = likely.iter().chain(&Table::ALL);
    all.copied().find(|table| table.name().as_bytes() == name)
}

/// The tables behind `table`.
fn behind(table: Table) -> &'static [Table] {
    let before = Table::ALL.partition_point(|other| *other <= table);
    Table::ALL.get(before..).unwrap_or_default()
}

/// The bytes of a length. Records of 4 GiB do not fit into a log, so that none is cut.
fn number(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(REMOVED).to_le_bytes()
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_were_written() {
        let payload = bytes();
        assert_eq!(payload.len(), encoded_len(&changes()));
        assert_eq!(
            rows(&payload),
            Ok(vec![
                (Table::ALL[0], b"".to_vec(), Some(b"empty key".to_vec())),
                (Table::ALL[0], b"empty value".to_vec(), Some(vec![])),
                (Table::ALL[7], b"gone".to_vec(), None),
            ])
        );
    }

    /// Another version may order its tables otherwise.
    #[test]
    fn tables_come_in_any_order() {
        let [first, last] = [Table::ALL[0], Table::ALL[Table::ALL.len() - 1]].map(|table| {
            let mut changes = Changes::default();
            changes.set(table, b"key", None);
            encode(&changes, 0).payload.to_vec()
        });
        let both = rows(&[last, first].concat()).unwrap();
        let found: Vec<_> = both.into_iter().map(|(table, ..)| table).collect();
        assert_eq!(found, [Table::ALL[Table::ALL.len() - 1], Table::ALL[0]]);
    }

    #[test]
    fn a_payload_that_is_cut_off_is_malformed() {
        let payload = bytes();
        // The first table alone is a payload, too.
        let first = payload.len() - 1 - Table::ALL[7].name().len() - 4 - 8 - 4;
        for len in (1..payload.len()).filter(|len| *len != first) {
            assert_eq!(rows(&payload[..len]), Err(Malformed), "{len} bytes");
        }
        assert_eq!(rows(&payload[..first]).unwrap().len(), 2);
    }

    #[test]
    fn no_bytes_bring_it_down() {
        let payload = bytes();
        for bit in 0..payload.len() * 8 {
            let mut payload = payload.clone();
            payload[bit / 8] ^= 1 << (bit % 8);
            drop(rows(&payload));
        }
        assert_eq!(rows(b"\x05songs\0\0\0\0"), Err(Malformed));
    }

    #[test]
    fn the_places_are_those_that_are_read() {
        let encoded = encode(&changes(), 0);
        let mut places = Vec::new();
        decode(&encoded.payload, |place| places.push(place)).unwrap();
        assert_eq!(encoded.places, places);
    }

    fn bytes() -> Vec<u8> {
        encode(&changes(), 0).payload.to_vec()
    }

    fn changes() -> Changes {
        let mut changes = Changes::default();
        changes.set(Table::ALL[0], b"", Some(b"empty key"));
        changes.set(Table::ALL[0], b"empty value", Some(b""));
        changes.set(Table::ALL[7], b"gone", None);
        changes
    }

    type Shown = (Table, Vec<u8>, Option<Vec<u8>>);

    fn rows(payload: &[u8]) -> Result<Vec<Shown>, Malformed> {
        let mut rows = Vec::new();
        decode(payload, |(table, key, value)| {
            let value = value.map(|value| value.of(payload).to_vec());
            rows.push((table, key.of(payload).to_vec(), value));
        })?;
        Ok(rows)
    }
}
