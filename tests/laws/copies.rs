//! Backups and copies are the state of one moment, whole or not there.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use serde_json::json;
use store::memory::MemoryStore;
use store::redb::{RedbStore, restore, restore_with};
use store::{Decision, Store, Table};
use tempfile::tempdir;
use testkit::disk::PAGE;
use testkit::kill::{acknowledge, file_of_child, work_until_killed};
use testkit::tables::dump;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::Trigger;
use tidings::{Engine, Error, RecordingProvider, Scope};

use crate::full::SmallDisk;
use crate::parsed;
use crate::seeded::{self, copy};

/// Backups under two writers and a worker: sound, with all that was acknowledged before.
#[test]
fn a_backup_is_the_state_of_one_moment() {
    let folder = tempdir().unwrap();
    let builder = Engine::builder().default_provider(RecordingProvider::default());
    let engine = &builder.open(folder.path().join("tidings.redb")).unwrap();
    let env = &crate::full::prepared(engine);
    let (acknowledged, is_over) = (&Mutex::new(Vec::new()), &AtomicBool::new(false));
    let worker = engine.worker().threads(1).start().unwrap();
    thread::scope(|scope| {
        for writer in 0..2 {
            scope.spawn(move || {
                for id in (0..).map(|round| format!("{writer}-{round}")) {
                    if is_over.load(SeqCst) {
                        return;
                    }
                    env.events().trigger(&event(&id)).unwrap();
                    acknowledged.lock().unwrap().push(id);
                }
            });
        }
        for round in 0..4 {
            thread::sleep(Duration::from_millis(150));
            let path = folder.path().join(format!("copy-{round}.redb"));
            let before = acknowledged.lock().unwrap().clone();
            let copied = engine.backup(&path).unwrap();
            assert!(copied.is_finished && copied.entries > 0);
            check_copy(&path, &before);
        }
        is_over.store(true, SeqCst);
    });
    let _ = worker.stop(Duration::from_secs(10));
    assert_eq!(engine.check().unwrap().findings, []);
}

#[track_caller]
fn check_copy(path: &Path, before: &[String]) {
    let left: Vec<_> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with("-partial") || name == "copy.redb-log")
        .collect();
    assert_eq!(left, Vec::<String>::new());
    let engine = Engine::open(path).unwrap();
    assert_eq!(engine.check().unwrap().findings, []);
    let env = engine.organization("acme").unwrap().development().unwrap();
    for id in before {
        let known = env.events().progress(id.as_str());
        assert!(known.is_ok(), "{id} was acknowledged before, and is not there");
    }
}

/// What is there stays, and nothing is beside it.
#[test]
fn a_backup_takes_no_place() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("copy.redb");
    let world = copy();
    for taken in ["copy.redb", "copy.redb-log"] {
        fs::write(folder.path().join(taken), "mine").unwrap();
        let error = world.engine.backup(&path).unwrap_err();
        assert!(matches!(error, Error::Store(store::Error::TargetExists { .. })), "{error:?}");
        assert_eq!(error.status(), 409);
        assert_eq!(fs::read(folder.path().join(taken)).unwrap(), b"mine");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::remove_file(folder.path().join(taken)).unwrap();
    }
    assert!(world.engine.backup(&path).unwrap().is_finished);
    assert!(dump(&RedbStore::open(&path).unwrap()) == dump(&world.store));
}

/// A process ended when its backup had a name, and the part still had the other one. The next backup is
/// another file.
#[cfg(unix)]
#[test]
fn a_backup_does_not_change_an_earlier_one() {
    let folder = tempdir().unwrap();
    let [path, earlier, part] =
        ["copy.redb", "monday.redb", "copy.redb-partial"].map(|name| folder.path().join(name));
    let world = copy();
    assert!(world.engine.backup(&earlier).unwrap().is_finished);
    fs::hard_link(&earlier, &part).unwrap();
    let before = fs::read(&earlier).unwrap();
    world.env.topics().create(&parsed(json!({ "key": "tuesday" }))).unwrap();

    assert!(world.engine.backup(&path).unwrap().is_finished);

    assert!(fs::read(&earlier).unwrap() == before, "the earlier backup has changed");
    assert!(dump(&RedbStore::open(&path).unwrap()) == dump(&world.store));
}

