//! What was found out, as tables.

use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::Table;

use crate::list::beside::{Kind, Reading};
use crate::list::outcome::{Concurrency, Outcome};
use crate::list::pages::Pages;
use crate::sample::quantile;
use crate::table::{float, grouped, micros, quotient, ratio, table};

/// All tables about one size.
pub(crate) fn report(outcome: &Outcome) -> String {
    let mut report = format!("#### {} notifications\n\n", grouped(outcome.size));
    for (what, behind) in behind(outcome) {
        writeln!(report, "SQLite is ahead of Tidings on redb in {what}: {behind}.\n").unwrap();
    }
    writeln!(report, "{}\n", answers(outcome)).unwrap();
    if !outcome.pages.is_empty() {
        writeln!(report, "{}\n", pages(outcome)).unwrap();
    }
    writeln!(report, "{}\n\n{}\n", counts(outcome), costs(outcome)).unwrap();
    report
}

/// All tables about readers and writers.
pub(crate) fn concurrency(size: u64, concurrency: &mut Concurrency) -> String {
    let mut report = format!("#### {} notifications\n\n", grouped(size));
    let Concurrency { shapes, readers, writers } = concurrency;
    for (store, (readings, pace)) in ["redb", "memory"].iter().zip(readers) {
        let pace = grouped(*pace);
        writeln!(report, "A reader on {store} beside a writer of {pace} notifications/s:\n")
            .unwrap();
        writeln!(report, "{}\n", reading(shapes, readings)).unwrap();
    }
    for (store, kinds) in ["redb", "memory"].iter().zip(writers) {
        writeln!(report, "Two writers on {store} who fill three segments:\n").unwrap();
        writeln!(report, "{}\n", waiting(kinds)).unwrap();
    }
    report
}

fn answers(outcome: &Outcome) -> Table {
    let mut head = vec!["µs for a page".to_owned(), "matches".into()];
    for (at, system) in outcome.systems.iter().enumerate() {
        head.push((*system).into());
        head.extend((at >= 2).then(|| format!("{system} / redb")));
    }
    head.push("SQLite goes along".into());
    head.push("with an index of its own".into());
    let rows = outcome.rows.iter().map(|row| {
        let mut cells = vec![row.shape.to_owned(), grouped(row.matches)];
        for (at, median) in row.medians.iter().enumerate() {
            cells.push(micros(*median));
            cells.extend((at >= 2).then(|| ratio(*median, row.medians[0])));
        }
        cells.push(row.ways[0].clone());
        cells.push(row.combination.map_or_else(String::new, micros));
        cells
    });
    table(head, rows)
}

// Where SQLite is ahead, the widest gaps first.
fn behind(outcome: &Outcome) -> [(&'static str, String); 3] {
    let index = outcome.rows.iter().map(|row| (row.shape, row.medians[2], row.medians[0]));
    let pages = outcome.pages.iter().map(|one| (one.question, one.sqlite, one.tidings));
    let counts = outcome.rows.iter().map(|row| (row.shape, row.counts[0], row.counts[1]));
    [
        ("the index part of a page", ahead(index)),
        ("whole pages", ahead(pages)),
        ("counts", ahead(counts)),
    ]
}

// Questions with the times of SQLite and Tidings.
fn ahead(times: impl Iterator<Item = (&'static str, Duration, Duration)>) -> String {
    let ratios =
        times.map(|(name, sqlite, tidings)| (sqlite.as_secs_f64() / tidings.as_secs_f64(), name));
    let mut ratios: Vec<_> = ratios.filter(|(ratio, _)| *ratio < 0.95).collect();
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    let named = ratios.iter().map(|(ratio, name)| format!("{name} ({})", quotient(*ratio)));
    let named = named.collect::<Vec<_>>().join("; ");
    if named.is_empty() { "no row".into() } else { named }
}

fn pages(outcome: &Outcome) -> Table {
    let heads = ["µs for a whole page", "matches", "redb", "SQLite", "SQLite / redb"];
    let rows = outcome.pages.iter().map(|Pages { question, matches, sqlite, tidings }| {
        let times = [micros(*tidings), micros(*sqlite), ratio(*sqlite, *tidings)];
        [vec![(*question).to_owned(), grouped(*matches)], times.into()].concat()
    });
    table(heads.map(str::to_owned).into(), rows)
}

fn counts(outcome: &Outcome) -> Table {
    let heads = ["µs for a count", "matches", "redb", "SQLite", "SQLite / redb"];
    let rows = outcome.rows.iter().map(|row| {
        let [sqlite, tidings] = row.counts;
        let times = [micros(tidings), micros(sqlite), ratio(sqlite, tidings)];
        [vec![row.shape.to_owned(), grouped(row.matches)], times.into()].concat()
    });
    table(heads.map(str::to_owned).into(), rows)
}

fn costs(outcome: &Outcome) -> Table {
    let heads = [
        "",
        "bytes/notification",
        "insert, µs/notification",
        "open, ms",
        "first answer, ms",
        "tail and caches, MB",
    ];
    let rows = outcome.systems.iter().zip(&outcome.costs).map(|(system, cost)| {
        let millis = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
        let each = |bytes: u64| format!("{:.0}", float(bytes) / float(outcome.size));
        vec![
            (*system).to_owned(),
            cost.bytes.map_or_else(String::new, each),
            micros(cost.insert),
            cost.open.map_or_else(String::new, millis),
            cost.first.map_or_else(String::new, millis),
            cost.index_memory
                .map_or_else(String::new, |bytes| format!("{:.1}", float(bytes as u64) / 1e6)),
        ]
    });
    table(heads.map(str::to_owned).into(), rows)
}

fn reading(shapes: &[&str], readings: &[[Reading; 2]]) -> Table {
    let heads = ["µs", "median alone", "beside", "slower by", "p99 alone", "beside", "slower by"];
    let rows = shapes.iter().zip(readings).map(|(shape, [alone, beside])| {
        let compared = |alone, beside| [micros(alone), micros(beside), ratio(beside, alone)];
        let mut cells = vec![(*shape).to_owned()];
        cells.extend(compared(alone.median, beside.median));
        cells.extend(compared(alone.last_percent, beside.last_percent));
        cells
    });
    table(heads.map(str::to_owned).into(), rows)
}

fn waiting(kinds: &mut [Kind]) -> Table {
    let heads = ["µs", "times", "median", "p99", "longest"];
    let rows =
        kinds.iter_mut().filter(|kind| !kind.times.is_empty()).map(|Kind { name, times }| {
            let mut cells = vec![(*name).to_owned(), grouped(times.len() as u64)];
            cells.extend([0.5, 0.99, 1.0].map(|share| micros(quantile(times, share))));
            cells
        });
    table(heads.map(str::to_owned).into(), rows)
}
