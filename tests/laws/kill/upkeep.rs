//! Repairs, checks, compactions, restorations and copies in a process that is killed: the next run
//! goes on, and ends with what an undisturbed one has.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use store::Table;
use store::layout::Role;
use store::redb::{RedbStore, restore};
use tempfile::tempdir;
use testkit::dice::Dice;
use testkit::kill::{acknowledge, file_of_child, open, place_in, work_until_killed};
use testkit::postgres::Server;
use testkit::scaled;
use testkit::tables::{Entry, dump, load};
use tidings::Engine;
use tidings::quarantine::{QuarantineQuery, Quarantined};

use crate::seeded::{copy, copy_of, entries};

/// Number of kills of each kind of work.
const KILLS: u64 = 4;

/// Milliseconds that a process works at most.
const LONGEST: u64 = 250;

/// Kills the test of that name while it works on a file in a folder of its own, which is `prepared`,
/// and has the folder checked.
fn each_kill(test: &str, prepared: impl Fn(&Path), check: impl Fn(&Path)) {
    each_kill_on(None, test, prepared, check);
}

/// The same in a schema of a server, if there is one.
fn each_kill_on(
    server: Option<&Server>,
    test: &str,
    prepared: impl Fn(&Path),
    check: impl Fn(&Path),
) {
    for round in 0..scaled(KILLS) {
        let folder = tempdir().unwrap();
        let path = place_in(folder.path(), server);
        prepared(&path);
        let span = Duration::from_millis(Dice::new(round).roll(LONGEST));
        work_until_killed(&format!("kill::upkeep::{test}"), &path, span);
        check(&path);
    }
    println!("{test}: {} kills were made up for", scaled(KILLS));
}

fn file_of(path: &Path, entries: &[Entry]) {
    load(&open(path), entries);
}

/// The seeded world without each fifth row of an index, and with each tenth record damaged.
fn damaged() -> Vec<Entry> {
    let mut left = Vec::new();
    for (number, (table, key, value)) in entries().iter().enumerate() {
        match table.role() {
            Role::IndexOf(_) | Role::Derived(_) if number % 5 == 0 => {}
            Role::Records if number % 10 == 0 && *table != Table::Environments => {
                left.push((*table, key.clone(), b"damaged".to_vec()));
            }
            Role::IndexOf(_) | Role::Derived(_) | Role::Records | Role::Marks => {
                left.push((*table, key.clone(), value.clone()));
            }
        }
    }
    left
}

/// The rows that have one form. Entries of the quarantine, tasks that a repair puts and the logs of jobs that
/// it ends have ids and times of their own, and an index of notifications that was made anew has another
/// generation.
fn of_one_form(entries: Vec<Entry>) -> Vec<Entry> {
    let has_other_forms =
        |table| [Table::Quarantine, Table::Tasks, Table::Notifications].contains(&table);
    let has_one_form = |table: Table| match table.role() {
        Role::Records => !has_other_forms(table),
        Role::IndexOf(of) => !has_other_forms(of),
        Role::Derived(_) | Role::Marks => false,
    };
    entries.into_iter().filter(|(table, ..)| has_one_form(*table)).collect()
}

#[test]
fn a_repair_that_is_killed_goes_on() {
    a_repair_goes_on(None);
}

#[test]
fn on_a_server_a_repair_that_is_killed_goes_on() {
    if let Some(server) = Server::wanted() {
        a_repair_goes_on(Some(server));
    }
}

fn a_repair_goes_on(server: Option<&Server>) {
    let mended = copy_of(&damaged());
    assert!(!mended.engine.check().unwrap().findings.is_empty());
    let report = mended.engine.repair().unwrap();
    assert!(report.put_aside > 10 && report.mended > 10, "{report:?}");
    let mended_rows = dump(&mended.store);
    let (tasks, expected) = (count_of(&mended_rows, Table::Tasks), of_one_form(mended_rows));
    let quarantined = keys_of(
        &mended.engine.quarantine().list(&QuarantineQuery::default().limit(1_000)).unwrap().data,
    );
    each_kill_on(
        server,
        "repair_child",
        |path| file_of(path, &damaged()),
        |path| {
            let store = open(path);
            let engine = Engine::builder().build(Arc::clone(&store));
            assert!(engine.repair().unwrap().is_finished);
            assert_eq!(engine.check().unwrap().findings, []);
            assert_eq!(count_of(&dump(&store), Table::Tasks), tasks);
            let put_aside =
                engine.quarantine().list(&QuarantineQuery::default().limit(1_000)).unwrap().data;
            assert!(of_one_form(dump(&store)) == expected);
            assert_eq!(keys_of(&put_aside), quarantined, "not each record was put aside once");
        },
    );
}

