//! A disk that is full stops writing until there is room, and loses nothing.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use store::redb::RedbStore;
use store::{Error, Store, Table};
use testkit::dice::Dice;
use testkit::disk::{Disk, Noticed};
use testkit::scaled;
use testkit::tables::{dump, try_dump};

use crate::{
    BY_A_THREAD, BY_CALLERS, KINDS, Open, WITHOUT_A_LOG, check_contains, check_whole, write_five,
};

const BOTH: [Noticed; 2] = [Noticed::AtWrite, Noticed::AtSync];

/// As many pages as the runs of these tests never take.
const PLENTY: usize = 10_000;

#[test]
fn a_full_disk_without_a_log_loses_nothing() {
    check_runs(WITHOUT_A_LOG, 60);
}

#[test]
fn a_full_disk_with_a_log_applied_by_a_thread_loses_nothing() {
    check_runs(BY_A_THREAD, 250);
}

#[test]
fn a_full_disk_with_a_log_applied_by_callers_loses_nothing() {
    check_runs(BY_CALLERS, 250);
}

/// Reads show the last commit, each write says what is to be done, and the next one succeeds when
/// there is room.
#[test]
fn a_full_disk_is_named_and_read() {
    for (open, noticed) in KINDS.into_iter().flat_map(|open| BOTH.map(|it| (open, it))) {
        let disk = Disk::new();
        let store = open(&disk).unwrap();
        disk.leave_room(60, noticed);
        let (acknowledged, error) = write_until_full(&store);
        let Error::StorageFull { path, source } = &error else { panic!("{error:?}") };
        assert_eq!(path.to_str(), Some("simulated disk"));
        let text =
            format!("`simulated disk` takes no changes until there is room on its disk: {source}");
        assert!(error.to_string() == text && text.contains("redb could not"), "{error}");
        assert!(error.is_retryable());
        for _ in 0..3 {
            assert_eq!(check_whole(&store), acknowledged);
            assert!(matches!(write_five(&store, "while"), Err(Error::StorageFull { .. })));
            thread::sleep(Duration::from_millis(30));
        }

        disk.leave_room(PLENTY, noticed);
        write_soon(&store, "zzzz");
        let expected = [acknowledged, vec!["zzzz".to_owned()]].concat();
        assert_eq!(check_whole(&store), expected);
        drop(store);
        assert_eq!(check_whole(&open(&disk).unwrap()), expected);
    }
}

/// A process that ends while its disk is full leaves what the next one needs.
#[test]
fn a_store_is_closed_on_a_full_disk() {
    for (open, noticed) in KINDS.into_iter().flat_map(|open| BOTH.map(|it| (open, it))) {
        let disk = Disk::new();
        let store = open(&disk).unwrap();
        disk.leave_room(50, noticed);
        let (acknowledged, _) = write_until_full(&store);
        drop(store);
        for disk in [disk.after_kill(), disk.after_power_cut(&mut Dice::new(5))] {
            assert_eq!(check_whole(&open(&disk).unwrap()), acknowledged);
        }
    }
}

/// A snapshot that was taken before the failure shows its own state, or says that it has ended.
#[test]
fn a_snapshot_of_before_shows_nothing_else() {
    for noticed in BOTH {
        let disk = Disk::new();
        let store = &BY_CALLERS(&disk).unwrap();
        (0..40).for_each(|id| write_five(store, &format!("{id:04}")).unwrap());
        let expected = dump(store);
        let [taken, over] = [&Barrier::new(2), &Barrier::new(2)];
        thread::scope(|scope| {
            scope.spawn(move || {
                let read = store.read(&mut |snapshot| {
                    taken.wait();
                    over.wait();
                    let found = testkit::tables::everything(snapshot)?;
                    assert!(found == expected, "the snapshot shows something else");
                    Ok(())
                });
                let ended = matches!(&read, Err(error @ Error::Interrupted { .. })
                    if error.is_retryable());
                assert!(ended || read.is_ok(), "{read:?}");
            });
            taken.wait();
            disk.leave_room(20, noticed);
            write_until_full(store);
            disk.leave_room(PLENTY, noticed);
            (0..100).for_each(|id| write_soon(store, &format!("after-{id}")));
            over.wait();
        });
    }
}

