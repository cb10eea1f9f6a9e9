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

/// Called with the key of each contradiction.
type VisitProblem<'v> = dyn FnMut(&[u8], Problem) + 'v;

/// The rows of a group, by their numbers.
type GroupRows = BTreeMap<u8, Row>;

/// Compares an index with `expected`, the texts of the subscribers, and calls `visit` with each
/// contradiction. Returns the texts that are missing.
pub(crate) fn compare(
    snapshot: &dyn Snapshot,
    index: TextIndex,
    expected: BTreeSet<IndexedText>,
    visit: &mut VisitProblem<'_>,
) -> Result<BTreeSet<IndexedText>> {
    let Parts { missing, groups, places, .. } = Parts::read(snapshot, index, expected, visit)?;
    let head = match Head::find(snapshot, index) {
        Ok(head) => head,
        Err(error) => {
            visit(index.part(IndexPart::Head).as_bytes(), unreadable(&error));
            return Ok(missing);
        }
    };
    compare_places(index, &groups, &places, visit);
    for (group, rows) in &groups {
        compare_group(snapshot, index, (head.as_ref(), *group, rows), visit)?;
    }
    if let Some(head) = head.filter(|head| !groups.contains_key(&head.group)) {
        visit(row_key(index, (head.group, 0)).as_bytes(), Problem::Missing);
    }
    Ok(missing)
}

/// The rows and the places that a scan of an index has found.
struct Parts {
    index: TextIndex,
    expected: BTreeSet<IndexedText>,
    /// The expected texts that are in no row.
    missing: BTreeSet<IndexedText>,
    groups: BTreeMap<u32, GroupRows>,
    places: BTreeMap<InternalSubscriberId, Vec<Place>>,
}

impl Parts {
    /// Reads the parts of an index. Calls `visit` with those that cannot be read, and with rows that have other
    /// texts than the expected ones.
    fn read(
        snapshot: &dyn Snapshot,
        index: TextIndex,
        expected: BTreeSet<IndexedText>,
        visit: &mut VisitProblem<'_>,
    ) -> Result<Self> {
        let (missing, groups, places) = (expected.clone(), BTreeMap::new(), BTreeMap::new());
        let mut parts = Self { index, expected, missing, groups, places };
        snapshot.scan_bytes(&index.all().range(), Order::Ascending, None, &mut |key, value| {
            let problem = match index.read(key) {
                Some(IndexPart::Row { group, row }) => parts.add_row((group, row), value),
                Some(IndexPart::Places(subscriber)) => parts.add_places(subscriber, value),
                Some(IndexPart::Head | IndexPart::Trigrams { .. }) | None => None,
            };
            if let Some(problem) = problem {
                visit(key, problem);
            }
            ControlFlow::Continue(())
        })?;
        Ok(parts)
    }

    /// Adds a row. Returns the problem with it, if there is one.
    fn add_row(&mut self, (group, number): Place, value: &[u8]) -> Option<Problem> {
        let rows = self.groups.entry(group).or_default();
        let Some(row) = View::read(value) else {
            // It is there, if without texts.
            rows.insert(number, Row::default());
            return Some(unreadable(&damaged_row(self.index)));
        };
        let mut is_extra = false;
        for (text, subscriber) in row.entries() {
            let text = String::from_utf8_lossy(text).into_owned();
            let text = IndexedText { index: self.index, text, subscriber };
            // A rebuild that was interrupted leaves texts in two rows.
            self.missing.remove(&text);
            is_extra |= !self.expected.contains(&text);
        }
        rows.insert(number, Row::from(row));
        is_extra.then_some(Problem::Extra)
    }

    /// Adds the places of the text of a subscriber. Returns the problem with them, if there is one.
    fn add_places(&mut self, subscriber: InternalSubscriberId, value: &[u8]) -> Option<Problem> {
        let Some(places) = places::read(value) else {
            return Some(unreadable(&places::damaged(self.index)));
        };
        self.places.insert(subscriber, places);
        None
    }
}

fn unreadable(error: &crate::Error) -> Problem {
    Problem::Unreadable { reason: error.to_string() }
}

// Compares the places of texts with the rows. A place may be in a group that was removed, if there is another
// one.
fn compare_places(
    index: TextIndex,
    groups: &BTreeMap<u32, GroupRows>,
    stated: &BTreeMap<InternalSubscriberId, Vec<Place>>,
    visit: &mut VisitProblem<'_>,
) {
    let mut actual: BTreeMap<InternalSubscriberId, Vec<Place>> = BTreeMap::new();
    for (group, rows) in groups {
        for (number, row) in rows {
            for (_, subscriber) in row.view().entries() {
                actual.entry(subscriber).or_default().push((*group, *number));
            }
        }
    }
    for (subscriber, actual) in &actual {
        let stated = stated.get(subscriber).map_or(&[][..], Vec::as_slice);
        if !actual.iter().all(|place| stated.contains(place)) {
            visit(places::key(index, *subscriber).as_bytes(), Problem::Missing);
        }
    }
    for (subscriber, stated) in stated {
        let actual = actual.get(subscriber).map_or(&[][..], Vec::as_slice);
        let is_wrong = |place: &Place| groups.contains_key(&place.0) && !actual.contains(place);
        if actual.is_empty() || stated.iter().any(is_wrong) {
            visit(places::key(index, *subscriber).as_bytes(), Problem::Extra);
        }
    }
}

// Compares a group of rows with the head of the index, and with the trigrams of the group.
fn compare_group(
    snapshot: &dyn Snapshot,
    index: TextIndex,
    (head, group, rows): (Option<&Head>, u32, &GroupRows),
    visit: &mut VisitProblem<'_>,
) -> Result<()> {
    match head {
        Some(head) if group < head.group => {
            // It was full once, and a row that has lost its texts stays.
            let numbers = (0..ROWS).filter(|number| !rows.contains_key(number));
            for number in numbers {
                visit(row_key(index, (group, number)).as_bytes(), Problem::Missing);
            }
            compare_trigrams(snapshot, index, group, rows, visit)
        }
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
    rows: &GroupRows,
    visit: &mut VisitProblem<'_>,
) -> Result<()> {
    let texts = (0..ROWS).map(|row| rows.get(&row).map_or(&[][..], |it| it.view().text()));
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
