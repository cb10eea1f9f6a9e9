//! Killing another process while it works.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use std::{env, panic, process, thread};

use serde_json::Value;
use store::redb::RedbStore;
use store::{Decision, Store};
use tidings::{Engine, Scope};

use crate::child;
use crate::parsed;
use crate::postgres::{Place, Server};
use crate::world::{active_integration, workflow_of};

// The path of the file that the child works on.
const FILE: &str = "TIDINGS_CHILD_FILE";

// The extension of a file that leads to a schema of a server.
const PLACE: &str = "place";

/// The file that this process is to work on, if [`work_until_killed`] has started it.
pub fn file_of_child() -> Option<String> {
    env::var(FILE).ok()
}

/// The path of a new file in `folder`, or of one that leads to a new schema of a server.
pub fn place_in(folder: &Path, server: Option<&Server>) -> PathBuf {
    let Some(server) = server else { return folder.join("shop.redb") };
    let path = folder.join("shop").with_extension(PLACE);
    server.place().write(&path);
    path
}

/// Opens the store that a path of [`place_in`] leads to. In a schema, transactions of a process that
/// was killed are over then.
///
/// # Panics
///
/// If the store cannot be opened.
pub fn open(path: &Path) -> Arc<dyn Store> {
    if path.extension().is_none_or(|extension| extension != PLACE) {
        return Arc::new(RedbStore::open(path).expect("the file can be opened"));
    }
    let store = Place::read(path).open();
    // It waits for all locks.
    store.write(&mut |_| Ok(Decision::Abort)).expect("the server runs");
    Arc::new(store)
}

/// Acknowledges on standard output that `what` is durable. A line is printed as a whole.
pub fn acknowledge(what: impl std::fmt::Display) {
    println!("acknowledged {what};");
}

/// Ends the process at the first panic. One of a thread would go unnoticed among the others.
pub fn exit_on_panic() {
    panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        process::exit(1);
    }));
}

/// An environment with a workflow of these steps, and with a provider of e-mail. A process after a kill finds
/// what is there.
///
/// # Panics
///
/// If the store fails.
pub fn prepared(engine: &Engine, workflow: &str, steps: &[Value]) -> Scope {
    let env = engine.organization("acme").unwrap().development().unwrap();
    if env.workflows().get(workflow).is_err() {
        env.workflows().create(&parsed(workflow_of(workflow, steps))).unwrap();
        env.integrations().create(&parsed(active_integration("email", "of-the-host"))).unwrap();
    }
    env
}

/// Runs the test of that name in another process, with `path` as its file, and kills it `span` after
/// its first acknowledgement. Returns what it has acknowledged.
///
/// # Panics
///
/// If the process ends by itself.
pub fn work_until_killed(test: &str, path: &Path, span: Duration) -> Vec<String> {
    let mut child = child::command(test)
        .env(FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process can be started");
    let output = BufReader::new(child.stdout.take().expect("the output is piped"));
    // The first line begins with the name of the test. One that was cut off does not end as it should.
    let mut acknowledged = output.lines().map_while(Result::ok).filter_map(|line| {
        let (_, what) = line.split_once("acknowledged ")?;
        what.strip_suffix(';').map(str::to_owned)
    });
    let first = acknowledged.next();
    thread::scope(|scope| {
        let rest = scope.spawn(|| acknowledged.collect::<Vec<_>>());
        thread::sleep(span);
        child.kill().expect("the process can be killed");
        let status = child.wait().expect("the process can be waited for");
        assert_eq!(status.code(), None, "the process has ended by itself");
        first.into_iter().chain(rest.join().expect("the output can be read")).collect()
    })
}
