//! Comparing an index with the subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::row::{Row, View};
use super::trigrams::{ROWS, Trigrams};
use super::{Head, IndexedText, damaged_row, page_key, row_key};
use crate::check::Problem;
use crate::layout::{IndexPart, TextIndex};
use crate::{Order, ReadRecords, Result, Snapshot};

/// Compares an index with `expected`, the texts of the subscribers, and calls `visit` with each
/// contradiction. Returns the texts that are missing.
pub(crate) fn compare(
    snapshot: &dyn Snapshot,
    index: TextIndex,
    expected: BTreeSet<IndexedText>,
    visit: &mut dyn FnMut(&[u8], Problem),
) -> Result<BTreeSet<IndexedText>> {
    let mut missing = expected.clone();
    let mut groups: BTreeMap<u32, BTreeMap<u32, Row>> = BTreeMap::new();
    snapshot.scan_bytes(&index.all().range(), Order::Ascending, None, &mut |key, value| {
        let Some(IndexPart::Row { group, row: number }) = index.read(key) else {
            return ControlFlow::Continue(());
        };
        let Some(row) = View::read(value) else {
            visit(key, unreadable(damaged_row(index)));
            return ControlFlow::Continue(());
        };
        let known = row.entries().map(|(text, subscriber)| {
            let text = String::from_utf8_lossy(text).into_owned();
            let text = IndexedText { index, text, subscriber };
            // A rebuild that was interrupted leaves texts in two rows.
            missing.remove(&text) || expected.contains(&text)
        });
        if known.filter(|is_known| !is_known).count() > 0 {
            visit(key, Problem::Extra);
        }
        groups.entry(group).or_default().insert(number, Row::from(row));
        ControlFlow::Continue(())
    })?;
    let head = match Head::find(snapshot, index) {
        Ok(head) => head,
        Err(error) => {
            visit(index.part(IndexPart::Head).as_bytes(), unreadable(error));
            return Ok(missing);
        }
    };
    for (group, rows) in &groups {
        compare_group(snapshot, index, (head.as_ref(), *group, rows), visit)?;
    }
    if let Some(head) = head.filter(|head| head.rows > 0 && !groups.contains_key(&head.group)) {
        visit(row_key(index, (head.group, 0)).as_bytes(), Problem::Missing);
    }
    Ok(missing)
}

fn unreadable(error: crate::Error) -> Problem {
    Problem::Unreadable { reason: error.to_string() }
}

// Compares a group of rows with the head of the index, and with the trigrams of the group.
fn compare_group(
    snapshot: &dyn Snapshot,
    index: TextIndex,
    (head, group, rows): (Option<&Head>, u32, &BTreeMap<u32, Row>),
    visit: &mut dyn FnMut(&[u8], Problem),
) -> Result<()> {
    match head {
        Some(head) if group < head.group => compare_trigrams(snapshot, index, group, rows, visit),
        Some(head) if group == head.group && rows.len() == usize::from(head.rows) => Ok(()),
        Some(_) | None => {
            let key = row_key(index, (group, 0));
            visit(key.as_bytes(), Problem::Extra);
            Ok(())
        }
    }
}

// Calls `visit` with the pages of a group that miss a trigram of its rows.
fn compare_trigrams(
    snapshot: &dyn Snapshot,
    index: TextIndex,
    group: u32,
    rows: &BTreeMap<u32, Row>,
    visit: &mut dyn FnMut(&[u8], Problem),
) -> Result<()> {
    let texts =
        (0..u32::from(ROWS)).map(|row| rows.get(&row).map_or(&[][..], |it| it.view().text()));
    for (page, words) in Trigrams::of(texts).pages() {
        let key = page_key(index, page, group);
        let mut has_all = false;
        snapshot.get_bytes(&key, &mut |bytes| {
            let is_in = |(word, all): (&u8, &u8)| word & all == *word;
            has_all = bytes.len() == words.len() && words.iter().zip(bytes).all(is_in);
        })?;
        if !has_all {
            visit(key.as_bytes(), Problem::Missing);
        }
    }
    Ok(())
}
