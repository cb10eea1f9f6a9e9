//! Finding the rows of texts that may have a part.

use std::ops::ControlFlow;

use domain::folded::FoldedPart;

use super::row::View;
use super::trigrams::{ROWS, WordPlace, word, word_places};
use super::{Head, Place, damaged_row, row_key};
use crate::layout::{IndexPart, TextIndex};
use crate::record::{corrupt, misplaced};
use crate::{Bytes, Key, Order, ReadRecords, Result, Snapshot};

/// Called with rows, until it breaks.
pub(super) type VisitRow<'v> = dyn FnMut(Place, View<'_>) -> ControlFlow<()> + 'v;

/// Number of rows that are looked up together.
const AT_A_TIME: usize = 512;

/// Calls `visit` with the rows of an index that may have `part`, until it breaks.
pub(super) fn visit_rows(
    snapshot: &(impl Snapshot + ?Sized),
    index: TextIndex,
    part: &FoldedPart,
    visit: &mut VisitRow<'_>,
) -> Result<ControlFlow<()>> {
    let Some(head) = Head::find(snapshot, index)? else { return Ok(ControlFlow::Continue(())) };
    let Some(candidates) = candidates(snapshot, index, part, &head)? else {
        return scan_rows(snapshot, index, None, head, visit);
    };
    let places: Vec<Place> = candidates
        .iter()
        .flat_map(|(group, rows)| {
            (0..ROWS).filter(move |row| rows >> row & 1 == 1).map(move |row| (*group, row))
        })
        .collect();
    // The keys of all rows would take as much memory as many texts do.
    for some in places.chunks(AT_A_TIME) {
        if look_up_rows(snapshot, index, some, visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    scan_rows(snapshot, index, Some(head.group), head, visit)
}

/// Calls `visit` with all rows of an index, until it breaks.
pub(super) fn visit_all_rows(
    snapshot: &(impl Snapshot + ?Sized),
    index: TextIndex,
    visit: &mut VisitRow<'_>,
) -> Result<ControlFlow<()>> {
    let Some(head) = Head::find(snapshot, index)? else { return Ok(ControlFlow::Continue(())) };
    scan_rows(snapshot, index, None, head, visit)
}

// Calls `visit` with these rows.
fn look_up_rows(
    snapshot: &(impl Snapshot + ?Sized),
    index: TextIndex,
    places: &[Place],
    visit: &mut VisitRow<'_>,
) -> Result<ControlFlow<()>> {
    let keys: Vec<Key<Bytes>> = places.iter().map(|at| row_key(index, *at)).collect();
    let bytes: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
    let (mut rest, mut is_intact, mut next) = (places.iter(), true, ControlFlow::Continue(()));
    snapshot.get_many(index.field.table(), &bytes, &mut |value| match rest
        .next()
        .zip(value.and_then(View::read))
    {
        Some((place, row)) if next.is_continue() => next = visit(*place, row),
        Some(_) => {}
        None => is_intact = false,
    })?;
    if is_intact { Ok(next) } else { Err(damaged_row(index)) }
}

// The rows of full groups that may have `part`, as bits. Returns `None` if that may be all of them.
fn candidates(
    snapshot: &(impl Snapshot + ?Sized),
    index: TextIndex,
    part: &FoldedPart,
    head: &Head,
) -> Result<Option<Vec<(u32, u64)>>> {
    // Maximum number of trigrams that are looked up.
    const MOST: usize = 32;
    let mut asked: Vec<WordPlace> = Vec::new();
    for place in word_places(part.as_bytes()).take(MOST) {
        if !asked.contains(&place) {
            asked.push(place);
        }
    }
    let Some((first, others)) = asked.split_first() else { return Ok(None) };
    let mut groups = Vec::new();
    scan_words(snapshot, index, *first, &mut |group, word| groups.push((group, word)))?;
    for place in others {
        let rows: u32 = groups.iter().map(|(_, word)| word.count_ones()).sum();
        // Reading the rows takes less time than another look-up.
        if rows <= 2 + head.group / 8 {
            break;
        }
        let mut rest = groups.iter_mut().peekable();
        scan_words(snapshot, index, *place, &mut |group, word| {
            while let Some((_, rows)) = rest.next_if(|(other, _)| *other < group) {
                *rows = 0;
            }
            if let Some((_, rows)) = rest.next_if(|(other, _)| *other == group) {
                *rows &= word;
            }
        })?;
        rest.for_each(|(_, rows)| *rows = 0);
        groups.retain(|(_, rows)| *rows != 0);
    }
    groups.retain(|(group, _)| *group < head.group);
    Ok(Some(groups))
}

// Calls `visit` with the groups that have a word in the page of `place`, and that word.
fn scan_words(
    snapshot: &(impl Snapshot + ?Sized),
    index: TextIndex,
    place: WordPlace,
    visit: &mut dyn FnMut(u32, u64),
) -> Result<()> {
    let range = index.page(place.page).range();
    let (mut last, mut problem) = (None, None);
    snapshot.scan_bytes(&range, Order::Ascending, None, &mut |key, bytes| {
        let found = match index.read(key) {
            Some(IndexPart::Trigrams { page, group })
                if page == place.page && last < Some(group) =>
            {
                let damaged = || corrupt(index.field.table(), "it is not a page of trigrams");
                word(bytes, place).map(|word| (group, word)).ok_or_else(damaged)
            }
            _ => Err(misplaced(index.field.table())),
        };
        match found {
            Ok((group, word)) => {
                last = Some(group);
                visit(group, word);
                ControlFlow::Continue(())
            }
            Err(error) => {
                problem = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    problem.map_or(Ok(()), Err)
}

// Calls `visit` with the rows of a group, or of all groups, which end where `head` says.
fn scan_rows(
    snapshot: &(impl Snapshot + ?Sized),
    index: TextIndex,
    group: Option<u32>,
    head: Head,
    visit: &mut VisitRow<'_>,
) -> Result<ControlFlow<()>> {
    let prefix = group.map_or_else(|| index.rows(), |group| index.group(group));
    let (mut last, mut problem, mut next) = (None, None, ControlFlow::Continue(()));
    snapshot.scan_bytes(&prefix.range(), Order::Ascending, None, &mut |key, bytes| {
        let place = match index.read(key) {
            Some(IndexPart::Row { group, row }) => Some((group, row)).filter(|at| last < Some(*at)),
            _ => None,
        };
        match (place, View::read(bytes)) {
            (Some(place), Some(row)) => {
                last = Some(place);
                next = visit(place, row);
                next
            }
            (place, _) => {
                problem =
                    Some(place.map_or(misplaced(index.field.table()), |_| damaged_row(index)));
                ControlFlow::Break(())
            }
        }
    })?;
    let is_whole = next.is_break() || last == Some((head.group, head.rows - 1));
    problem.map_or_else(|| if is_whole { Ok(next) } else { Err(damaged_row(index)) }, Err)
}
