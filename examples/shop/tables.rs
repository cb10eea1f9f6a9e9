//! How things look: tables, numbers and times.

use std::fmt::Display;
use std::ops::Range;
use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use comfy_table::{CellAlignment, ContentLineStyle, LineStyle, Table, TableStyle};
use console::style;
use indicatif::HumanCount;
use tidings::contact::TimeZone;
use tidings::time::Timestamp;

/// Begins a part of the report.
pub fn heading(text: impl Display) {
    println!("\n{}\n", style(text).bold());
}

/// Prints a table, without spaces at the ends of its lines.
pub fn show(table: &Table) {
    println!("{}", table.trim_fmt());
}

/// A table with these titles and a line below them.
pub fn table<'a>(titles: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    let lines = TableStyle::new()
        .header_lines(ContentLineStyle::none())
        .header_separator(LineStyle::none().fill('─').junction('─'))
        .content_lines(ContentLineStyle::none());
    table.load_style(lines).set_header(titles);
    table
}

/// Sets numbers where one looks for them.
pub fn align_right(table: &mut Table, columns: Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// `12345` as `12,345`, and nothing as nothing.
pub fn count(count: usize) -> String {
    if count == 0 { String::new() } else { HumanCount(count as u64).to_string() }
}

/// How many there are in a second.
pub fn rate(count: usize, took: Duration) -> String {
    let millis = took.as_millis().max(1);
    let per_second = count as u128 * 1000 / millis;
    format!("{}/s", HumanCount(u64::try_from(per_second).unwrap_or(u64::MAX)))
}

/// A time as the clocks on the wall of `zone` show it.
pub fn local(time: Timestamp, zone: Option<TimeZone>) -> String {
    let zone = zone.map_or(Tz::UTC, Tz::from);
    DateTime::<Utc>::from(time).with_timezone(&zone).format("%a %d %b, %H:%M").to_string()
}

/// `text`, or the beginning of it.
pub fn at_most(width: usize, text: &str) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    let begin: String = text.chars().take(width - 1).collect();
    format!("{}…", begin.trim_end())
}