/// The name of a log is for the engine on its file. A backup there would be overwritten.
#[test]
fn a_backup_does_not_take_the_name_of_a_log() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("shop.redb");
    let engine = Engine::open(&path).unwrap();
    let log = folder.path().join("shop.redb-log");
    assert!(!log.exists(), "nothing is written");

    let error = engine.backup(&log).unwrap_err();

    assert!(matches!(error, Error::Store(store::Error::Unopenable { .. })), "{error:?}");
    let text = "`LOG` cannot be opened: its name is that of the log of `FILE`";
    let text = text.replace("LOG", &log.display().to_string());
    assert_eq!(error.to_string(), text.replace("FILE", &path.display().to_string()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a part is left");
    engine.organization("shop").unwrap().production().unwrap();
    drop(engine);
    Engine::open(&path).unwrap();
}

/// Not even the part of a backup is in the folder of the process.
#[test]
fn a_backup_needs_a_name() {
    let error = copy().engine.backup("").unwrap_err();
    assert!(matches!(error, Error::Store(store::Error::Unopenable { .. })), "{error:?}");
    assert!(!Path::new("-partial").exists(), "a part is left");
}

/// A backup whose process is killed leaves nothing under its name, and the next one goes on.
#[test]
fn a_backup_that_is_killed_has_no_name() {
    for round in 0..4 {
        let folder = tempdir().unwrap();
        let path = folder.path().join("copy.redb");
        let span = Duration::from_millis(round * 7);
        work_until_killed("copies::child", &path, span);
        assert!(!path.exists(), "an unfinished backup has its name");
        let world = copy();
        assert!(world.engine.backup(&path).unwrap().is_finished);
        assert!(dump(&RedbStore::open(&path).unwrap()) == dump(&world.store));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Some(file) = file_of_child() else { return };
    let engine = large();
    let copied = engine.backup_with(&file, |progress| {
        acknowledge(progress.bytes);
        thread::sleep(Duration::from_millis(10));
        ControlFlow::Continue(())
    });
    panic!("it was not killed: {copied:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_backup_without_room_leaves_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("SKIPPED: a disk of its own cannot be mounted here");
        return;
    };
    let engine = large();
    let path = disk.folder().join("copy.redb");
    let error = engine.backup(&path).unwrap_err();
    assert_eq!(error.status(), 507, "{error}");
    assert_eq!(fs::read_dir(disk.folder()).unwrap().count(), 0);
    assert_eq!(engine.check().unwrap().findings, []);
}

/// Somebody deletes the part of a backup, and another backup begins.
#[test]
#[cfg(unix)]
fn a_part_of_another_backup_does_not_get_the_name() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("copy.redb");
    let world = copy();
    let mut is_first = true;
    let error = world.engine.backup_with(&path, |progress| {
        if progress.is_comparing && std::mem::take(&mut is_first) {
            let error = world.engine.backup(&path).unwrap_err();
            assert!(matches!(error, Error::Store(store::Error::AlreadyOpen { .. })), "{error:?}");
            fs::remove_file(folder.path().join("copy.redb-partial")).unwrap();
            let part = world.engine.backup_with(&path, |_| ControlFlow::Break(()));
            assert!(!part.unwrap().is_finished);
        }
        ControlFlow::Continue(())
    });
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Store(store::Error::Replaced { .. })), "{error:?}");
    assert!(!path.exists());
    assert!(world.engine.backup(&path).unwrap().is_finished);
    assert!(dump(&RedbStore::open(&path).unwrap()) == dump(&world.store));
}

/// Each way between the backends, ended and started again after each step.
#[test]
fn a_copy_goes_on_where_it_was_ended() {
    let world = copy();
    let expected = dump(&world.store);
    let folder = tempdir().unwrap();
    let file = Arc::new(RedbStore::open(folder.path().join("copy.redb")).unwrap());
    let memory = Arc::new(MemoryStore::default());
    check_ended_and_copied(&world.engine, &file, &expected);
    check_ended_and_copied(&Engine::builder().build(file), &memory, &expected);
}

#[track_caller]
fn check_ended_and_copied(
    engine: &Engine,
    to: &Arc<impl Store>,
    expected: &[testkit::tables::Entry],
) {
    let mut steps = 0;
    let counted = engine.copy_to_with(&MemoryStore::default(), |_| {
        steps += 1;
        ControlFlow::Continue(())
    });
    assert!(counted.unwrap().is_finished);
    for step in 1..=steps {
        let mut told = 0;
        let copied = engine.copy_to_with(to, |_| {
            told += 1;
            if told == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(!copied.unwrap().is_finished && told == step, "step {step} of {steps}");
        assert!(!dump(to).iter().any(|(table, ..)| *table == Table::Environments));
    }
    let copied = engine.copy_to(to).unwrap();
    assert!(copied.is_finished && dump(to) == expected);
    assert_eq!(copied.entries, expected.len() as u64);
    assert_eq!(copied.entries, copied.tables.iter().map(|table| table.entries).sum::<u64>());
    let error = engine.copy_to(to).unwrap_err();
    assert!(matches!(error, Error::Store(store::Error::TargetInUse)), "{error:?}");
}

#[test]
fn a_copy_that_differs_is_refused() {
    let world = copy();
    let memory = MemoryStore::default();
    let error = world.engine.copy_to_with(&memory, |progress| {
        if progress.is_comparing && progress.table == Table::Subscribers.name() {
            let add = &mut |transaction: &mut dyn store::Transaction| {
                transaction.put(Table::Workflows, b"\xff", b"")?;
                Ok(Decision::Commit)
            };
            memory.write(add).unwrap();
        }
        ControlFlow::Continue(())
    });
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Store(store::Error::CopyDiffers { table: "workflows" })));
}

