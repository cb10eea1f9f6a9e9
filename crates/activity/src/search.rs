//! Searching: from the newest segment to the oldest, until enough is found.

mod segment;
mod sets;
mod spans;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use domain::ids::{EnvironmentId, TransactionId};
use domain::notification::{NotificationOutcome, Ordinal};
use domain::time::Timestamp;
use parking_lot::RwLockReadGuard;
use store::layout::{self, SegmentPart};
use store::{Bytes, Key, ReadRecords, Result, Snapshot, Table};

use self::segment::Segment;
use crate::append::Runs;
use crate::block::Block;
use crate::blocks::Blocks;
use crate::cache::{Cache, SealedSegments};
use crate::facets::Term;
use crate::filter::Filter;
use crate::head::Head;
use crate::open::OpenSegment;
use crate::outcomes::{self, Allowed, Places};
use crate::presence::Probe;
use crate::scoped_filter::{self, EachSubscriber, ScopedFilter};
use crate::set::{Set, View};
use crate::walk::{Any, Page, Walk};
use crate::window::{Overlap, PlaceRange, Window};
use crate::{corrupt, deleted, times, walk};

/// The index of an environment as of one snapshot.
pub(crate) struct Search<'s> {
    snapshot: &'s dyn Snapshot,
    environment: EnvironmentId,
    head: Head,
    blocks: &'s Blocks,
    sealed: Arc<SealedSegments>,
    open: Open<'s>,
    /// The last segment in which subscribers were looked for, and their places there.
    known: RefCell<Option<(u32, Rc<Set>)>>,
}

/// The notifications that are not sealed.
enum Open<'s> {
    /// Those in the cache. A thread that adds to it waits meanwhile.
    Locked(RwLockReadGuard<'s, Cache>),
    /// Those of the cache as it was. A thread that adds to it copies the segment that it adds to.
    Shared(VecDeque<Arc<OpenSegment>>),
}

impl Open<'_> {
    fn segments(&self) -> &VecDeque<Arc<OpenSegment>> {
        match self {
            Open::Locked(cache) => cache.open(),
            Open::Shared(segments) => segments,
        }
    }
}

/// What is searched for.
struct Asked<'a> {
    groups: &'a [&'a [Probe]],
    window: &'a Window,
    outcomes: &'a [NotificationOutcome],
    /// Subscribers of whom a notification has one, if they are too many for a group.
    subscribers: Option<&'a EachSubscriber<'a>>,
}

/// Part of a segment that is searched.
struct Sought<'a> {
    segment: Segment<'a>,
    range: Range<u32>,
    without: Option<View<'a>>,
    /// Most of it will be walked through.
    is_deep: bool,
}

impl<'s> Search<'s> {
    pub(crate) fn new(
        snapshot: &'s dyn Snapshot,
        environment: EnvironmentId,
        head: Head,
        cache: RwLockReadGuard<'s, Cache>,
        blocks: &'s Blocks,
    ) -> Self {
        let (sealed, open, known) = (cache.sealed(), Open::Locked(cache), RefCell::default());
        Self { snapshot, environment, head, blocks, sealed, open, known }
    }

    /// The ordinals that match, newest first, but for the first `skip`.
    pub(crate) fn find(
        mut self,
        all: ScopedFilter<'_>,
        skip: u64,
        limit: usize,
    ) -> Result<Vec<Ordinal>> {
        let mut page = Page::new(skip, limit);
        self.fill(all, &mut page)?;
        Ok(page.found)
    }

    /// Returns the number of matches.
    pub(crate) fn count(mut self, all: ScopedFilter<'_>) -> Result<u64> {
        let mut page = Page::new(u64::MAX, 1);
        self.fill(all, &mut page)?;
        Ok(u64::MAX - page.skip)
    }

    fn fill(&mut self, scoped: ScopedFilter<'_>, page: &mut Page<Ordinal>) -> Result<()> {
        let ScopedFilter { filter, subscribers } = scoped;
        if filter.groups().iter().any(Vec::is_empty) {
            return Ok(());
        }
        // Going through the subscribers may take long.
        if subscribers.is_some() {
            self.open = Open::Shared(self.open.segments().clone());
        }
        let size = self.head.segment_size;
        let probes = |group: &Vec<Term>| group.iter().map(|term| Probe::of(*term, size)).collect();
        let groups: Vec<Vec<Probe>> = filter.groups().iter().map(probes).collect();
        let groups: Vec<&[Probe]> = groups.iter().map(Vec::as_slice).collect();
        let (window, outcomes) = (&filter.window, filter.outcomes.as_slice());
        let asked = Asked { groups: &groups, window, outcomes, subscribers };
        for run in self.runs(filter)? {
            let Range { start: low, end: mut high } = run;
            while high > low && !page.is_full() {
                let (segment, _) = self.head.place(high - 1);
                if segment < self.head.open() {
                    self.open = Open::Shared(VecDeque::new());
                }
                let span = self.sealed.span_of(segment, &self.head);
                let first = span.map_or(segment, |loaded| loaded.span.first);
                let part = low.max(self.head.start(first))..high;
                high = part.start;
                match span {
                    Some(loaded) => self.fill_from_span(loaded, part, &asked, page)?,
                    None => self.fill_from_segments(part, &asked, page)?,
                }
            }
        }
        Ok(())
    }

