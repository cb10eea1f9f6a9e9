//! Records that are read again and again, decoded once.

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::layout::Target;
use crate::once::Once;
use crate::record::{Entries, dangling, if_readable};
use crate::{Change, ChangeKind, Codec, Key, Order, Prefix, Record, Result, Snapshot};

/// Records, each with the bytes that it was decoded from. If a snapshot has other bytes for a
/// record, they are decoded anew. So the records are always those of the snapshot.
pub struct Decoded<R> {
    kept: RwLock<Kept<R>>,
    most: usize,
    weigh: fn(&R) -> usize,
    /// `None` if records are kept from the first time on.
    once: Option<Once>,
}

struct Kept<R> {
    records: HashMap<Vec<u8>, Known<R>>,
    /// Weight of all records.
    weight: usize,
}

struct Known<R> {
    bytes: Vec<u8>,
    record: Arc<R>,
    weight: usize,
}

/// Weight of the records that are kept by default.
const MOST: usize = 8 << 20;

/// Memory that a decoded record takes, in bytes for each byte of its packed content.
const CONTENT_IN_MEMORY: usize = 2;

impl<R: Record> Decoded<R> {
    /// Keeps records up to a total weight of `most` bytes. A record weighs as much as its entry, twice its packed
    /// content, and `weigh`: the memory that it takes later.
    pub fn weighing(most: usize, weigh: fn(&R) -> usize) -> Self {
        let kept = RwLock::new(Kept { records: HashMap::new(), weight: 0 });
        Self { kept, most, weigh, once: None }
    }

    /// Keeps records that are read a second time, with the default weight. Keeping a record costs a
    /// copy of it, which is in vain if nobody reads it again.
    pub fn of_repeated() -> Self {
        Self { once: Some(Once::default()), ..Self::default() }
    }

