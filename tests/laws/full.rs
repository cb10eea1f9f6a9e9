//! A real file system without room: the engine says so, and goes on when there is room again.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use serde_json::json;
use store::Table;
use tempfile::{TempDir, tempdir};
use testkit::tables::try_dump;
use testkit::waiting::{PATIENCE, wait_until};
use testkit::{child, kill};
use tidings::trigger::Trigger;
use tidings::{Delivery, Engine, Error, Provider, ProviderReceipt, Scope, SendError};

use crate::parsed;
use crate::seeded::email;

/// The file of a child whose files may not grow.
const FILE: &str = "TIDINGS_LAWS_FULL";

/// The largest file of the child, in units of 512 bytes.
const LARGEST: &str = "6000";

/// A provider that counts what it sends.
#[derive(Clone, Debug, Default)]
struct Counted(std::sync::Arc<AtomicUsize>);

impl Provider for Counted {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        self.0.fetch_add(1, SeqCst);
        Ok(ProviderReceipt::default())
    }
}

/// A disk of 6 MB, which another file fills. Needs the right to mount one.
#[test]
#[cfg(target_os = "linux")]
fn an_engine_outlives_a_full_disk() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("SKIPPED: a disk of its own cannot be mounted here");
        return;
    };
    let folder = disk.0.path();
    let ballast = folder.join("ballast");
    let full = || drop(fs::write(&ballast, vec![1; 8 << 20]));
    check_outlives(&folder.join("tidings.redb"), &full, &|| fs::remove_file(&ballast).unwrap());
}

/// Files that may not grow beyond a size, until they may.
#[test]
#[cfg(target_os = "linux")]
fn an_engine_outlives_a_limit_of_its_file() {
    let folder = tempdir().unwrap();
    let limited = "trap '' XFSZ; ulimit -S -f \"$1\"; shift; exec \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, "sh", LARGEST]).env(FILE, folder.path().join("tidings.redb"));
    let [_, errors] = child::passed(&mut child::command_of(shell, "full::child"));
    assert!(!errors.contains("SKIPPED"), "{errors}");
}

/// Not a test, but what the other process does.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "the other process of a test"]
fn child() {
    let Ok(file) = env::var(FILE) else { return };
    let grow = || {
        let of_us = std::process::id().to_string();
        let lifted = Command::new("prlimit").args(["--pid", &of_us, "--fsize=unlimited:"]).status();
        assert!(lifted.is_ok_and(|status| status.success()), "`prlimit` lifts the limit");
    };
    check_outlives(Path::new(&file), &|| (), &grow);
}

/// Fills the disk under an engine with a worker, and checks that both go on when there is room.
fn check_outlives(path: &Path, fill: &dyn Fn(), free: &dyn Fn()) {
    let sent = Counted::default();
    let engine = Engine::builder().default_provider(sent.clone()).open(path).unwrap();
    let worker = engine.worker().threads(2).start().unwrap();
    let env = prepared(&engine);
    let mut acknowledged = vec![trigger(&env).unwrap()];
    fill();
    let error = loop {
        match trigger(&env) {
            Ok(id) => acknowledged.push(id),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 20_000, "the disk is never full");
    };
    assert_eq!((error.status(), error.is_retryable()), (507, true), "{error}");
    for _ in 0..5 {
        let shown = soon(|| env.workflows().get("mail"));
        assert_eq!(shown.identifier().as_str(), "mail");
        if let Err(error) = trigger(&env).map(|id| acknowledged.push(id)) {
            assert_eq!(error.status(), 507, "{error}");
        }
        thread::sleep(Duration::from_millis(20));
    }

    free();
    acknowledged.push(soon(|| trigger(&env)));
    wait_until(|| engine.delivery().next_due().unwrap().is_none());
    assert_eq!(sent.0.load(SeqCst), acknowledged.len(), "each message is sent once");
    assert_eq!(worker.stop(PATIENCE).running, 0);
    check_whole(&engine, &env, &acknowledged);
    drop((env, engine));
    let engine = Engine::open(path).unwrap();
    check_whole(&engine, &prepared(&engine), &acknowledged);
    drop(engine);
    let store = store::redb::RedbStore::open(path).unwrap();
    let transactions = try_dump(&store).unwrap();
    let transactions = transactions.iter().filter(|(table, ..)| *table == Table::Transactions);
    assert_eq!(transactions.count(), acknowledged.len());
}

#[track_caller]
fn check_whole(engine: &Engine, env: &Scope, acknowledged: &[String]) {
    assert_eq!(engine.check().unwrap().findings, []);
    for id in acknowledged {
        let repeated = event().transaction_id(id.as_str()).unwrap();
        let notification = env.events().trigger(&repeated).unwrap();
        assert!(notification.transaction_id.to_string() == *id, "{id} is lost");
    }
}

fn trigger(env: &Scope) -> Result<String, Error> {
    Ok(env.events().trigger(&event())?.transaction_id.to_string())
}

fn event() -> Trigger {
    let ada = json!({ "subscriberId": "ada", "email": "ada@example.org" });
    parsed(json!({ "name": "mail", "to": [ada], "payload": { "text": "x".repeat(20_000) } }))
}

pub(crate) fn prepared(engine: &Engine) -> Scope {
    kill::prepared(engine, "mail", &[email()])
}

/// Calls again as long as the error says so.
#[track_caller]
fn soon<T>(call: impl Fn() -> Result<T, Error>) -> T {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        match call() {
            Ok(done) => return done,
            Err(error) => assert!(error.is_retryable() && Instant::now() < end, "{error}"),
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A disk in memory with a size of its own.
pub(crate) struct SmallDisk(TempDir);

impl SmallDisk {
    pub(crate) fn mount() -> Option<Self> {
        let folder = tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
            .arg(folder.path())
            .output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }
}

impl SmallDisk {
    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}
