//! The log beside a file: when it is there, what it makes up for, and what it is refused for.

use std::env;
use std::fs;
use std::io;
use std::ops::{ControlFlow, Range};
#[cfg(unix)]
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

use store::redb::{AppliedBy, LogOptions, RedbOptions, RedbStore};
use store::{Decision, Error, Order, Store, Table, Transaction};
use tempfile::tempdir;
use testkit::child;
use testkit::dice::Dice;
use testkit::disk::Disk;
use testkit::scaled;
use testkit::tables::dump;
use testkit::wait_until;

use crate::{check_contains, check_whole, log_of, place, value_of, write_five};

/// End of the third record of a log: a page, and three records of three sectors each.
const END_OF_THREE: usize = 4_096 + 3 * 1_536;

/// The variable with the folder for [`child`].
const FOLDER: &str = "TIDINGS_TEST_FOLDER";

const BOTH: [AppliedBy; 2] = [AppliedBy::Thread, AppliedBy::Callers];

/// Something that commits to the file beside the log.
type Commit = fn(&RedbStore) -> Result<(), Error>;

#[test]
fn a_log_is_there_while_the_file_is_used() {
    for applied_by in BOTH {
        let (_folder, path) = place();
        let store = RedbStore::open_with(&path, &with_log(applied_by)).unwrap();
        assert!(!log_of(&path).exists(), "nothing is written yet");
        write_five(&store, "ada").unwrap();
        assert!(log_of(&path).exists());

        store.checkpoint().unwrap();
        assert!(!log_of(&path).exists());
        assert_eq!(copy_without_log(&path), ["ada"]);

        write_five(&store, "bob").unwrap();
        assert!(log_of(&path).exists());
        drop(store);
        assert!(!log_of(&path).exists());
        assert_eq!(copy_without_log(&path), ["ada", "bob"]);
    }
}

/// A store that nobody writes to has its changes in the file, and takes the next ones as before.
#[test]
fn the_changes_of_an_idle_store_come_into_the_file() {
    let disk = Disk::new();
    let store = disk.open_with(&large_log()).unwrap();
    for expected in [&["ada"][..], &["ada", "bob"]] {
        write_five(&store, expected[expected.len() - 1]).unwrap();
        wait_until(|| in_the_file(&disk) == expected);
        assert_eq!(check_whole(&store), expected);
        assert_eq!(check_whole(&disk.after_kill().open_with(&large_log()).unwrap()), expected);
    }
    assert!(disk.log_bytes().is_some());
}

/// The log is beside the file itself, wherever the link leads that the file was opened by.
#[cfg(unix)]
#[test]
fn a_log_is_beside_the_target_of_a_link() {
    let (folder, path) = place();
    write_five(&RedbStore::open(&path).unwrap(), "ada").unwrap();
    let link = folder.path().join("link.redb");
    symlink(&path, &link).unwrap();

    let store = RedbStore::open(&link).unwrap();
    write_five(&store, "bob").unwrap();
    assert!(log_of(&path).exists());
    assert!(!log_of(&link).exists());
}

/// A daemon changes its folder once it has opened its files. The folder is that of a whole process.
#[test]
fn a_log_stays_beside_its_file_if_the_process_changes_its_folder() {
    let folder = tempdir().unwrap();
    child::passed(child::command("log::child").env(FOLDER, folder.path()));
}

/// The process that changes its folder.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    env::set_current_dir(folder).unwrap();
    let store = RedbStore::open("shop.redb").unwrap();
    fs::create_dir("elsewhere").unwrap();
    env::set_current_dir("elsewhere").unwrap();
    write_five(&store, "ada").unwrap();
    assert!(log_of(Path::new("../shop.redb")).exists());
    assert_eq!(fs::read_dir(".").unwrap().count(), 0);
}

/// A deployment sets its link to another folder while the file is open.
#[cfg(unix)]
#[test]
fn a_log_stays_beside_its_file_if_a_link_on_the_way_changes() {
    let (folder, path) = place();
    let [current, next] = ["current", "next"].map(|name| folder.path().join(name));
    fs::create_dir(&next).unwrap();
    symlink(folder.path(), &current).unwrap();

    let store = RedbStore::open(current.join(path.file_name().unwrap())).unwrap();
    fs::remove_file(&current).unwrap();
    symlink(&next, &current).unwrap();
    write_five(&store, "ada").unwrap();
    assert!(log_of(&path).exists());
    assert_eq!(fs::read_dir(&next).unwrap().count(), 0);
}

