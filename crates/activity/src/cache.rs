//! Cache of the index of an environment in memory. The notifications that are not sealed are in
//! the cache. Of each sealed segment the cache has the summaries by which a search skips it.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use domain::ids::EnvironmentId;
use store::layout::{self, SegmentPart};
use store::{Order, ReadRecords, Result, Snapshot, Table};

use crate::block::Directory;
use crate::corrupt;
use crate::facets::{FACETS_IN_ROW, Facets, Term};
use crate::head::Head;
use crate::open::OpenSegment;
use crate::presence::{Presence, Probe};
use crate::row::RowState;
use crate::span::{LEVELS, LoadedSpan, Span};
use crate::times::{TimeRange, Times};

/// The index as of some committed moment.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    era: u64,
    generation: u32,
    segment_size: u32,
    sealed: Arc<SealedSegments>,
    /// The ordinal of the first notification that is not sealed.
    start: u64,
    open: VecDeque<Arc<OpenSegment>>,
    /// The ordinal behind the last one.
    next: u64,
}

/// The sealed segments that are not deleted as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct SealedSegments {
    /// The number of the first of them.
    lowest: u32,
    segments: VecDeque<Sealed>,
    /// The first segment that is in no span of each level.
    merged_until: [u32; LEVELS.len()],
    /// The largest spans, oldest first.
    spans: Vec<LoadedSpan>,
}

/// Part of a sealed segment that is in memory.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) times: Arc<Times>,
    /// The range of all times.
    pub(crate) range: TimeRange,
    pub(crate) directory: Arc<Directory>,
    /// The terms that it may have, if it is one of the newest segments.
    presence: Option<Arc<Presence>>,
}

/// Number of segments, the newest, whose filters of terms are in memory: 16 MB in all.
const PRESENT: u32 = 256;

/// Maximum number of segments of a span whose filters are asked for a term.
const ASKED: usize = MeetingBits::BITS as usize;

/// A bit for each segment of a span that may have a term of each group.
type MeetingBits = u16;

/// Number of notifications that one lock reads.
const STEP: u64 = 256;

impl Cache {
    /// Returns `true` if the cache shows the list as of `head`.
    pub(crate) fn shows(&self, head: &Head) -> bool {
        self.follows(head)
            && self.start == head.sealed
            && self.next >= head.next
            && !self.sealed.is_merged_before(head)
            && self.sealed.lowest <= head.lowest()
    }

    /// How far it is, as [`Head::progress`].
    pub(crate) fn progress(&self) -> (u64, u32, u64) {
        (self.era, self.generation, self.next)
    }

