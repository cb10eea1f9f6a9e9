//! Pages of lists whose condition is checked record by record, within a number of records.
//!
//! The signature in an entry excludes most records that do not meet the condition. Excluded records are
//! not read.

use std::collections::VecDeque;
use std::fmt;

use domain::ids::EnvironmentId;
use domain::message::Signature;
use domain::page::{Bound, Cursor, Direction, Page, PageRequest, Place, Total};

use super::merged::{Looked, Merged};
use super::{List, Reader};
use crate::batch::Row;
use crate::record::{Excerpt, follow_excerpts, if_readable};
use crate::{Order, Prefix, Result, Snapshot};

/// The records of a list that meet a condition. The entries of the list are those of
/// [`Excerpt::entry`].
pub struct Selection<'l, E: Excerpt> {
    /// The list.
    pub list: &'l List<'l, E::Of>,
    /// The environment of the list.
    pub environment: EnvironmentId,
    /// The condition, on some fields of a record.
    pub shows: &'l dyn Fn(&E) -> bool,
    /// Returns `false` if no record with this signature meets the condition.
    pub may_show: &'l dyn Fn(Signature) -> bool,
    /// What is known about these records, and how far walks go.
    pub bounds: Bounds,
}

/// What is known about the records that a selection shows, and how far walks go.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How far a walk goes for a page.
    pub page: WalkLimit,
    /// How far walks go beyond a page, for its total and for the cursor on its other side.
    pub beyond: WalkLimit,
    /// Number of records that are shown, if it is known.
    pub total: Option<usize>,
    /// Number that the shown records do not exceed.
    pub at_most: usize,
}

/// How far a walk goes. It ends at the first of both numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkLimit {
    /// Number of entries that are looked at.
    pub entries: usize,
    /// Number of records that are read.
    pub records: usize,
}

impl WalkLimit {
    // What is left of this reach behind `gone`.
    fn behind(self, gone: Self) -> Self {
        Self {
            entries: self.entries.saturating_sub(gone.entries),
            records: self.records.saturating_sub(gone.records),
        }
    }

    fn is_over(self) -> bool {
        self.entries == 0 || self.records == 0
    }
}

/// The page of `selection` that `request` asks for. A page that ends early has a cursor behind the
/// last record that was looked at.
pub(crate) fn page<E: Excerpt>(
    snapshot: &(impl Snapshot + ?Sized),
    selection: &Selection<'_, E>,
    request: &PageRequest,
) -> Result<Page<E::Of>> {
    let selected = Selected::of(snapshot, selection, request);
    match &request.place {
        Place::Start => selected.behind(None),
        Place::After(bound) => selected.behind(Some(bound)),
        Place::Before(bound) => selected.in_front(bound),
    }
}

/// The number of records that `selection` shows, as far as a walk gets.
pub(crate) fn total<E: Excerpt>(
    snapshot: &(impl Snapshot + ?Sized),
    selection: &Selection<'_, E>,
    request: &PageRequest,
) -> Result<Total> {
    Selected::of(snapshot, selection, request).total(selection.bounds.page)
}

impl<E: Excerpt> fmt::Debug for Selection<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("bounds", &self.bounds).finish_non_exhaustive()
    }
}

// A selection, and the page of it that a request asks for.
struct Selected<'s, S: ?Sized, E: Excerpt> {
    reader: Reader<'s, S, E::Of>,
    selection: &'s Selection<'s, E>,
    // The order of the list, and the opposite one.
    forwards: Order,
    backwards: Order,
}

// A record that a selection shows.
struct Found<R> {
    sorted: Vec<u8>,
    // `None` if it cannot be read, or was not asked for.
    record: Option<R>,
}

// An entry whose record may be shown.
struct Candidate {
    sorted: Vec<u8>,
    row: Row,
}

// Records that a walk has found, and the place behind which there may be more.
struct Taken<R> {
    found: Vec<Found<R>>,
    rest: Option<Cursor>,
}

// What a selection shows between the start of the list and a page.
#[derive(Default)]
struct Earlier {
    // Number of records.
    count: usize,
    // How far the walk has gone.
    gone: WalkLimit,
    // `true` if nothing else is there.
    is_all: bool,
    // Number that the other records of the selection do not exceed.
    hidden: usize,
}

impl<'s, S: Snapshot + ?Sized, E: Excerpt> Selected<'s, S, E> {
    fn of(snapshot: &'s S, selection: &'s Selection<'s, E>, request: &'s PageRequest) -> Self {
        let reader = Reader { snapshot, list: selection.list, request };
        let forwards = Order::from(request.direction);
        let backwards = Order::from(request.direction.reversed());
        Self { reader, selection, forwards, backwards }
    }

    fn cursor(&self, sorted: &[u8]) -> Cursor {
        Cursor::at(self.reader.request.list, self.reader.request.order_by, sorted)
    }

