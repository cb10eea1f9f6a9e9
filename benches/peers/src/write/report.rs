//! Tables of the write path.

use std::time::Duration;

use comfy_table::Table;

use crate::sample::quantile;
use crate::table::{digits, float, grouped, micros, quotient, ratio, table};
use crate::write::plan::Row;
use crate::write::system::System;
use crate::write::turns::Sample;

type Measured = (Row, Vec<Sample>);

/// Returns the tables of a size. Each figure of Tidings, the last system, is compared with the best
/// of the others, which have that name together. What is written is left out if it was not counted.
pub(crate) fn report(
    size: u64,
    others: &str,
    systems: &[Box<dyn System>],
    mut rows: Vec<Measured>,
) -> String {
    let names: Vec<_> = systems.iter().map(|system| system.name()).collect();
    let is_counted = |(_, samples): &Measured| samples.iter().any(|one| one.bytes.is_some());
    let mut tables = vec![rates(&names, &rows)];
    if rows.iter().any(is_counted) {
        tables.push(writes(&names, &rows));
    }
    let behind = behind(others, &rows);
    tables.push(times(&names, &mut rows));
    let tables: Vec<_> = tables.iter().map(Table::to_string).collect();
    let tables = tables.join("\n\n");
    let size = grouped(size);
    format!(
        "#### Durable triggers beside {others}, {size} notifications\n\n{behind}\n\n{tables}\n\n"
    )
}

fn behind(others: &str, rows: &[Measured]) -> String {
    let behind = rows.iter().map(|(row, samples)| (row.name, ahead(samples)));
    let behind: Vec<_> = behind
        .filter(|(_, ahead)| *ahead < 1.0)
        .map(|(name, ahead)| format!("{name} ({})", quotient(ahead)))
        .collect();
    let behind = if behind.is_empty() { "no row".into() } else { behind.join(", ") };
    format!("{others} is ahead in: {behind}.")
}

// How many times as many notifications as the best of the others.
fn ahead(samples: &[Sample]) -> f64 {
    let (tidings, others) = samples.split_last().unwrap();
    tidings.rate() / others.iter().map(Sample::rate).fold(0.0, f64::max)
}

fn rates(names: &[&str], rows: &[Measured]) -> Table {
    let (tidings, others) = names.split_last().unwrap();
    let mut head = vec!["notifications/s".to_owned()];
    head.extend(names.iter().map(|name| (*name).to_owned()));
    head.extend(others.iter().map(|name| format!("{tidings} / {name}")));
    let cells = |(row, samples): &Measured| {
        let rates: Vec<_> = samples.iter().map(Sample::rate).collect();
        let (tidings, others) = rates.split_last().unwrap();
        let mut cells = vec![row.name.to_owned()];
        cells.extend(rates.iter().copied().map(digits));
        cells.extend(others.iter().map(|rate| quotient(tidings / rate)));
        cells
    };
    table(head, rows.iter().map(cells))
}

fn writes(names: &[&str], rows: &[Measured]) -> Table {
    let mut head = vec!["what is written".to_owned()];
    head.extend(names.iter().map(|name| format!("kB each, {name}")));
    head.extend(names.iter().map(|name| format!("syncs/call, {name}")));
    let cells = |(row, samples): &Measured| {
        let mut cells = vec![row.name.to_owned()];
        cells.extend(samples.iter().map(Sample::kilobytes));
        cells.extend(samples.iter().map(Sample::syncs_of_a_call));
        cells
    };
    table(head, rows.iter().map(cells))
}

fn times(names: &[&str], rows: &mut [Measured]) -> Table {
    let shares = [("p50", 0.5), ("p99", 0.99), ("worst", 1.0)];
    let mut head = vec!["µs for a call".to_owned()];
    for (share, _) in shares {
        head.extend(names.iter().map(|name| format!("{share}, {name}")));
        head.push("ratio".into());
    }
    let cells = |(row, samples): &mut Measured| {
        let mut cells = vec![row.name.to_owned()];
        for (_, share) in shares {
            let times = samples.iter_mut().map(|sample| quantile(&mut sample.calls, share));
            let times: Vec<Duration> = times.collect();
            let (tidings, others) = times.split_last().unwrap();
            cells.extend(times.iter().copied().map(micros));
            cells.push(ratio(*others.iter().min().unwrap(), *tidings));
        }
        cells
    };
    table(head, rows.iter_mut().map(cells))
}

impl Sample {
    fn rate(&self) -> f64 {
        float(self.notifications) / self.took.as_secs_f64()
    }

    fn kilobytes(&self) -> String {
        let each = |bytes| digits(float(bytes) / 1e3 / float(self.notifications));
        self.bytes.map_or_else(String::new, each)
    }

    fn syncs_of_a_call(&self) -> String {
        let each = |syncs| digits(float(syncs) / float(self.calls.len() as u64));
        self.syncs.map_or_else(String::new, each)
    }
}
