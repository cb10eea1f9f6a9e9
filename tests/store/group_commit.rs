//! Callers share the syncs of the disk, and what belongs to that.

use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use store::redb::{AppliedBy, LogOptions, RedbOptions};
use store::{Decision, Error, Store, Table};

use crate::agreement::op;
use crate::{BY_CALLERS, KINDS, Open, WITHOUT_A_LOG, check_whole, put_five, write_five};
use testkit::dice::Dice;
use testkit::disk::Disk;
use testkit::history::{Op, Seen};
use testkit::model::Model;
use testkit::tables::{Entry, dump, everything};
use testkit::wait_until;

const ROWS: Table = Table::ALL[0];

#[test]
fn sixty_four_callers_share_syncs() {
    const CALLERS: usize = 64;
    const ROUNDS: usize = 4;
    // A thread syncs as well, if it applies what nobody adds to for a while.
    for log in [None, Some(LogOptions::default().applied_by(AppliedBy::Callers))] {
        let disk = Disk::new();
        let store = &disk.open_with(&RedbOptions::default().log(log)).unwrap();
        write_five(store, "first").unwrap();
        let before = disk.syncs();

        for round in 0..ROUNDS {
            let ended = &AtomicUsize::new(0);
            let write = move |caller| {
                store.write(&mut |transaction| {
                    put_five(transaction, &format!("{caller}-{round}"))?;
                    ended.fetch_add(1, SeqCst);
                    Ok(Decision::Commit)
                })
            };
            thread::scope(|scope| {
                let held = disk.hold_syncs();
                for caller in 0..CALLERS {
                    scope.spawn(move || write(caller).unwrap());
                }
                wait_until(|| ended.load(SeqCst) == CALLERS);
                drop(held);
            });
        }

        let syncs = disk.syncs() - before;
        assert_eq!(check_whole(store).len(), 1 + CALLERS * ROUNDS);
        let operations = CALLERS * ROUNDS;
        assert!(operations >= 16 * syncs, "{syncs} syncs for {operations} operations");
    }
}

#[test]
fn a_caller_alone_takes_a_sync_for_each_change_and_none_otherwise() {
    // A thread syncs as well, if it applies what nobody adds to for a while.
    for open in [WITHOUT_A_LOG, BY_CALLERS] {
        let disk = Disk::new();
        let store = open(&disk).unwrap();
        // The first change creates the log.
        write_five(&store, "first").unwrap();
        let before = disk.syncs();

        write_five(&store, "ada").unwrap();
        write_five(&store, "bob").unwrap();
        store.write(&mut |_| Ok(Decision::Commit)).unwrap();
        store.write(&mut |_| Ok(Decision::Abort)).unwrap();
        dump(&store);

        assert_eq!(disk.syncs() - before, 2);
    }
}

/// A body sees what was written before it at once. Everybody else, and whoever it tells, has to
/// wait until that is on the disk.
#[test]
fn nobody_gets_away_with_what_is_not_durable() {
    for (open, decision) in
        KINDS.into_iter().flat_map(|open| [(open, Decision::Commit), (open, Decision::Abort)])
    {
        let disk = Disk::new();
        let store = open(&disk).unwrap();
        // The first change creates the log.
        write_five(&store, "aaa").unwrap();
        let [seen, returned] = [AtomicBool::new(false), AtomicBool::new(false)];
        thread::scope(|scope| {
            let held = disk.hold_syncs();
            let syncs = disk.syncs();
            scope.spawn(|| write_five(&store, "ada").unwrap());
            wait_until(|| disk.syncs() > syncs);
            scope.spawn(|| {
                let look = &mut |_: &[u8]| seen.store(true, SeqCst);
                store.write(&mut |txn| txn.get(ROWS, b"ada", look).map(|_| decision)).unwrap();
                returned.store(true, SeqCst);
            });
            wait_until(|| seen.load(SeqCst));
            thread::sleep(Duration::from_millis(20));
            assert!(!returned.load(SeqCst), "returned before the sync");
            assert_eq!(check_whole(&store), ["aaa"]);
            drop(held);
        });
        assert_eq!(check_whole(&store), ["aaa", "ada"]);
    }
}

