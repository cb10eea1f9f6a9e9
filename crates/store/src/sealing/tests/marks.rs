//! Damaged marks of sealing keys.

use super::*;
use crate::range::EVERYTHING;

fn mark_of(id: u32) -> Vec<u8> {
    layout::seal_mark(id).as_bytes().to_vec()
}

fn put_mark(store: &dyn Store, place: &[u8], value: &[u8]) {
    write(store, |txn| txn.put(Table::Seals, place, value)).unwrap();
}

fn remove_mark(store: &dyn Store, place: &[u8]) {
    write(store, |txn| txn.delete(Table::Seals, place)).unwrap();
}

fn value_of(store: &dyn Store, place: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    let get = &mut |value: &[u8]| found = value.into();
    store.read(&mut |view| view.get(Table::Seals, place, get).map(drop)).unwrap();
    found
}

// Changes one bit of the tag of a mark.
fn flip(store: &dyn Store, place: &[u8]) {
    let mut value = value_of(store, place);
    *value.last_mut().unwrap() ^= 1;
    put_mark(store, place, &value);
}

fn places(store: &dyn Store) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    read(store, |view| {
        view.scan(Table::Seals, &EVERYTHING, Order::Ascending, None, &mut |key, _| {
            found.push(key.to_vec());
            ControlFlow::Continue(())
        })
    })
    .unwrap();
    found
}

fn numbered(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|number| format!("s{number:03}")).collect()
}

fn insert_all(store: &dyn Store, ids: &[String]) {
    insert(store, &ids.iter().map(String::as_str).collect::<Vec<_>>());
}

fn both() -> Keyring {
    ring(2).and_old(1, key(1)).unwrap()
}

fn wrong(id: u32) -> String {
    Error::WrongKey { key: KeyId::new(id) }.to_string()
}

fn missing(id: u32) -> String {
    Error::MissingKey { key: KeyId::new(id) }.to_string()
}

/// A rotation has begun, and the newer key has sealed records behind many of the older one.
fn rotating() -> (Arc<MemoryStore>, Vec<String>) {
    let below = Arc::new(MemoryStore::default());
    let ids = numbered(0..100);
    insert_all(&over(&below, Some(ring(1))), &ids[..97]);
    insert_all(&over(&below, Some(both())), &ids[97..]);
    (below, ids)
}

#[test]
fn a_damaged_mark_is_judged_by_records_behind_many_of_another_key() {
    let (below, ids) = rotating();
    flip(below.as_ref(), &mark_of(2));
    let other = Keyring::new(2, key(3)).and_old(1, key(1)).unwrap();
    assert_eq!(reason(over(&below, Some(other)).check()), wrong(2));

    let store = over(&below, Some(both()));
    for id in &ids {
        assert_eq!(find(&store, id).unwrap(), Some(subscriber(id)));
    }

    // The mark is there again, and says that records may be plain.
    assert_eq!(
        reason(over(&below, Some(both().sealed_only())).check()),
        Error::PlainRecords.to_string()
    );
    assert_eq!(reason(over(&below, Some(ring(1))).check()), missing(2));
    assert!(store.reseal(&mut all).unwrap().unwrap().is_finished);
    over(&below, Some(ring(2).sealed_only())).check().unwrap();
}

/// The mark of an older key is written anew, so that the next start does not look at the records again.
#[test]
fn a_damaged_mark_of_an_older_key_is_written_anew() {
    let (below, ids) = rotating();
    flip(below.as_ref(), &mark_of(1));
    let damaged = value_of(below.as_ref(), &mark_of(1));

    over(&below, Some(both())).check().unwrap();

    assert_ne!(value_of(below.as_ref(), &mark_of(1)), damaged);
    for keyring in [both(), ring(1).and_old(2, key(2)).unwrap()] {
        let store = over(&below, Some(keyring));
        assert_eq!(find(&store, &ids[0]).unwrap(), Some(subscriber(&ids[0])));
    }
    let other = ring(2).and_old(1, key(3)).unwrap();
    assert_eq!(reason(over(&below, Some(other)).check()), wrong(1));
}