    /// Every record of the table whose key has `prefix`, in the order of the keys.
    pub fn all(&self, snapshot: &dyn Snapshot, prefix: &Prefix<R>) -> Result<Vec<Arc<R>>> {
        let codec = snapshot.codec();
        let mut records = Vec::new();
        let mut failure = None;
        snapshot.scan(
            R::TABLE,
            prefix.range().bytes(),
            Order::Ascending,
            None,
            &mut |key, bytes| match self.record(codec, key, bytes) {
                Ok(record) => {
                    records.push(record);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            },
        )?;
        failure.map_or(Ok(records), Err)
    }

    /// The records with `prefix` that can be read, and the number of the others.
    pub fn readable(
        &self,
        snapshot: &dyn Snapshot,
        prefix: &Prefix<R>,
    ) -> Result<(Vec<Arc<R>>, usize)> {
        let codec = snapshot.codec();
        let mut found = Vec::new();
        let visit = &mut |key: &[u8], bytes: &[u8]| {
            found.push(self.record(codec, key, bytes));
            ControlFlow::Continue(())
        };
        snapshot.scan(R::TABLE, prefix.range().bytes(), Order::Ascending, None, visit)?;
        let all = found.len();
        let found = found.into_iter().map(if_readable).collect::<Result<Vec<_>>>()?;
        let readable: Vec<_> = found.into_iter().flatten().collect();
        let unreadable = all - readable.len();
        Ok((readable, unreadable))
    }

    /// The record that the entry under `key` is or leads to. Returns `None` if there is no entry.
    pub fn find(&self, snapshot: &dyn Snapshot, key: &Key<R>) -> Result<Option<Arc<R>>> {
        if key.table() == R::TABLE {
            return self.get(snapshot, key.as_bytes());
        }
        let mut place = None;
        let visit = &mut |value: &[u8]| place = Some(Target::read(key.table(), value).key.to_vec());
        snapshot.get(key.table(), key.as_bytes(), visit)?;
        let Some(place) = place else { return Ok(None) };
        let record = self.get(snapshot, &place)?;
        // A record that does not have this entry may belong to another environment.
        let record = record.filter(|record| Entries::has(&**record, key.table(), key.as_bytes()));
        record.map(Some).ok_or_else(|| dangling(key.table()))
    }

    fn get(&self, snapshot: &dyn Snapshot, key: &[u8]) -> Result<Option<Arc<R>>> {
        let codec = snapshot.codec();
        let mut record = None;
        snapshot.get(R::TABLE, key, &mut |bytes| record = Some(self.record(codec, key, bytes)))?;
        record.transpose()
    }

    /// The records under `keys`, in the order of `keys`. All of `keys` belong to the table of the
    /// records.
    pub fn find_many(
        &self,
        snapshot: &(impl Snapshot + ?Sized),
        keys: &[Key<R>],
    ) -> Result<Vec<Option<Arc<R>>>> {
        self.find_each(snapshot, keys)?.into_iter().collect()
    }

    /// The records under `keys`, as [`find_many`](Self::find_many) returns them, with `None` for a record that
    /// cannot be read.
    pub fn find_readable(
        &self,
        snapshot: &(impl Snapshot + ?Sized),
        keys: &[Key<R>],
    ) -> Result<Vec<Option<Arc<R>>>> {
        let found = self.find_each(snapshot, keys)?.into_iter();
        found.map(|found| Ok(if_readable(found)?.flatten())).collect()
    }

    fn find_each(
        &self,
        snapshot: &(impl Snapshot + ?Sized),
        keys: &[Key<R>],
    ) -> Result<Vec<Result<Option<Arc<R>>>>> {
        let codec = snapshot.codec();
        let bytes: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
        let mut records = Vec::with_capacity(keys.len());
        let mut rest = bytes.iter();
        snapshot.get_many(R::TABLE, &bytes, &mut |value| {
            let entry = rest.next().zip(value);
            records.push(entry.map(|(key, bytes)| self.record(codec, key, bytes)).transpose());
        })?;
        Ok(records)
    }

    /// Forgets the records that were changed. Their bytes are not those of later snapshots.
    pub fn forget(&self, changes: &[Change]) {
        let gone =
            |change: &&Change| change.table == R::TABLE && change.kind != ChangeKind::Inserted;
        let mut gone = changes.iter().filter(gone).peekable();
        if gone.peek().is_some() {
            let mut kept = self.kept.write();
            gone.for_each(|change| kept.remove(&change.key));
        }
    }

    fn record(&self, codec: Codec<'_>, key: &[u8], bytes: &[u8]) -> Result<Arc<R>> {
        if let Some(known) = self.kept.read().records.get(key)
            && known.bytes == bytes
        {
            return Ok(Arc::clone(&known.record));
        }
        let record = Arc::new(codec.decode(key, bytes)?);
        if self.once.as_ref().is_some_and(|once| !once.has_read(key)) {
            return Ok(record);
        }
        let content = CONTENT_IN_MEMORY * record.content_len();
        let weight = key.len() + bytes.len() + content + (self.weigh)(&record);
        let known = Known { bytes: bytes.to_vec(), record: Arc::clone(&record), weight };
        self.kept.write().keep(key, known, self.most);
        Ok(record)
    }
}

impl<R> Kept<R> {
    fn keep(&mut self, key: &[u8], known: Known<R>, most: usize) {
        self.remove(key);
        if known.weight <= most {
            while self.weight + known.weight > most {
                self.halve();
            }
            self.weight += known.weight;
            self.records.insert(key.to_vec(), known);
        }
    }

    // Removes every second record, the first one first. If more are read again and again than are kept, some
    // of them are found.
    fn halve(&mut self) {
        let (mut is_kept, weight) = (true, &mut self.weight);
        self.records.retain(|_, known| {
            is_kept = !is_kept;
            *weight -= if is_kept { 0 } else { known.weight };
            is_kept
        });
    }

    fn remove(&mut self, key: &[u8]) {
        let removed = self.records.remove(key);
        self.weight -= removed.map_or(0, |known| known.weight);
    }
}

impl<R: Record> Default for Decoded<R> {
    fn default() -> Self {
        Self::weighing(MOST, |_| 0)
    }
}

// The records may have secrets, so the debug text has their number.
impl<R> fmt::Debug for Decoded<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self.kept.read().records.len();
        f.debug_struct("Decoded").field("records", &records).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use domain::environment::Home;
    use domain::ids::SubscriberId;
    use domain::notification::NotificationSubscriber;
    use domain::subscriber::{Subscriber, SubscriberCreate};
    use domain::time::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::memory::MemoryStore;
    use crate::{Error, ReadRecords, Table, WriteRecords, layout, read, write};

