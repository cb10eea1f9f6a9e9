//! Operations on stores whose calls fail one after the other.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::env;
use std::fmt::Debug;

use serde_json::Value;
use store::memory::MemoryStore;
use testkit::interposed::{Interposed, Point};
use testkit::requests::{self, Refusal};
use testkit::tables::{Entry, check_indexes, dump};
use testkit::world::World;
use tidings::{Error, Result};

use crate::seeded::{self, copy_of, entries};

thread_local! {
    static FAULTS: Cell<usize> = const { Cell::new(0) };
}

/// Number of the faults of this thread that an operation has reported.
pub(super) fn faults() -> usize {
    FAULTS.get()
}

/// Each call of the store fails where a test takes long, because `TIDINGS_FAULTS` is `all`.
pub(super) fn all_fail() -> bool {
    env::var("TIDINGS_FAULTS").is_ok_and(|wanted| wanted == "all")
}

/// One of so many calls of the store fails where a test takes long, or each one.
pub(super) fn one_of(calls: usize) -> usize {
    if all_fail() { 1 } else { calls }
}

/// Runs `operation` on a store of which the first call fails, then on one of which the second one
/// does, and so on, until the operation gets through; and the same with commits.
#[track_caller]
pub(super) fn check<T: Debug>(operation: impl Fn(&World) -> Result<T>) {
    check_strided(1, operation);
}

/// The same where one of so many calls fails, and each commit.
#[track_caller]
pub(super) fn check_strided<T: Debug>(stride: usize, operation: impl Fn(&World) -> Result<T>) {
    check_in(stride, seeded::fork, is_unchanged, operation);
}

/// The same in worlds that are made each for itself, with the store below them, and for which is known whether
/// that is as it was. Returns those in which the operation gets through.
#[track_caller]
pub(crate) fn check_in<S, T: Debug>(
    stride: usize,
    fork: impl Fn() -> (World, S),
    is_unchanged: impl Fn(&S) -> bool,
    operation: impl Fn(&World) -> Result<T>,
) -> [World; 2] {
    [(Point::Call, stride), (Point::Commit, 1)].map(|(point, stride)| {
        let gets_through = |after| {
            let (world, below) = fork();
            let has_failed = fails(&world, (point, after), || operation(&world));
            if has_failed {
                assert!(is_unchanged(&below), "{point:?} {after} leaves something behind");
                return None;
            }
            assert!(!is_unchanged(&below), "the operation does nothing");
            Some(world)
        };
        (0..).step_by(stride).find_map(gets_through).unwrap()
    })
}

// Returns `true` if a fork of the seeded world has its entries, and no others.
fn is_unchanged(fork: &MemoryStore) -> bool {
    fork.shares_rows_with(&seeded::store()) || dump(fork) == entries()
}

/// States of a store whose indexes agree with their records.
#[derive(Default)]
pub(super) struct Checked(Vec<Vec<Entry>>);

impl Checked {
    /// Checks a store in that state, unless it was found in the same one before. Returns `true` if it is new.
    #[track_caller]
    pub(super) fn check(&mut self, store: &Interposed, state: Vec<Entry>) -> bool {
        let is_new = !self.0.contains(&state);
        if is_new {
            check_indexes(store);
            self.0.push(state);
        }
        is_new
    }
}

/// The same for an operation with upkeep of the activity index behind it. A fault in the upkeep is not
/// reported, and the answer is that of a call without faults. Returns the number of transactions.
#[track_caller]
pub(super) fn check_tended<T: Debug>(operation: impl Fn(&World) -> Result<T>) -> usize {
    check_tended_every(1, operation)
}

