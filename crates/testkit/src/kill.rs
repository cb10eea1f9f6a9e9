//! Killing another process while it works.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use store::redb::RedbStore;
use store::{Decision, Store};

use crate::postgres::{Place, Server};

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

/// Runs the test of that name in another process, with `path` as its file, and kills it `span` after
/// its first acknowledgement. Returns what it has acknowledged.
///
/// # Panics
///
/// If the process ends by itself.
pub fn work_until_killed(test: &str, path: &Path, span: Duration) -> Vec<String> {
    let mut child = Command::new(env::current_exe().expect("this is a process"))
        .args(["--exact", test, "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process can be started");
    let output = BufReader::new(child.stdout.take().expect("the output is piped"));
    // A line that was cut off does not end as it should.
    let mut acknowledged = output.lines().map_while(Result::ok).filter_map(|line| {
        line.strip_prefix("acknowledged ")?.strip_suffix(';').map(str::to_owned)
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
