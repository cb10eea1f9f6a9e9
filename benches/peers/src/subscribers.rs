//! Lists of subscribers by what an administrator looks for, and changes of one of them, beside the same
//! rows in SQLite.
//!
//! SQLite has an index for addresses and for telephone numbers, trigrams of names (FTS5), and whole
//! subscribers as JSON beside their columns. Totals count up to 50,000 in both systems. Changes are
//! durable.

use std::hint::black_box;

use crate::options::Options;
use crate::sample;
use crate::subscribers::people::People;
use crate::subscribers::sqlite::Sqlite;
use crate::subscribers::system::{Query, System};
use crate::subscribers::tidings::Tidings;
use crate::table::{grouped, micros, ratio, table};

mod people;
mod sqlite;
mod system;
mod tidings;

/// Measures every size, and returns the tables.
pub(crate) fn run(options: &Options) -> String {
    let sizes = options.sizes(&[100_000]);
    let texts = sizes.into_iter().map(|size| {
        let text = measure(size);
        println!("{text}");
        text
    });
    texts.collect()
}

fn measure(size: u64) -> String {
    let folder = tempfile::tempdir().unwrap();
    let people = People { size };
    let sqlite = Sqlite::create(&folder.path().join("subscribers.db"), people);
    let tidings = Tidings::create(&folder.path().join("tidings.redb"), people);
    let systems: [&dyn System; 2] = [&sqlite, &tidings];
    let mut rows = Vec::new();
    for (name, query) in lists() {
        check(&systems, people, query);
        let ask = |system: &dyn System, call| drop(black_box(system.page(&query(people, call))));
        rows.push((name.to_owned(), sample::of_systems(&systems, ask)));
    }
    for (name, change) in CHANGES {
        rows.push((name.to_owned(), sample::of_systems(&systems, change)));
    }
    for (_, query) in lists() {
        check(&systems, people, query);
    }
    format!("#### {} subscribers\n\n{}\n\n", grouped(size), report(rows))
}

type Ask = fn(People, u64) -> Query;

fn lists() -> [(&'static str, Ask); 6] {
    [
        ("newest 10, with a total", |_, _| Query::All),
        ("by e-mail address: 1", |people, call| Query::Email(people.person(call).email)),
        ("by telephone number: 1", |people, call| Query::Phone(people.person(call).phone)),
        ("by telephone number: a hundredth", |_, _| Query::Phone(people::SWITCHBOARD.into())),
        ("by a whole name: few", |people, call| Query::Name(people.person(call).name())),
        ("by a part of a name: a 40th", |people, call| Query::Name(people.person(call).first)),
    ]
}

type Change = fn(&dyn System, u64);

// Each system ends as it was, with an even number of calls.
const CHANGES: [(&str, Change); 2] = [
    ("give another name, durably", |system, call| system.rename(call / 2, call % 2 == 0)),
    ("create one and delete it, durably", |system, call| {
        if call % 2 == 0 { system.create(call) } else { system.delete(call - 1) }
    }),
];

fn check(systems: &[&dyn System; 2], people: People, query: Ask) {
    for call in 0..20 {
        let query = query(people, call);
        let [one, other] = systems.map(|system| system.page(&query));
        assert_eq!(one, other, "{query:?}");
        assert!(!one.names.is_empty(), "{query:?}");
    }
}

fn report(rows: Vec<(String, Vec<std::time::Duration>)>) -> String {
    let mut behind = Vec::new();
    let cells: Vec<_> = rows
        .into_iter()
        .map(|(name, medians)| {
            let ratio = ratio(medians[0], medians[1]);
            if medians[0] < medians[1] {
                behind.push(format!("{name} ({ratio})"));
            }
            vec![name, micros(medians[0]), micros(medians[1]), ratio]
        })
        .collect();
    let heads = ["µs, median", "SQLite", "Tidings", "SQLite / Tidings"];
    let table = table(heads.map(str::to_owned).into(), cells);
    let behind = if behind.is_empty() { "no row".into() } else { behind.join(", ") };
    format!("SQLite is ahead in: {behind}.\n\n{table}")
}
