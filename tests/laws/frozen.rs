//! A file and its log of each version of the format are opened for ever.
//!
//! `tests/golden/files` has them as a killed process has left them, plain and sealed with the key 1,
//! compressed with LZ4: the seeded world, with a row of each table. `v2.answers.jsonl` has the answers
//! to all requests that read.
//!
//! ```text
//! TIDINGS_BLESS=1 cargo test --test laws frozen
//! ```
//!
//! writes those of the present format anew, if the seeded world has changed and nothing was released
//! with the format.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use serde_json::{Value, json};
use store::layout::{FORMAT, OLDEST_FORMAT};
use store::redb::{AppliedBy, LogOptions, RedbOptions, RedbStore};
use store::{Error, Table};
use tempfile::tempdir;
use testkit::disk::{Disk, PAGE};
use testkit::files::log_of;
use testkit::interposed::Interposed;
use testkit::requests::{call, sound, text, writes};
use testkit::sealed::keyring;
use testkit::seeded::{entries, reopened_with};
use testkit::tables::{Entry, check_indexes, dump, load};
use testkit::world::World;
use tidings::subscriber::SubscriberQuery;
use tidings::{Clock, Engine};

use crate::formats;

/// Kinds of files.
const KINDS: [Kind; 2] = [Kind::Plain, Kind::Sealed];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Sealed,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Sealed => "sealed",
        }
    }

    fn keys(self) -> &'static [u32] {
        match self {
            Self::Plain => &[],
            Self::Sealed => &[1],
        }
    }
}

#[test]
fn the_files_of_each_version_are_opened() {
    if std::env::var_os("TIDINGS_BLESS").is_some() {
        bless();
    }
    for version in OLDEST_FORMAT..=FORMAT {
        for kind in KINDS {
            let folder = tempdir().unwrap();
            let path = unpacked(version, kind, folder.path());
            let log = fs::read(log_of(&path)).unwrap();
            assert!(log.len() > PAGE, "the log of {kind:?} is empty");
            let store = RedbStore::open(&path).unwrap();
            if kind == Kind::Plain {
                let expected = [formats::of_version(version), formats::marks(version)].concat();
                assert!(dump(&store) == expected, "{version} has changed");
            }
            check(Arc::new(store), version, kind);
            assert!(!log_of(&path).exists(), "the log of {kind:?} is left");
            // Once more, as a file that was closed.
            drop(RedbStore::open(&path).unwrap());
        }
    }
}

/// A sealed file opens with its key only.
#[test]
fn a_sealed_file_needs_its_key() {
    let folder = tempdir().unwrap();
    let path = unpacked(FORMAT, Kind::Sealed, folder.path());
    for builder in [Engine::builder(), Engine::builder().sealing(keyring(&[2]))] {
        assert!(builder.open(&path).is_err());
    }
    assert!(Engine::builder().sealing(keyring(&[1])).open(&path).is_ok());
}

/// The log belongs to its file: neither is opened without the other.
#[test]
fn a_file_and_its_log_belong_together() {
    let folder = tempdir().unwrap();
    let path = unpacked(FORMAT, Kind::Plain, folder.path());
    fs::remove_file(log_of(&path)).unwrap();
    assert!(matches!(RedbStore::open(&path), Err(Error::LogMissing { .. })));
    let other = unpacked(FORMAT, Kind::Sealed, folder.path());
    fs::copy(log_of(&other), log_of(&path)).unwrap();
    assert!(matches!(RedbStore::open(&path), Err(Error::ForeignLog { .. })));
}

#[track_caller]
fn check(store: Arc<RedbStore>, version: u32, kind: Kind) {
    let world = world(Interposed::over(store), kind);
    check_indexes(&world.store);
    let golden = fs::read_to_string(answers_of(version)).unwrap();
    for (number, golden) in golden.lines().enumerate() {
        let told: Value = serde_json::from_str(golden).unwrap();
        let answer = answer(&world, &told[0]);
        assert_eq!(answer, golden, "{kind:?}: answer {number} of version {version}");
    }
    let count = golden.lines().count();
    assert!(count > 100, "{count}");
    println!("{count} answers of version {version}, {kind:?}, are as they were");
    // What the format did not have is there as well.
    let all = world.env.subscribers().list(&SubscriberQuery::default()).unwrap();
    for subscriber in &all.data {
        formats::check_is_found(&world.env, subscriber);
    }
    check_indexes(&world.store);
    assert!(dump(&world.store).iter().all(|(table, ..)| *table != Table::Backfills));
    // Life goes on.
    world.clock.set(world.clock.now().after(Duration::from_secs(1_000)));
    world.engine.delivery().run_due(usize::MAX).unwrap();
    assert!(!world.recorder.sent().is_empty(), "what was due is not sent");
    check_indexes(&world.store);
}

