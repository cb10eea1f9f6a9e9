//! Durable triggers, beside the same rows by hand in SQLite. On PostgreSQL, if there is a server,
//! beside the same rows by hand in PostgreSQL.
//!
//! Both systems get the same calls: random recipients, random transaction ids, five context sets
//! and twenty workflows. `Ok` means durable in both. A turn of a system ends when its threads have
//! come to rest, so that no system works in the turn of the other one. Before and after the rows,
//! both have to give the same answers.
//!
//! What SQLite is given: WAL with `synchronous = FULL`, more cache than Tidings, integers in place of
//! ids, no counters of inboxes, no preferences, and a group commit by hand. There are three of it:
//! with the leanest schema that was found, with the same and a larger log, and with the indexes that
//! the section `list` needs for its times. PostgreSQL is given the leanest schema and the group commit
//! as well, and one statement for all rows of a group.

use std::iter::repeat_with;

use bench_data::Calls;

use crate::options::Options;
use crate::write::disk::Meter;
use crate::write::plan::Row;
use crate::write::sqlite::{Checkpoint, Lists, Sqlite};
use crate::write::system::System;
use crate::write::tidings::Tidings;

mod disk;
mod group;
mod plan;
#[cfg(feature = "postgres")]
mod postgresql;
mod report;
mod rows;
mod sqlite;
mod system;
mod tidings;
mod turns;

const SEED: u64 = 7;

/// Measures every size, and returns the tables.
pub(crate) fn run(options: &Options) -> String {
    let sizes = options.sizes(&[35_000]);
    let texts = sizes.into_iter().map(|size| {
        let in_files = in_files(size, options);
        println!("{in_files}");
        let on_a_server = on_a_server(size, options).unwrap_or_default();
        println!("{on_a_server}");
        in_files + &on_a_server
    });
    texts.collect()
}

fn in_files(size: u64, options: &Options) -> String {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = |name: &'static str, checkpoint, lists| -> Box<dyn System> {
        Box::new(Sqlite::create(name, &folder.path().join(name), checkpoint, lists))
    };
    let systems = vec![
        sqlite("SQLite", Checkpoint::Often, Lists::Lean),
        sqlite("SQLite, 32 MB log", Checkpoint::Rarely, Lists::Lean),
        sqlite("SQLite, fast lists", Checkpoint::Rarely, Lists::Covering),
        Box::new(Tidings::in_file(&folder.path().join("tidings.redb"), options.with_log)),
    ];
    measure((size, options.rounds), "SQLite", systems, &Meter::new(folder.path()))
}

// What the server writes is not counted.
#[cfg(feature = "postgres")]
fn on_a_server(size: u64, options: &Options) -> Option<String> {
    use crate::write::postgresql::{Postgres, Schemas};

    let url = options.postgres.as_deref()?;
    let schemas = Schemas::create(url);
    let systems: Vec<Box<dyn System>> = vec![
        Box::new(Postgres::create(url)),
        Box::new(Tidings::in_postgres(url, Schemas::OF_TIDINGS)),
    ];
    let text = measure((size, options.rounds), "PostgreSQL", systems, &Meter::none());
    drop(schemas);
    Some(text)
}

#[cfg(not(feature = "postgres"))]
fn on_a_server(_: u64, options: &Options) -> Option<String> {
    assert!(options.postgres.is_none(), "PostgreSQL needs the feature `postgres`");
    None
}

// The last system is compared with the best of the others, which have that name together.
fn measure(
    (size, rounds): (u64, usize),
    others: &str,
    mut systems: Vec<Box<dyn System>>,
    meter: &Meter,
) -> String {
    let subscribers = usize::try_from(size / 10).unwrap().max(10_000);
    let mut calls = Calls::new(SEED, subscribers);
    fill(&mut systems, &mut calls, size);
    system::compare(&systems, subscribers);
    let can_be_cold = systems.iter().all(|system| system.has_a_file());
    let rows: Vec<_> = plan::rows()
        .into_iter()
        .filter(|row| can_be_cold || !row.is_cold)
        .map(|row| {
            eprintln!("{size}, {others}: {}", row.name);
            let samples = turns::measure(&row, rounds, &mut systems, &mut calls, meter);
            (row, samples)
        })
        .collect();
    system::compare(&systems, subscribers);
    report::report(size, others, &systems, rows)
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