#[test]
fn a_compaction_that_is_ended_leaves_the_file_as_it_was() {
    let folder = tempdir().unwrap();
    let shop = folder.path().join("shop.redb");
    assert!(copy().engine.backup(&shop).unwrap().is_finished);
    let stopped = RedbStore::compact_with(&shop, |_| ControlFlow::Break(())).unwrap();
    assert!(!stopped.is_finished);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let panics = |_| panic!("a host may panic");
    let ended = catch_unwind(AssertUnwindSafe(|| RedbStore::compact_with(&shop, panics)));
    assert!(ended.is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(dump(&RedbStore::open(&shop).unwrap()) == seeded::entries());
    let mut told = 0;
    let finished = RedbStore::compact_with(&shop, |_| {
        told += 1;
        ControlFlow::Continue(())
    });
    assert!(finished.unwrap().is_finished && told > 0);
    assert!(dump(&RedbStore::open(&shop).unwrap()) == seeded::entries());
}

#[test]
fn a_backup_is_restored_if_it_is_sound() {
    let folder = tempdir().unwrap();
    let [backup, damaged, shop] =
        ["backup.redb", "damaged.redb", "shop.redb"].map(|name| folder.path().join(name));
    let world = copy();
    assert!(world.engine.backup(&backup).unwrap().is_finished);
    let mut bytes = fs::read(&backup).unwrap();
    // All pages but the header.
    bytes.chunks_mut(PAGE).skip(1).for_each(|page| page[PAGE / 8] ^= 1);
    fs::write(&damaged, &bytes).unwrap();

    let error = restore(&damaged, &shop).unwrap_err();
    assert!(matches!(error, store::Error::Damaged { .. }), "{error:?}");
    let error = world.engine.backup(&damaged).unwrap_err();
    assert!(matches!(error, Error::Store(store::Error::TargetExists { .. })), "{error:?}");
    assert!(fs::read(&damaged).unwrap() == bytes, "the damaged backup has changed");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    let bytes = fs::read(&backup).unwrap();
    let mut permissions = fs::metadata(&backup).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&backup, permissions).unwrap();
    let stopped = restore_with(&backup, &shop, |_| ControlFlow::Break(())).unwrap();
    assert!(!stopped.is_finished && !shop.exists());
    let mut told = 0;
    let finished = restore_with(&backup, &shop, |_| {
        told += 1;
        ControlFlow::Continue(())
    });
    assert!(finished.unwrap().is_finished && told > 0);
    assert!(fs::read(&backup).unwrap() == bytes, "the backup has changed");
    // A copy that was cut off is not an empty store.
    fs::write(&damaged, b"").unwrap();
    let error = restore(&damaged, folder.path().join("empty.redb")).unwrap_err();
    assert!(matches!(error, store::Error::NotOurs { .. }), "{error:?}");
    assert!(dump(&RedbStore::open(&shop).unwrap()) == dump(&world.store));
    let error = restore(&backup, &shop).unwrap_err();
    assert!(matches!(error, store::Error::TargetExists { .. }), "{error:?}");
}