fn count_of(entries: &[Entry], table: Table) -> usize {
    entries.iter().filter(|(of, ..)| *of == table).count()
}

/// The tables and keys of entries of the quarantine.
fn keys_of(entries: &[Quarantined]) -> Vec<(String, String)> {
    let mut keys: Vec<_> = entries.iter().map(|one| (one.table.clone(), one.key.clone())).collect();
    keys.sort();
    keys
}

#[test]
#[ignore = "the other process of a test"]
fn repair_child() {
    let Some(file) = file_of_child() else { return };
    let engine = Engine::builder().build(open(Path::new(&file)));
    loop {
        _ = engine.repair_with(|at| slowly(at.rows)).unwrap();
    }
}

#[test]
fn a_check_that_is_killed_changes_nothing() {
    each_kill(
        "check_child",
        |path| file_of(path, entries()),
        |path| {
            assert_eq!(Engine::open(path).unwrap().check().unwrap().findings, []);
            assert!(dump(&RedbStore::open(path).unwrap()) == entries());
        },
    );
}

#[test]
#[ignore = "the other process of a test"]
fn check_child() {
    let Some(file) = file_of_child() else { return };
    let engine = Engine::open(file).unwrap();
    loop {
        _ = engine.check_with(|at| slowly(at.rows)).unwrap();
    }
}

/// A compaction has put the new file in the place of the old one, or it has not.
#[test]
fn a_compaction_that_is_killed_leaves_a_whole_file() {
    each_kill(
        "compact_child",
        |path| file_of(path, entries()),
        |path| {
            assert!(dump(&RedbStore::open(path).unwrap()) == entries());
            assert!(RedbStore::compact(path).unwrap().is_finished);
            assert!(dump(&RedbStore::open(path).unwrap()) == entries());
            assert_eq!(names(path), ["shop.redb"]);
        },
    );
}

#[test]
#[ignore = "the other process of a test"]
fn compact_child() {
    let Some(file) = file_of_child() else { return };
    loop {
        acknowledge("it begins");
        assert!(RedbStore::compact(&file).unwrap().is_finished);
    }
}

#[test]
fn a_restoration_that_is_killed_leaves_a_whole_file_or_none() {
    each_kill(
        "restore_child",
        |path| drop(copy().engine.backup(backup_of(path)).unwrap()),
        |path| {
            if !path.exists() {
                assert!(restore(backup_of(path), path).unwrap().is_finished);
            }
            assert!(dump(&RedbStore::open(path).unwrap()) == entries());
            assert_eq!(names(path), ["shop.backup", "shop.redb"]);
        },
    );
}

#[test]
#[ignore = "the other process of a test"]
fn restore_child() {
    let Some(file) = file_of_child() else { return };
    loop {
        acknowledge("it begins");
        assert!(restore(backup_of(Path::new(&file)), &file).unwrap().is_finished);
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_copy_that_is_killed_goes_on() {
    a_copy_goes_on(None);
}

#[test]
fn on_a_server_a_copy_that_is_killed_goes_on() {
    if let Some(server) = Server::wanted() {
        a_copy_goes_on(Some(server));
    }
}

fn a_copy_goes_on(server: Option<&Server>) {
    each_kill_on(
        server,
        "copy_child",
        |_| {},
        |path| {
            let world = copy();
            let store = open(path);
            let copied = world.engine.copy_to(&store);
            assert!(copied.unwrap().is_finished);
            assert!(dump(&store) == entries());
        },
    );
}

#[test]
#[ignore = "the other process of a test"]
fn copy_child() {
    let Some(file) = file_of_child() else { return };
    let world = copy();
    let store = open(Path::new(&file));
    let copied = world.engine.copy_to_with(&store, |progress| {
        thread::sleep(Duration::from_millis(10));
        slowly(progress.bytes)
    });
    panic!("it was not killed: {copied:?}");
}

fn slowly(rows: u64) -> ControlFlow<()> {
    acknowledge(rows);
    thread::sleep(Duration::from_millis(2));
    ControlFlow::Continue(())
}

fn backup_of(path: &Path) -> PathBuf {
    path.with_extension("backup")
}

/// The names in the folder of a file.
fn names(path: &Path) -> Vec<String> {
    let folder = fs::read_dir(path.parent().unwrap()).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