    fn fill_from_segments(
        &self,
        range: Range<u64>,
        asked: &Asked<'_>,
        page: &mut Page<Ordinal>,
    ) -> Result<()> {
        let mut high = range.end;
        while high > range.start && !page.is_full() {
            let (segment, last) = self.head.place(high - 1);
            let start = self.head.start(segment);
            let first = u32::try_from(range.start.saturating_sub(start)).unwrap_or_default();
            self.fill_from_segment(segment, first..u32::from(last) + 1, asked, None, page)?;
            high = start;
        }
        Ok(())
    }

    // Fills the page with the places of a segment that are in `few` and have one of each group.
    fn fill_from_segment(
        &self,
        number: u32,
        places: Range<u32>,
        asked: &Asked<'_>,
        few: Option<View<'_>>,
        page: &mut Page<Ordinal>,
    ) -> Result<()> {
        let segment = self.segment(number)?;
        let Asked { groups, window, .. } = asked;
        let overlap = window.overlap(segment.range());
        let may_have = |group: &&[Probe]| group.iter().any(|term| segment.may_have(term));
        if overlap == Overlap::None || !groups.iter().all(may_have) {
            return Ok(());
        }
        if overlap == Overlap::All {
            return self.fill_from_part(
                number,
                segment,
                &PlaceRange::all(places),
                (asked, few),
                page,
            );
        }
        for rows in window.groups(segment.times(), &places) {
            if !page.is_full() {
                let part = self.part(number, segment, &places, rows, window)?;
                self.fill_from_part(number, segment, &part, (asked, few), page)?;
            }
        }
        Ok(())
    }

    fn fill_from_part(
        &self,
        number: u32,
        segment: Segment<'_>,
        part: &PlaceRange,
        (asked, few): (&Asked<'_>, Option<View<'_>>),
        page: &mut Page<Ordinal>,
    ) -> Result<()> {
        let start = self.head.start(number);
        let places = Places { start, range: &part.range, few };
        let allowed = outcomes::allowed(self.snapshot, self.environment, places, asked.outcomes)?;
        if part.range.is_empty() || allowed.is_empty() {
            return Ok(());
        }
        let mut without = self.deleted(number)?;
        if let Some(mut outside) = part.without() {
            if let Some(deleted) = &without {
                outside.unite(deleted.view());
            }
            without = Some(outside);
        }
        let only = match &allowed {
            Allowed::All => None,
            Allowed::Only(set) => Some(set.view()),
            Allowed::Without(set) => {
                without.get_or_insert_default().unite(set.view());
                None
            }
        };
        let without = without.as_ref().map(Set::view);
        let is_deep = page.skip >= u64::from(walk::LINE);
        let sought = Sought { segment, range: part.range.clone(), without, is_deep };
        let sets: Vec<Any<'_>> = few.into_iter().chain(only).map(Any::One).collect();
        let mut outcome = Ok(());
        self.narrow(&sought, asked.groups, &sets, &mut |walk| {
            outcome = self.walk(walk, (number, segment), asked, page);
        })?;
        outcome
    }