#[test]
fn a_log_can_be_switched_off() {
    let (_folder, path) = place();
    let store = RedbStore::open_with(&path, &without_log()).unwrap();
    write_five(&store, "ada").unwrap();
    assert!(!log_of(&path).exists());
    assert_eq!(copy_without_log(&path), ["ada"]);
    store.checkpoint().unwrap();
}

/// A store without a log takes over what one with a log has left.
#[test]
fn a_log_is_used_up_in_any_case() {
    let disk = crashed(&["ada", "bob"]);
    assert!(disk.log_bytes().is_some());
    let store = disk.open_with(&without_log()).unwrap();
    assert_eq!(check_whole(&store), ["ada", "bob"]);
    assert_eq!(disk.log_bytes(), None);
}

#[test]
fn a_transaction_larger_than_the_log_goes_to_the_file() {
    for applied_by in BOTH {
        let disk = Disk::new();
        let store = disk.open_logged(applied_by);
        write_five(&store, "ada").unwrap();
        write_large(&store).unwrap();
        let expected = dump(&store);
        assert!(expected.contains(&(Table::ALL[9], b"large".to_vec(), vec![7; 200_000])));
        assert!(!expected.contains(&(Table::ALL[0], b"ada".to_vec(), value_of("ada"))));
        assert!(disk.log_bytes().unwrap().len() < 100_000);
        assert!(dump(&disk.after_kill().open_logged(applied_by)) == expected);
        write_five(&store, "bob").unwrap();
        assert!(dump(&disk.after_kill().open_logged(applied_by)) == dump(&store));
    }
}

/// A log does not grow, however much is written.
#[test]
fn a_log_is_bounded() {
    for applied_by in BOTH {
        let disk = Disk::new();
        let store = disk.open_logged(applied_by);
        for id in 0..200 {
            write_five(&store, &format!("{id:04}")).unwrap();
            assert!(disk.log_bytes().unwrap().len() <= 4096 + 2 * (12 << 10));
        }
    }
}

/// Readers beside writers see whole transactions, all that was acknowledged before, and no moves,
/// while changes go from the memtables into the file.
#[test]
fn no_reader_sees_a_gap() {
    for applied_by in BOTH {
        let disk = Disk::new();
        let store = &disk.open_logged(applied_by);
        let acknowledged = &Mutex::new(Vec::new());
        let is_over = &AtomicBool::new(false);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(move || {
                        while !is_over.load(SeqCst) {
                            let before = acknowledged.lock().unwrap().clone();
                            check_contains(&check_whole(store), &before);
                            check_still(store);
                        }
                    })
                })
                .collect();
            for id in 0..scaled(150) {
                let id = format!("{id:06}");
                write_five(store, &id).unwrap();
                acknowledged.lock().unwrap().push(id);
            }
            is_over.store(true, SeqCst);
            for reader in readers {
                reader.join().unwrap();
            }
        });
    }
}

/// Checks that a snapshot shows the same twice, however much is written in between.
fn check_still(store: &RedbStore) {
    let read = store.read(&mut |snapshot| {
        let keys = || {
            let mut keys = Vec::new();
            let all = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
            snapshot.scan(Table::ALL[0], &all, Order::Descending, None, &mut |key, _| {
                keys.push(key.to_vec());
                ControlFlow::Continue(())
            })?;
            Ok::<_, Error>(keys)
        };
        let before = keys()?;
        thread::yield_now();
        assert!(before == keys()?, "the snapshot has moved");
        Ok(())
    });
    read.unwrap();
}

