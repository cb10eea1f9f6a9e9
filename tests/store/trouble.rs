//! What other programs and the operating system do to the files of an open store.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, thread};

use store::memory::MemoryStore;
use store::redb::{AppliedBy, RedbOptions, RedbStore};
use store::{Decision, Error, Store};
use tempfile::{TempDir, tempdir};
use testkit::child;
use testkit::disk::Disk;
use testkit::tables::{dump, try_dump};

use crate::{KINDS, check_contains, check_whole, log_of, place, put_five, write_five};

/// The file that another process opens as well.
const FILE: &str = "TIDINGS_STORE_TROUBLE";

#[test]
#[cfg(unix)]
fn a_log_that_is_deleted_loses_nothing() {
    let (_folder, path) = place();
    let store = RedbStore::open(&path).unwrap();
    write_five(&store, "ada").unwrap();
    write_five(&store, "bob").unwrap();
    fs::remove_file(log_of(&path)).unwrap();
    write_five(&store, "cid").unwrap();
    assert!(log_of(&path).exists(), "there is no other log");

    // Another file under its name is not its log either.
    fs::rename(log_of(&path), path.with_extension("away")).unwrap();
    fs::write(log_of(&path), "mine").unwrap();
    write_five(&store, "dan").unwrap();

    // A link leads to a file that stays as it is.
    let elsewhere = path.with_extension("elsewhere");
    fs::write(&elsewhere, "theirs").unwrap();
    fs::remove_file(log_of(&path)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, log_of(&path)).unwrap();
    write_five(&store, "eve").unwrap();
    assert_eq!(fs::read(&elsewhere).unwrap(), b"theirs");
    let expected = ["ada", "bob", "cid", "dan", "eve"];
    assert_eq!(check_whole(&store), expected);
    let copy = copied(&path);
    assert_eq!(check_whole(&RedbStore::open(&copy.1).unwrap()), expected);
    drop(store);
    assert_eq!(check_whole(&RedbStore::open(&path).unwrap()), expected);
}

#[test]
#[cfg(unix)]
fn a_file_that_is_gone_takes_no_changes() {
    let remove: fn(&Path) = |path| fs::remove_file(path).unwrap();
    let replace: fn(&Path) = |path| {
        let other = path.with_extension("other");
        fs::write(&other, "another file").unwrap();
        fs::rename(other, path).unwrap();
    };
    let rename: fn(&Path) = |path| fs::rename(path, path.with_extension("away")).unwrap();
    let with_log = RedbOptions::default();
    let without = RedbOptions::default().log(None);
    for (act, options) in
        [remove, replace, rename].into_iter().flat_map(|act| [(act, &with_log), (act, &without)])
    {
        let (_folder, path) = place();
        let store = RedbStore::open_with(&path, options).unwrap();
        write_five(&store, "ada").unwrap();
        act(&path);
        let there = fs::read(&path).ok();
        for _ in 0..2 {
            let error = write_five(&store, "bob").unwrap_err();
            assert!(matches!(error, Error::Replaced { .. }) && !error.is_retryable(), "{error:?}");
            assert!(matches!(store.checkpoint(), Err(Error::Replaced { .. })));
        }
        assert_eq!(check_whole(&store), ["ada"]);
        drop(store);
        assert_eq!(fs::read(&path).ok(), there, "the other file is touched");
        assert_eq!(log_of(&path).exists(), options.log.is_some(), "the log is gone");
        let away = path.with_extension("away");
        if away.exists() {
            fs::rename(away, &path).unwrap();
            assert_eq!(check_whole(&RedbStore::open(&path).unwrap()), ["ada"]);
        }
    }
}

