//! Records that are read twice: before a transaction and in it, and decoded once.

use std::ops::Deref;
use std::sync::Arc;

use crate::record::dangling;
use crate::{Key, Record, Result, Snapshot};

/// A record with its entry. What another snapshot has under the key is decoded only if its bytes
/// differ. So the record is always that of the other snapshot.
#[derive(Clone, Debug)]
pub struct Kept<R> {
    key: Key<R>,
    bytes: Vec<u8>,
    record: Arc<R>,
}

impl<R> Kept<R> {
    /// The record.
    pub fn record(&self) -> &Arc<R> {
        &self.record
    }
}

impl<R> Deref for Kept<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.record
    }
}

/// Reading records with their bytes: implemented for every [`Snapshot`] and every transaction.
pub trait ReadKept: Snapshot {
    /// The record under `key` with its bytes. The key is one of the table of the records.
    fn find_kept<R: Record>(&self, key: Key<R>) -> Result<Option<Kept<R>>> {
        let (codec, mut found) = (self.codec(), None);
        self.get(R::TABLE, key.as_bytes(), &mut |bytes| {
            found = Some((bytes.to_vec(), codec.decode(key.as_bytes(), bytes)));
        })?;
        let Some((bytes, record)) = found else { return Ok(None) };
        Ok(Some(Kept { key, bytes, record: Arc::new(record?) }))
    }

    /// The record under `key`: that of `kept`, if its bytes are those of this snapshot.
    fn find_again<R: Record>(
        &self,
        key: &Key<R>,
        kept: Option<&Kept<R>>,
    ) -> Result<Option<Arc<R>>> {
        let (codec, mut found) = (self.codec(), None);
        let kept = kept.filter(|kept| kept.key == *key);
        self.get(R::TABLE, key.as_bytes(), &mut |bytes| {
            found = Some(match kept {
                Some(kept) if kept.bytes == bytes => Ok(Arc::clone(&kept.record)),
                Some(_) | None => codec.decode(key.as_bytes(), bytes).map(Arc::new),
            });
        })?;
        found.transpose()
    }

    /// A record that was just written, with its bytes.
    fn keep<R: Record>(&self, record: R) -> Result<Kept<R>> {
        let (key, mut written) = (record.key(), None);
        self.get(R::TABLE, key.as_bytes(), &mut |bytes| written = Some(bytes.to_vec()))?;
        let bytes = written.ok_or_else(|| dangling(R::TABLE))?;
        Ok(Kept { key, bytes, record: Arc::new(record) })
    }
}

impl<S: Snapshot + ?Sized> ReadKept for S {}

#[cfg(test)]
mod tests {
    use domain::environment::Home;
    use domain::ids::SubscriberId;
    use domain::subscriber::{Subscriber, SubscriberCreate};
    use domain::time::Timestamp;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::memory::MemoryStore;
    use crate::{ReadRecords, WriteRecords, layout, read, write};

    fn subscriber(id: &str, name: u8) -> Subscriber {
        let organization_id = "acme".parse().unwrap();
        let home = Home { organization_id, environment_id: Uuid::from_u128(1).into() };
        let create = SubscriberCreate::new(id).unwrap().first_name(format!("name {name}"));
        Subscriber::new(Uuid::from_u128(2).into(), &home, create, Timestamp::from_millis(0))
    }

    fn key(id: &SubscriberId) -> Key<Subscriber> {
        layout::subscriber(Uuid::from_u128(1).into(), id)
    }

    // What a store has under the id of a subscriber.
    fn put(store: &MemoryStore, now: Option<&Subscriber>) {
        let id = SubscriberId::new("ada").unwrap();
        write(store, |txn| -> Result<()> {
            if let Some(before) = txn.find(&key(&id))? {
                txn.remove(&before)?;
            }
            now.map_or(Ok(()), |now| txn.insert(now))
        })
        .unwrap();
    }

    proptest! {
        /// Whatever has changed since, a record is that of the snapshot.
        #[test]
        fn what_is_kept_is_what_is_there(
            before in proptest::option::of(0..3_u8),
            after in proptest::option::of(0..3_u8),
        ) {
            let store = MemoryStore::default();
            let [before, after] = [before, after].map(|name| Some(subscriber("ada", name?)));
            let id = SubscriberId::new("ada").unwrap();
            put(&store, before.as_ref());
            let kept = read(&store, |snapshot| snapshot.find_kept(key(&id))).unwrap();
            prop_assert_eq!(kept.as_deref(), before.as_ref());
            put(&store, after.as_ref());
            let again = read(&store, |view| view.find_again(&key(&id), kept.as_ref())).unwrap();
            prop_assert_eq!(again.as_deref(), after.as_ref());
            if let (Some(kept), Some(again)) = (&kept, &again) {
                prop_assert_eq!(Arc::ptr_eq(kept.record(), again), before == after);
            }
        }
    }

    #[test]
    fn a_record_of_another_key_is_not_taken() {
        let store = MemoryStore::default();
        put(&store, Some(&subscriber("ada", 1)));
        let (ada, bob) = (SubscriberId::new("ada").unwrap(), SubscriberId::new("bob").unwrap());
        read(&store, |view| -> Result<()> {
            let kept = view.find_kept(key(&ada))?;
            assert!(view.find_again(&key(&bob), kept.as_ref())?.is_none());
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_written_record_is_kept_as_it_is_read() {
        let store = MemoryStore::default();
        let ada = subscriber("ada", 1);
        write(&store, |txn| -> Result<()> {
            assert!(txn.keep(ada.clone()).is_err());
            txn.insert(&ada)?;
            let (written, read) = (txn.keep(ada.clone())?, txn.find_kept(ada.key())?.unwrap());
            assert_eq!((&written.bytes, &*written), (&read.bytes, &*read));
            Ok(())
        })
        .unwrap();
    }
}
