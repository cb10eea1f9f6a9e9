//! The store that the tests of everything else rely on does what it is told.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use store::{Decision, Error, KeyRange, Order, Store, Table};
use testkit::interposed::{Call, Interposed, Point};
use testkit::tables::dump;

const ROWS: Table = Table::ALL[0];
const EVERYTHING: KeyRange = (Bound::Unbounded, Bound::Unbounded);

// What `changes` calls, if all of it goes well.
fn calls() -> [Call; 6] {
    let key = || b"k".to_vec();
    [
        Call::Write,
        Call::Put(ROWS, key()),
        Call::Get(ROWS, key()),
        Call::Scan(ROWS),
        Call::Delete(ROWS, b"other".to_vec()),
        Call::Commit,
    ]
}

fn changes(store: &Interposed) -> Result<(), Error> {
    store.write(&mut |transaction| {
        transaction.put(ROWS, b"k", b"v")?;
        transaction.get(ROWS, b"k", &mut |_| {})?;
        let order = Order::Ascending;
        transaction.scan(ROWS, &EVERYTHING, order, None, &mut |_, _| ControlFlow::Break(()))?;
        transaction.delete(ROWS, b"other")?;
        Ok(Decision::Commit)
    })
}

/// One row per point: for each time that it is passed, whether the changes last if it fails then.
#[test]
fn a_fault_happens_at_its_point_and_once() {
    for (point, lasts) in [
        (Point::Call, &[false; 6][..]),
        (Point::Called, &[false, false, false, false, true]),
        (Point::Begin, &[false]),
        (Point::Write, &[false]),
        (Point::Commit, &[false]),
        (Point::Committed, &[true]),
    ] {
        for (after, lasts) in lasts.iter().enumerate() {
            let store = Interposed::default();
            store.fail(point, after);
            let (made, result) = store.calls_of(|| changes(&store));
            assert!(result.is_err() && store.recover(), "{point:?} {after}");
            assert_eq!(!dump(&store).is_empty(), *lasts, "{point:?} {after}");
            if point == Point::Call {
                assert_eq!(made, calls()[..=after]);
            }
            changes(&store).unwrap();
        }
        let store = Interposed::default();
        store.fail(point, lasts.len());
        changes(&store).unwrap();
        assert!(!store.recover(), "{point:?} is passed more than {} times", lasts.len());
    }
}

#[test]
fn what_has_stopped_works_again_when_it_has_recovered() {
    let store = Interposed::default();
    store.stop(Point::Write, 1);
    changes(&store).unwrap();
    for _ in 0..2 {
        assert!(changes(&store).is_err());
        assert!(store.read(&mut |_| Ok(())).is_err());
    }
    assert!(store.recover());
    changes(&store).unwrap();

    store.kill();
    assert!(changes(&store).is_err());
}

#[test]
fn something_else_happens_in_a_pause() {
    let (store, happened) = (Interposed::default(), Arc::new(AtomicUsize::new(0)));
    let (other, count) = (store.clone(), Arc::clone(&happened));
    store.pause(Point::Begin, 1, move || {
        changes(&other).unwrap();
        count.fetch_add(1, SeqCst);
    });
    for expected in [0, 1, 1] {
        store.read(&mut |_| Ok(())).unwrap();
        assert_eq!(happened.load(SeqCst), expected);
    }
    assert_eq!(dump(&store).len(), 1);
}

#[test]
fn what_is_undisturbed_is_not_counted() {
    let store = Interposed::default();
    store.fail(Point::Write, 1);
    store.undisturbed(|| changes(&store).and(changes(&store))).unwrap();
    changes(&store).unwrap();
    assert!(changes(&store).is_err());
}

#[test]
fn a_body_is_run_twice_or_in_vain() {
    let runs = |store: &Interposed| {
        let mut runs = 0_u8;
        let written = store.write(&mut |transaction| {
            runs += 1;
            transaction.put(ROWS, &[runs], b"v")?;
            Ok(Decision::Commit)
        });
        written.unwrap();
        (runs, dump(store).into_iter().map(|(_, key, _)| key).collect::<Vec<_>>())
    };
    assert_eq!(runs(&Interposed::default()), (1, vec![vec![1]]));
    assert_eq!(runs(&Interposed::default().repeating()), (2, vec![vec![2]]));
    assert_eq!(runs(&Interposed::default().discarding()), (1, vec![]));
}

#[test]
fn each_state_is_remembered() {
    let store = Interposed::default();
    let (states, ()) = store.states_of(|| {
        changes(&store).unwrap();
        store.write(&mut |_| Ok(Decision::Abort)).unwrap();
        changes(&store).unwrap();
    });
    let there = dump(&store);
    assert_eq!(states, [vec![], there.clone(), there]);
}
