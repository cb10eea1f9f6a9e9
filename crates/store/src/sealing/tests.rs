mod marks;

use std::ops::ControlFlow;
use std::sync::Arc;

use domain::environment::Home;
use domain::ids::SubscriberId;
use domain::subscriber::{Subscriber, SubscriberCreate};
use domain::time::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

use super::seal::{Extent, Seal};
use super::*;
use crate::damaged::{Damaged, leading_back};
use crate::memory::MemoryStore;
use crate::{
    Codec, Error, KeyRange, Order, Progress, ReadRecords, Result, Snapshot, Store, Table, Visit,
    WriteRecords, layout, read, write,
};

fn key(number: u8) -> SealingKey {
    SealingKey::from_bytes([number; 32])
}

fn ring(number: u8) -> Keyring {
    Keyring::new(u32::from(number), key(number))
}

fn subscriber(id: &str) -> Subscriber {
    let organization_id = "acme".parse().unwrap();
    let home = Home { organization_id, environment_id: Uuid::from_u128(1).into() };
    let create = SubscriberCreate::new(id).unwrap().first_name("Canary");
    let number = id.bytes().fold(0, |sum, byte| sum * 256 + u128::from(byte));
    Subscriber::new(Uuid::from_u128(number).into(), &home, create, Timestamp::from_millis(0))
}

fn insert(store: &dyn Store, ids: &[&str]) {
    write(store, |txn| -> Result<()> { ids.iter().try_for_each(|id| txn.insert(&subscriber(id))) })
        .unwrap();
}

fn find(store: &dyn Store, id: &str) -> Result<Option<Subscriber>> {
    let id = SubscriberId::new(id).unwrap();
    read(store, |view| view.find(&layout::subscriber(Uuid::from_u128(1).into(), &id)))
}

// The bytes of a subscriber.
fn raw(store: &dyn Store, id: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let key = subscriber(id).key_bytes();
    store
        .read(&mut |view| {
            view.get(Table::Subscribers, &key, &mut |value| bytes = value.into()).map(drop)
        })
        .unwrap();
    bytes
}

fn put(store: &dyn Store, id: &str, value: &[u8]) {
    let key = subscriber(id).key_bytes();
    write(store, |txn| txn.put(Table::Subscribers, &key, value)).unwrap();
}

trait KeyBytes {
    fn key_bytes(&self) -> Vec<u8>;
}

impl KeyBytes for Subscriber {
    fn key_bytes(&self) -> Vec<u8> {
        crate::Record::key(self).as_bytes().to_vec()
    }
}

fn over(below: &Arc<MemoryStore>, keyring: Option<Keyring>) -> Sealable {
    Sealable::new(Arc::clone(below) as Arc<dyn Store>, keyring)
}