    fn home() -> Home {
        let organization_id = "acme".parse().unwrap();
        Home { organization_id, environment_id: Uuid::from_u128(1).into() }
    }

    // A subscriber whose record has at least `len` bytes.
    fn subscriber(number: u128, len: usize) -> Subscriber {
        let create = SubscriberCreate::new(format!("subscriber-{number}")).unwrap();
        let data = json!({ "text": "x".repeat(len) });
        let create = create.data(data).unwrap();
        Subscriber::new(Uuid::from_u128(number).into(), &home(), create, Timestamp::from_millis(0))
    }

    fn store(records: &[Subscriber]) -> MemoryStore {
        let store = MemoryStore::default();
        insert(&store, records);
        store
    }

    fn insert(store: &MemoryStore, records: &[Subscriber]) {
        let all = |tx: &mut dyn crate::Transaction| {
            records.iter().try_for_each(|record| tx.insert(record))
        };
        write(store, all).unwrap();
    }

    fn find(
        decoded: &Decoded<Subscriber>,
        store: &MemoryStore,
        key: &Key<Subscriber>,
    ) -> Result<Option<Arc<Subscriber>>> {
        read(store, |snapshot| decoded.find(snapshot, key))
    }

    #[test]
    fn a_record_is_decoded_once_for_each_of_its_keys() {
        let ada = subscriber(7, 10);
        let (store, decoded) = (store(slice::from_ref(&ada)), Decoded::default());
        let by_id = find(&decoded, &store, &ada.key()).unwrap().unwrap();
        assert_eq!(*by_id, ada);
        let index = layout::subscriber_id(ada.environment_id, ada.id);
        assert!(Arc::ptr_eq(&find(&decoded, &store, &index).unwrap().unwrap(), &by_id));
        let all = read(&store, |snapshot| decoded.all(snapshot, &Prefix::of_all())).unwrap();
        assert!(matches!(all.as_slice(), [one] if Arc::ptr_eq(one, &by_id)));
        let nobody = layout::subscriber(ada.environment_id, &SubscriberId::new("eve").unwrap());
        assert_eq!(find(&decoded, &store, &nobody).unwrap(), None);
    }

