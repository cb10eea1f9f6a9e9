//! The stores cannot be told apart, nor from a model that is obviously right.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use store::memory::MemoryStore;
use store::{
    Decision, Error, KeyRange, Order, ReadBody, Snapshot, Store, Table, Transaction, Visit,
    VisitValue, WriteBody,
};

use testkit::disk::Disk;
use testkit::tables::dump;

#[derive(Clone, Debug)]
pub enum Op {
    Put(Table, Vec<u8>, u8),
    Delete(Table, Vec<u8>),
    Get(Table, Vec<u8>),
    GetMany(Table, Vec<Vec<u8>>),
    /// With the number of entries after which the visitor breaks, and the limit.
    Scan(Table, KeyRange, Order, usize, Option<usize>),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Commit,
    Abort,
    Fail,
    Panic,
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<Op>, End),
    Reopen,
}

/// What a get or a scan has shown.
pub type Seen = Vec<(Vec<u8>, Vec<u8>)>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64 * u32::try_from(crate::scale()).unwrap()))]

    #[test]
    fn after_any_history(history in vec(step(), 0..12)) {
        let (model, memory, disk) = (Model::default(), MemoryStore::default(), Disk::new());
        let mut redb = disk.open();
        for step in history {
            match step {
                Step::Write(ops, end) => {
                    let expected = write(&model, &ops, end);
                    prop_assert_eq!(&write(&memory, &ops, end), &expected);
                    prop_assert_eq!(&write(&redb, &ops, end), &expected);
                }
                Step::Reopen => {
                    drop(redb);
                    redb = disk.open();
                }
            }
            let expected = dump(&model);
            prop_assert_eq!(&dump(&memory), &expected);
            prop_assert_eq!(&dump(&redb), &expected);
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![
        5 => Just(End::Commit),
        1 => Just(End::Abort),
        1 => Just(End::Fail),
        1 => Just(End::Panic),
    ];
    prop_oneof![
        6 => (vec(op(), 0..12), end).prop_map(|(ops, end)| Step::Write(ops, end)),
        1 => Just(Step::Reopen),
    ]
}

/// Few tables and few keys, so that they meet.
pub fn op() -> impl Strategy<Value = Op> {
    let table = || prop::sample::select(&Table::ALL[..3]);
    let order = prop_oneof![Just(Order::Ascending), Just(Order::Descending)];
    prop_oneof![
        4 => (table(), key(), any::<u8>()).prop_map(|(t, k, v)| Op::Put(t, k, v)),
        2 => (table(), key()).prop_map(|(t, k)| Op::Delete(t, k)),
        1 => (table(), key()).prop_map(|(t, k)| Op::Get(t, k)),
        1 => (table(), vec(key(), 0..5)).prop_map(|(t, keys)| Op::GetMany(t, keys)),
        2 => (table(), (bound(), bound()), order, 0_usize..9, of(0_usize..9))
            .prop_map(|(t, range, order, shown, limit)| Op::Scan(t, range, order, shown, limit)),
    ]
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0), Just(1), Just(0xff)], 0..3)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

/// Runs `ops` in a transaction, and returns what they have seen.
fn write(store: &dyn Store, ops: &[Op], end: End) -> Vec<Seen> {
    let mut seen = Vec::new();
    let result = catch_unwind(AssertUnwindSafe(|| {
        store.write(&mut |transaction| {
            seen = ops.iter().map(|op| run(transaction, op)).collect();
            match end {
                End::Commit => Ok(Decision::Commit),
                End::Abort => Ok(Decision::Abort),
                End::Fail => Err(Error::Corrupt { table: "none", source: "on purpose".into() }),
                End::Panic => resume_unwind(Box::new("on purpose")),
            }
        })
    }));
    match end {
        End::Commit | End::Abort => result.unwrap().unwrap(),
        End::Fail => assert!(matches!(result.unwrap().unwrap_err(), Error::Corrupt { .. })),
        End::Panic => assert!(result.is_err()),
    }
    seen
}

pub fn run(transaction: &mut dyn Transaction, op: &Op) -> Seen {
    let mut seen = Vec::new();
    match op {
        Op::Put(table, key, value) => transaction.put(*table, key, &[*value]).unwrap(),
        Op::Delete(table, key) => transaction.delete(*table, key).unwrap(),
        Op::Get(table, key) => {
            let mut visit = |value: &[u8]| seen.push((key.clone(), value.to_vec()));
            let found = transaction.get(*table, key, &mut visit).unwrap();
            assert_eq!(found, seen.len() == 1);
        }
        Op::GetMany(table, keys) => {
            let bytes: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let mut values = Vec::new();
            let mut visit = |value: Option<&[u8]>| values.push(value.map(<[u8]>::to_vec));
            transaction.get_many(*table, &bytes, &mut visit).unwrap();
            assert_eq!(values.len(), keys.len());
            let found = keys.iter().zip(values);
            seen.extend(found.filter_map(|(key, value)| Some((key.clone(), value?))));
        }
        Op::Scan(table, range, order, shown, limit) => {
            let mut visit = |key: &[u8], value: &[u8]| {
                seen.push((key.to_vec(), value.to_vec()));
                if seen.len() > *shown { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            transaction.scan(*table, range, *order, *limit, &mut visit).unwrap();
        }
    }
    seen
}

/// A store that has nothing to it.
#[derive(Debug, Default)]
pub struct Model(Mutex<Rows>);

type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

struct View(Rows);

impl Store for Model {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<(), Error> {
        let rows = self.0.lock().unwrap().clone();
        body(&View(rows))
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<(), Error> {
        let mut view = View(self.0.lock().unwrap().clone());
        if body(&mut view)? == Decision::Commit {
            *self.0.lock().unwrap() = view.0;
        }
        Ok(())
    }
}

impl Snapshot for View {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let value = self.0.get(&(table, key.to_vec()));
        Ok(value.map(|value| visit(value)).is_some())
    }

    fn get_many(
        &self,
        table: Table,
        keys: &[&[u8]],
        visit: &mut VisitValue<'_>,
    ) -> Result<(), Error> {
        for key in keys {
            visit(self.0.get(&(table, key.to_vec())).map(Vec::as_slice));
        }
        Ok(())
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let within = |(t, key): &(Table, Vec<u8>)| *t == table && range.contains(key);
        let mut rows: Vec<_> = self.0.iter().filter(|(key, _)| within(key)).collect();
        if order == Order::Descending {
            rows.reverse();
        }
        let mut rows = rows.into_iter().take(limit.unwrap_or(usize::MAX));
        while rows.next().is_some_and(|((_, key), value)| visit(key, value).is_continue()) {}
        Ok(())
    }
}

impl Transaction for View {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.0.insert((table, key.to_vec()), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), Error> {
        self.0.remove(&(table, key.to_vec()));
        Ok(())
    }
}