    // The first page, or the one behind `bound`. What is in front of it is looked at from the start
    // of the list, so that the totals of all pages count what is there.
    fn behind(&self, bound: Option<&Bound>) -> Result<Page<E::Of>> {
        let Bounds { beyond, total, at_most, .. } = self.selection.bounds;
        let earlier = match bound {
            Some(bound) => self.earlier(bound)?,
            None => Earlier { is_all: true, hidden: at_most, ..Earlier::default() },
        };
        let mut walk = self.walk((bound, self.forwards), self.forwards);
        walk.hidden = earlier.hidden;
        let Taken { found, rest: next } = walk.take(self.reader.request.limit)?;
        let has_previous = earlier.count > 0 || !earlier.is_all;
        let first = found.first().map(|first| self.cursor(&first.sorted));
        let direction = self.reader.request.direction;
        let previous = first.or_else(|| bound.map(|bound| behind_item(bound, direction)));
        let ends = (previous.filter(|_| has_previous), next);
        let total = if let Some(total) = total {
            Total::of(total)
        } else {
            walk.left = beyond.behind(earlier.gone).behind(walk.gone);
            walk.count()?;
            total_of(earlier.count + walk.shown, earlier.is_all && walk.is_over())
        };
        Ok(page_of(found, ends, total))
    }

    // The page in front of `bound`.
    fn in_front(&self, bound: &Bound) -> Result<Page<E::Of>> {
        let mut walk = self.walk((Some(bound), self.backwards), self.backwards);
        let Taken { mut found, rest: previous } = walk.take(self.reader.request.limit)?;
        let direction = self.reader.request.direction.reversed();
        let last = found.first().map(|last| self.cursor(&last.sorted));
        let end = last.unwrap_or_else(|| behind_item(bound, direction));
        let rest = Bound::Excluded(end.clone());
        let mut walk = self.walk((Some(&rest), self.forwards), self.forwards);
        walk.left = self.selection.bounds.beyond;
        let has_next = walk.next()?.is_some() || !walk.is_over();
        found.reverse();
        let ends = (previous, has_next.then_some(end));
        Ok(page_of(found, ends, self.total(self.selection.bounds.beyond)?))
    }

    // What is on the near side of `bound`. If the total is known, the walk ends at the first record.
    fn earlier(&self, bound: &Bound) -> Result<Earlier> {
        let near = match bound {
            Bound::Included(cursor) => Bound::Excluded(cursor.clone()),
            Bound::Excluded(cursor) => Bound::Included(cursor.clone()),
        };
        let is_known = self.selection.bounds.total.is_some();
        let order = if is_known { self.backwards } else { self.forwards };
        let mut walk = self.walk((Some(&near), self.backwards), order);
        walk.left = self.selection.bounds.beyond;
        walk.hidden = self.selection.bounds.at_most;
        let at_most = if is_known { 1 } else { usize::MAX };
        while walk.shown < at_most && walk.next()?.is_some() {}
        let Walk { shown, gone, hidden, .. } = walk;
        Ok(Earlier { count: shown, gone, is_all: walk.is_over(), hidden })
    }

    // The number of records within `reach`.
    fn total(&self, reach: WalkLimit) -> Result<Total> {
        let Bounds { total, at_most, .. } = self.selection.bounds;
        if let Some(total) = total {
            return Ok(Total::of(total));
        }
        let mut walk = self.walk((None, self.forwards), self.forwards);
        (walk.left, walk.hidden) = (reach, at_most);
        walk.count()?;
        Ok(total_of(walk.shown, walk.is_over()))
    }

    // A walk in `order` over what is on the far side of `bound`, as seen in `side`.
    fn walk<'w>(
        &'w self,
        (bound, side): (Option<&Bound>, Order),
        order: Order,
    ) -> Walk<'w, 's, S, E> {
        let range = |part: &Prefix<E::Of>| part.page_range(bound, side);
        Walk {
            selected: self,
            entries: Merged::new(&self.reader, self.selection.may_show, range, order),
            found: VecDeque::new(),
            last: Vec::new(),
            left: self.selection.bounds.page,
            gone: WalkLimit::default(),
            shown: 0,
            hidden: usize::MAX,
            wanted: 0,
            size: FEW,
            is_at_end: false,
        }
    }
}

// The end of a page without records, which begins at `bound` and goes on in `direction`. An item that the page
// leaves out is on the far side.
fn behind_item(bound: &Bound, direction: Direction) -> Cursor {
    match bound {
        Bound::Included(cursor) => cursor.clone(),
        Bound::Excluded(cursor) => cursor.next_in(direction),
    }
}

fn total_of(count: usize, is_exact: bool) -> Total {
    if is_exact { Total::of(count) } else { Total::AtLeast(count) }
}

