//! Durable triggers, beside the same rows by hand in SQLite.
//!
//! Both systems get the same calls: random recipients, random transaction ids, five context sets
//! and twenty workflows. `Ok` means durable in both. A turn of a system ends when its threads have
//! come to rest, so that no system works in the turn of the other one. Before and after the rows,
//! both have to give the same answers.
//!
//! What SQLite is given: WAL with `synchronous = FULL`, more cache than Tidings, the leanest schema
//! that was found, integers in place of ids, no counters of inboxes, no preferences, a group commit
//! by hand, and the better of two sizes of its log for each figure.

use std::path::Path;

use bench_data::Calls;

use crate::options::Options;
use crate::write::disk::Meter;
use crate::write::plan::Row;
use crate::write::sqlite::{Checkpoint, Sqlite};
use crate::write::system::{Call, System};
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
        let text = measure(size, options.rounds);
        println!("{text}");
        text
    });
    texts.collect()
}

fn measure(size: u64, rounds: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut systems = systems(folder.path());
    let subscribers = usize::try_from(size / 10).unwrap().max(10_000);
    let mut calls = Calls::new(SEED, subscribers);
    fill(&mut systems, &mut calls, size);
    system::compare(&systems, subscribers);
    let meter = Meter::new(folder.path());
    let rows: Vec<_> = plan::rows()
        .into_iter()
        .map(|row| {
            eprintln!("{size}: {}", row.name);
            let samples = turns::measure(&row, rounds, &mut systems, &mut calls, &meter);
            (row, samples)
        })
        .collect();
    system::compare(&systems, subscribers);
    report::report(size, &systems, rows)
}

// The last one is compared with the best of the others.
fn systems(folder: &Path) -> Vec<Box<dyn System>> {
    vec![
        Box::new(Sqlite::create(&folder.join("often.db"), Checkpoint::Often)),
        Box::new(Sqlite::create(&folder.join("rarely.db"), Checkpoint::Rarely)),
        Box::new(Tidings::create(&folder.join("tidings.redb"))),
    ]
}

fn fill(systems: &mut [Box<dyn System>], calls: &mut Calls, size: u64) {
    let whole = Row { events: 100, recipients: 100, ..Row::FIRST };
    for _ in 0..size.div_ceil(whole.notifications()) {
        let call: Call = whole.call(calls);
        for system in systems.iter_mut() {
            system.fill(&call);
        }
    }
    for system in systems {
        system.reopen();
    }
}