/// One record that does not open says nothing against a key that opens another one.
#[test]
fn a_damaged_record_does_not_hide_that_a_key_is_right() {
    let (below, ids) = rotating();
    for id in &ids[97..99] {
        let mut value = raw(below.as_ref(), id);
        *value.last_mut().unwrap() ^= 1;
        put(below.as_ref(), id, &value);
    }
    flip(below.as_ref(), &mark_of(2));
    let store = over(&below, Some(both()));
    assert_eq!(find(&store, &ids[99]).unwrap(), Some(subscriber(&ids[99])));
}

/// The mark is lost as well, and a repair needs an open store.
#[test]
fn a_damaged_table_keeps_no_store_closed() {
    let below = Arc::new(MemoryStore::default());
    let store = Arc::new(Damaged(Arc::clone(&below), without_topics));
    let damaged = |keys| Sealable::new(Arc::clone(&store) as Arc<dyn Store>, Some(keys));
    insert(&over(&below, Some(ring(1))), &["ada"]);
    remove_mark(below.as_ref(), &mark_of(1));
    let other = Keyring::new(1, key(2));
    assert_eq!(reason(damaged(other).check()), wrong(1));
    let opened = damaged(ring(1));
    opened.check().unwrap();
    assert_eq!(find(&opened, "ada").unwrap(), Some(subscriber("ada")));
}

/// A mark of the right form that does not open, of a key that has sealed nothing, is damaged or of another key.
#[test]
fn a_host_that_is_sure_of_its_key_opens_a_store_with_a_damaged_mark() {
    let below = Arc::new(MemoryStore::default());
    insert(&over(&below, Some(ring(1))), &["ada"]);
    over(&below, Some(both())).check().unwrap();
    flip(below.as_ref(), &mark_of(2));
    assert_eq!(reason(over(&below, Some(both())).check()), wrong(2));
    assert!(wrong(2).contains("Keyring::trusted"));
    assert_eq!(reason(over(&below, Some(both().trusted(1))).check()), wrong(2));
    // The trust is in a key of this keyring only.
    assert_eq!(reason(over(&below, Some(ring(1).trusted(2))).check()), missing(2));

    let store = over(&below, Some(both().trusted(2)));
    assert_eq!(find(&store, "ada").unwrap(), Some(subscriber("ada")));

    // Later starts need no trust, and another key of that id is refused.
    over(&below, Some(both())).check().unwrap();
    let other = Keyring::new(2, key(3)).and_old(1, key(1)).unwrap();
    assert_eq!(reason(over(&below, Some(other)).check()), wrong(2));
}

#[test]
fn a_host_that_is_sure_of_its_key_opens_a_store_whose_only_record_of_it_is_damaged() {
    let below = Arc::new(MemoryStore::default());
    insert(&over(&below, Some(ring(1))), &["ada", "bob"]);
    insert(&over(&below, Some(both())), &["cyd"]);
    let mut value = raw(below.as_ref(), "cyd");
    *value.last_mut().unwrap() ^= 1;
    put(below.as_ref(), "cyd", &value);
    flip(below.as_ref(), &mark_of(2));
    assert_eq!(reason(over(&below, Some(both())).check()), wrong(2));
    let store = over(&below, Some(both().trusted(2)));
    assert_eq!(find(&store, "bob").unwrap(), Some(subscriber("bob")));
}

