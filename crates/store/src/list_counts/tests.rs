use std::collections::BTreeSet;

use domain::context::{Context, ContextKey, ContextSet};
use domain::environment::Home;
use domain::ids::EnvironmentId;
use domain::json::Object;
use domain::subscriber::{Subscriber, SubscriberCreate};
use domain::subscription::Subscription;
use domain::topic::{Topic, TopicCreate};
use proptest::prelude::*;

use super::*;
use crate::check::{self, Problem};
use crate::memory::MemoryStore;
use crate::sample::{at, store};
use crate::{ChangeKind, Record, read, write};

const LISTS: usize = 5;

/// A record: the number of its list, and its own.
type Place = (usize, u8);

fn environment(number: u128) -> EnvironmentId {
    Uuid::from_u128(number).into()
}

fn list(number: usize) -> CountedList {
    match number {
        0 => CountedList::Subscribers(environment(1)),
        1 => CountedList::Subscribers(environment(2)),
        2 => CountedList::Topics(environment(1)),
        3 => CountedList::Contexts(environment(1)),
        _ => CountedList::Subscriptions(environment(1), Uuid::from_u128(7).into()),
    }
}

fn home(number: u128) -> Home {
    Home { organization_id: "acme".parse().unwrap(), environment_id: environment(number) }
}

fn subscriber(of: u128, number: u8) -> Subscriber {
    let create = SubscriberCreate::new(format!("subscriber-{number}")).unwrap();
    Subscriber::new(Uuid::from_u128(number.into()).into(), &home(of), create, at(0))
}

fn topic(id: u128) -> Topic {
    let create: TopicCreate =
        serde_json::from_value(serde_json::json!({ "key": format!("topic-{id}") })).unwrap();
    Topic::new(Uuid::from_u128(id).into(), &home(1), create, at(0))
}

fn context(number: u8) -> Context {
    let key = ContextKey::new("tenant", number.to_string()).unwrap();
    Context::new(Uuid::from_u128(number.into()).into(), &home(1), key, Object::default(), at(0))
}

