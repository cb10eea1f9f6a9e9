//! No acknowledged write is lost when the process is killed, and none appears in parts.

use std::time::Duration;
use std::{process, thread};

use store::redb::RedbStore;
use tempfile::tempdir;
use testkit::dice::Dice;
use testkit::kill::{acknowledge, file_of_child, work_until_killed};
use testkit::scaled;

use crate::{check_contains, check_whole, write_five};

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let mut dice = Dice::new(1);
    let mut acknowledged = Vec::new();
    for _ in 0..scaled(5) {
        let span = Duration::from_millis(dice.roll(60));
        acknowledged.extend(work_until_killed("kill::child", &path, span));
        let found = check_whole(&RedbStore::open(&path).unwrap());
        check_contains(&found, &acknowledged);
    }
    assert!(!acknowledged.is_empty());
    let (kills, told) = (scaled(5), acknowledged.len());
    println!("{kills} kills among {told} acknowledged transactions lost none");
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Some(file) = file_of_child() else { return };
    let store = &RedbStore::open(file).unwrap();
    let write = |writer, id| {
        let id = format!("{}-{writer}-{id}", process::id());
        write_five(store, &id).unwrap();
        acknowledge(id);
    };
    thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                for id in 0_u64.. {
                    write(writer, id);
                }
            });
        }
    });
}