    // Walks to the end, or as far as the page needs.
    fn walk(
        &self,
        walk: &Walk<'_>,
        (number, segment): (u32, Segment<'_>),
        asked: &Asked<'_>,
        page: &mut Page<Ordinal>,
    ) -> Result<()> {
        let start = self.head.start(number);
        let at = |place| Ordinal::new(start + u64::from(place));
        let Some(subscribers) = asked.subscribers else {
            walk.go(page, at);
            return Ok(());
        };
        if walk.leads_anywhere() {
            let own = self.places_of(subscribers, number, segment)?;
            let sets = [walk.sets, &[Any::One(own.view())]].concat();
            Walk { sets: &sets, ..walk.clone() }.go(page, at);
        }
        Ok(())
    }

    // The places of `subscribers` in a segment. Parts of one segment follow each other.
    fn places_of(
        &self,
        subscribers: &EachSubscriber<'_>,
        number: u32,
        segment: Segment<'_>,
    ) -> Result<Rc<Set>> {
        if let Some((of, known)) = &*self.known.borrow()
            && *of == number
        {
            return Ok(Rc::clone(known));
        }
        let found = match segment {
            Segment::Open(open) => scoped_filter::in_open(open, subscribers)?,
            Segment::Sealed(_, sealed) => {
                let read = |first: Term, visit: &mut dyn FnMut(Block<'_>)| {
                    let bytes = self.block(number, first)?;
                    Block::read(&bytes).map(visit);
                    Ok(())
                };
                scoped_filter::in_sealed(&sealed.directory, &read, subscribers)?
            }
        };
        let found = Rc::new(found);
        *self.known.borrow_mut() = Some((number, Rc::clone(&found)));
        Ok(found)
    }

    // The runs of ordinals that are not deleted as a whole, newest first.
    fn runs(&self, filter: &Filter) -> Result<Vec<Range<u64>>> {
        let (low, high) = (self.head.floor, self.head.next);
        let Some(id) = &filter.transaction else {
            return Ok(vec![Range { start: low, end: high }]);
        };
        let runs = self.transaction(id)?.newest_first();
        Ok(runs.map(|run| run.start.max(low)..run.end.min(high)).collect())
    }

    /// The ordinals that were created before `time`, as ranges in their order.
    pub(crate) fn created_before(self, time: Timestamp) -> Result<Vec<Range<u64>>> {
        let window = Window { from: i64::MIN, to: time.as_millis() - 1 };
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut low = self.head.floor;
        while low < self.head.next {
            let (number, first) = self.head.place(low);
            let start = self.head.start(number);
            let high = self.head.start(number + 1).min(self.head.next);
            let places = u32::from(first)..u32::try_from(high - start).unwrap_or(u32::MAX);
            let segment = self.segment(number)?;
            for rows in window.groups(segment.times(), &places).into_iter().rev() {
                let part = self.part(number, segment, &places, rows, &window)?;
                for found in part.ranges().filter(|found| !found.is_empty()) {
                    let found = start + u64::from(found.start)..start + u64::from(found.end);
                    match ranges.last_mut() {
                        Some(last) if last.end == found.start => last.end = found.end,
                        Some(_) | None => ranges.push(found),
                    }
                }
            }
            low = high;
        }
        Ok(ranges)
    }

    fn transaction(&self, id: &TransactionId) -> Result<Runs> {
        Runs::find(self.snapshot, self.environment, id)
    }

    // The part of `places` of a segment that is in `rows` and within `window`.
    fn part(
        &self,
        number: u32,
        segment: Segment<'_>,
        places: &Range<u32>,
        rows: Range<usize>,
        window: &Window,
    ) -> Result<PlaceRange> {
        window.part(segment.times(), places, rows, |row| match segment {
            Segment::Sealed(..) => self.outside_in_row(number, row, window),
            Segment::Open(open) => Ok(times::outside(open.row(row), window)),
        })
    }

    fn outside_in_row(
        &self,
        segment: u32,
        row: usize,
        window: &Window,
    ) -> Result<Vec<Range<usize>>> {
        let part = SegmentPart::TimeRow(u32::try_from(row).unwrap_or(u32::MAX));
        let mut outside = None;
        self.snapshot.get_bytes(&self.key(segment, part), &mut |bytes| {
            outside = times::outside_in_row(bytes, window);
        })?;
        outside.ok_or_else(|| corrupt(Table::ActivitySegments, "a row of times is missing"))
    }

    fn segment(&self, number: u32) -> Result<Segment<'_>> {
        let found = match number.checked_sub(self.head.open()) {
            None => self.sealed.get(number).map(|sealed| Segment::Sealed(number, sealed)),
            Some(at) => usize::try_from(at).ok().and_then(|at| {
                let open = self.open.segments().get(at)?;
                Some(Segment::Open(open))
            }),
        };
        found.ok_or_else(|| corrupt(Table::ActivitySegments, "a segment is missing"))
    }

    // Shows `walk` the places that are in `sets` and in those of each group.
    fn narrow(
        &self,
        sought: &Sought<'_>,
        groups: &[&[Probe]],
        sets: &[Any<'_>],
        walk: &mut dyn FnMut(&Walk<'_>),
    ) -> Result<()> {
        let Sought { segment, range, without, is_deep } = sought;
        let walked = Walk { range: range.clone(), sets, without: *without };
        let Some((group, rest)) = groups.split_first() else {
            walk(&walked);
            return Ok(());
        };
        // Looking up many sets is expensive, and useless if no place is left to match.
        if group.len() > 1 && !sets.is_empty() && !walked.leads_anywhere() {
            return Ok(());
        }
        let mut outcome = Ok(());
        self.any(*segment, group, &mut |found| {
            if !found.is_empty() {
                let (mut few, mut union) = (Vec::new(), None);
                let mut set = Any::of(found, range, &mut few);
                if *is_deep && matches!(set, Any::Several(_)) {
                    set = Any::One(union.insert(Set::united(found)).view());
                }
                outcome = self.narrow(sought, rest, &[sets, &[set]].concat(), walk);
            }
        })?;
        outcome
    }

    fn deleted(&self, segment: u32) -> Result<Option<Set>> {
        if self.head.deleted == 0 {
            return Ok(None);
        }
        deleted::find(self.snapshot, self.environment, &self.head, segment)
    }

    fn key(&self, segment: u32, part: SegmentPart) -> Key<Bytes> {
        layout::segment_part(self.environment, self.head.generation, segment, part)
    }
}