fn subscription(number: u8) -> Subscription {
    let id = Uuid::from_u128(number.into()).into();
    let identifier = number.to_string().parse().unwrap();
    let of = (&topic(7), &subscriber(1, number));
    Subscription::new(id, identifier, &home(1), of, ContextSet::default(), at(0))
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Put(Place),
    Remove(Place),
    /// The row of a list cannot be read.
    Damage(usize),
    /// The row of a list is gone.
    Lose(usize),
    Begin(usize),
    GoOn(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    let place = || (0..LISTS, 0..24_u8);
    prop_oneof![
        8 => place().prop_map(Deed::Put),
        4 => place().prop_map(Deed::Remove),
        1 => (0..LISTS).prop_map(Deed::Damage),
        1 => (0..LISTS).prop_map(Deed::Lose),
        1 => (0..LISTS).prop_map(Deed::Begin),
        2 => (0..LISTS).prop_map(Deed::GoOn),
    ]
}

fn put_record<R: Record>(
    txn: &mut dyn Transaction,
    kind: ChangeKind,
    record: &R,
) -> Result<Change> {
    let (before, after) = match kind {
        ChangeKind::Inserted => (None, Some(record)),
        ChangeKind::Replaced => (Some(record), Some(record)),
        ChangeKind::Removed => (Some(record), None),
    };
    match (before, after) {
        (None, Some(new)) => txn.insert(new)?,
        (Some(old), None) => txn.remove(old)?,
        (None, None) | (Some(_), Some(_)) => {}
    }
    Ok(Change::new(kind, &record.key()).of(before, after))
}

fn put(txn: &mut dyn Transaction, kind: ChangeKind, (list, number): Place) -> Result<Change> {
    match list {
        0 => put_record(txn, kind, &subscriber(1, number)),
        1 => put_record(txn, kind, &subscriber(2, number)),
        2 => put_record(txn, kind, &topic(number.into())),
        3 => put_record(txn, kind, &context(number)),
        _ => put_record(txn, kind, &subscription(number)),
    }
}

/// Does what the body of a transaction does. Returns the changes of records.
fn does(
    txn: &mut dyn Transaction,
    all: &mut BTreeSet<Place>,
    deed: Deed,
) -> Result<Option<Change>> {
    let kind = match deed {
        Deed::Put(place) if all.insert(place) => ChangeKind::Inserted,
        Deed::Put(_) => ChangeKind::Replaced,
        Deed::Remove(place) if all.remove(&place) => ChangeKind::Removed,
        Deed::Remove(_) => return Ok(None),
        Deed::Damage(of) => return txn.put_bytes(&list(of).key(), b"damaged").map(|()| None),
        Deed::Lose(of) => return txn.delete_key(&list(of).key()).map(|()| None),
        Deed::Begin(of) => return begin(txn, list(of)).map(|_| None),
        Deed::GoOn(of) => return go_on(txn, list(of)).map(|_| None),
    };
    let (Deed::Put(place) | Deed::Remove(place)) = deed else { return Ok(None) };
    put(txn, kind, place).map(Some)
}

fn len(all: &BTreeSet<Place>, of: usize) -> u64 {
    all.iter().filter(|(list, _)| *list == of).count() as u64
}

/// The problems of rows of numbers.
fn problems(store: &MemoryStore) -> Vec<Problem> {
    let findings = read(store, check::check).unwrap().findings;
    assert!(findings.iter().all(|finding| finding.table == "list_counts"), "{findings:?}");
    findings.into_iter().map(|finding| finding.problem).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_number_is_that_of_the_records(
        transactions in prop::collection::vec(prop::collection::vec(deed(), 1..6), 1..40),
    ) {
        let (store, mut all) = (store(), BTreeSet::new());
        for deeds in transactions {
            // The rows are damaged and counted between the transactions of operations.
            let (rows, records): (Vec<_>, Vec<_>) =
                deeds.into_iter().partition(|deed| !matches!(deed, Deed::Put(_) | Deed::Remove(_)));
            write(&store, |txn| {
                let changes = records.iter().map(|deed| does(txn, &mut all, *deed));
                let changes = changes.collect::<Result<Vec<_>>>()?;
                count(txn, &changes.into_iter().flatten().collect::<Vec<_>>())
            }).unwrap();
            write(&store, |txn| {
                rows.iter().try_for_each(|deed| does(txn, &mut all, *deed).map(drop))
            }).unwrap();
            for of in 0..LISTS {
                let row = read(&store, |snapshot| look_up(snapshot, list(of))).unwrap();
                let records = len(&all, of);
                match row {
                    Some(Count { records: found, until: None }) => prop_assert_eq!(found, records),
                    Some(Count { records: found, until: Some(_) }) => prop_assert!(found <= records),
                    None => {}
                }
                let is_right = |count: Count| {
                    read(&store, |snapshot| count.is_right(snapshot, list(of))).unwrap()
                };
                prop_assert!(row.is_none_or(is_right));
                let known = read(&store, |snapshot| find(snapshot, list(of))).unwrap();
                prop_assert!(known.is_none_or(|known| known as u64 == records));
            }
        }
        for of in 0..LISTS {
            while write(&store, |txn| go_on(txn, list(of))).unwrap().is_more() {}
            let row = read(&store, |snapshot| look_up(snapshot, list(of))).unwrap();
            let records = len(&all, of);
            let expected = (records > 0).then_some(Count { records, until: None });
            prop_assert_eq!(row, expected);
        }
        prop_assert_eq!(problems(&store), []);
    }
}

/// A store with `records` subscribers in a list that has no row.
fn uncounted(records: u8) -> MemoryStore {
    let store = store();
    write(&store, |txn| {
        (0..records).try_for_each(|number| put(txn, ChangeKind::Inserted, (0, number)).map(drop))
    })
    .unwrap();
    store
}

#[test]
fn a_list_without_a_row_is_counted_by_its_changes() {
    let store = uncounted(7);
    assert_eq!(problems(&store), [Problem::Missing]);
    for (number, expected) in [(100, Some(2)), (101, Some(5)), (102, Some(101)), (103, None)] {
        write(&store, |txn| {
            let change = put(txn, ChangeKind::Inserted, (0, number))?;
            count(txn, &[change])
        })
        .unwrap();
        let row = read(&store, |snapshot| look_up(snapshot, list(0))).unwrap().unwrap();
        assert_eq!(row.until, expected.map(Uuid::from_u128), "{number}");
        let is_missing = row.until.map(|_| Problem::Missing);
        assert_eq!(problems(&store), Vec::from_iter(is_missing));
    }
    let known = read(&store, |snapshot| find(snapshot, list(0))).unwrap();
    assert_eq!(known, Some(11));
}

#[test]
fn a_row_of_another_list_is_not_believed() {
    let store = uncounted(2);
    let (own, other) = (list(0).key(), list(1).key());
    let count = Count { records: 2, until: None };
    for value in [count.bytes(other.as_bytes()), Vec::new(), vec![0; 12], vec![0; 28]] {
        write(&store, |txn| txn.put_bytes(&own, &value)).unwrap();
        assert_eq!(read(&store, |snapshot| look_up(snapshot, list(0))).unwrap(), None);
        assert_eq!(problems(&store), [Problem::Miscounted]);
    }
    write(&store, |txn| txn.put_bytes(&own, &count.bytes(own.as_bytes()))).unwrap();
    assert_eq!(problems(&store), []);
}

/// A row that goes too far or not far enough, one of a list without records, and one of no list.
#[test]
fn a_wrong_row_is_found() {
    let store = uncounted(5);
    let at = |id| Some(Uuid::from_u128(id));
    let counts = [
        (Count { records: 4, until: None }, Problem::Miscounted),
        (Count { records: 6, until: None }, Problem::Miscounted),
        (Count { records: 2, until: at(2) }, Problem::Miscounted),
        (Count { records: 3, until: at(2) }, Problem::Missing),
        (Count { records: 0, until: None }, Problem::Miscounted),
    ];
    let own = list(0).key();
    for (count, problem) in counts {
        write(&store, |txn| txn.put_bytes(&own, &count.bytes(own.as_bytes()))).unwrap();
        assert_eq!(problems(&store), [problem], "{count:?}");
    }
    write(&store, |txn| {
        while begin(txn, list(0))?.is_more() && go_on(txn, list(0))?.is_more() {}
        let (key, count) = (list(1).key(), Count { records: 1, until: None });
        txn.put_bytes(&key, &count.bytes(key.as_bytes()))?;
        txn.put(Table::ListCounts, &[key.as_bytes(), b"?"].concat(), b"")
    })
    .unwrap();
    assert_eq!(problems(&store), [Problem::Miscounted, Problem::Extra]);
}

/// What cannot be counted, because the row said less, is counted anew.
#[test]
fn a_number_does_not_fall_below_zero() {
    let store = uncounted(3);
    let own = list(0).key();
    write(&store, |txn| {
        txn.put_bytes(&own, &Count { records: 1, until: None }.bytes(own.as_bytes()))?;
        let removed = [0, 1].map(|number| put(txn, ChangeKind::Removed, (0, number)));
        let [one, other] = removed;
        count(txn, &[one?, other?])
    })
    .unwrap();
    let row = read(&store, |snapshot| look_up(snapshot, list(0))).unwrap();
    assert_eq!(row, Some(Count { records: 1, until: None }));
}

/// An entry that is put or removed without its record has the list counted anew.
#[test]
fn a_repair_of_an_entry_forgets_the_number() {
    let store = uncounted(2);
    let entry = subscriber_entry(0);
    for value in [None, Some(b"elsewhere".to_vec())] {
        let (table, key) = (Table::SubscriberIds, entry.clone());
        let change = check::RowChange { table, key, value };
        write(&store, |txn| begin(txn, list(0)).map(drop)).unwrap();
        write(&store, |txn| change.apply(txn)).unwrap();
        assert_eq!(read(&store, |snapshot| look_up(snapshot, list(0))).unwrap(), None);
    }
}

fn subscriber_entry(number: u8) -> Vec<u8> {
    let id = subscriber(1, number).id;
    crate::layout::subscriber_id(environment(1), id).into_parts().1
}
