//! Comparing an index with the subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use domain::ids::InternalSubscriberId;

use super::row::{Row, View};
use super::trigrams::{ROWS, Trigrams};
use super::{Head, IndexedText, Place, damaged_row, page_key, places, row_key};
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
    let mut places = BTreeMap::new();
    snapshot.scan_bytes(&index.all().range(), Order::Ascending, None, &mut |key, value| {
        let (group, number) = match index.read(key) {
            Some(IndexPart::Row { group, row }) => (group, row),
            Some(IndexPart::Places(subscriber)) => {
                match places::read(value) {
                    Some(found) => drop(places.insert(subscriber, found)),
                    None => visit(key, unreadable(places::damaged(index))),
                }
                return ControlFlow::Continue(());
            }
            Some(IndexPart::Head | IndexPart::Trigrams { .. }) | None => {
                return ControlFlow::Continue(());
            }
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
    compare_places(index, &groups, &places, visit);
    for (group, rows) in &groups {
        compare_group(snapshot, index, (head.as_ref(), *group, rows), visit)?;
    }
    if let Some(head) = head.filter(|head| head.rows > 0 && !groups.contains_key(&head.group)) {
        visit(row_key(index, (head.group, 0)).as_bytes(), Problem::Missing);
    }
    Ok(missing)
}

// Compares the places of texts with the rows. A place may be in a group that was removed, if there is another
// one.
fn compare_places(
    index: TextIndex,
    groups: &BTreeMap<u32, BTreeMap<u32, Row>>,
    stated: &BTreeMap<InternalSubscriberId, Vec<Place>>,
    visit: &mut dyn FnMut(&[u8], Problem),
) {
    let mut actual: BTreeMap<InternalSubscriberId, Vec<(u32, u32)>> = BTreeMap::new();
    for (group, rows) in groups {
        for (number, row) in rows {
            for (_, subscriber) in row.view().entries() {
                actual.entry(subscriber).or_default().push((*group, *number));
            }
        }
    }
    for (subscriber, actual) in &actual {
        let stated = stated.get(subscriber).map_or(&[][..], Vec::as_slice);
        let is_stated = |(group, row): &(u32, u32)| {
            stated.iter().any(|it| it.0 == *group && u32::from(it.1) == *row)
        };
        if !actual.iter().all(is_stated) {
            visit(places::key(index, *subscriber).as_bytes(), Problem::Missing);
        }
    }
    for (subscriber, stated) in stated {
        let actual = actual.get(subscriber).map_or(&[][..], Vec::as_slice);
        let is_wrong = |(group, row): &Place| {
            groups.contains_key(group) && !actual.contains(&(*group, u32::from(*row)))
        };
        if actual.is_empty() || stated.iter().any(is_wrong) {
            visit(places::key(index, *subscriber).as_bytes(), Problem::Extra);
        }
    }
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