/// A mark that no engine has written locks out nobody if its key has sealed nothing.
#[test]
fn a_mark_of_a_wrong_form_is_no_mark() {
    for value in [&[1][..], &[], &[5, 0, 0, 0, 2], &[5, 0, 0, 0, 2, 9, 9]] {
        let below = Arc::new(MemoryStore::default());
        insert(&over(&below, Some(ring(1))), &["ada"]);
        put_mark(below.as_ref(), &mark_of(2), value);
        let refused = reason(over(&below, Some(both().sealed_only())).check());
        assert_eq!(refused, Error::PlainRecords.to_string());
        for keyring in [ring(1), both()] {
            let store = over(&below, Some(keyring));
            assert_eq!(find(&store, "ada").unwrap(), Some(subscriber("ada")));
        }
    }
}

/// A mark of which the id was changed names a key that has sealed nothing.
#[test]
fn a_mark_in_the_place_of_another_key_is_no_mark() {
    let below = Arc::new(MemoryStore::default());
    insert(&over(&below, Some(ring(1))), &["ada"]);
    let value = value_of(below.as_ref(), &mark_of(1));
    remove_mark(below.as_ref(), &mark_of(1));
    put_mark(below.as_ref(), &mark_of(0x0100_0001), &value);
    assert_eq!(reason(over(&below, Some(Keyring::new(1, key(2)))).check()), wrong(1));
    assert_eq!(reason(over(&below, Some(ring(2))).check()), missing(1));
    assert!(over(&below, None).check().is_err());

    let store = over(&below, Some(ring(1)));
    assert_eq!(find(&store, "ada").unwrap(), Some(subscriber("ada")));
    assert_eq!(places(below.as_ref()), [mark_of(1)]);
}

/// The id of a key has four bytes. A mark under fewer or more of them is damaged, and is removed.
#[test]
fn a_mark_without_the_id_of_a_key_is_removed() {
    for place in [&b"?"[..], b"", &[0, 0, 1], &[0, 0, 0, 1, 0], &[0, 0, 0, 2, 0]] {
        for keyring in [ring(1), both()] {
            let below = Arc::new(MemoryStore::default());
            insert(&over(&below, Some(ring(1))), &["ada"]);
            let value = value_of(below.as_ref(), &mark_of(1));
            put_mark(below.as_ref(), place, &value);
            let id = keyring.current().number();
            let refused = reason(over(&below, Some(ring(1).sealed_only())).check());
            assert_eq!(refused, Error::PlainRecords.to_string());
            assert_eq!(reason(over(&below, None).check()), missing(1));

            let store = over(&below, Some(keyring));
            assert_eq!(find(&store, "ada").unwrap(), Some(subscriber("ada")));

            let expected: Vec<_> = (1..=id).map(mark_of).collect();
            assert_eq!(places(below.as_ref()), expected);
            assert!(store.reseal(&mut all).unwrap().unwrap().is_finished);
            assert_eq!(places(below.as_ref()), [mark_of(id)]);
        }
    }
}

/// Without any mark that has the id of a key, the first records tell whether the keys are right.
#[test]
fn records_are_not_opened_without_their_key_beside_a_mark_without_an_id() {
    let below = Arc::new(MemoryStore::default());
    insert(&over(&below, Some(ring(1))), &["ada"]);
    remove_mark(below.as_ref(), &mark_of(1));
    put_mark(below.as_ref(), b"?", b"");
    assert_eq!(reason(over(&below, None).check()), missing(1));
    assert_eq!(reason(over(&below, Some(Keyring::new(1, key(2)))).check()), wrong(1));
    let store = over(&below, Some(ring(1)));
    assert_eq!(find(&store, "ada").unwrap(), Some(subscriber("ada")));
    assert_eq!(places(below.as_ref()), [mark_of(1)]);
}

/// A store without sealed records opens without keys, whatever its table of marks has.
#[test]
fn a_mark_without_an_id_locks_no_plain_store() {
    let below = Arc::new(MemoryStore::default());
    insert(below.as_ref(), &["ada"]);
    put_mark(below.as_ref(), b"?", b"");
    assert_eq!(find(&over(&below, None), "ada").unwrap(), Some(subscriber("ada")));
}
