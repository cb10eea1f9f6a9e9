//! Searching: from the newest segment to the oldest, until enough is found.

use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;

use domain::ids::{EnvironmentId, TransactionId};
use domain::notification::Ordinal;
use parking_lot::RwLockReadGuard;
use store::layout::{self, SegmentPart};
use store::{Order, Result, Snapshot, Table};

use crate::append::Runs;
use crate::block::Block;
use crate::cache::{Cache, Sealed, SealedSegments};
use crate::corrupt;
use crate::facets::Term;
use crate::filter::Filter;
use crate::head::Head;
use crate::open::OpenSegment;
use crate::set::{Set, View};
use crate::times::{self, ROW};

/// The index of an environment as of one snapshot.
pub(crate) struct Search<'s> {
    snapshot: &'s dyn Snapshot,
    environment: EnvironmentId,
    head: Head,
    sealed: Arc<SealedSegments>,
    /// What is not sealed, as long as it is needed. Whoever adds to it waits until then.
    open: Option<RwLockReadGuard<'s, Cache>>,
}

/// A segment.
#[derive(Clone, Copy, Debug)]
enum Segment<'a> {
    Sealed(u32, &'a Sealed),
    Open(&'a OpenSegment),
}

/// The places in a segment that match.
enum Hits {
    All(Range<u32>),
    Some(Set),
}

impl<'s> Search<'s> {
    pub(crate) fn new(
        snapshot: &'s dyn Snapshot,
        environment: EnvironmentId,
        head: Head,
        cache: RwLockReadGuard<'s, Cache>,
    ) -> Self {
        Self { snapshot, environment, head, sealed: cache.sealed(), open: Some(cache) }
    }

    /// The ordinals that match, newest first, but for the first `skip`.
    pub(crate) fn find(
        mut self,
        filter: &Filter,
        mut skip: u64,
        limit: usize,
    ) -> Result<Vec<Ordinal>> {
        let mut found = Vec::with_capacity(limit.min(1_000));
        if limit == 0 {
            return Ok(found);
        }
        self.each(filter, |start, hits| {
            let mut take = |place: u32| {
                found.push(Ordinal::new(start + u64::from(place)));
                if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            match hits {
                Hits::All(places) => {
                    let skipped =
                        u32::try_from(skip).unwrap_or(u32::MAX).min(places.end - places.start);
                    skip -= u64::from(skipped);
                    (places.start..places.end - skipped).rev().try_for_each(take)
                }
                Hits::Some(places) => places.descend(&mut skip, |place| take(place.into())),
            }
        })?;
        Ok(found)
    }

    /// How many match.
    pub(crate) fn count(mut self, filter: &Filter) -> Result<u64> {
        let mut count = 0;
        self.each(filter, |_, hits| {
            count += match hits {
                Hits::All(places) => u64::from(places.end - places.start),
                Hits::Some(places) => places.view().len(),
            };
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    // Shows `visit` what matches in each segment, newest first, and the segment's first ordinal.
    fn each(
        &mut self,
        filter: &Filter,
        mut visit: impl FnMut(u64, Hits) -> ControlFlow<()>,
    ) -> Result<()> {
        for Range { start: low, end: mut high } in self.ranges(filter)? {
            while high > low {
                let (segment, last) = self.head.place(high - 1);
                let start = self.head.start(segment);
                let first = u32::try_from(low.saturating_sub(start)).unwrap_or_default();
                let places = first..u32::from(last) + 1;
                if segment < self.head.open() {
                    self.open = None;
                }
                if let Some(hits) = self.hits(segment, places, filter)?
                    && visit(start, hits).is_break()
                {
                    return Ok(());
                }
                high = start;
            }
        }
        Ok(())
    }

    // The runs of ordinals that are as old as the filter wants them, newest first.
    fn ranges(&self, filter: &Filter) -> Result<Vec<Range<u64>>> {
        let after = filter.after.map(|time| self.ordinal_at(time.as_millis())).transpose()?;
        let before = filter.before.map(|time| self.ordinal_at(time.as_millis() + 1)).transpose()?;
        let low = after.unwrap_or_default().max(self.head.floor);
        let high = before.unwrap_or(self.head.next).min(self.head.next);
        let Some(id) = &filter.transaction else {
            return Ok(vec![Range { start: low, end: high }]);
        };
        let runs = self.transaction(id)?.newest_first();
        Ok(runs.map(|run| run.start.max(low)..run.end.min(high)).collect())
    }

    fn transaction(&self, id: &TransactionId) -> Result<Runs> {
        let key = layout::transaction_notifications(self.environment, self.head.generation, id);
        Runs::find(self.snapshot, &key)
    }

    // The first ordinal that was created at `time` or later.
    fn ordinal_at(&self, time: i64) -> Result<u64> {
        if let Some((number, sealed)) = self.sealed.at(time) {
            let start = self.head.start(number);
            let Some(row) = sealed.times.row_before(time) else { return Ok(start) };
            let before = self.count_before(number, row, time)?.min(ROW);
            let end = start + u64::from(self.head.segment_size);
            return Ok((start + (row * ROW + before) as u64).min(end));
        }
        let mut ordinal = self.head.sealed;
        for open in self.open.iter().flat_map(|cache| cache.open()) {
            ordinal += open.times.partition_point(|other| *other < time) as u64;
        }
        Ok(ordinal.min(self.head.next))
    }

    fn count_before(&self, segment: u32, row: usize, time: i64) -> Result<usize> {
        let part = SegmentPart::TimeRow(u32::try_from(row).unwrap_or(u32::MAX));
        let key = self.part(segment, part);
        let mut count = None;
        self.snapshot.get(Table::ActivitySegments, key.as_bytes(), &mut |bytes| {
            count = times::count_before(bytes, time);
        })?;
        count.ok_or_else(|| corrupt(Table::ActivitySegments, "a row of times is missing"))
    }

    fn hits(&self, number: u32, places: Range<u32>, filter: &Filter) -> Result<Option<Hits>> {
        let damaged = || corrupt(Table::ActivitySegments, "a segment is missing");
        let segment = self.segment(number).ok_or_else(damaged)?;
        let deleted = self.deleted(number)?;
        let mut found = match self.matching(segment, filter.groups())? {
            Matching::Nothing => return Ok(None),
            Matching::All if deleted.is_none() => return Ok(Some(Hits::All(places))),
            Matching::All => Set::all(&places),
            Matching::Places(found) => found,
        };
        if places.start > 0 || places.end < self.head.segment_size {
            found.clip(&places);
        }
        if let Some(deleted) = deleted {
            found.subtract(deleted.view());
        }
        Ok(Some(Hits::Some(found)))
    }

    fn segment(&self, number: u32) -> Option<Segment<'_>> {
        let Some(at) = number.checked_sub(self.head.open()) else {
            return self.sealed.get(number).map(|sealed| Segment::Sealed(number, sealed));
        };
        let open = self.open.as_ref()?.open().get(usize::try_from(at).ok()?)?;
        Some(Segment::Open(open))
    }

    fn matching(&self, segment: Segment<'_>, groups: &[Vec<Term>]) -> Result<Matching> {
        if !groups.iter().all(|group| group.iter().any(|term| segment.may_have(*term))) {
            return Ok(Matching::Nothing);
        }
        let mut found = Matching::All;
        for group in groups {
            found = match group.as_slice() {
                [term] => self.one(segment, *term, found)?,
                terms => found.intersect(self.union(segment, terms)?.view()),
            };
            if let Matching::Nothing = found {
                break;
            }
        }
        Ok(found)
    }

    fn one(&self, segment: Segment<'_>, term: Term, found: Matching) -> Result<Matching> {
        let (number, _) = match segment {
            Segment::Sealed(number, sealed) => (number, sealed),
            Segment::Open(open) => {
                return Ok(match open.find(term) {
                    Some(places) => found.intersect(places),
                    None => Matching::Nothing,
                });
            }
        };
        let mut found = Some(found);
        let mut both = Matching::Nothing;
        self.block(number, term, &mut |block| {
            if let (Some(places), Some(found)) = (block.find(term.parts().1), found.take()) {
                both = found.intersect(places);
            }
        })?;
        Ok(both)
    }

    // The places of any of `terms`, which are in order.
    fn union(&self, segment: Segment<'_>, terms: &[Term]) -> Result<Set> {
        // Lists are cheaper to unite when they are few.
        let mut union = if terms.len() <= 8 { Set::default() } else { Set::all(&(0..0)) };
        match segment {
            Segment::Sealed(number, sealed) => self.unite(number, sealed, terms, &mut union)?,
            Segment::Open(open) => {
                terms.iter().filter_map(|term| open.find(*term)).for_each(|set| union.unite(set));
            }
        }
        Ok(union)
    }

    fn unite(
        &self,
        number: u32,
        sealed: &Sealed,
        mut terms: &[Term],
        union: &mut Set,
    ) -> Result<()> {
        while let Some((last, before)) = terms.split_last() {
            let all = terms;
            terms = before;
            if !sealed.may_have(*last) {
                continue;
            }
            // Every term from the start of the block on is in this block or in none.
            self.block(number, *last, &mut |block| {
                let (dimension, _) = last.parts();
                let first = (dimension, block.first().unwrap_or_default());
                let (before, within) =
                    all.split_at(all.partition_point(|term| term.parts() < first));
                let sets = within.iter().filter_map(|term| block.find(term.parts().1));
                sets.for_each(|set| union.unite(set));
                if before.len() < terms.len() {
                    terms = before;
                }
            })?;
        }
        Ok(())
    }

    // Shows `visit` the block that has the term, if any has it.
    fn block(&self, segment: u32, term: Term, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        let (dimension, value) = term.parts();
        let bound = |value| {
            let key = self.part(segment, SegmentPart::Block { dimension, value });
            Bound::Included(key.as_bytes().to_vec())
        };
        let range = (bound(0), bound(value));
        let mut is_intact = true;
        self.snapshot.scan(
            Table::ActivitySegments,
            &range,
            Order::Descending,
            &mut |_, bytes| {
                match Block::read(bytes) {
                    Some(block) => visit(block),
                    None => is_intact = false,
                }
                ControlFlow::Break(())
            },
        )?;
        if is_intact { Ok(()) } else { Err(corrupt(Table::ActivitySegments, "it is not a block")) }
    }

    fn deleted(&self, segment: u32) -> Result<Option<Set>> {
        if self.head.deleted == 0 {
            return Ok(None);
        }
        let key = layout::activity_deleted(self.environment, self.head.generation, segment);
        let mut deleted = None;
        self.snapshot.get(Table::ActivityDeleted, key.as_bytes(), &mut |bytes| {
            deleted = Some(View::read(bytes).to_set());
        })?;
        Ok(deleted)
    }

    fn part(&self, segment: u32, part: SegmentPart) -> store::Key {
        layout::segment_part(self.environment, self.head.generation, segment, part)
    }
}

/// What of a segment matches the groups that were looked at.
enum Matching {
    Nothing,
    All,
    Places(Set),
}

impl Matching {
    fn intersect(self, places: View<'_>) -> Self {
        let both = match self {
            Self::Nothing => return Self::Nothing,
            Self::All => places.to_set(),
            Self::Places(mut both) => {
                both.intersect(places);
                both
            }
        };
        if both.view().is_empty() { Self::Nothing } else { Self::Places(both) }
    }
}

impl Segment<'_> {
    fn may_have(self, term: Term) -> bool {
        match self {
            Segment::Sealed(_, sealed) => sealed.may_have(term),
            Segment::Open(open) => open.find(term).is_some(),
        }
    }
}