fn reason<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result.unwrap_err() {
        Error::Corrupt { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

fn all(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn whole(keyring: Keyring) -> Seal {
    let seal = Seal::new(keyring);
    seal.set_extent(Extent::Whole, 0);
    seal
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A value opens in its place, with its key, as it was written; and in no other way.
    #[test]
    fn a_value_opens_in_its_place(
        plain in proptest::collection::vec(any::<u8>(), 0..300),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let seal = whole(ring(1));
        let value = seal.close(Table::Messages, b"key", &plain).unwrap();
        prop_assert_eq!(&*seal.open(Table::Messages, b"key", &value).unwrap(), &plain);
        prop_assert!(seal.open(Table::Messages, b"kez", &value).is_err());
        prop_assert!(seal.open(Table::Tasks, b"key", &value).is_err());
        prop_assert!(whole(Keyring::new(1, key(2))).open(Table::Messages, b"key", &value).is_err());
        for len in 0..value.len() {
            prop_assert!(seal.open(Table::Messages, b"key", &value[..len]).is_err());
        }
        let mut flipped = value.clone();
        flipped[at.index(value.len())] ^= 1 << bit;
        prop_assert!(seal.open(Table::Messages, b"key", &flipped).is_err());
        prop_assert!(seal.open(Table::Messages, b"key", &[value, vec![0]].concat()).is_err());
    }

    #[test]
    fn any_bytes_are_opened_or_refused(value in proptest::collection::vec(any::<u8>(), 0..80)) {
        let mut value = value;
        for (seal, is_mixed) in [(Seal::new(ring(1)), true), (whole(ring(1)), false)] {
            let is_plain = is_mixed && value.first() != Some(&5);
            prop_assert_eq!(seal.open(Table::Tasks, b"key", &value).is_ok(), is_plain);
        }
        value.splice(0..0, [5, 0, 0, 0, 1]);
        prop_assert!(whole(ring(1)).open(Table::Tasks, b"key", &value).is_err());
    }
}

#[test]
fn the_same_value_is_sealed_in_another_way_each_time() {
    let seal = whole(ring(1));
    let close = || seal.close(Table::Messages, b"key", b"the same").unwrap();
    let values: std::collections::BTreeSet<_> = (0..100).map(|_| close()).collect();
    assert_eq!(values.len(), 100);
}

#[test]
fn a_table_and_a_key_do_not_run_into_each_other() {
    let seal = whole(ring(1));
    let value = seal.close(Table::Lanes, b"\0x", b"plain").unwrap();
    assert!(Table::ALL.iter().all(|table| !table.name().contains('\0')));
    assert!(seal.open(Table::Lanes, b"x", &value).is_err());
    assert!(seal.open(Table::Lanes, b"\0x", &value).is_ok());
}

#[test]
fn a_new_store_is_sealed_as_a_whole() {
    let below = Arc::new(MemoryStore::default());
    let store = over(&below, Some(ring(1)));
    insert(&store, &["ada"]);
    assert_eq!(find(&store, "ada").unwrap(), Some(subscriber("ada")));
    let value = raw(below.as_ref(), "ada");
    assert_eq!(value[..5], [5, 0, 0, 0, 1]);
    assert!(!value.windows(6).any(|window| window == b"Canary"));
    // What somebody has put there is not taken.
    put(below.as_ref(), "ada", &Codec::COMPACT.encode(&subscriber("ada")).unwrap().1);
    assert_eq!(reason(find(&store, "ada")), "it is not sealed, and all values of the store are");
}

#[test]
fn swapped_values_do_not_open() {
    let below = Arc::new(MemoryStore::default());
    let store = over(&below, Some(ring(1)));
    insert(&store, &["ada", "bob"]);
    let (ada, bob) = (raw(below.as_ref(), "ada"), raw(below.as_ref(), "bob"));
    put(below.as_ref(), "ada", &bob);
    put(below.as_ref(), "bob", &ada);
    for id in ["ada", "bob"] {
        let expected = "its seal does not open: it was changed, or it belongs elsewhere";
        assert_eq!(reason(find(&store, id)), expected);
    }
    put(below.as_ref(), "ada", &ada);
    assert_eq!(find(&store, "ada").unwrap(), Some(subscriber("ada")));
}

#[test]
fn damaged_values_are_named() {
    let below = Arc::new(MemoryStore::default());
    let store = over(&below, Some(ring(1)));
    insert(&store, &["ada"]);
    for (value, expected) in [
        (&[5][..], "its seal is cut off"),
        (&[5, 0, 0, 0, 1, 0], "its seal is cut off"),
        (&[5, 0, 0, 0, 7, 0], "it is sealed with key 7, which the engine does not have"),
        (&[], "it is not sealed, and all values of the store are"),
    ] {
        put(below.as_ref(), "ada", value);
        assert_eq!(reason(find(&store, "ada")), expected);
    }
}

#[test]
fn a_missing_or_a_wrong_key_is_told_at_once() {
    let below = Arc::new(MemoryStore::default());
    over(&below, Some(ring(1))).check().unwrap();
    let missing = Error::MissingKey { key: KeyId::new(1) }.to_string();
    let wrong = Error::WrongKey { key: KeyId::new(1) }.to_string();
    let other = Keyring::new(1, key(2));
    let both = Keyring::new(2, key(2)).and_old(1, key(2)).unwrap();
    for (keyring, expected) in
        [(None, &missing), (Some(ring(2)), &missing), (Some(other), &wrong), (Some(both), &wrong)]
    {
        let store = over(&below, keyring);
        assert_eq!(&store.check().unwrap_err().to_string(), expected);
        assert_eq!(&reason(store.read(&mut |_| panic!("it is read"))), expected);
        assert_eq!(&reason(store.write(&mut |_| panic!("it is written"))), expected);
    }
    over(&below, Some(ring(1))).check().unwrap();
}

#[test]
fn a_plain_store_is_sealed_by_what_is_written_and_then_as_a_whole() {
    let below = Arc::new(MemoryStore::default());
    insert(below.as_ref(), &["ada", "bob"]);
    let store = over(&below, Some(ring(1)));
    assert_eq!(find(&store, "ada").unwrap(), Some(subscriber("ada")));
    insert(&store, &["cyd"]);
    assert_eq!([raw(below.as_ref(), "ada")[0], raw(below.as_ref(), "cyd")[0]], [2, 5]);
    let report = store.reseal(&mut all).unwrap().unwrap();
    assert_eq!((report.seen, report.resealed, report.unreadable), (3, 2, 0));
    assert!(report.is_finished);
    for id in ["ada", "bob", "cyd"] {
        assert_eq!(raw(below.as_ref(), id)[0], 5);
        assert_eq!(find(&store, id).unwrap(), Some(subscriber(id)));
    }
    // Again there is nothing to do, also for another process.
    let again = over(&below, Some(ring(1)));
    assert_eq!(again.reseal(&mut all).unwrap().unwrap().resealed, 0);
    put(below.as_ref(), "ada", &[2]);
    for process in [again, over(&below, Some(ring(1)))] {
        assert!(reason(find(&process, "ada")).starts_with("it is not sealed"));
    }
}

#[test]
fn a_snapshot_from_before_the_end_of_a_resealing_opens_plain_values() {
    let below = Arc::new(MemoryStore::default());
    insert(below.as_ref(), &["ada"]);
    let store = over(&below, Some(ring(1)));
    let key = layout::subscriber(Uuid::from_u128(1).into(), &SubscriberId::new("ada").unwrap());
    let found = read(&store, |view| {
        assert!(store.reseal(&mut all)?.unwrap().is_finished);
        view.find(&key)
    });
    assert_eq!(found.unwrap(), Some(subscriber("ada")));
    // A later one opens sealed values only.
    put(below.as_ref(), "ada", &Codec::COMPACT.encode(&subscriber("ada")).unwrap().1);
    assert!(reason(find(&store, "ada")).starts_with("it is not sealed"));
}

#[test]
fn a_key_is_rotated() {
    let below = Arc::new(MemoryStore::default());
    let ids: Vec<String> = (0..600).map(|number| format!("s{number:03}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    insert(&over(&below, Some(ring(1))), &ids);
    let both = || ring(2).and_old(1, key(1)).unwrap();
    // It is ended behind the first transaction, as by a kill, and starts again.
    let store = over(&below, Some(both()));
    let ended = store.reseal(&mut |_| ControlFlow::Break(())).unwrap().unwrap();
    assert_eq!((ended.resealed, ended.is_finished), (64, false));
    assert!(over(&below, Some(ring(2))).check().is_err(), "the old key is needed");
    let store = over(&below, Some(both()));
    let mut steps = Vec::new();
    let report = store
        .reseal(&mut |progress| {
            steps.push(progress.rows);
            ControlFlow::Continue(())
        })
        .unwrap()
        .unwrap();
    assert_eq!((report.seen, report.resealed, report.is_finished), (600, 536, true));
    assert_eq!(steps, [128, 192, 256, 320, 384, 448, 512, 576, 600]);
    let new = over(&below, Some(ring(2)));
    for id in ids {
        assert_eq!(find(&new, id).unwrap(), Some(subscriber(id)));
        assert_eq!(find(&store, id).unwrap(), Some(subscriber(id)));
    }
    assert!(matches!(
        over(&below, Some(ring(1))).check(),
        Err(Error::MissingKey { key }) if key == KeyId::new(2)
    ));
}

/// The table of topics cannot be gone through.
fn without_topics(
    below: &dyn Snapshot,
    (table, range, order, limit): (Table, &KeyRange, Order, Option<usize>),
    visit: &mut Visit<'_>,
) -> Result<()> {
    if table == Table::Topics {
        let source = "a page is damaged".into();
        return Err(Error::Corrupt { table: table.name(), source });
    }
    below.scan(table, range, order, limit, visit)
}

#[test]
fn a_store_that_cannot_be_looked_at_to_the_end_is_not_sealed_as_a_whole() {
    let below = Arc::new(MemoryStore::default());
    let ids: Vec<String> = (0..600).map(|number| format!("s{number:03}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    insert(below.as_ref(), &ids);
    let damaged = Sealable::new(Arc::new(Damaged(Arc::clone(&below), leading_back)), Some(ring(1)));

    assert_eq!(reason(damaged.reseal(&mut all)), "an entry is not in its place");

    // What was not looked at is plain, and still opens.
    for process in [damaged, over(&below, Some(ring(1)))] {
        assert_eq!(raw(below.as_ref(), "s599")[0], 2);
        assert_eq!(find(&process, "s599").unwrap(), Some(subscriber("s599")));
    }
}

#[test]
fn a_value_that_does_not_open_is_left_as_it_is() {
    let below = Arc::new(MemoryStore::default());
    insert(&over(&below, Some(ring(1))), &["ada", "bob"]);
    let damaged = [5, 0, 0, 0, 1, 9, 9];
    put(below.as_ref(), "ada", &damaged);
    // A plain value of a store that is sealed as a whole is forged, and is not sealed.
    insert(below.as_ref(), &["cyd"]);
    let store = over(&below, Some(ring(2).and_old(1, key(1)).unwrap()));
    let report = store.reseal(&mut all).unwrap().unwrap();
    assert_eq!((report.resealed, report.unreadable, report.is_finished), (1, 2, true));
    assert_eq!(raw(below.as_ref(), "ada"), damaged);
    assert!(find(&store, "cyd").is_err());
}

/// A value that the key has not sealed is no mark: it does not say that all records are sealed.
#[test]
fn a_mark_is_no_plain_value_and_no_value_of_another_key() {
    let mark = |id: u32| layout::seal_mark(id).as_bytes().to_vec();
    for value in [&[1][..], &[], &[5, 0, 0, 0, 1]] {
        let below = Arc::new(MemoryStore::default());
        write(below.as_ref(), |txn| txn.put(Table::Seals, &mark(1), value)).unwrap();
        let refused = reason(over(&below, Some(ring(1).sealed_only())).check());
        assert_eq!(refused, Error::PlainRecords.to_string());
        over(&below, Some(ring(1))).check().unwrap();
        assert_eq!(reason(over(&below, Some(ring(1).sealed_only())).check()), refused);
    }
}

fn mark(store: &dyn Store, value: Option<&[u8]>) {
    let place = layout::seal_mark(1);
    write(store, |txn| match value {
        Some(value) => txn.put(Table::Seals, place.as_bytes(), value),
        None => txn.delete(Table::Seals, place.as_bytes()),
    })
    .unwrap();
}

/// The records tell that the key is right, or that it is wrong.
#[test]
fn a_lost_mark_is_written_anew() {
    for value in [None, Some(&[1][..]), Some(&[5, 0, 0, 0, 1, 9])] {
        let below = Arc::new(MemoryStore::default());
        insert(&over(&below, Some(ring(1))), &["ada", "bob"]);
        put(below.as_ref(), "ada", &[5, 0, 0, 0, 1, 9]);
        mark(below.as_ref(), value);
        let wrong = reason(over(&below, Some(Keyring::new(1, key(2)))).check());
        assert_eq!(wrong, Error::WrongKey { key: KeyId::new(1) }.to_string());
        let refused = reason(over(&below, Some(ring(1).sealed_only())).check());
        assert_eq!(refused, Error::PlainRecords.to_string());
        // With another key, too, which leaves no mark of the first one.
        let rotated = over(&below, Some(ring(2).and_old(1, key(1)).unwrap()));
        assert_eq!(find(&rotated, "bob").unwrap(), Some(subscriber("bob")));
        insert(below.as_ref(), &["cyd"]);
        let store = over(&below, Some(ring(1).and_old(2, key(2)).unwrap()));
        for id in ["bob", "cyd"] {
            assert_eq!(find(&store, id).unwrap(), Some(subscriber(id)));
        }
        assert!(over(&below, None).check().is_err(), "the mark is back");
        assert!(store.reseal(&mut all).unwrap().unwrap().is_finished);
        over(&below, Some(ring(1).sealed_only())).check().unwrap();
    }
}

#[test]
fn keys_for_sealed_records_open_no_other_store() {
    let below = Arc::new(MemoryStore::default());
    insert(below.as_ref(), &["ada"]);
    let refused = || over(&below, Some(ring(1).sealed_only())).check();
    assert_eq!(reason(refused()), Error::PlainRecords.to_string());
    let store = over(&below, Some(ring(1)));
    store.check().unwrap();
    assert_eq!(reason(refused()), Error::PlainRecords.to_string());
    assert!(store.reseal(&mut all).unwrap().unwrap().is_finished);
    refused().unwrap();
    let new = Arc::new(MemoryStore::default());
    over(&new, Some(ring(1).sealed_only())).check().unwrap();
    // A new key is one for sealed records, too.
    over(&new, Some(ring(2).and_old(1, key(1)).unwrap().sealed_only())).check().unwrap();
}

#[test]
fn keys_show_nothing_of_themselves() {
    let text = "Q2FuYXJ5Q2FuYXJ5Q2FuYXJ5Q2FuYXJ5Q2FuYXJ5Q2E=";
    let key = SealingKey::from_base64(format!(" {text}\n")).unwrap();
    let ring = Keyring::new(3, key.clone()).and_old(4, key.clone()).unwrap();
    let store = Sealable::new(Arc::new(MemoryStore::default()), Some(ring));
    assert_eq!(format!("{key:?}"), "SealingKey(***)");
    let shown = format!("{store:?}");
    assert!(shown.contains("[3, 4]"), "{shown}");
    for secret in ["Canary", "67, 97, 110", "Q2Fu", "0x43"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    for bad in ["", "Canary", &text[1..], &format!("{text}{text}"), &text.replace('=', "")] {
        let error = SealingKey::from_base64(bad).unwrap_err().to_string();
        assert_eq!(error, "`sealingKey` must be 32 bytes in base64");
    }
    let twice = Keyring::new(3, key.clone()).and_old(3, key).unwrap_err();
    assert_eq!(twice.to_string(), "`keyId` must not be given twice");
}

/// Two threads may compare the marks of one era, one before they say that all values are sealed and one behind
/// that, and end the other way around.
#[test]
fn the_extent_falls_back_in_another_era_only() {
    let seal = Seal::new(ring(1));
    let is_whole = || seal.open(Table::Topics, b"key", b"plain").is_err();
    seal.set_extent(Extent::Whole, 3);
    assert!(is_whole());
    seal.set_extent(Extent::Mixed, 3);
    assert!(is_whole(), "in the same era");
    seal.set_extent(Extent::Mixed, 4);
    assert!(!is_whole(), "in another era");
}