    #[test]
    fn a_record_that_is_read_again_is_kept() {
        let ada = subscriber(7, 10);
        let (store, decoded) = (store(slice::from_ref(&ada)), Decoded::of_repeated());
        let read = || find(&decoded, &store, &ada.key()).unwrap().unwrap();
        let [first, second, third] = [read(), read(), read()];
        assert!(!Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&second, &third));
        assert!([first, second, third].iter().all(|found| **found == ada));
    }

    #[test]
    fn records_are_found_in_the_order_of_their_keys() {
        let (ada, grace) = (subscriber(7, 10), subscriber(8, 10));
        let (store, decoded) = (store(&[ada.clone(), grace.clone()]), Decoded::default());
        let nobody = layout::subscriber(ada.environment_id, &SubscriberId::new("eve").unwrap());
        let keys = [grace.key(), nobody, ada.key(), grace.key()];
        for _ in 0..2 {
            let found = read(&store, |snapshot| decoded.find_many(snapshot, &keys)).unwrap();
            let found: Vec<_> = found.iter().map(Option::as_deref).collect();
            assert_eq!(found, [Some(&grace), None, Some(&ada), Some(&grace)]);
        }
    }

    #[test]
    fn a_record_is_that_of_the_snapshot() {
        let (old, new) = (subscriber(7, 10), subscriber(7, 20));
        let (store, decoded) = (store(slice::from_ref(&old)), Decoded::default());
        read(&store, |before| {
            assert_eq!(*decoded.find(before, &old.key())?.unwrap(), old);
            insert(&store, slice::from_ref(&new));
            assert_eq!(*find(&decoded, &store, &old.key())?.unwrap(), new);
            assert_eq!(*decoded.find(before, &old.key())?.unwrap(), old);
            Ok::<(), Error>(())
        })
        .unwrap();
    }

    #[test]
    fn an_entry_that_its_record_does_not_have_is_corrupt() {
        let (ada, grace) = (subscriber(7, 10), subscriber(8, 10));
        let (store, decoded) = (store(&[ada.clone(), grace.clone()]), Decoded::default());
        let index = layout::subscriber_id(ada.environment_id, ada.id);
        for place in [grace.key().as_bytes(), b"nowhere"] {
            write(&store, |tx| tx.put(index.table(), index.as_bytes(), place)).unwrap();
            let error = find(&decoded, &store, &index).unwrap_err();
            assert!(matches!(error, Error::Corrupt { table, .. } if table == index.table().name()));
            let excerpts = read(&store, |snapshot| {
                let keys = slice::from_ref(&index);
                snapshot.find_excerpts::<NotificationSubscriber>(ada.environment_id, keys)
            });
            assert!(matches!(excerpts, Err(Error::Corrupt { .. })), "{excerpts:?}");
        }
        assert_ne!(index.table(), Table::Subscribers);
    }

    #[test]
    fn an_excerpt_has_the_fields_of_its_record() {
        let (ada, grace) = (subscriber(7, 10), subscriber(8, 10));
        let store = store(&[ada.clone(), grace.clone()]);
        let by_id = |id| layout::subscriber_id(ada.environment_id, id);
        let nobody = by_id(Uuid::from_u128(9).into());
        for keys in [[grace.key(), ada.key()], [by_id(grace.id), by_id(ada.id)]] {
            let [first, second] = &keys;
            let keys = [first.clone(), nobody.clone(), second.clone()];
            let keys = if first.table() == nobody.table() { &keys[..] } else { &keys[..1] };
            let found: Vec<Option<NotificationSubscriber>> =
                read(&store, |snapshot| snapshot.find_excerpts(ada.environment_id, keys)).unwrap();
            let all = [Some((&grace).into()), None, Some((&ada).into())];
            assert_eq!(found, all[..keys.len()]);
        }
        let elsewhere = Uuid::from_u128(2).into();
        let key = ada.key();
        let found = read(&store, |snapshot| {
            snapshot.find_excerpts::<NotificationSubscriber>(elsewhere, slice::from_ref(&key))
        });
        assert!(matches!(found, Err(Error::Corrupt { .. })));
    }

    /// Records that are read in turns weigh twice as much as is kept.
    #[test]
    fn some_of_too_many_records_are_found() {
        let records: Vec<_> = (1..=20).map(|number| subscriber(number, MOST / 30)).collect();
        let (store, decoded) = (store(&records), Decoded::default());
        let read_all = || -> Vec<_> {
            let read =
                |record: &Subscriber| find(&decoded, &store, &record.key()).unwrap().unwrap();
            records.iter().map(read).collect()
        };
        let (before, after) = (read_all(), read_all());
        let known = before.iter().zip(&after).filter(|(one, other)| Arc::ptr_eq(one, other));
        assert!(known.count() >= 3);
    }

    #[test]
    fn the_kept_records_have_a_bounded_weight() {
        let decoded = Decoded::weighing(MOST, |subscriber: &Subscriber| {
            subscriber.profile.data.as_ref().map_or(0, domain::json::Object::size)
        });
        let weights = |decoded: &Decoded<Subscriber>| {
            let kept = decoded.kept.read();
            let sum: usize = kept.records.values().map(|known| known.weight).sum();
            assert_eq!(sum, kept.weight);
            (kept.records.len(), kept.weight)
        };
        let mut most = 0;
        for number in 1..30 {
            let record = subscriber(number, MOST / 32);
            let store = store(slice::from_ref(&record));
            // Once more, and in place of other bytes.
            for _ in 0..2 {
                assert_eq!(*find(&decoded, &store, &record.key()).unwrap().unwrap(), record);
            }
            insert(&store, &[subscriber(number, MOST / 40)]);
            find(&decoded, &store, &record.key()).unwrap();
            let (len, weight) = weights(&decoded);
            assert!(len > 0 && weight > MOST / 16 && weight <= MOST, "{len} {weight}");
            most = most.max(len);
        }
        assert!(most > 9, "{most}");
        let large = subscriber(30, MOST);
        let store = store(slice::from_ref(&large));
        assert_eq!(*find(&decoded, &store, &large.key()).unwrap().unwrap(), large);
        assert!(!decoded.kept.read().records.contains_key(large.key().as_bytes()));
        assert!(weights(&decoded).1 <= MOST);
    }
}
