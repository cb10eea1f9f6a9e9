//! What notifications cost in Tidings, beside the same rows by hand in SQLite and, for the list, in
//! PostgreSQL. All systems get the same data in one run, take turns, and have to give the same
//! answers. Each section is a command:
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- write --notifications 35000
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- inbox --notifications 10000
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- subscribers --notifications 100000
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- list --notifications 1000000
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- beside --notifications 1000000
//! ```
//!
//! In `subscribers` the number is that of the subscribers.
//! Without a section all of them run. `--markdown BENCHMARKS.md` puts the tables between the marks
//! of the file. `--rounds 3` makes the rows of `write` three times as long, and `--no-log` gives
//! Tidings no log before redb there.
//!
//! The memory of the activity index is counted with the feature `memory`.
//!
//! PostgreSQL needs a server, in which a schema `tidings_bench` is made and dropped again. Sizes
//! above a million are not put into it.
//!
//! ```text
//! initdb -D "$HOME/pg" -A trust -U bench
//! pg_ctl -D "$HOME/pg" -w start -o "-p 5499 -k $HOME/pg -c shared_buffers=1GB -c max_wal_size=4GB"
//! TIDINGS_BENCH_POSTGRES="host=$HOME/pg port=5499 user=bench dbname=postgres" \
//!     cargo run --release --features postgres --manifest-path benches/peers/Cargo.toml -- list
//! ```

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::options::{Options, Section};

mod inbox;
mod list;
mod options;
mod sample;
mod sqlite;
mod subscribers;
mod table;
mod write;

#[cfg(feature = "memory")]
#[global_allocator]
static ALLOCATED: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

// Number of bytes that are allocated. `None` without the feature `memory`: counting slows down what is
// written in Rust, and not SQLite.
fn allocated() -> Option<usize> {
    #[cfg(feature = "memory")]
    let bytes = Some(ALLOCATED.current_usage());
    #[cfg(not(feature = "memory"))]
    let bytes = None;
    bytes
}

fn main() {
    let options = Options::read();
    for section in &options.sections {
        let text = match section {
            Section::Write => write::run(&options),
            Section::Inbox => inbox::run(&options),
            Section::Subscribers => subscribers::run(&options),
            Section::List => list::run(&options),
            Section::Beside => list::run_beside(&options),
        };
        if let Some(file) = &options.markdown {
            replace(file, section.name(), &text);
        }
    }
}

// Puts `text` between the marks of the section in the file.
fn replace(file: &Path, section: &str, text: &str) {
    let (start, end) =
        (format!("<!-- peers {section} -->\n"), format!("<!-- /peers {section} -->"));
    let old = fs::read_to_string(file).unwrap();
    let (before, rest) = old.split_once(&start).expect("the file has no mark of the section");
    let (_, after) = rest.split_once(&end).expect("the file has no second mark");
    let commit = format!("\nTaken at commit `{}`.\n\n", commit());
    fs::write(file, [before, &start, &commit, text, &end, after].concat()).unwrap();
}

// The commit of the working tree, with a mark if there are changes.
fn commit() -> String {
    let arguments = ["describe", "--always", "--abbrev=7", "--dirty"];
    let output = Command::new("git").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().into()
}
