//! An inbox with many messages, of which a hundred are unread, beside the same rows in SQLite.
//!
//! SQLite has an index for each list, whole messages as JSON beside their columns, and totals either
//! from a table of counters or by `count(*)`. A message is marked durably in both systems.

use std::hint::black_box;

use comfy_table::Table;

use crate::inbox::sqlite::{Sqlite, Totals};
use crate::inbox::system::System;
use crate::inbox::tidings::Tidings;
use crate::options::Options;
use crate::sample;
use crate::table::{grouped, micros, ratio, table};

mod sqlite;
mod system;
mod tidings;

/// Number of unread messages.
const UNREAD: usize = 100;

/// Measures every size, and returns the tables.
pub(crate) fn run(options: &Options) -> String {
    let sizes = options.sizes(&[10_000]);
    let texts = sizes.into_iter().map(|size| {
        let text = measure(usize::try_from(size).unwrap());
        println!("{text}");
        text
    });
    texts.collect()
}

type Operation = (&'static str, fn(&dyn System, u64));

const OPERATIONS: [Operation; 4] = [
    ("first page of 10, with its total", |system, _| drop(black_box(system.page()))),
    ("first page of 10 unread, with its total", |system, _| drop(black_box(system.unread()))),
    ("counts of unseen and unread", |system, _| _ = black_box(system.counts())),
    ("mark one, durably", |system, call| {
        let number = usize::try_from(call / 2).unwrap() % UNREAD;
        system.mark(number, call.is_multiple_of(2));
    }),
];

fn measure(size: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let tidings = Tidings::create(&folder.path().join("tidings.redb"), size);
    let like = tidings.newest();
    let sqlite = |name, totals| {
        Sqlite::create(&folder.path().join(name), totals, (size, tidings.unread_orders(), &like))
    };
    let (counters, counted) =
        (sqlite("counters.db", Totals::Counters), sqlite("counted.db", Totals::Counted));
    let systems: [&dyn System; 3] = [&counters, &counted, &tidings];
    check(&systems);
    let rows = OPERATIONS.map(|(name, operation)| (name, sample::of_systems(&systems, operation)));
    check(&systems);
    format!("#### An inbox of {} messages\n\n{}\n\n", grouped(size as u64), report(rows))
}

fn check(systems: &[&dyn System]) {
    let answers = |system: &dyn System| (system.page(), system.unread(), system.counts());
    let first = answers(systems[0]);
    for system in &systems[1..] {
        assert_eq!(answers(*system), first, "{} and {}", system.name(), systems[0].name());
    }
}

fn report<const N: usize>(rows: [(&str, Vec<std::time::Duration>); N]) -> String {
    let heads =
        ["µs, median", "SQLite, counters", "SQLite, count(*)", "Tidings", "SQLite / Tidings"];
    let mut behind = Vec::new();
    let cells = rows.map(|(name, medians)| {
        let (tidings, others) = medians.split_last().unwrap();
        let ratio = ratio(*others.iter().min().unwrap(), *tidings);
        if others.iter().any(|other| other < tidings) {
            behind.push(format!("{name} ({ratio})"));
        }
        let mut cells = vec![name.to_owned()];
        cells.extend(medians.iter().copied().map(micros));
        cells.push(ratio);
        cells
    });
    let table: Table = table(heads.map(str::to_owned).into(), cells);
    let behind = if behind.is_empty() { "no row".into() } else { behind.join(", ") };
    format!("SQLite is ahead in: {behind}.\n\n{table}")
}
