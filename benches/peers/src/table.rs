//! Tables of figures.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};

/// Returns a table. Every column but the first is aligned to the right.
pub(crate) fn table(head: Vec<String>, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(head);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Returns a time in microseconds.
pub(crate) fn micros(time: Duration) -> String {
    digits(time.as_secs_f64() * 1e6)
}

/// Returns the ratio of two times.
pub(crate) fn ratio(of: Duration, to: Duration) -> String {
    quotient(of.as_secs_f64() / to.as_secs_f64())
}

/// Returns a ratio with two digits or more.
pub(crate) fn quotient(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 1.0 => format!("{ratio:.2}"),
        ratio if ratio < 10.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

/// Returns a number with three digits or more.
pub(crate) fn digits(number: f64) -> String {
    match number {
        number if number < 10.0 => format!("{number:.2}"),
        number if number < 100.0 => format!("{number:.1}"),
        number => grouped(rounded(number)),
    }
}

/// Returns a number with a comma between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is for people")]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

/// Returns a number for a quotient.
#[expect(clippy::cast_precision_loss, reason = "it is for people to look at")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}
