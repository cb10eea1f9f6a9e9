//! No acknowledged write is lost when the process is killed, and none appears in parts.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use store::redb::RedbStore;
use tempfile::tempdir;

use crate::{check_contains, check_whole, scale, write_five};
use testkit::disk::Dice;

/// Tells the child which file to write to, and what to begin its ids with.
const FILE: &str = "TIDINGS_KILL_FILE";
const ROUND: &str = "TIDINGS_KILL_ROUND";

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let mut dice = Dice::new(1);
    let mut acknowledged = Vec::new();
    for round in 0..5 * scale() {
        acknowledged.extend(write_until_killed(&path, round, dice.roll(60)));
        let found = check_whole(&RedbStore::open(&path).unwrap());
        check_contains(&found, &acknowledged);
    }
    assert!(!acknowledged.is_empty());
}

/// Runs [`child`] in another process for some milliseconds, and returns what it acknowledged.
fn write_until_killed(path: &Path, round: u64, millis: u64) -> Vec<String> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture"])
        .env(FILE, path)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = output.lines().map_while(Result::ok).filter_map(|line| {
        line.strip_prefix("acknowledged ")?.strip_suffix(';').map(str::to_owned)
    });
    let first = acknowledged.next();
    thread::scope(|scope| {
        let rest = scope.spawn(|| acknowledged.collect::<Vec<_>>());
        thread::sleep(Duration::from_millis(millis));
        child.kill().unwrap();
        child.wait().unwrap();
        first.into_iter().chain(rest.join().unwrap()).collect()
    })
}

/// Not a test, but what the other process does.
#[test]
fn child() {
    let (Ok(file), Ok(round)) = (env::var(FILE), env::var(ROUND)) else { return };
    let store = &RedbStore::open(file).unwrap();
    let write = |writer, id| {
        let id = format!("{round}-{writer}-{id}");
        write_five(store, &id).unwrap();
        println!("acknowledged {id};");
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
