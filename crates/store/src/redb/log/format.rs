//! The bytes of a log: its header, and its records.
//!
//! ```text
//! header: magic (16), version (4), id (16), length of a half (8), checksum (4)
//! record: start of the id (8), sequence (8), length (4), checksum (4), payload
//! ```
//!
//! Numbers are little-endian. Header and records begin with a sector of their own, so that writing a
//! record cannot harm the one before it.

use crc32fast::Hasher;

/// Number of bytes that a disk writes at once or not at all.
pub(super) const SECTOR: usize = 512;

/// Version of the format that this library writes.
pub(super) const VERSION: u32 = 1;

const MAGIC: &[u8; 16] = b"tidings redo log";

/// Length of the fields of a header, with its checksum.
const HEADER: usize = 48;

/// Length of the fields of a record in front of its payload.
const PREFIX: usize = 24;

/// Identity of a log. The file that it belongs to notes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::redb) struct LogId(pub(in crate::redb) [u8; 16]);

/// The header of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: LogId,
    /// Length of each half, in bytes.
    pub(super) half: u64,
}

/// What the first sector of a log may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing was written yet.
    Blank,
    /// The file is something else than a log.
    Foreign,
    /// A newer version of this library has written the log.
    Newer { found: u32 },
    /// The checksum is wrong.
    Damaged,
    /// A header.
    Header(Header),
}

/// A record that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'h> {
    pub(super) sequence: u64,
    pub(super) payload: &'h [u8],
}

impl Header {
    /// The first sector of the log.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.id.0);
        bytes.extend(self.half.to_le_bytes());
        bytes.extend(checksum(&[&bytes]).to_le_bytes());
        bytes.resize(SECTOR, 0);
        bytes
    }
}

impl Start {
    /// Reads the first sector of a log, or as much as there is of it. The fields of a header have their
    /// place in every version, so that a damaged version or magic is not taken for another one.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let is_ours = bytes.starts_with(MAGIC);
        let fields = bytes.get(MAGIC.len()..HEADER - 4).map(|fields| checksum(&[MAGIC, fields]));
        let is_whole =
            fields.is_some() && fields == array(bytes, HEADER - 4).map(u32::from_le_bytes);
        match array(bytes, MAGIC.len()).map(u32::from_le_bytes) {
            _ if !is_ours && !is_whole => {
                let is_blank = bytes.iter().all(|byte| *byte == 0);
                if is_blank { Start::Blank } else { Start::Foreign }
            }
            _ if !is_ours || !is_whole => Start::Damaged,
            Some(found) if found > VERSION => Start::Newer { found },
            _ => header(bytes).map_or(Start::Damaged, Start::Header),
        }
    }
}

fn header(bytes: &[u8]) -> Option<Header> {
    Some(Header { id: LogId(array(bytes, 20)?), half: u64::from_le_bytes(array(bytes, 36)?) })
}

impl<'h> Record<'h> {
    /// Length of a record with such a payload, in bytes.
    pub(super) fn len(payload: usize) -> usize {
        payload.saturating_add(PREFIX).next_multiple_of(SECTOR)
    }

    /// Puts the bytes of the record into `bytes`, in place of those that were there.
    pub(super) fn encode_into(&self, id: LogId, bytes: &mut Vec<u8>) {
        let len = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        bytes.clear();
        bytes.reserve_exact(Self::len(self.payload.len()));
        bytes.extend(mark(id));
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(len.to_le_bytes());
        bytes.extend(self.checksum(id).to_le_bytes());
        bytes.extend(self.payload);
        bytes.resize(Self::len(self.payload.len()), 0);
    }

    /// The bytes of the record.
    #[cfg(test)]
    pub(super) fn encode(&self, id: LogId) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode_into(id, &mut bytes);
        bytes
    }

    /// The record at the start of `bytes`. Returns `None` if there is none, or only a part of one.
    pub(super) fn decode(id: LogId, bytes: &'h [u8]) -> Option<Self> {
        if array::<8>(bytes, 0)? != mark(id) {
            return None;
        }
        let sequence = u64::from_le_bytes(array(bytes, 8)?);
        let len = usize::try_from(u32::from_le_bytes(array(bytes, 16)?)).ok()?;
        let payload = bytes.get(PREFIX..)?.get(..len)?;
        let record = Record { sequence, payload };
        (record.checksum(id) == u32::from_le_bytes(array(bytes, 20)?)).then_some(record)
    }

    /// The sequence that a record at the start of `bytes` would have, whether it is whole or not.
    pub(super) fn sequence(id: LogId, bytes: &[u8]) -> Option<u64> {
        let marked = array::<8>(bytes, 0)? == mark(id);
        marked.then_some(u64::from_le_bytes(array(bytes, 8)?))
    }

    fn checksum(&self, id: LogId) -> u32 {
        let len = u64::try_from(self.payload.len()).unwrap_or(u64::MAX);
        checksum(&[&id.0, &self.sequence.to_le_bytes(), &len.to_le_bytes(), self.payload])
    }
}

/// The start of the id. Payloads cannot imitate it, because an id is random.
fn mark(id: LogId) -> [u8; 8] {
    id.0.first_chunk().copied().unwrap_or_default()
}

fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.get(..N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: LogId = LogId(*b"the id of a log.");
    const HEADER_OF: Header = Header { id: ID, half: 4_194_304 };

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let bytes = HEADER_OF.encode();
        assert_eq!(bytes.len(), SECTOR);
        assert_eq!(Start::decode(&bytes), Start::Header(HEADER_OF));
        assert_eq!(Start::decode(&[0; SECTOR]), Start::Blank);
        assert_eq!(Start::decode(b""), Start::Blank);
        assert_eq!(Start::decode(b"Dear diary,"), Start::Foreign);
    }

    #[test]
    fn a_header_that_is_cut_off_or_flipped_is_none() {
        let bytes = HEADER_OF.encode();
        for len in 1..HEADER {
            let expected = if len < MAGIC.len() { Start::Foreign } else { Start::Damaged };
            assert_eq!(Start::decode(&bytes[..len]), expected, "{len} bytes");
        }
        for bit in 0..HEADER * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Start::decode(&flipped), Start::Damaged, "bit {bit}");
        }
    }

    #[test]
    fn a_newer_header_is_no_damage() {
        let mut bytes = HEADER_OF.encode();
        bytes[16..20].copy_from_slice(&2_u32.to_le_bytes());
        let sum = checksum(&[&bytes[..HEADER - 4]]);
        bytes[HEADER - 4..HEADER].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Start::decode(&bytes), Start::Newer { found: 2 });
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for len in [0, 1, SECTOR - PREFIX, SECTOR - PREFIX + 1, 5_000] {
            let record = Record { sequence: 7, payload: &vec![1; len] };
            let bytes = record.encode(ID);
            assert_eq!(bytes.len(), Record::len(len));
            assert_eq!(bytes.len() % SECTOR, 0);
            assert_eq!(Record::decode(ID, &bytes), Some(record));
            assert_eq!(Record::decode(LogId::default(), &bytes), None);
        }
    }

    #[test]
    fn a_record_that_is_cut_off_or_flipped_is_none() {
        let record = Record { sequence: 7, payload: b"some changes" };
        let bytes = record.encode(ID);
        let used = PREFIX + record.payload.len();
        assert!((0..used).all(|len| Record::decode(ID, &bytes[..len]).is_none()));
        for bit in 0..used * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(ID, &flipped), None, "bit {bit}");
        }
    }
}
