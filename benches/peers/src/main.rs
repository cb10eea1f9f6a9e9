//! What the activity list costs beside what else one could use: Tidings' index on redb and in
//! memory, SQLite, and PostgreSQL if there is one, with the same notifications and the same
//! fifteen shapes of questions, in one run. Every answer of everybody is compared with a look at
//! all notifications, and the run stops at the first that differs.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml
//! ```
//!
//! This is about a million notifications. Of several sizes there is a picture as well,
//! `latency.svg`, and the section between the marks of a file can be replaced:
//!
//! ```text
//! TIDINGS_BENCH_SIZES=10000,100000,1000000,10000000 \
//!     cargo run --release --manifest-path benches/peers/Cargo.toml -- --markdown BENCHMARKS.md
//! ```
//!
//! PostgreSQL needs a server, in which a schema `tidings_bench` is made and dropped again. Sizes
//! above a million are not put into it.
//!
//! ```text
//! initdb -D "$HOME/pg" -A trust -U bench
//! pg_ctl -D "$HOME/pg" -w start -o "-p 5499 -k $HOME/pg -c shared_buffers=1GB -c max_wal_size=4GB"
//! TIDINGS_BENCH_POSTGRES="host=$HOME/pg port=5499 user=bench dbname=postgres" \
//!     cargo run --release --features postgres --manifest-path benches/peers/Cargo.toml
//! ```
//!
//! What is fair: each database has the best of many statements that was found for each shape,
//! prepared, with numbers in place of names. Tidings gets names, and looks them up. A commit of
//! Tidings waits for the disk, one of the others does not.

use std::fs;
use std::path::Path;

use peak_alloc::PeakAlloc;

use crate::options::Options;
use crate::outcome::Outcome;
use crate::sqlite::Sqlite;
use crate::system::Peer;

mod beside;
mod compare;
mod facts;
mod load;
mod options;
mod oracle;
mod outcome;
mod plot;
#[cfg(feature = "postgres")]
mod postgresql;
mod report;
mod sql;
mod sqlite;
mod system;
mod tidings;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

fn main() {
    let options = Options::read();
    // Readers and writers are looked at in the middle of it.
    let middle = options.sizes.iter().copied().min_by_key(|size| size.abs_diff(1_000_000));
    let mut outcomes = Vec::new();
    let mut text = String::new();
    for &size in &options.sizes {
        let folder = tempfile::tempdir().unwrap();
        let peers = peers(size, folder.path(), &options);
        let mut outcome = outcome::measure(size, folder.path(), peers, Some(size) == middle);
        let report = report::report(&mut outcome);
        println!("{report}");
        text.push_str(&report);
        outcomes.push(outcome);
    }
    if let Some(file) = &options.markdown {
        replace(file, &text);
    }
    if let [_, _, ..] = outcomes.as_slice() {
        draw(&outcomes, &options.plot);
    }
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

const MARKS: [&str; 2] = ["<!-- peers: made by benches/peers -->\n", "<!-- /peers -->"];

// Puts `text` between the marks of the file.
fn replace(file: &Path, text: &str) {
    let old = fs::read_to_string(file).unwrap();
    let (before, rest) = old.split_once(MARKS[0]).expect("the file has no mark");
    let (_, after) = rest.split_once(MARKS[1]).expect("the file has no second mark");
    fs::write(file, [before, MARKS[0], "\n", text, MARKS[1], after].concat()).unwrap();
}

fn draw(outcomes: &[Outcome], path: &Path) {
    plot::draw(outcomes, path).unwrap();
    println!("{}", path.display());
}
