//! Effects of a transaction, and their visibility.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{EVERYTHING, ROWS, commit, dump, get, read, scan, set, text, write};
use crate::{Decision, Error, Order, Snapshot, Store, Transaction};

/// A snapshot shows what was committed before it was taken.
pub fn shows_what_was_committed(store: &dyn Store) {
    commit(store, &[("ada", Some("1")), ("bob", Some("2"))]);
    commit(store, &[("ada", None)]);
    assert_eq!(dump(store), ["bob=2"]);
}

/// A put takes the place of the one before it, in its own transaction or in an earlier one.
pub fn the_last_put_wins(store: &dyn Store) {
    commit(store, &[("ada", Some("1")), ("ada", Some("2"))]);
    assert_eq!(dump(store), ["ada=2"]);
    commit(store, &[("ada", Some("3")), ("ada", None), ("ada", Some("4"))]);
    assert_eq!(dump(store), ["ada=4"]);
}

/// Keys and values are any bytes, also none, also many.
pub fn keeps_any_bytes(store: &dyn Store) {
    let long = vec![0xa5; 1 << 20];
    let keys: [&[u8]; 7] = [b"", b"\0", b"\0\0", b"\0\xff", b"\xff", b"\xff\xff", &[7; 4096]];
    let values: [&[u8]; 4] = [b"", b"\0", b"\xff\xff", &long];
    for value in values {
        write(store, |transaction| {
            for key in keys {
                transaction.put(ROWS, key, value).unwrap();
            }
            Decision::Commit
        });
        read(store, |snapshot| {
            for key in keys {
                assert!(get(snapshot, key).as_deref() == Some(value), "under {key:02x?}");
            }
        });
    }
}

/// Deleting an absent key changes nothing.
pub fn deletes_what_is_not_there(store: &dyn Store) {
    commit(store, &[("ada", None)]);
    commit(store, &[("bob", Some("2"))]);
    commit(store, &[("ada", None), ("bo", None), ("bobby", None)]);
    assert_eq!(dump(store), ["bob=2"]);
}

/// A transaction whose body decides against it leaves nothing.
pub fn an_abort_leaves_nothing(store: &dyn Store) {
    commit(store, &[("ada", Some("1")), ("bob", Some("2"))]);
    write(store, |transaction| {
        change(transaction);
        Decision::Abort
    });
    check_unchanged(store);
}

/// A transaction whose body fails leaves nothing, and its caller gets the error.
pub fn an_error_leaves_nothing(store: &dyn Store) {
    let refusal = || Error::Backend { backend: "test", action: "go on", source: "told so".into() };
    commit(store, &[("ada", Some("1")), ("bob", Some("2"))]);
    let result = store.write(&mut |transaction| {
        change(transaction);
        Err(refusal())
    });
    assert_eq!(result.unwrap_err().to_string(), refusal().to_string());
    check_unchanged(store);
}

/// A transaction whose body panics leaves nothing, and the panic goes on.
pub fn a_panic_leaves_nothing(store: &dyn Store) {
    commit(store, &[("ada", Some("1")), ("bob", Some("2"))]);
    let panic = panic_of(|| {
        write(store, |transaction| {
            change(transaction);
            resume_unwind(Box::new("on purpose"))
        });
    });
    assert_eq!(panic, "on purpose");
    check_unchanged(store);
}

/// A panic of a reader or of its visitor goes on, and the store works afterwards.
pub fn a_panic_of_a_reader_goes_on(store: &dyn Store) {
    commit(store, &[("ada", Some("1")), ("bob", Some("2"))]);
    let bodies: [fn(&dyn Snapshot); 4] = [
        |_| resume_unwind(Box::new("on purpose")),
        |snapshot| {
            let mut visit = |_: &[u8]| resume_unwind(Box::new("on purpose"));
            snapshot.get(ROWS, b"ada", &mut visit).unwrap();
        },
        |snapshot| {
            let mut visit = |_: Option<&[u8]>| resume_unwind(Box::new("on purpose"));
            snapshot.get_many(ROWS, &[b"ada"], &mut visit).unwrap();
        },
        |snapshot| {
            let mut visit = |_: &[u8], _: &[u8]| resume_unwind(Box::new("on purpose"));
            snapshot.scan(ROWS, &EVERYTHING, Order::Ascending, None, &mut visit).unwrap();
        },
    ];
    for body in bodies {
        assert_eq!(panic_of(|| read(store, body)), "on purpose");
        check_unchanged(store);
    }
}

/// A transaction sees its own changes.
pub fn a_transaction_sees_itself(store: &dyn Store) {
    commit(store, &[("ada", Some("1")), ("bob", Some("2"))]);
    write(store, |transaction| {
        set(transaction, "ada", Some("3"));
        set(transaction, "bob", None);
        set(transaction, "cid", Some("4"));
        let seen = ["ada", "bob", "cid"].map(|key| get(transaction, key.as_bytes()));
        assert_eq!(seen, [Some(b"3".to_vec()), None, Some(b"4".to_vec())]);
        Decision::Commit
    });
}