/// The part of a backup has no environments until all else is there. It is not taken for a whole store.
#[test]
fn an_unfinished_backup_is_not_restored() {
    let folder = tempdir().unwrap();
    let [backup, part, shop] =
        ["copy.redb", "copy.redb-partial", "shop.redb"].map(|name| folder.path().join(name));
    let world = copy();
    let mut steps = 0;
    let counted = world.engine.copy_to_with(&MemoryStore::default(), |_| {
        steps += 1;
        ControlFlow::Continue(())
    });
    assert!(counted.unwrap().is_finished);
    for step in [1, 2, steps / 2, steps - 1, steps] {
        let mut told = 0;
        let stopped = world.engine.backup_with(&backup, |_| {
            told += 1;
            if told == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(!stopped.unwrap().is_finished);

        let error = restore(&part, &shop).unwrap_err();

        assert!(matches!(error, store::Error::UnfinishedCopy), "{error:?}");
        assert!(!error.is_retryable());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was restored");
        fs::remove_file(&part).unwrap();
    }
}

/// An engine on an unfinished copy opens, and a check finds what is missing. Its copy would be no better.
#[test]
fn an_unfinished_copy_is_not_copied() {
    let world = copy();
    let memory = Arc::new(MemoryStore::default());
    let mut told = 0;
    let stopped = world.engine.copy_to_with(&memory, |_| {
        told += 1;
        if told == 40 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(!stopped.unwrap().is_finished);
    let part = Engine::builder().build(Arc::clone(&memory));
    assert_ne!(part.check().unwrap().findings, []);

    let target = MemoryStore::default();
    let error = part.copy_to(&target).unwrap_err();
    assert!(matches!(error, Error::Store(store::Error::UnfinishedCopy)), "{error:?}");
    assert_eq!(error.status(), 409);
    assert!(dump(&target).is_empty());

    // A repair makes environments for the records, and the store is whole again.
    assert!(part.repair().unwrap().is_finished);
    assert!(part.copy_to(&target).unwrap().is_finished);
}

/// A store without any environment is whole, also if the last one was deleted.
#[test]
fn an_empty_store_is_restored() {
    let folder = tempdir().unwrap();
    let keys = || {
        let key = tidings::sealing::SealingKey::from_bytes([7; 32]);
        tidings::sealing::Keyring::new(1, key)
    };
    for (name, is_used) in [("new", false), ("used", true)] {
        let [backup, shop] =
            ["backup", "shop"].map(|of| folder.path().join(format!("{name}-{of}")));
        let engine = Engine::builder().sealing(keys()).build(MemoryStore::default());
        let organization = engine.organization("acme").unwrap();
        if is_used {
            let env = organization.development().unwrap();
            add_subscribers(&env, 2);
            env.events().trigger(&event("first")).unwrap_err();
            assert!(organization.delete().unwrap().is_finished);
        }
        assert!(engine.backup(&backup).unwrap().is_finished);
        assert!(restore(&backup, &shop).unwrap().is_finished);
        let restored = Engine::builder().sealing(keys()).open(&shop).unwrap();
        assert!(restored.copy_to(&MemoryStore::default()).unwrap().is_finished);
    }
}

/// A backup that cannot be read is named, and stays as it is. Nothing is at the place of the copy.
#[test]
#[cfg(unix)]
fn a_backup_that_cannot_be_read_is_named() {
    let folder = tempdir().unwrap();
    let [missing, nested, ring, locked, shop] =
        ["missing", "folder", "ring", "locked", "shop"].map(|name| folder.path().join(name));
    fs::create_dir(&nested).unwrap();
    std::os::unix::fs::symlink(&ring, &ring).unwrap();
    fs::write(&locked, "mine").unwrap();
    fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let mut rows = vec![(missing, "No such file"), (nested, "is a directory"), (ring, "Too many")];
    // An administrator reads every file.
    if fs::read(&locked).is_err() {
        rows.push((locked, "Permission denied"));
    }
    for (from, cause) in rows {
        let error = restore(&from, &shop).unwrap_err();
        assert!(matches!(error, store::Error::Unopenable { .. }), "{error:?}");
        let text = format!("`{}` cannot be opened: {cause}", from.display());
        assert!(error.to_string().starts_with(&text) && !error.is_retryable(), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

/// An engine with some 10 MB.
fn large() -> Engine {
    let engine = Engine::in_memory();
    let env = engine.organization("acme").unwrap().development().unwrap();
    add_subscribers(&env, 200);
    engine
}

fn add_subscribers(env: &Scope, number: usize) {
    for id in 0..number {
        // Nothing that is easily compressed.
        let mut dice = testkit::dice::Dice::new(id as u64);
        let numbers: Vec<u64> = (0..3_000).map(|_| dice.roll(u64::MAX)).collect();
        let data =
            serde_json::json!({ "subscriberId": format!("s{id}"), "data": { "numbers": numbers } });
        let create: SubscriberCreate = parsed(data);
        env.subscribers().create(&create).unwrap();
    }
}

fn event(id: &str) -> Trigger {
    let ada = serde_json::json!({ "subscriberId": "ada", "email": "ada@example.org" });
    let event = serde_json::json!({ "name": "mail", "to": [ada], "transactionId": id });
    parsed(event)
}
