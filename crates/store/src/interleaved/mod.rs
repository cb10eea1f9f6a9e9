//! The group commit under a scheduler that decides which thread goes on, and so finds the orders that
//! threads of a system take once in a million runs. It is the same source with other locks.
//!
//! `TIDINGS_TEST_SCALE` multiplies the number of orders.

#[expect(dead_code, reason = "the store on a file needs all of it")]
#[path = "../group_commit/mod.rs"]
mod group_commit;
mod sync;

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use self::group_commit::{Base, GroupCommit};
use self::sync::Mutex;
use crate::overlay::Changes;
use crate::{Decision, Error, KeyRange, Order, Result, Snapshot, Store, Table, Visit, VisitValue};

const TABLE: Table = Table::ALL[0];
const COUNTER: &[u8] = b"counter";
const THREADS: u8 = 3;
const WRITES: u8 = 2;

/// What is durable.
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A base whose commits take a while, and of which one may fail.
struct Disk {
    rows: Arc<Mutex<Rows>>,
    left: Mutex<Option<usize>>,
}

struct Shown(Rows);

impl Base for Disk {
    type Snapshot<'s> = Shown;
    type Failure = &'static str;

    fn snapshot(&self) -> Result<Shown> {
        Ok(Shown(self.rows.lock().clone()))
    }

    fn commit(&self, changes: &Changes) -> Result<(), &'static str> {
        shuttle::thread::yield_now();
        let mut left = self.left.lock();
        let fails = *left == Some(0);
        *left = left.and_then(|left| left.checked_sub(1));
        drop(left);
        if fails {
            return Err("on purpose");
        }
        let mut rows = self.rows.lock();
        for (_, key, value) in changes.iter() {
            rows.insert(key.to_vec(), value.unwrap().to_vec());
        }
        drop(rows);
        shuttle::thread::yield_now();
        Ok(())
    }

    fn error(&self, failure: &'static str) -> Error {
        Error::Backend { backend: "disk", action: "commit", source: failure.into() }
    }
}

impl Snapshot for Shown {
    fn get(&self, _: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let found = self.0.get(key);
        found.inspect(|value| visit(value));
        Ok(found.is_some())
    }

    fn get_many(&self, _: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        for key in keys {
            visit(self.0.get(*key).map(Vec::as_slice));
        }
        Ok(())
    }

    fn scan(
        &self,
        _: Table,
        range: &KeyRange,
        _: Order,
        _: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let bounds = (range.0.as_ref(), range.1.as_ref());
        for (key, value) in self.0.range::<Vec<u8>, (Bound<&Vec<u8>>, Bound<&Vec<u8>>)>(bounds) {
            if visit(key, value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

#[test]
fn every_write_is_durable_when_it_returns_and_sees_those_before_it() {
    in_any_order(|| assert_eq!(run(None), usize::from(THREADS * WRITES)));
}

#[test]
fn a_commit_that_fails_takes_those_with_it_that_have_seen_its_changes() {
    for commit in 0..4 {
        in_any_order(move || _ = run(Some(commit)));
    }
}

/// One caller writes a name, and another is refused if the name is there.
#[test]
fn what_a_refusal_rests_on_is_durable() {
    for failing in [None, Some(0), Some(1)] {
        in_any_order(move || {
            let rows = Arc::new(Mutex::default());
            let disk = Disk { rows: Arc::clone(&rows), left: Mutex::default() };
            *disk.left.lock() = failing;
            let store = Arc::new(GroupCommit::new(disk));
            let callers = [1, 2].map(|name| {
                let (store, rows) = (Arc::clone(&store), Arc::clone(&rows));
                shuttle::thread::spawn(move || take(&*store, &rows, name))
            });
            for caller in callers {
                caller.join().unwrap();
            }
        });
    }
}

/// Writes the name, unless it is taken.
fn take(store: &impl Store, rows: &Mutex<Rows>, name: u8) {
    let mut found = None;
    let taken = store.write(&mut |transaction| {
        transaction.put(TABLE, &[name], &[name])?;
        if transaction.get(TABLE, COUNTER, &mut |value| found = Some(value.to_vec()))? {
            return Err(Error::Backend { backend: "body", action: "take", source: "taken".into() });
        }
        transaction.put(TABLE, COUNTER, &[name])?;
        Ok(Decision::Commit)
    });
    let rows = rows.lock();
    if let Err(Error::Backend { backend: "body", .. }) = taken {
        assert_eq!(rows.get(COUNTER), found.as_ref(), "the refusal rests on what is not durable");
    }
    assert_eq!(rows.contains_key(&[name][..]), taken.is_ok());
}

/// Lets threads count, and commit `failing` fail. Returns the number of writes that have succeeded.
fn run(failing: Option<usize>) -> usize {
    let rows = Arc::new(Mutex::default());
    let disk = Disk { rows: Arc::clone(&rows), left: Mutex::default() };
    *disk.left.lock() = failing;
    let store = Arc::new(GroupCommit::new(disk));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (store, rows) = (Arc::clone(&store), Arc::clone(&rows));
            shuttle::thread::spawn(move || {
                (0..WRITES).filter(|write| count(&*store, &rows, [thread, *write])).count()
            })
        })
        .collect();
    let done: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let rows = rows.lock();
    assert_eq!(rows.get(COUNTER).map_or(0, |value| usize::from(value[0])), done);
    assert_eq!(rows.len(), done + usize::from(done > 0), "{:?}", *rows);
    done
}

// Adds one to the counter, and a row. Returns whether that has succeeded.
fn count(store: &impl Store, rows: &Mutex<Rows>, name: [u8; 2]) -> bool {
    let mut number = 0;
    let written = store.write(&mut |transaction| {
        transaction.get(TABLE, COUNTER, &mut |value| number = value[0])?;
        number += 1;
        transaction.put(TABLE, COUNTER, &[number])?;
        transaction.put(TABLE, &name, &[number])?;
        Ok(Decision::Commit)
    });
    let rows = rows.lock();
    match written {
        Ok(()) => assert_eq!(rows.get(&name[..]), Some(&vec![number]), "it is not durable"),
        Err(_) => assert_eq!(rows.get(&name[..]), None, "it is there, and has failed"),
    }
    written.is_ok()
}

fn in_any_order(run: impl Fn() + Clone + Send + Sync + 'static) {
    let scale = std::env::var("TIDINGS_TEST_SCALE").map_or(1, |scale| scale.parse().unwrap());
    shuttle::check_random(run.clone(), 500 * scale);
    shuttle::check_pct(run, 500 * scale, 3);
}