/// A transaction sees those that were committed before it.
pub fn a_transaction_sees_those_before_it(store: &dyn Store) {
    commit(store, &[("ada", Some("1")), ("bob", Some("2"))]);
    commit(store, &[("bob", None)]);
    write(store, |transaction| {
        assert_eq!(scan(transaction, &EVERYTHING, Order::Ascending), ["ada=1"]);
        assert_eq!(get(transaction, b"bob"), None);
        Decision::Commit
    });
}

/// No other caller sees the changes of a transaction before its commit.
pub fn nobody_else_sees_a_transaction(store: &dyn Store) {
    commit(store, &[("ada", Some("1")), ("bob", Some("2"))]);
    write(store, |transaction| {
        change(transaction);
        assert_eq!(elsewhere(|| dump(store)), ["ada=1", "bob=2"]);
        Decision::Commit
    });
    assert_eq!(elsewhere(|| dump(store)), ["ada=changed", "cid=new"]);
}

/// A snapshot shows the same entries after later commits.
pub fn a_snapshot_does_not_move(store: &dyn Store) {
    commit(store, &[("ada", Some("1")), ("bob", Some("2"))]);
    read(store, |snapshot| {
        elsewhere(|| commit(store, &[("ada", Some("3")), ("bob", None), ("cid", Some("new"))]));
        assert_eq!(scan(snapshot, &EVERYTHING, Order::Ascending), ["ada=1", "bob=2"]);
        elsewhere(|| commit(store, &[("ada", None)]));
        assert_eq!(scan(snapshot, &EVERYTHING, Order::Ascending), ["ada=1", "bob=2"]);
        assert_eq!(get(snapshot, b"ada"), Some(b"1".to_vec()));
    });
    assert_eq!(dump(store), ["cid=new"]);
}

/// Only one body runs at a time.
pub fn writers_are_alone(store: &dyn Store) {
    const WRITERS: u64 = 8;
    const ROUNDS: u64 = 25;
    let running = AtomicBool::new(false);
    let count = || {
        write(store, |transaction| {
            assert!(!running.swap(true, Ordering::SeqCst), "two bodies are running");
            let count = get(transaction, b"count").map_or(0, |bytes| number(&bytes));
            thread::yield_now();
            set(transaction, "count", Some(&(count + 1).to_string()));
            running.store(false, Ordering::SeqCst);
            Decision::Commit
        });
    };
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| (0..ROUNDS).for_each(|_| count()));
        }
    });
    assert_eq!(dump(store), [format!("count={}", WRITERS * ROUNDS)]);
}

/// A commit is visible once it has returned. A reader that sees a commit sees all earlier ones.
pub fn commits_are_seen_in_order(store: &dyn Store) {
    const ROUNDS: u64 = 100;
    commit(store, &[("first", Some("0")), ("second", Some("0"))]);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..=ROUNDS {
                commit(store, &[("first", Some(&round.to_string()))]);
                assert_eq!(numbers(store), [round, round - 1]);
                commit(store, &[("second", Some(&round.to_string()))]);
                assert_eq!(numbers(store), [round, round]);
            }
        });
        while !writer.is_finished() {
            let [first, second] = numbers(store);
            assert!(first == second || first == second + 1, "{first} before {second}");
        }
    });
}

/// Makes one change of each kind.
fn change(transaction: &mut dyn Transaction) {
    set(transaction, "ada", Some("changed"));
    set(transaction, "bob", None);
    set(transaction, "cid", Some("new"));
}

#[track_caller]
fn check_unchanged(store: &dyn Store) {
    assert_eq!(dump(store), ["ada=1", "bob=2"]);
    // The store still works.
    commit(store, &[("dan", Some("4"))]);
    assert_eq!(dump(store), ["ada=1", "bob=2", "dan=4"]);
    commit(store, &[("dan", None)]);
}

fn numbers(store: &dyn Store) -> [u64; 2] {
    let mut numbers = [0; 2];
    let result = store.read(&mut |snapshot| {
        numbers = ["first", "second"].map(|key| number(&get(snapshot, key.as_bytes()).unwrap()));
        Ok(())
    });
    result.unwrap();
    numbers
}

fn number(bytes: &[u8]) -> u64 {
    text(bytes).parse().unwrap()
}

/// The result of `task` in another thread.
fn elsewhere<T: Send>(task: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(task).join()).unwrap()
}

fn panic_of(task: impl FnOnce()) -> &'static str {
    let payload = catch_unwind(AssertUnwindSafe(task)).unwrap_err();
    payload.downcast_ref::<&str>().unwrap()
}
