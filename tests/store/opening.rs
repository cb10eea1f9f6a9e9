//! Opening a file says exactly what is wrong with it, and does not touch what is not ours.

use std::fs;
use std::path::Path;

use redb::{Database, TableDefinition};
use store::Error;
use store::layout::FORMAT;
use store::redb::{RedbOptions, RedbStore};
use tempfile::tempdir;

use crate::{check_whole, place, write_five};

#[test]
fn a_new_file_becomes_a_store() {
    let (_folder, path) = place();
    write_five(&RedbStore::open(&path).unwrap(), "ada").unwrap();
    assert_eq!(check_whole(&RedbStore::open(&path).unwrap()), ["ada"]);
}

#[test]
fn an_empty_file_becomes_a_store() {
    let (_folder, path) = place();
    fs::write(&path, "").unwrap();
    write_five(&RedbStore::open(&path).unwrap(), "ada").unwrap();
    assert_eq!(check_whole(&RedbStore::open(&path).unwrap()), ["ada"]);
}

#[test]
fn an_empty_database_becomes_a_store() {
    let (_folder, path) = place();
    drop(Database::create(&path).unwrap());
    write_five(&RedbStore::open(&path).unwrap(), "ada").unwrap();
    assert_eq!(check_whole(&RedbStore::open(&path).unwrap()), ["ada"]);
}

/// No file, an empty one and an empty database, each alone and with a log beside it.
#[test]
fn a_store_that_is_not_there_is_not_created_if_it_is_to_exist() {
    let existing = RedbOptions::default().create(false);
    let empty = database(|path| drop(Database::create(path).unwrap()));
    for left in [None, Some(Vec::new()), Some(empty)] {
        for log in [None, Some("a log")] {
            let (folder, path) = place();
            let beside = folder.path().join("store.redb-log");
            if let Some(left) = &left {
                fs::write(&path, left).unwrap();
            }
            if let Some(log) = log {
                fs::write(&beside, log).unwrap();
            }

            let error = RedbStore::open_with(&path, &existing).unwrap_err();

            assert!(matches!(&error, Error::NoStore { .. }), "{error:?}");
            let text = format!("there is no notification store at `{}`", path.display());
            assert_eq!(error.to_string(), text);
            assert!(!error.is_retryable());
            assert!(fs::read(&path).ok() == left, "the file was changed");
            assert_eq!(fs::read_to_string(&beside).ok().as_deref(), log);
        }
    }
}

#[test]
fn a_store_that_is_to_exist_is_opened_with_its_log() {
    let (folder, path) = place();
    let existing = RedbOptions::default().create(false);
    let beside = folder.path().join("store.redb-log");
    let store = RedbStore::open(&path).unwrap();
    write_five(&store, "ada").unwrap();
    assert!(beside.exists());
    for (from, to) in [(&path, "copy.redb"), (&beside, "copy.redb-log")] {
        fs::copy(from, folder.path().join(to)).unwrap();
    }
    drop(store);

    assert_eq!(check_whole(&RedbStore::open_with(&path, &existing).unwrap()), ["ada"]);
    let crashed = folder.path().join("copy.redb");
    assert_eq!(check_whole(&RedbStore::open_with(&crashed, &existing).unwrap()), ["ada"]);

    let nowhere = folder.path().join("missing").join("store.redb");
    let error = RedbStore::open_with(&nowhere, &existing).unwrap_err();
    assert!(matches!(&error, Error::NoFolder { .. }), "{error:?}");
}