/// Runs of four writers on a disk that is full now and then, and perhaps loses its power at last.
#[track_caller]
fn check_runs(open: Open, runs: u64) {
    let mut refused = 0;
    for seed in 0..scaled(runs) {
        let mut dice = Dice::new(seed);
        let noticed = BOTH[dice.below(2)];
        let disk = Disk::new();
        let store = open(&disk).unwrap();
        let (acknowledged, failed) = write_many(&store, &disk, noticed, &mut dice);
        refused += failed;
        let mut expected = acknowledged;
        expected.sort();
        assert_eq!(check_whole(&store), expected, "seed {seed}");
        let after = match seed % 3 {
            0 => disk.after_power_cut(&mut dice),
            1 => disk.after_kill(),
            _ => {
                drop(store);
                disk.after_power_cut(&mut dice)
            }
        };
        let store = open(&after).unwrap();
        assert_eq!(check_whole(&store), expected, "seed {seed}");
        write_five(&store, "zzz").unwrap();
        check_contains(&check_whole(&store), &["zzz".to_owned()]);
    }
    assert!(refused as u64 > runs, "only {refused} writes have found no room");
}

/// Lets four writers work, while the disk has room and has none. Returns what was acknowledged, and
/// how many writes were not.
fn write_many(
    store: &RedbStore,
    disk: &Disk,
    noticed: Noticed,
    dice: &mut Dice,
) -> (Vec<String>, usize) {
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                scope.spawn(move || {
                    let ids = (0..40).map(move |round| format!("{writer}-{round:02}"));
                    ids.map(|id| (write_five(store, &id), id)).collect::<Vec<_>>()
                })
            })
            .collect();
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            disk.leave_room(dice.below(60), noticed);
            thread::sleep(Duration::from_micros(dice.roll(3_000)));
            assert!(!matches!(try_dump(store), Err(Error::Damaged { .. } | Error::Corrupt { .. })));
            disk.leave_room(PLENTY, noticed);
            thread::sleep(Duration::from_micros(dice.roll(3_000)));
        }
        let outcomes: Vec<_> = writers.into_iter().flat_map(|it| it.join().unwrap()).collect();
        let (done, failed): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(it, _)| it.is_ok());
        for (outcome, _) in &failed {
            assert!(
                matches!(outcome, Err(Error::StorageFull { .. } | Error::Interrupted { .. })),
                "{outcome:?}"
            );
        }
        write_soon(store, "last");
        let done = done.into_iter().map(|(_, id)| id).chain(["last".to_owned()]);
        (done.collect(), failed.len())
    })
}

fn write_until_full(store: &RedbStore) -> (Vec<String>, Error) {
    let mut acknowledged = Vec::new();
    loop {
        let id = format!("{:04}", acknowledged.len());
        match write_five(store, &format!("full-{id}")) {
            Ok(()) => acknowledged.push(format!("full-{id}")),
            Err(error) => {
                let others = dump(store).into_iter().filter(|(table, key, _)| {
                    *table == Table::ALL[0] && !key.starts_with(b"full-")
                });
                let others = others.map(|(_, key, _)| String::from_utf8(key).unwrap());
                return (others.chain(acknowledged).collect(), error);
            }
        }
        assert!(acknowledged.len() < 10_000, "the disk is never full");
    }
}

/// Writes when the pause is over.
#[track_caller]
fn write_soon(store: &RedbStore, id: &str) {
    let end = Instant::now() + Duration::from_secs(120);
    while let Err(error) = write_five(store, id) {
        assert!(matches!(error, Error::StorageFull { .. }), "{error:?}");
        assert!(Instant::now() < end, "there is room, and {error}");
        thread::sleep(Duration::from_millis(1));
    }
}