/// A process that finds the seeded world in `store`.
fn world(store: Interposed, kind: Kind) -> World {
    reopened_with(store, &[], 1, |builder| match kind.keys() {
        [] => builder,
        keys => builder.sealing(keyring(keys)),
    })
}

/// The answers to all requests that read.
fn answers(world: &World) -> Vec<String> {
    let reading = sound().iter().filter(|it| !writes(it[0].as_str().unwrap_or_default()));
    reading.map(|request| answer(world, request)).collect()
}

/// A request with its answer.
fn answer(world: &World, request: &Value) -> String {
    let answer = call(&world.engine, &world.env, request);
    let told = match &answer {
        Ok(answer) => answer.json(),
        Err(_) => json!({ "refused": text(&answer) }),
    };
    json!([request, told]).to_string()
}

fn bless() {
    let folder = tempdir().unwrap();
    let is_there = KINDS.iter().all(|kind| packed(FORMAT, *kind).exists());
    let is_current = is_there && {
        let path = unpacked(FORMAT, Kind::Plain, folder.path());
        dump(&RedbStore::open(path).unwrap()) == entries()
    };
    if !is_current {
        for kind in KINDS {
            let disk = made(kind, entries());
            let (file, log) = (packed(FORMAT, kind), packed_log(FORMAT, kind));
            fs::write(file, compress_prepend_size(&disk.bytes())).unwrap();
            fs::write(log, compress_prepend_size(&disk.log_bytes().unwrap())).unwrap();
        }
    }
    let path = unpacked(FORMAT, Kind::Plain, folder.path());
    let store = Interposed::new(RedbStore::open(path).unwrap());
    let answers = answers(&world(store, Kind::Plain)).join("\n") + "\n";
    fs::write(answers_of(FORMAT), answers).unwrap();
}

/// The files of a process that was killed, with some of the entries in its log only.
fn made(kind: Kind, entries: &[Entry]) -> Disk {
    let disk = Disk::new();
    let log = LogOptions::default().applied_by(AppliedBy::Callers);
    let store = Arc::new(disk.open_with(&RedbOptions::default().log(log)).unwrap());
    let (first, rest) = entries.split_at(entries.len() / 4 * 3);
    load(&*store, first);
    store.checkpoint().unwrap();
    for some in rest.chunks(16) {
        load(&*store, some);
    }
    if kind == Kind::Sealed {
        let engine = Engine::builder().sealing(keyring(kind.keys())).build(Arc::clone(&store));
        let mut runs = 0;
        let report = engine.reseal_with(|_| {
            runs += 1;
            if runs == 4 {
                store.checkpoint().unwrap();
            }
            ControlFlow::Continue(())
        });
        assert!(report.unwrap().is_finished && runs > 5, "{runs}");
    }
    disk.after_kill()
}

/// Puts a file and its log into `folder`. Returns the path of the file.
fn unpacked(version: u32, kind: Kind, folder: &Path) -> PathBuf {
    let path = folder.join(format!("{}.redb", kind.name()));
    for (packed, path) in
        [(packed(version, kind), path.clone()), (packed_log(version, kind), log_of(&path))]
    {
        let bytes = fs::read(packed).unwrap();
        fs::write(path, decompress_size_prepended(&bytes).unwrap()).unwrap();
    }
    path
}

fn packed(version: u32, kind: Kind) -> PathBuf {
    folder().join(format!("v{version}.{}.redb.lz4", kind.name()))
}

fn packed_log(version: u32, kind: Kind) -> PathBuf {
    folder().join(format!("v{version}.{}.redb-log.lz4", kind.name()))
}

fn answers_of(version: u32) -> PathBuf {
    folder().join(format!("v{version}.answers.jsonl"))
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/files")
}