/// Another program cuts the file, or writes into it. What is read is an error or what was there, the
/// store comes back from each call, and what was acknowledged is still in the log: the file as it was
/// and that log are opened with all of it.
#[test]
fn a_file_that_is_cut_or_overwritten_ends_nothing() {
    let cut: fn(&Path) = |path| write_to(path).set_len(8_192).unwrap();
    let empty: fn(&Path) = |path| write_to(path).set_len(0).unwrap();
    let overwrite: fn(&Path) = |path| write_to(path).write_all(&vec![0xa5; 900_000]).unwrap();
    let mut reads = Vec::new();
    for (act, cache_bytes) in
        [cut, empty, overwrite].into_iter().flat_map(|it| [(it, 0), (it, 64 << 20)])
    {
        let (_folder, path) = place();
        let options = RedbOptions::default().cache_bytes(cache_bytes);
        let store = RedbStore::open_with(&path, &options).unwrap();
        let acknowledged = MemoryStore::default();
        let write =
            |id: &str| write_five(&store, id).inspect(|()| write_five(&acknowledged, id).unwrap());
        (0..200).for_each(|id| write(&format!("{id:04}")).unwrap());
        store.checkpoint().unwrap();
        write("in the log").unwrap();
        let whole = fs::read(&path).unwrap();
        act(&path);
        for round in 0..3 {
            let read = try_dump(&store);
            assert!(is_damage(&read), "{read:?}");
            reads.push(read.is_ok());
            if let Ok(read) = read {
                assert!(read == dump(&acknowledged), "other rows are read");
            }
            let written = write(&format!("after {round}"));
            assert!(is_damage(&written), "{written:?}");
            if round == 0 {
                let (_folder, copy) = copied(&path);
                fs::write(&copy, &whole).unwrap();
                let found = check_whole(&RedbStore::open(&copy).unwrap());
                check_contains(&found, &check_whole(&acknowledged));
            }
            let applied = store.checkpoint();
            assert!(is_damage(&applied), "{applied:?}");
        }
    }
    assert!(reads.contains(&true) && reads.contains(&false), "{reads:?}");
}

// Something was done, or the file is damaged.
fn is_damage<T>(done: &Result<T, Error>) -> bool {
    use Error::{Corrupt, Damaged, NeedsReopen};
    matches!(done, Ok(_) | Err(Damaged { .. } | Corrupt { .. } | NeedsReopen { .. }))
}

#[test]
fn a_file_that_becomes_read_only_says_so() {
    for applied_by in [AppliedBy::Thread, AppliedBy::Callers] {
        let disk = Disk::new();
        let store = disk.open_logged(applied_by);
        write_five(&store, "ada").unwrap();
        disk.break_syncs(|| io::ErrorKind::ReadOnlyFilesystem.into());
        for _ in 0..2 {
            let error = write_five(&store, "bob").unwrap_err();
            assert!(matches!(error, Error::ReadOnly { .. }) && !error.is_retryable(), "{error:?}");
        }
        assert_eq!(check_whole(&store), ["ada"]);
    }
}

/// redb shrinks the file behind a commit, and the commit is durable when that fails.
#[test]
fn a_file_that_cannot_be_shrunk_shows_what_was_acknowledged() {
    let refused: fn(&Disk) -> io::Error = |_| io::Error::other("on purpose");
    let full: fn(&Disk) -> io::Error = |_| io::ErrorKind::StorageFull.into();
    for (open, failure) in KINDS.into_iter().flat_map(|open| [(open, refused), (open, full)]) {
        let disk = Disk::new();
        let store = open(&disk).unwrap();
        let acknowledged = MemoryStore::default();
        write_until_shrunk(&store, &acknowledged, &disk, failure).unwrap();
        assert!(dump(&store) == dump(&acknowledged), "what was acknowledged is not there");
        store.checkpoint().unwrap();
        for store in [&store as &dyn Store, &acknowledged] {
            write_five(store, "zzz").unwrap();
        }
        assert!(dump(&store) == dump(&acknowledged), "what was acknowledged is not there");
        drop(store);
        let reopened = open(&disk).unwrap();
        assert!(dump(&reopened) == dump(&acknowledged), "what was acknowledged is lost");
    }
}