#[test]
fn what_is_not_ours_is_refused_and_left_alone() {
    check_foreign(b"Dear diary,");
    check_foreign(b"x");
    check_foreign(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    check_foreign(&[0; 8192]);
    check_foreign(&database(|path| put(path, TableDefinition::new("songs"), b"title", b"Fly")));
    check_foreign(&database(|path| put(path, TableDefinition::new("meta"), b"title", b"Fly")));
    check_foreign(&database(|path| {
        let other: TableDefinition<u64, u64> = TableDefinition::new("meta");
        let database = Database::create(path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(other).unwrap().insert(1, 2).unwrap();
        transaction.commit().unwrap();
        crash(database);
    }));
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let newer = FORMAT + 1;
    let bytes = database(|path| {
        drop(RedbStore::open(path).unwrap());
        put(path, TableDefinition::new("meta"), b"format", &newer.to_be_bytes());
    });
    check(&bytes, |error, path| {
        assert!(matches!(error, Error::NewerFormat { found, .. } if *found == newer), "{error:?}");
        let path = path.display();
        let expected =
            format!("`{path}` has format {newer}, and this version knows formats up to {FORMAT}");
        assert_eq!(error.to_string(), expected);
    });
}

#[test]
fn an_older_format_is_refused_and_left_alone() {
    let bytes = database(|path| {
        drop(RedbStore::open(path).unwrap());
        put(path, TableDefinition::new("meta"), b"format", &1_u32.to_be_bytes());
    });
    check(&bytes, |error, path| {
        assert!(matches!(error, Error::OlderFormat { found: 1, .. }), "{error:?}");
        let path = path.display();
        let oldest = "2 is the oldest that this version reads";
        let expected = format!("`{path}` has format 1, and {oldest}");
        assert_eq!(error.to_string(), expected);
    });
}

#[test]
fn a_truncated_file_is_damaged_and_left_alone() {
    let whole = database(|path| write_five(&RedbStore::open(path).unwrap(), "ada").unwrap());
    for len in [9, 100, 320, 4096, 5000, 8192, whole.len() / 2, whole.len() - 4096] {
        check(&whole[..len], |error, path| {
            assert!(matches!(error, Error::Damaged { .. }), "{len} bytes: {error:?}");
            assert_eq!(error.to_string(), format!("`{}` is damaged", path.display()));
        });
    }
}

#[test]
fn a_file_without_its_format_is_damaged() {
    let bytes = database(|path| {
        drop(RedbStore::open(path).unwrap());
        put(path, TableDefinition::new("meta"), b"format", b"one");
    });
    check(&bytes, |error, _| assert!(matches!(error, Error::Damaged { .. }), "{error:?}"));
}

#[test]
fn a_file_is_open_once() {
    let (_folder, path) = place();
    let first = RedbStore::open(&path).unwrap();
    let error = RedbStore::open(&path).unwrap_err();
    assert!(matches!(&error, Error::AlreadyOpen { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("`{}` is already open", path.display()));

    drop(first);
    RedbStore::open(&path).unwrap();
}

#[test]
fn a_place_where_no_file_can_be_is_named() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    let error = RedbStore::open(path).unwrap_err();
    assert!(matches!(&error, Error::Unopenable { .. }), "{error:?}");
    let text = format!("`{}` cannot be opened: Is a directory (os error 21)", path.display());
    assert_eq!(error.to_string(), text);

    let missing = folder.path().join("missing");
    let path = missing.join("store.redb");
    let error = RedbStore::open(&path).unwrap_err();
    assert!(matches!(&error, Error::NoFolder { .. }), "{error:?}");
    let text = "cannot open `PATH`: the folder `FOLDER` does not exist";
    let text = text.replace("PATH", &path.display().to_string());
    assert_eq!(error.to_string(), text.replace("FOLDER", &missing.display().to_string()));
}

/// The name of the log is longer than that of its file, and may be too long alone.
#[test]
#[cfg(target_os = "linux")]
fn no_file_is_made_if_its_log_cannot_be_looked_for() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("n".repeat(255));

    let error = RedbStore::open(&path).unwrap_err();

    assert!(matches!(&error, Error::Unopenable { .. }), "{error:?}");
    assert!(error.to_string().starts_with(&format!("`{}-log` cannot be opened", path.display())));
    assert!(!error.is_retryable());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a file is left");
}

/// A device without room, and one that keeps nothing.
#[test]
#[cfg(target_os = "linux")]
fn an_error_of_the_backend_names_its_cause() {
    let error = RedbStore::open("/dev/null").unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(!cause.is_empty() && error.to_string().ends_with(&format!(": {cause}")), "{error}");
}

fn check_foreign(bytes: &[u8]) {
    check(bytes, |error, path| {
        assert!(matches!(error, Error::NotOurs { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("`{}` is not a notification store", path.display()));
    });
}

/// Opens a file with `bytes` in it, which fails and leaves them as they are.
fn check(bytes: &[u8], expect: impl Fn(&Error, &Path)) {
    let (_folder, path) = place();
    fs::write(&path, bytes).unwrap();
    for verify in [false, true] {
        let options = RedbOptions::default().verify(verify);
        expect(&RedbStore::open_with(&path, &options).unwrap_err(), &path);
        assert!(fs::read(&path).unwrap() == bytes, "the file was changed");
    }
}

/// The bytes of the file that `make` makes.
fn database(make: impl Fn(&Path)) -> Vec<u8> {
    let (_folder, path) = place();
    make(&path);
    fs::read(path).unwrap()
}

type Rows = TableDefinition<'static, &'static [u8], &'static [u8]>;

fn put(path: &Path, table: Rows, key: &[u8], value: &[u8]) {
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert(key, value).unwrap();
    transaction.commit().unwrap();
}

/// Leaves a database as a crash does.
fn crash(database: Database) {
    std::mem::forget(database);
}
