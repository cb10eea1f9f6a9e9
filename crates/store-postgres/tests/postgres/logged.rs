//! What the client of the server logs: statements, and no values of them.

use std::env;
use std::ops::Bound::Unbounded;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use log::{LevelFilter, Log, Metadata, Record};
use store::{Decision, Order, Snapshot, Store, Table, WriteBody, WriteScope};
use testkit::postgres::{Place, Server};
use tidings_store_postgres::PostgresStore;
use uuid::Uuid;

/// Tells the child where the schema is.
const CHILD: &str = "TIDINGS_POSTGRES_LOGGED";

const TABLE: Table = Table::Subscribers;

/// Environments whose heads differ.
const ENVIRONMENTS: [u128; 2] = [4, 8];

/// Number of commits behind which a process takes what is in memory for right.
const ROUNDS: u64 = 5;

/// A word of keys and values, and how a debug text shows its bytes.
const CANARY: [&str; 3] = ["canary", "99, 97, 110, 97, 114, 121", "63616e617279"];

/// What was logged at any level.
struct Recorder(Mutex<Vec<String>>);

static RECORDER: Recorder = Recorder(Mutex::new(Vec::new()));

impl Log for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        self.0.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

/// A logger is one of a whole process.
#[test]
fn no_value_is_logged() {
    let Some(server) = Server::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("place");
    server.place().write(&path);
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "logged::child", "--nocapture"]).env(CHILD, &path);
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said:.4000}");
    // A name without a test is no failure.
    let summary = String::from_utf8_lossy(&output.stdout);
    assert!(summary.contains(" 1 passed;"), "the child is not one test: {summary:.4000}");
}

/// Not a test, but what the other process does.
#[test]
fn child() {
    let Some(path) = env::var_os(CHILD) else { return };
    log::set_logger(&RECORDER).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let place = Place::read(Path::new(&path));
    let (here, there) = (place.open(), place.open());
    for round in 0..ROUNDS {
        // Behind the first commits, those of one environment share a statement.
        for environment in ENVIRONMENTS {
            let put = |name: &str| (key(environment, name), format!("canary {round}"));
            let ((known, value), (new, _)) = (put("canary"), put(&format!("canary {round}")));
            write(&here, WriteScope::Environment(Uuid::from_u128(environment).into()), &mut |tx| {
                tx.put(TABLE, &known, value.as_bytes())?;
                tx.put(TABLE, &new, value.as_bytes())?;
                Ok(Decision::Commit)
            });
        }
    }
    // A commit of all environments has a transaction.
    write(&there, WriteScope::Everything, &mut |tx| {
        for environment in ENVIRONMENTS {
            tx.put(TABLE, &key(environment, "canary"), b"the last canary")?;
            tx.delete(TABLE, &key(environment, "canary 0"))?;
        }
        Ok(Decision::Commit)
    });
    for store in [&here, &there] {
        store.read(&mut |view| read(view)).unwrap();
        store.read_pure(&mut |view| read(view)).unwrap();
    }
    log::set_max_level(LevelFilter::Off);
    let texts = RECORDER.0.lock().unwrap();
    assert!(texts.iter().any(|text| text.contains("with parameters")), "nothing is logged");
    for text in &*texts {
        assert!(CANARY.iter().all(|canary| !text.contains(canary)), "{text:.4000}");
    }
}

fn write(store: &PostgresStore, scope: WriteScope, body: &mut WriteBody<'_>) {
    store.write_within(scope, body).unwrap();
}

// Reads an entry, several of them, and a range.
fn read(view: &dyn Snapshot) -> store::Result<()> {
    for environment in ENVIRONMENTS {
        let [one, other] = ["canary", "canary 1"].map(|name| key(environment, name));
        view.get(TABLE, &one, &mut |_| ())?;
        view.get_many(TABLE, &[&one, &other], &mut |_| ())?;
    }
    view.scan(TABLE, &(Unbounded, Unbounded), Order::Ascending, None, &mut |_, _| {
        ControlFlow::Continue(())
    })
}

fn key(environment: u128, name: &str) -> Vec<u8> {
    [&environment.to_be_bytes()[..], name.as_bytes()].concat()
}
