//! Durable triggers, beside the same rows by hand in SQLite.
//!
//! Both systems get the same calls: random recipients, random transaction ids, five context sets
//! and twenty workflows. `Ok` means durable in both. A turn of a system ends when its threads have
//! come to rest, so that no system works in the turn of the other one. Before and after the rows,
//! both have to give the same answers.
//!
//! What SQLite is given: WAL with `synchronous = FULL`, more cache than Tidings, integers in place of
//! ids, no counters of inboxes, no preferences, and a group commit by hand. There are three of it:
//! with the leanest schema that was found, with the same and a larger log, and with the indexes that
//! the section `list` needs for its times.

use std::iter::repeat_with;
use std::path::Path;

use bench_data::Calls;

use crate::options::Options;
use crate::write::disk::Meter;
use crate::write::plan::Row;
use crate::write::sqlite::{Checkpoint, Lists, Sqlite};
use crate::write::system::System;
use crate::write::tidings::Tidings;

mod disk;
mod plan;
mod report;
mod sqlite;
mod system;
mod tidings;
mod turns;

const SEED: u64 = 7;

/// Measures every size, and returns the tables.
pub(crate) fn run(options: &Options) -> String {
    let sizes = options.sizes(&[35_000]);
    let texts = sizes.into_iter().map(|size| {
        let text = measure(size, options);
        println!("{text}");
        text
    });
    texts.collect()
}

fn measure(size: u64, options: &Options) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut systems = systems(folder.path(), options.with_log);
    let subscribers = usize::try_from(size / 10).unwrap().max(10_000);
    let mut calls = Calls::new(SEED, subscribers);
    fill(&mut systems, &mut calls, size);
    system::compare(&systems, subscribers);
    let meter = Meter::new(folder.path());
    let rows: Vec<_> = plan::rows()
        .into_iter()
        .map(|row| {
            eprintln!("{size}: {}", row.name);
            let samples = turns::measure(&row, options.rounds, &mut systems, &mut calls, &meter);
            (row, samples)
        })
        .collect();
    system::compare(&systems, subscribers);
    report::report(size, &systems, rows)
}

// The last one is compared with the best of the others.
fn systems(folder: &Path, with_log: bool) -> Vec<Box<dyn System>> {
    let sqlite = |name: &'static str, checkpoint, lists| -> Box<dyn System> {
        Box::new(Sqlite::create(name, &folder.join(name), checkpoint, lists))
    };
    vec![
        sqlite("SQLite", Checkpoint::Often, Lists::Lean),
        sqlite("SQLite, 32 MB log", Checkpoint::Rarely, Lists::Lean),
        sqlite("SQLite, fast lists", Checkpoint::Rarely, Lists::Covering),
        Box::new(Tidings::create(&folder.join("tidings.redb"), with_log)),
    ]
}

// Every system gets the same calls, of 10,000 notifications each.
fn fill(systems: &mut [Box<dyn System>], calls: &mut Calls, size: u64) {
    let whole = Row { events: 100, recipients: 100, ..Row::FIRST };
    let count = usize::try_from(size.div_ceil(whole.notifications())).unwrap();
    let start = calls.clone();
    for system in systems {
        calls.clone_from(&start);
        system.fill(&mut repeat_with(|| whole.call(calls)).take(count));
    }
}