#[test]
fn a_failing_sync_is_everybodys_failure() {
    for open in KINDS {
        check_failure(
            open,
            || io::Error::other("the disk is broken"),
            |cause| matches!(cause, Error::Backend { backend: "redb", .. }),
        );
        check_failure(
            open,
            || panic!("the disk is broken"),
            |cause| matches!(cause, Error::Damaged { .. }),
        );
    }
}

/// Lets a sync fail that one caller has begun and two are waiting for.
fn check_failure(open: Open, failure: fn() -> io::Error, expect: impl Fn(&Error) -> bool) {
    let disk = Disk::new();
    let store = open(&disk).unwrap();
    write_five(&store, "before").unwrap();
    let ended = AtomicUsize::new(0);
    thread::scope(|scope| {
        let held = disk.hold_syncs();
        let syncs = disk.syncs();
        let leader = scope.spawn(|| write_five(&store, "leader"));
        wait_until(|| disk.syncs() > syncs);
        let followers = ["one", "two"].map(|id| {
            let (store, ended) = (&store, &ended);
            scope.spawn(move || {
                store.write(&mut |transaction| {
                    transaction.put(ROWS, id.as_bytes(), b"")?;
                    ended.fetch_add(1, SeqCst);
                    Ok(Decision::Commit)
                })
            })
        });
        wait_until(|| ended.load(SeqCst) == followers.len());
        disk.break_syncs(failure);
        drop(held);
        for caller in [leader].into_iter().chain(followers) {
            let error = caller.join().unwrap().unwrap_err();
            let Error::NeedsReopen { source, .. } = &error else { panic!("{error:?}") };
            assert!(expect(source) && !error.is_retryable(), "{error:?}");
        }
    });

    assert!(write_five(&store, "after").is_err());
    for seed in 0..20 {
        let disk = disk.after_power_cut(&mut Dice::new(seed));
        let found = check_whole(&open(&disk).unwrap());
        assert!(found == ["before"] || found == ["before", "leader"], "{found:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::scaled(64)))]

    #[test]
    fn a_transaction_sees_through_all_layers(
        on_disk in vec(op(), 0..9),
        committing in vec(op(), 0..9),
        pending in vec(op(), 0..9),
        own in vec(op(), 0..9),
        kind in 0..KINDS.len(),
    ) {
        let model = Model::default();
        for ops in [&on_disk, &committing, &pending] {
            look(&model, ops, Decision::Commit, || ());
        }
        let expected = look(&model, &own, Decision::Abort, || ());

        let disk = Disk::new();
        let store = KINDS[kind](&disk).unwrap();
        look(&store, &on_disk, Decision::Commit, || ());
        let ended = AtomicBool::new(false);
        let seen = thread::scope(|scope| {
            let mut held = Some(disk.hold_syncs());
            let syncs = disk.syncs();
            scope.spawn(|| look(&store, &committing, Decision::Commit, || ()));
            wait_until(|| disk.syncs() > syncs);
            scope.spawn(|| look(&store, &pending, Decision::Commit, || ended.store(true, SeqCst)));
            wait_until(|| ended.load(SeqCst));
            look(&store, &own, Decision::Abort, || drop(held.take()))
        });

        prop_assert_eq!(seen, expected);
    }
}

/// Runs `ops` in a transaction, and returns what they and a last look at everything have seen.
fn look(
    store: &dyn Store,
    ops: &[Op],
    decision: Decision,
    mut end: impl FnMut(),
) -> (Vec<Seen>, Vec<Entry>) {
    let mut seen = None;
    let result = store.write(&mut |transaction| {
        let shown = ops.iter().map(|op| op.run(transaction)).collect::<Result<_, _>>()?;
        // Every transaction changes something, or else it would not be a layer.
        transaction.put(Table::ALL[3], b"", &[u8::try_from(ops.len()).unwrap()])?;
        seen = Some((shown, everything(transaction)?));
        end();
        Ok(decision)
    });
    result.unwrap();
    seen.unwrap()
}