/// Many snapshots, taken while changes go from the memtables into the file, have all of a transaction
/// or nothing. Each transaction has keys of its own, so that no later one covers a gap.
#[test]
fn no_snapshot_has_a_part_of_a_transaction() {
    const TABLES: [Table; 3] = [Table::ALL[0], Table::ALL[2], Table::ALL[4]];
    for applied_by in BOTH {
        let disk = Disk::new();
        let store = &disk.open_logged(applied_by);
        let written = &AtomicU64::new(0);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(move || {
                        while written.load(SeqCst) < scaled(1_500) {
                            let next = written.load(SeqCst);
                            check_parts(store, &TABLES, next.saturating_sub(40)..next + 40);
                        }
                    })
                })
                .collect();
            for id in 0..scaled(1_500_u64) {
                let body = &mut |transaction: &mut dyn Transaction| {
                    for table in TABLES {
                        transaction.put(table, &id.to_be_bytes(), &[7; 100])?;
                    }
                    Ok(Decision::Commit)
                };
                store.write(body).unwrap();
                written.store(id + 1, SeqCst);
            }
            for reader in readers {
                reader.join().unwrap();
            }
        });
    }
}

fn check_parts(store: &RedbStore, tables: &[Table], ids: Range<u64>) {
    let read = store.read(&mut |snapshot| {
        for id in ids.clone() {
            let key = id.to_be_bytes();
            let there = tables.iter().map(|table| snapshot.get(*table, &key, &mut |_| {}));
            let there = there.collect::<Result<Vec<_>, _>>()?;
            assert!(there.iter().all(|it| *it == there[0]), "{id} is there in parts: {there:?}");
        }
        Ok(())
    });
    read.unwrap();
}

/// The last record is cut off anywhere, or any of its bits is flipped: it was never acknowledged.
#[test]
fn a_torn_tail_is_dropped() {
    let disk = crashed(&["ada", "bob", "cid"]);
    let (file, log) = (disk.bytes(), disk.log_bytes().unwrap());
    let last = END_OF_THREE - 1_536;
    for len in (last..last + 1_160).step_by(7) {
        let disk = Disk::with_log(file.clone(), Some(log[..len].to_vec()));
        assert_eq!(check_whole(&disk.open_with(&large_log()).unwrap()), ["ada", "bob"]);
    }
    for bit in (0..1_100 * 8).step_by(61) {
        let disk = Disk::with_log(file.clone(), Some(flipped(&log, last * 8 + bit)));
        assert_eq!(check_whole(&disk.open_with(&large_log()).unwrap()), ["ada", "bob"]);
    }
}

/// Any bit of a record that is not the last one is flipped: it was acknowledged.
#[test]
fn a_damaged_middle_is_refused_and_left_alone() {
    let disk = crashed(&["ada", "bob", "cid"]);
    let (file, log) = (disk.bytes(), disk.log_bytes().unwrap());
    for bit in (0..1_100 * 8).step_by(61) {
        let flipped = flipped(&log, (END_OF_THREE - 2 * 1_536) * 8 + bit);
        let disk = Disk::with_log(file.clone(), Some(flipped.clone()));
        let error = refused(&disk, &large_log());
        let Error::Damaged { path, source } = &error else { panic!("{error:?}") };
        assert_eq!(path, Path::new("simulated disk-log"));
        let text = "record 2 of the log is missing, although record 3 is there";
        assert_eq!(source.to_string(), text);

        // A host may decide to go on with what is in front of the damage.
        let store = disk.open_with(&discarding()).unwrap();
        assert_eq!(check_whole(&store), ["ada"]);
    }
}

#[test]
fn a_damaged_header_is_refused_and_left_alone() {
    let disk = crashed(&["ada"]);
    let (file, log) = (disk.bytes(), disk.log_bytes().unwrap());
    for byte in 0..48 {
        let disk = Disk::with_log(file.clone(), Some(flipped(&log, byte * 8)));
        let error = refused(&disk, &large_log());
        assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
        assert_eq!(check_whole(&disk.open_with(&discarding()).unwrap()), Vec::<String>::new());
    }
}

/// The host has decided to go on without the log, of a file that needs it or not. It is not asked again.
#[test]
fn a_discarded_log_does_not_come_back() {
    for seed in 0..16 {
        let (open, closed) = (crashed(&["ada"]), crashed(&["ada"]));
        let log = flipped(&open.log_bytes().unwrap(), 24 * 8);
        drop(closed.open_with(&without_log()).unwrap());
        for (file, expected) in [(open.bytes(), &[][..]), (closed.bytes(), &["ada"])] {
            let disk = Disk::with_log(file, Some(log.clone()));
            let store = disk.open_with(&discarding()).unwrap();

            let disk = disk.after_power_cut(&mut Dice::new(seed));
            drop(store);

            let ids = disk.open_with(&large_log()).map(|store| check_whole(&store));
            assert!(ids.as_ref().is_ok_and(|ids| ids == expected), "{seed}: {ids:?}");
        }
    }
}