/// The same where one of so many calls fails, and each commit.
#[track_caller]
pub(super) fn check_tended_every<T: Debug>(
    stride: usize,
    operation: impl Fn(&World) -> Result<T>,
) -> usize {
    let undisturbed = seeded::copy();
    let (states, expected) = undisturbed.store.states_of(|| operation(&undisturbed));
    let expected = format!("{:?}", expected.unwrap());
    // With the call as a whole, and then with every part of the upkeep.
    let (before, done) = states.split_first().unwrap();
    assert!(before == entries(), "the engine changes something before");
    assert!(done.first().is_some_and(|done| done != before), "the operation does nothing");

    let mut checked = Checked::default();
    let mut made_up_for = BTreeSet::new();
    for (point, stride) in [(Point::Call, stride), (Point::Commit, 1)] {
        for after in (0..).step_by(stride) {
            let (world, below) = seeded::fork();
            world.store.fail(point, after);
            let result = operation(&world);
            let has_failed = world.store.recover();
            let Ok(answer) = &result else {
                assert_is_fault(&result);
                assert!(is_unchanged(&below), "{point:?} {after} leaves something behind");
                continue;
            };
            assert_eq!(format!("{answer:?}"), expected, "{point:?} {after}");
            let found = dump(&below);
            let state = done.iter().position(|done| *done == found);
            assert!(
                state.is_some(),
                "{point:?} {after} is hidden, and leaves something else behind"
            );
            made_up_for.extend(state.filter(|_| has_failed));
            if !has_failed {
                assert!(found == *done.last().unwrap(), "without a fault");
            }
            checked.check(&world.store, found);
            if !has_failed {
                break;
            }
        }
    }
    assert!(made_up_for.contains(&0), "no fault was after the commit");
    done.len()
}

/// The same for a request that takes several transactions, with a fault at every `stride`th call. The
/// first transactions stay, and a repeated request has the same answer.
#[track_caller]
pub(super) fn check_steps(entries: &[Entry], request: &Value, stride: usize) {
    let world = copy_of(entries);
    let (states, answer) = world.store.states_of(|| ask(&world, request));
    let answer = answer.unwrap();
    assert!(states.len() > 2, "{request} takes one transaction");
    let mut checked = Checked::default();

    for (point, stride) in [(Point::Call, stride), (Point::Commit, 1)] {
        for after in (0..).step_by(stride) {
            let world = copy_of(entries);
            if !fails(&world, (point, after), || ask(&world, request)) {
                break;
            }
            assert!(
                states.contains(&dump(&world.store)),
                "{point:?} {after} leaves half a transaction"
            );
            assert_eq!(
                ask(&world, request).unwrap(),
                answer,
                "{point:?} {after} is not made up for"
            );
            checked.check(&world.store, dump(&world.store));
        }
    }
}

/// Makes a request. Returns its answer as JSON, or the error of the operation.
pub(crate) fn ask(world: &World, request: &Value) -> Result<Value> {
    match requests::call(&world.engine, &world.env, request) {
        Ok(answer) => Ok(answer.json()),
        Err(Refusal::By(error)) => Err(error),
        Err(Refusal::Unreadable(why)) => panic!("{request} is no request: {why}"),
    }
}

/// Fails each store call of an operation that changes nothing, one after the other.
#[track_caller]
pub(super) fn check_read<T: Debug>(operation: impl Fn(&World) -> Result<T>) {
    let world = seeded::copy();
    let mut calls = 0..;
    assert!(calls.any(|after| !fails(&world, (Point::Call, after), || operation(&world))));
}

/// Runs `operation` on a store whose call with that number at `point` fails. Returns `false` if the
/// operation makes fewer calls, and so succeeds.
#[track_caller]
pub(super) fn fails<T: Debug>(
    world: &World,
    (point, number): (Point, usize),
    operation: impl FnOnce() -> Result<T>,
) -> bool {
    world.store.fail(point, number);
    let result = operation();
    let has_failed = world.store.recover();
    if has_failed {
        assert_is_fault(&result);
    } else {
        result.unwrap();
    }
    has_failed
}

#[track_caller]
pub(super) fn assert_is_fault<T: Debug>(result: &Result<T>) {
    FAULTS.set(FAULTS.get() + 1);
    let Err(Error::Store(store::Error::Backend { backend, .. })) = result else {
        panic!("a fault is answered with {result:?}")
    };
    assert_eq!(*backend, Interposed::NAME);
}