/// The file cannot be opened again either. What is read is what was acknowledged.
#[test]
fn a_file_that_cannot_be_shrunk_or_opened_takes_no_changes() {
    for open in KINDS {
        let disk = Disk::new();
        let store = open(&disk).unwrap();
        let acknowledged = MemoryStore::default();
        let failure = |disk: &Disk| {
            disk.unplug_after(0);
            io::Error::other("on purpose")
        };
        let written = write_until_shrunk(&store, &acknowledged, &disk, failure);
        let error = written.and_then(|()| store.checkpoint()).unwrap_err();
        assert!(matches!(error, Error::NeedsReopen { .. }), "{error:?}");
        assert!(dump(&store) == dump(&acknowledged), "what was acknowledged is not there");
        let error = write_five(&store, "zzz").unwrap_err();
        assert!(matches!(error, Error::NeedsReopen { .. }), "{error:?}");
        assert!(dump(&store) == dump(&acknowledged), "what was acknowledged is not there");
    }
}

/// Breaks the next shrink of the file, and writes to both stores until the file was to shrink.
fn write_until_shrunk(
    store: &RedbStore,
    acknowledged: &MemoryStore,
    disk: &Disk,
    failure: fn(&Disk) -> io::Error,
) -> Result<(), Error> {
    disk.break_shrink(failure);
    let mut rounds = 0..300;
    while disk.has_broken_shrink() {
        let round = rounds.next().expect("the file is never to shrink");
        for store in [store as &dyn Store, acknowledged] {
            store.write(&mut |transaction| {
                for id in 0..20 {
                    put_five(transaction, &format!("{round:04}-{id:04}"))?;
                }
                Ok(Decision::Commit)
            })?;
        }
        assert!(dump(store) == dump(acknowledged), "what was acknowledged is not there");
    }
    Ok(())
}

/// Needs the right to mount a disk.
#[test]
#[cfg(target_os = "linux")]
fn a_file_on_a_read_only_disk_says_so() {
    let folder = tempdir().unwrap();
    let mount = |options| {
        let options = ["-t", "tmpfs", "-o", options, "tmpfs"];
        let mounted = Command::new("mount").args(options).arg(folder.path()).output();
        mounted.is_ok_and(|output| output.status.success())
    };
    if !mount("size=8m") {
        eprintln!("SKIPPED: a disk of its own cannot be mounted here");
        return;
    }
    let path = folder.path().join("store.redb");
    write_five(&RedbStore::open(&path).unwrap(), "ada").unwrap();
    assert!(mount("remount,ro"));
    let opened = RedbStore::open(&path).map(drop);
    let missing = RedbStore::open(folder.path().join("other.redb")).map(drop);
    drop(Command::new("umount").arg("-l").arg(folder.path()).status());
    assert!(matches!(opened, Err(Error::ReadOnly { .. })), "{opened:?}");
    assert!(matches!(missing, Err(Error::ReadOnly { .. })), "{missing:?}");
}

/// Two processes do not open one file, and the first one goes on.
#[test]
fn a_file_that_another_process_has_is_refused() {
    let (_folder, path) = place();
    let store = RedbStore::open(&path).unwrap();
    write_five(&store, "ada").unwrap();
    let other = || {
        let [said, _] = child::passed(child::command("trouble::child").env(FILE, &path));
        said
    };
    thread::scope(|scope| {
        let others = [scope.spawn(other), scope.spawn(other)];
        (0..50).for_each(|id| write_five(&store, &format!("{id:02}")).unwrap());
        for other in others {
            assert!(other.join().unwrap().contains("refused;"), "another process has opened it");
        }
    });
    assert_eq!(check_whole(&store).len(), 51);
    drop(store);
    assert!(other().contains("opened;"));
    check_contains(&check_whole(&RedbStore::open(&path).unwrap()), &["ada".to_owned()]);
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Ok(file) = env::var(FILE) else { return };
    match RedbStore::open(file) {
        Ok(_) => println!("opened;"),
        Err(Error::AlreadyOpen { .. }) => println!("refused;"),
        Err(error) => println!("{error:?};"),
    }
}

fn copied(path: &Path) -> (TempDir, PathBuf) {
    let (folder, copy) = place();
    fs::copy(path, &copy).unwrap();
    fs::copy(log_of(path), log_of(&copy)).unwrap();
    (folder, copy)
}

fn write_to(path: &Path) -> File {
    File::options().write(true).open(path).unwrap()
}