#[test]
fn a_newer_log_is_refused_and_left_alone() {
    let disk = crashed(&["ada"]);
    let mut log = disk.log_bytes().unwrap();
    log[16..20].copy_from_slice(&2_u32.to_le_bytes());
    let sum = crc32fast::hash(&log[..44]);
    log[44..48].copy_from_slice(&sum.to_le_bytes());
    let error = refused(&Disk::with_log(disk.bytes(), Some(log)), &large_log());
    let text = "`simulated disk-log` has format 2, and this version knows formats up to 1";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_missing_log_is_refused() {
    let disk = crashed(&["ada"]);
    for log in [None, Some(vec![]), Some(vec![0; 4096])] {
        let disk = Disk::with_log(disk.bytes(), log);
        let error = refused(&disk, &large_log());
        assert!(matches!(error, Error::LogMissing { .. }), "{error:?}");
        let text = "`simulated disk` cannot be opened without its log `simulated disk-log`, which is \
                    missing: put it back, or set `discard_damaged_log` to do without its changes";
        assert_eq!(error.to_string(), text);

        let store = disk.open_with(&discarding()).unwrap();
        assert_eq!(check_whole(&store), Vec::<String>::new());
        write_five(&store, "bob").unwrap();
        drop(store);
        assert_eq!(check_whole(&disk.open_with(&large_log()).unwrap()), ["bob"]);
    }
    // A storage without a place for a log cannot have the changes either.
    assert!(matches!(disk.try_open(), Err(Error::LogMissing { .. })));
}

/// The log of another store, of an earlier copy of the same one, or of a store that is new.
#[test]
fn a_foreign_log_is_refused_and_left_alone() {
    let (ours, other) = (crashed(&["ada"]), crashed(&["bob"]));
    let closed = ours.after_kill();
    drop(closed.open_with(&large_log()).unwrap());
    for file in [ours.bytes(), closed.bytes(), vec![]] {
        let disk = Disk::with_log(file, other.log_bytes());
        let error = refused(&disk, &large_log());
        assert!(matches!(error, Error::ForeignLog { .. }), "{error:?}");
        assert!(matches!(refused(&disk, &discarding()), Error::ForeignLog { .. }));
        let text = "`simulated disk-log` is not the log of `simulated disk`: move it to the file that it belongs to, or away";
        assert_eq!(error.to_string(), text);
    }
    let disk = Disk::with_log(ours.bytes(), Some(b"Dear diary,".to_vec()));
    assert!(matches!(refused(&disk, &large_log()), Error::NotOurs { .. }));
}

/// The removal of a log may be lost in a power cut. The file knows better.
#[test]
fn a_log_without_its_file_is_refused_and_left_alone() {
    let (_folder, path) = place();
    let store = RedbStore::open(&path).unwrap();
    write_five(&store, "ada").unwrap();
    let log = fs::read(log_of(&path)).unwrap();
    drop(store);
    fs::remove_file(&path).unwrap();
    fs::write(log_of(&path), &log).unwrap();

    let error = RedbStore::open(&path).unwrap_err();
    assert!(matches!(error, Error::ForeignLog { .. }), "{error:?}");
    assert!(!path.exists(), "no file was there");
    assert_eq!(fs::read(log_of(&path)).unwrap(), log);
}

#[test]
fn a_log_that_cannot_be_made_is_named() {
    let (_folder, path) = place();
    let store = RedbStore::open(&path).unwrap();
    fs::create_dir(log_of(&path)).unwrap();
    let error = write_five(&store, "ada").unwrap_err().to_string();
    let log = fs::canonicalize(log_of(&path)).unwrap();
    let place = format!("redb could not create the log: `{}`: ", log.display());
    assert!(error.starts_with(&place), "{error}");

    fs::remove_dir(log).unwrap();
    write_five(&store, "ada").unwrap();
    assert_eq!(check_whole(&store), ["ada"]);
}

#[test]
fn a_log_of_a_closed_file_does_no_harm() {
    let disk = crashed(&["ada"]);
    let log = disk.log_bytes();
    let store = disk.open_with(&without_log()).unwrap();
    store.write(&mut |txn| txn.delete(Table::ALL[0], b"ada").map(|()| Decision::Commit)).unwrap();
    let expected = dump(&store);
    drop(store);

    let disk = Disk::with_log(disk.bytes(), log);
    assert!(dump(&disk.open_with(&large_log()).unwrap()) == expected);
    assert_eq!(disk.log_bytes(), None);
}

/// A disk that fails while changes come into the file loses nothing, and takes nothing more.
#[test]
fn an_apply_that_fails_stops_commits() {
    for applied_by in BOTH {
        check_stop(applied_by, || io::Error::other("the disk is broken"));
        check_stop(applied_by, || panic!("the disk is broken"));
    }
}

fn check_stop(applied_by: AppliedBy, failure: fn() -> io::Error) {
    let disk = Disk::new();
    let store = disk.open_logged(applied_by);
    write_five(&store, "before").unwrap();
    disk.break_syncs_of_file(failure);
    let mut acknowledged = vec!["before".to_owned()];
    let error = loop {
        let id = format!("{:04}", acknowledged.len());
        match write_five(&store, &id) {
            Ok(()) => acknowledged.push(id),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 1_000, "the failure is not noticed");
    };
    let Error::NeedsReopen { path, source } = &error else { panic!("{error:?}") };
    assert_eq!(path, Path::new("simulated disk"));
    assert!(matches!(**source, Error::Backend { .. } | Error::Damaged { .. }), "{source:?}");
    let text = format!("`simulated disk` takes no changes until it is opened again: {source}");
    assert_eq!(error.to_string(), text);
    assert!(matches!(store.checkpoint(), Err(Error::NeedsReopen { .. })));

    check_contains(&check_whole(&store), &acknowledged);
    drop(store);
    for seed in 0..5 {
        let disk = disk.after_power_cut(&mut Dice::new(seed));
        let found = check_whole(&disk.open_logged(applied_by));
        check_contains(&found, &acknowledged);
    }
}

/// An operating system may hold for written what it has failed to write. The file is opened again while it
/// shows a commit that has never reached the disk, and the log has all changes until another commit has them.
#[test]
fn a_sync_that_has_failed_once_loses_nothing_when_the_file_is_opened_again() {
    for (seed, applied_by) in (0..scaled(50)).flat_map(|seed| BOTH.map(|by| (seed, by))) {
        let dice = &mut Dice::new(seed);
        let disk = Disk::new();
        let store = disk.open_logged(applied_by);
        let mut acknowledged = Vec::new();
        // The sync that fails may be that of the commit behind which the log is not needed.
        let sound = dice.roll(50);
        loop {
            if acknowledged.len() as u64 == sound {
                disk.break_syncs_of_file(|| io::Error::other("the disk is broken"));
            }
            let id = format!("{:04}", acknowledged.len());
            if write_five(&store, &id).is_err() {
                break;
            }
            acknowledged.push(id);
            assert!(acknowledged.len() < 1_000, "the failure is not noticed");
        }
        let is_mended_first = dice.roll(2) == 0;
        if is_mended_first {
            disk.mend_syncs(dice);
        }
        drop(store);
        if !is_mended_first {
            disk.mend_syncs(dice);
        }
        drop(disk.open_logged(applied_by));
        let disk = disk.after_power_cut(dice);
        check_contains(&check_whole(&disk.open_logged(applied_by)), &acknowledged);
    }
}

/// A commit to the file that fails may have happened all the same. What follows it must not be
/// written to a log that the file knows nothing about, nor behind changes that nobody has seen.
#[test]
fn a_commit_beside_the_log_that_fails_stops_commits() {
    let commits: [Commit; 2] = [RedbStore::checkpoint, write_large];
    for (applied_by, commit) in BOTH.into_iter().flat_map(|by| commits.map(|commit| (by, commit))) {
        let disk = Disk::new();
        let store = disk.open_logged(applied_by);
        write_five(&store, "ada").unwrap();
        // With this, the memtables are empty.
        write_large(&store).unwrap();
        disk.break_syncs_of_file(|| io::Error::other("the disk is broken"));
        let error = commit(&store).unwrap_err();
        assert!(matches!(error, Error::NeedsReopen { .. }), "{error:?}");
        let error = write_five(&store, "bob").unwrap_err();
        assert!(matches!(error, Error::NeedsReopen { .. }), "{error:?}");
    }
}

#[test]
fn a_log_that_fails_takes_no_records() {
    for applied_by in BOTH {
        let disk = Disk::new();
        let store = disk.open_logged(applied_by);
        write_five(&store, "ada").unwrap();
        disk.break_syncs(|| io::Error::other("the disk is broken"));
        let error = write_five(&store, "bob").unwrap_err();
        assert!(matches!(error, Error::NeedsReopen { .. }), "{error:?}");
        // A thread that has nothing else to do may be the first that finds the failure.
        if applied_by == AppliedBy::Callers {
            let text = "`simulated disk` takes no changes until it is opened again: redb could not \
                        write the log: the disk is broken";
            assert_eq!(error.to_string(), text);
        }
        let error = write_five(&store, "cid").unwrap_err();
        assert!(matches!(error, Error::NeedsReopen { .. }), "{error:?}");
        assert_eq!(check_whole(&store), ["ada"]);
    }
}

/// A host checkpoints while others write.
#[test]
fn checkpoints_go_between_commits() {
    for applied_by in BOTH {
        let disk = Disk::new();
        let store = &disk.open_logged(applied_by);
        thread::scope(|scope| {
            for writer in 0..3 {
                scope.spawn(move || {
                    (0..30).for_each(|id| write_five(store, &format!("{writer}-{id}")).unwrap());
                });
            }
            scope.spawn(|| (0..20).for_each(|_| store.checkpoint().unwrap()));
        });
        assert_eq!(check_whole(store).len(), 90);
        assert_eq!(check_whole(&disk.after_kill().open_logged(applied_by)).len(), 90);
    }
}

/// Writes more than the log takes, and deletes a part of what `ada` has.
fn write_large(store: &RedbStore) -> Result<(), Error> {
    store.write(&mut |transaction| {
        transaction.put(Table::ALL[9], b"large", &vec![7; 200_000])?;
        transaction.delete(Table::ALL[0], b"ada")?;
        Ok(Decision::Commit)
    })
}

/// A disk on which these were written, with a log that has all of them, as a kill leaves it.
fn crashed(ids: &[&str]) -> Disk {
    let disk = Disk::new();
    // A thread would apply what it has, if the next write came late.
    let store = disk.open_with(&with_log(AppliedBy::Callers)).unwrap();
    for id in ids {
        write_five(&store, id).unwrap();
    }
    disk.after_kill()
}

/// The error of opening a disk, which leaves file and log as they are.
#[track_caller]
fn refused(disk: &Disk, options: &RedbOptions) -> Error {
    let before = (disk.bytes(), disk.log_bytes());
    let error = disk.open_with(options).unwrap_err();
    assert!(before == (disk.bytes(), disk.log_bytes()), "something was changed");
    error
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

fn with_log(applied_by: AppliedBy) -> RedbOptions {
    let log = LogOptions::default().applied_by(applied_by);
    RedbOptions::default().log(log)
}

fn large_log() -> RedbOptions {
    with_log(AppliedBy::Thread)
}

fn without_log() -> RedbOptions {
    RedbOptions::default().log(None)
}

fn discarding() -> RedbOptions {
    RedbOptions::default().discard_damaged_log(true)
}

/// What a copy of the file has, without its log.
fn copy_without_log(path: &Path) -> Vec<String> {
    let (_folder, copy) = place();
    fs::copy(path, &copy).unwrap();
    check_whole(&RedbStore::open_with(&copy, &without_log()).unwrap())
}

/// What the file has without its log.
fn in_the_file(disk: &Disk) -> Vec<String> {
    check_whole(&Disk::holding(disk.bytes()).open_with(&discarding()).unwrap())
}
