//! Values of index entries: the key of the record, and in lists of messages the signature of the
//! message behind it.

use std::borrow::Cow;

use domain::message::Signature;

use super::{MESSAGES, Table};

/// Content of the value of an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'v> {
    /// Key of the record.
    pub key: &'v [u8],
    /// Signature of the message, if the entry has one. Entries of files of format 2 have none.
    pub signature: Option<Signature>,
}

impl<'v> Target<'v> {
    /// Reads the value of an entry of `index`. A value of another length than that of a key, with a
    /// signature or without, is taken for a key, which leads nowhere.
    pub fn read(index: Table, value: &'v [u8]) -> Self {
        let signed = match index {
            Table::MessageLists => value.split_last_chunk(),
            _ => None,
        };
        match signed.filter(|(key, _)| MESSAGES.read(key).is_some()) {
            Some((key, bytes)) => Self { key, signature: Some(Signature::from_bytes(*bytes)) },
            None => Self { key: value, signature: None },
        }
    }

    /// The value of the entry.
    pub fn to_bytes(self) -> Cow<'v, [u8]> {
        match self.signature {
            Some(signature) => [self.key, &signature.to_bytes()].concat().into(),
            None => self.key.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WriteRecords, check, read, sample, write};

    /// A message keeps its tags, and its entry would follow them.
    #[test]
    fn a_signature_follows_its_message() {
        let store = sample::store();
        let [before, after] = ["a", "b"].map(|tag| sample::message(1, tag));
        assert_ne!(Signature::of(&before), Signature::of(&after));
        write(&store, |txn| txn.insert(&before)).unwrap();
        write(&store, |txn| txn.replace(&before, &after)).unwrap();
        let findings = read(&store, check::check).unwrap().findings;
        assert!(findings.iter().all(|one| one.table == "message_counters"), "{findings:?}");
    }

    /// One row per length of a value: those of keys and signatures.
    #[test]
    fn a_value_is_a_key_with_a_signature_or_without() {
        let bytes: Vec<u8> = (0..48).collect();
        for (index, len, expected) in [
            (Table::MessageLists, 24, (24, None)),
            (Table::MessageLists, 32, (24, bytes[24..32].first_chunk())),
            (Table::MessageLists, 0, (0, None)),
            (Table::MessageLists, 8, (8, None)),
            (Table::MessageLists, 31, (31, None)),
            (Table::MessageLists, 33, (33, None)),
            (Table::MessageLists, 40, (40, None)),
            (Table::MessageChanges, 24, (24, None)),
            (Table::MessageChanges, 32, (32, None)),
        ] {
            let value = &bytes[..len];
            let target = Target::read(index, value);
            let signature = expected.1.map(|bytes| Signature::from_bytes(*bytes));
            assert_eq!(target, Target { key: &bytes[..expected.0], signature }, "{index:?} {len}");
            assert_eq!(*target.to_bytes(), *value);
        }
    }
}