    /// Takes in some of the changes that were committed since. Returns `true` if none are left, or
    /// if `head` is of an earlier moment.
    pub(crate) fn follow(
        &mut self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<bool> {
        let lowest = head.lowest().min(head.open());
        // The next entries to read may have been cleared away since.
        let is_behind = self.follows(head) && self.start < head.start(lowest);
        let is_newer = (self.era, self.generation) < (head.era, head.generation);
        if self.segment_size == 0 || is_newer || is_behind {
            let Head { era, generation, segment_size, .. } = *head;
            let sealed = SealedSegments { lowest, ..SealedSegments::default() };
            let start = head.start(lowest);
            *self = Self {
                era,
                generation,
                segment_size,
                sealed: Arc::new(sealed),
                start,
                ..Self::default()
            };
        }
        if !self.follows(head) || self.start > head.sealed {
            return Ok(true);
        }
        while self.start < head.sealed {
            self.seal(snapshot, environment, head)?;
        }
        if self.sealed.lowest < head.lowest() {
            Arc::make_mut(&mut self.sealed).drop_before(head.lowest());
        }
        if self.sealed.is_merged_before(head) {
            Arc::make_mut(&mut self.sealed).merge(snapshot, environment, head)?;
        }
        self.next = self.next.max(self.start);
        let next = head.next.min(self.next + STEP);
        self.read_facets(snapshot, environment, Head { next, ..*head })?;
        Ok(self.next >= head.next)
    }

    /// Takes in everything up to `head`.
    pub(crate) fn load(
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<Self> {
        let mut cache = Self::default();
        while !cache.follow(snapshot, environment, head)? {}
        Ok(cache)
    }

    pub(crate) fn sealed(&self) -> Arc<SealedSegments> {
        Arc::clone(&self.sealed)
    }

    /// The segments that are not sealed.
    pub(crate) fn open(&self) -> &VecDeque<Arc<OpenSegment>> {
        &self.open
    }

    /// The first segment that is not sealed, if it is full.
    pub(crate) fn full(&self) -> Option<Arc<OpenSegment>> {
        self.open.front().filter(|open| open.len() == self.segment_size).cloned()
    }

    fn follows(&self, head: &Head) -> bool {
        (self.era, self.generation, self.segment_size)
            == (head.era, head.generation, head.segment_size)
    }

    // Takes note of the next segment that was sealed.
    fn seal(
        &mut self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<()> {
        let (number, _) = head.place(self.start);
        let sealed = Sealed::read(snapshot, environment, head, number)?;
        Arc::make_mut(&mut self.sealed).push(sealed);
        self.open.pop_front();
        self.start += u64::from(self.segment_size);
        Ok(())
    }

    fn read_facets(
        &mut self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: Head,
    ) -> Result<()> {
        if self.next >= head.next {
            return Ok(());
        }
        let key = |row| layout::activity_facets(environment, head.generation, row);
        let first = self.next / u64::from(FACETS_IN_ROW);
        let all = first..head.next.div_ceil(u64::from(FACETS_IN_ROW));
        let range = layout::activity_facets_between(environment, head.generation, all);
        let mut rows = first..;
        let mut is_intact = true;
        snapshot.scan_bytes(&range, Order::Ascending, None, &mut |found, bytes| {
            let row = rows.next().unwrap_or(u64::MAX);
            is_intact = found == key(row).as_bytes() && self.read_row(row, bytes, &head).is_some();
            if is_intact { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let complete = is_intact && self.next >= head.next;
        if complete {
            Ok(())
        } else {
            Err(corrupt(Table::ActivityFacets, "facets are missing: rebuild the index"))
        }
    }

    fn read_row(&mut self, row: u64, mut bytes: &[u8], head: &Head) -> Option<()> {
        let mut state = RowState::default();
        for ordinal in row * u64::from(FACETS_IN_ROW).. {
            if bytes.is_empty() || ordinal == head.next {
                break;
            }
            bytes = state.read(bytes)?;
            if ordinal == self.next {
                self.push(state.last());
            }
        }
        Some(())
    }

    fn push(&mut self, facets: &Facets) {
        if self.open.back().is_none_or(|last| last.len() == self.segment_size) {
            self.open.push_back(Arc::default());
        }
        // Segments are shared only when they are full, so this copies nothing.
        if let Some(last) = self.open.back_mut() {
            Arc::make_mut(last).push(facets);
        }
        self.next += 1;
    }
}

impl SealedSegments {
    pub(crate) fn get(&self, number: u32) -> Option<&Sealed> {
        self.segments.get(usize::try_from(number.checked_sub(self.lowest)?).ok()?)
    }

    /// The spans.
    pub(crate) fn spans(&self) -> impl Iterator<Item = &LoadedSpan> {
        self.spans.iter()
    }

    /// The span of a segment, if it is in one as of `head`.
    pub(crate) fn span_of(&self, segment: u32, head: &Head) -> Option<&LoadedSpan> {
        let at = self.spans.partition_point(|loaded| loaded.span.end <= segment);
        self.spans.get(at).filter(|loaded| loaded.span.first <= segment && self.is_merged_as(head))
    }

    /// For each group, its terms that a segment may have which may also have a term of each group before.
    /// Returns `None` if no segment may have one of each group.
    pub(crate) fn may_meet(&self, span: Span, groups: &[&[Probe]]) -> Option<Vec<Vec<Term>>> {
        let segments = span.first..span.end;
        // Asking more filters takes longer than a look-up.
        if segments.len() > ASKED {
            let terms = |group: &&[Probe]| group.iter().map(|probe| probe.term).collect();
            return Some(groups.iter().map(terms).collect());
        }
        let at = |number: u32| {
            let at = usize::try_from(number.saturating_sub(self.lowest)).unwrap_or(usize::MAX);
            at.min(self.segments.len())
        };
        let segments = self.segments.range(at(segments.start)..at(segments.end));
        let mut meeting = MeetingBits::MAX;
        let mut known = Vec::new();
        for group in groups {
            let (mut having, mut terms) = (0, Vec::new());
            for probe in *group {
                let bit = |(at, segment): (usize, &Sealed)| {
                    MeetingBits::from(segment.may_have(probe)) << at
                };
                let bits = segments.clone().enumerate().map(bit).fold(0, |all, bit| all | bit);
                if bits & meeting != 0 {
                    if terms.is_empty() {
                        terms.reserve(group.len());
                    }
                    having |= bits;
                    terms.push(probe.term);
                }
            }
            meeting &= having;
            if meeting == 0 {
                return None;
            }
            known.push(terms);
        }
        Some(known)
    }

    /// Returns `true` if the spans are those of `head`. The spans of another moment may be parts of
    /// larger ones, or not be there yet.
    pub(crate) fn is_merged_as(&self, head: &Head) -> bool {
        self.merged_until == head.merged
    }

    // Returns `true` if spans were merged since.
    fn is_merged_before(&self, head: &Head) -> bool {
        self.merged_until.iter().zip(head.merged).any(|(known, merged)| *known < merged)
    }

    // Takes note of the spans that were merged.
    fn merge(
        &mut self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<()> {
        let read = |span| match self.spans.iter().find(|loaded| loaded.span == span) {
            Some(known) => Ok(known.clone()),
            None => LoadedSpan::read(snapshot, environment, head, span),
        };
        self.spans = head.spans().into_iter().map(read).collect::<Result<_>>()?;
        self.merged_until = head.merged;
        Ok(())
    }

    fn push(&mut self, sealed: Sealed) {
        self.segments.push_back(sealed);
        let present = usize::try_from(PRESENT).unwrap_or(usize::MAX);
        if let Some(old) = self.segments.len().checked_sub(present + 1)
            && let Some(old) = self.segments.get_mut(old)
        {
            old.presence = None;
        }
    }

    fn drop_before(&mut self, lowest: u32) {
        while self.lowest < lowest && self.segments.pop_front().is_some() {
            self.lowest += 1;
        }
    }
}

impl Sealed {
    fn read(
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
        number: u32,
    ) -> Result<Self> {
        let (mut times, mut directory, mut presence) = (None, None, None);
        let table = Table::ActivitySegments;
        let read = |part, visit: &mut dyn FnMut(&[u8])| {
            let key = layout::segment_part(environment, head.generation, number, part);
            snapshot.get_bytes(&key, visit)
        };
        read(SegmentPart::Times, &mut |bytes| times = Times::read(bytes, head.segment_size))?;
        read(SegmentPart::Directory, &mut |bytes| directory = Directory::read(bytes))?;
        let mut is_intact = true;
        // Those of older segments are not kept.
        if number + PRESENT >= head.open() {
            read(SegmentPart::Presence, &mut |bytes| {
                presence = Presence::read(bytes, head.segment_size);
                is_intact = presence.is_some();
            })?;
        }
        let damaged = || corrupt(table, "a part of a segment is missing: rebuild the index");
        if !is_intact {
            return Err(damaged());
        }
        let times = times.ok_or_else(damaged)?;
        Ok(Self {
            range: times.all(),
            times: Arc::new(times),
            directory: Arc::new(directory.ok_or_else(damaged)?),
            presence: presence.map(Arc::new),
        })
    }

    /// Returns `true` if the segment may have the term.
    pub(crate) fn may_have(&self, term: &Probe) -> bool {
        self.presence.as_ref().is_none_or(|presence| presence.may_have(term))
    }
}