// The page of `found`, without the records that cannot be read.
fn page_of<R>(
    found: Vec<Found<R>>,
    ends: (Option<Cursor>, Option<Cursor>),
    total: Total,
) -> Page<R> {
    let all = found.len();
    let data: Vec<R> = found.into_iter().filter_map(|found| found.record).collect();
    let unreadable = all - data.len();
    Page::new(data, ends, total).without(unreadable)
}

// Number of entries that are looked at at first, and at most, at a time.
const FEW: usize = 32;
const MANY: usize = 256;

// A walk over the entries of a list.
struct Walk<'w, 's, S: ?Sized, E: Excerpt> {
    selected: &'w Selected<'s, S, E>,
    entries: Merged<'w, S, E::Of>,
    // What was found ahead.
    found: VecDeque<Found<E::Of>>,
    // Place of the last entry that was looked at.
    last: Vec<u8>,
    // How far it may still go, and how far it has gone.
    left: WalkLimit,
    gone: WalkLimit,
    // Number of records that it has found.
    shown: usize,
    // Number that the records which were not found yet do not exceed.
    hidden: usize,
    // Number of the next records that are asked for.
    wanted: usize,
    // Number of entries that it looks at next.
    size: usize,
    is_at_end: bool,
}

impl<S: Snapshot + ?Sized, E: Excerpt> Walk<'_, '_, S, E> {
    // The next record that the selection shows.
    fn next(&mut self) -> Result<Option<Found<E::Of>>> {
        while self.found.is_empty() && !self.is_over() && !self.left.is_over() {
            let candidates = self.candidates()?;
            self.size = MANY.min(2 * self.size);
            self.look(&candidates)?;
        }
        let next = self.found.pop_front();
        self.shown += usize::from(next.is_some());
        Ok(next)
    }

    // The next `limit` records.
    fn take(&mut self, limit: usize) -> Result<Taken<E::Of>> {
        self.wanted = limit;
        let mut found = Vec::with_capacity(limit);
        while let Some(next) = self.next()? {
            if found.len() == limit {
                let last = found.last().unwrap_or(&next);
                let rest = Some(self.selected.cursor(&last.sorted));
                return Ok(Taken { found, rest });
            }
            found.push(next);
        }
        let rest = (!self.is_over()).then(|| self.selected.cursor(&self.last));
        Ok(Taken { found, rest })
    }

    // Finds all the other records.
    fn count(&mut self) -> Result<()> {
        while self.next()?.is_some() {}
        Ok(())
    }

    // Returns `true` if nothing is behind the last entry that was looked at.
    fn is_over(&self) -> bool {
        self.is_at_end || self.hidden == 0
    }

    // Looks at the next entries, and returns those whose records may be shown.
    fn candidates(&mut self) -> Result<Vec<Candidate>> {
        let before = self.left;
        let mut candidates = Vec::new();
        for _ in 0..self.size {
            if self.left.is_over() {
                break;
            }
            let ahead = self.left.entries.min(self.size);
            let Some(Looked { sorted, row }) = self.entries.next(ahead)? else {
                self.is_at_end = true;
                break;
            };
            self.last.clear();
            self.last.extend_from_slice(sorted);
            self.left.entries -= 1;
            if let Some(row) = row {
                self.left.records -= 1;
                candidates.push(Candidate { sorted: sorted.to_vec(), row });
            }
        }
        let gone = before.behind(self.left);
        self.gone.entries += gone.entries;
        self.gone.records += gone.records;
        Ok(candidates)
    }

    // Looks at the records of `candidates`. One that cannot be read has its place in the list, since
    // nobody knows whether the condition lets it through.
    fn look(&mut self, candidates: &[Candidate]) -> Result<()> {
        if candidates.is_empty() {
            return Ok(());
        }
        let Selected { reader, selection, .. } = self.selected;
        let codec = reader.snapshot.codec();
        let place = (selection.environment, selection.list.table);
        let rows = candidates.iter().map(|candidate| &candidate.row);
        let mut looked = Ok(());
        let mut rest = candidates.iter();
        follow_excerpts::<E>(reader.snapshot, place, rows, &mut |excerpt, value| {
            let Some(Candidate { sorted, row }) = rest.next() else { return };
            let excerpt = match if_readable(excerpt) {
                Ok(excerpt) => excerpt,
                Err(error) => return looked = Err(error),
            };
            if excerpt.as_ref().is_some_and(|excerpt| !(selection.shows)(excerpt)) {
                return;
            }
            let mut record = None;
            if excerpt.is_some() {
                self.hidden = self.hidden.saturating_sub(1);
                if self.wanted > 0 {
                    record = codec.decode(row.target(reader.list.table).key, value).ok();
                }
            }
            self.wanted = self.wanted.saturating_sub(1);
            self.found.push_back(Found { sorted: sorted.clone(), record });
        })?;
        looked
    }
}
