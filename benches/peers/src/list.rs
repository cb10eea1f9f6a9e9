//! The list of operation 22: Tidings' index on redb and in memory, SQLite, and PostgreSQL if there
//! is a server. Every answer is compared with a look at all notifications, and the run stops at the
//! first that differs.
//!
//! Each database has the best of many statements that was found for each shape, prepared, with
//! numbers in place of names. Tidings gets names, and looks them up. A commit of Tidings waits for
//! the disk, one of the others does not.

use std::path::Path;

use crate::list::outcome::Outcome;
use crate::list::sqlite::Sqlite;
use crate::list::system::Peer;
use crate::options::Options;

mod beside;
mod compare;
mod facts;
mod load;
mod oracle;
mod outcome;
mod pages;
mod plot;
#[cfg(feature = "postgres")]
mod postgresql;
mod report;
mod search;
mod sql;
mod sqlite;
mod system;
mod tidings;

/// Number of notifications in a segment of Tidings' index.
const SEGMENT: u64 = 61_440;
const SLACK: u64 = 32;

/// Measures every size, and returns the tables.
pub(crate) fn run(options: &Options) -> String {
    let sizes: Vec<u64> = options.sizes(&[1_000_000]).into_iter().map(full).collect();
    let mut outcomes = Vec::new();
    let mut text = String::new();
    for &size in &sizes {
        let folder = tempfile::tempdir().unwrap();
        let peers = peers(size, folder.path(), options);
        let outcome = outcome::measure(size, folder.path(), peers);
        let report = report::report(&outcome);
        println!("{report}");
        text.push_str(&report);
        outcomes.push(outcome);
    }
    if let [_, _, ..] = outcomes.as_slice() {
        draw(&outcomes);
    }
    text
}

/// Measures readers beside writers, and returns the tables.
pub(crate) fn run_beside(options: &Options) -> String {
    let sizes = options.sizes(&[1_000_000]).into_iter().map(full);
    let texts = sizes.map(|size| {
        let folder = tempfile::tempdir().unwrap();
        let loaded = load::load(size, &folder.path().join("tidings.redb"), Vec::new());
        let text = report::concurrency(size, &mut outcome::concurrency(&loaded));
        println!("{text}");
        text
    });
    texts.collect()
}

// The size nearest to that one with which Tidings has nearly as much unsealed as there can be, its
// worst case, unless that is far off. The last trigger may exceed the size.
fn full(size: u64) -> u64 {
    let full = ((size + SEGMENT / 2) / SEGMENT * SEGMENT).saturating_sub(SLACK);
    if full.abs_diff(size) * 20 < size { full } else { size }
}

fn peers(size: u64, folder: &Path, options: &Options) -> Vec<Box<dyn Peer>> {
    let sqlite: Box<dyn Peer> = Box::new(Sqlite::create(&folder.join("sqlite.db")));
    let postgres = options.postgres.as_deref().and_then(|url| postgres(url, size));
    [Some(sqlite), postgres].into_iter().flatten().collect()
}

#[cfg(feature = "postgres")]
fn postgres(url: &str, size: u64) -> Option<Box<dyn Peer>> {
    let is_small = size <= postgresql::MOST;
    is_small.then(|| Box::new(postgresql::Postgres::create(url)) as Box<dyn Peer>)
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str, _: u64) -> Option<Box<dyn Peer>> {
    panic!("PostgreSQL needs the feature `postgres`")
}

fn draw(outcomes: &[Outcome]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("latency.svg");
    plot::draw(outcomes, &path).unwrap();
    println!("{}", path.display());
}
