//! What of the index of an environment is in memory: what is not sealed, and of each sealed segment
//! what tells whether it has to be looked into.

use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};

use domain::ids::EnvironmentId;
use store::layout::{self, SegmentPart};
use store::{Order, Result, Snapshot, Table};

use crate::append::ROW;
use crate::corrupt;
use crate::facets::Facets;
use crate::head::Head;
use crate::open::OpenSegment;
use crate::presence::Presence;
use crate::times::Times;

/// The index as of some committed moment.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    generation: u32,
    segment: u32,
    /// The first of the sealed segments.
    lowest: u32,
    sealed: VecDeque<Sealed>,
    /// The ordinal of the first notification that is not sealed.
    start: u64,
    open: VecDeque<OpenSegment>,
    /// The ordinal behind the last one.
    next: u64,
}

/// What is in memory of a sealed segment.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) times: Times,
    /// The terms that it may have, if it is one of the newest segments.
    pub(crate) presence: Option<Presence>,
}

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Segment<'a> {
    Sealed(u32, &'a Sealed),
    Open(&'a OpenSegment),
}

/// For how many segments the terms that they may have are in memory: for 16 MB of them.
const PRESENT: usize = 256;

impl Cache {
    /// Whether it shows the list that `head` tells of.
    pub(crate) fn shows(&self, head: &Head) -> bool {
        self.generation == head.generation
            && self.segment == head.segment
            && self.start == head.sealed
            && self.next >= head.next
            && self.lowest <= head.lowest()
    }

    /// Takes in what was committed since. A head of an earlier moment changes nothing.
    pub(crate) fn follow(
        &mut self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<()> {
        let is_new = self.segment == 0 || self.generation < head.generation;
        if !is_new && (self.generation > head.generation || self.start > head.sealed) {
            return Ok(());
        }
        if is_new {
            let Head { generation, segment, .. } = *head;
            *self = Self { generation, segment, ..Self::default() };
            self.lowest = head.lowest().min(head.open());
            self.start = head.start(self.lowest);
        }
        while self.start < head.sealed {
            self.seal(snapshot, environment, head)?;
        }
        while self.lowest < head.lowest() && self.sealed.pop_front().is_some() {
            self.lowest += 1;
        }
        self.next = self.next.max(self.start);
        self.read_facets(snapshot, environment, head)
    }

    /// The segment of that number.
    pub(crate) fn segment(&self, number: u32) -> Option<Segment<'_>> {
        let at = usize::try_from(number.checked_sub(self.lowest)?).ok()?;
        match self.sealed.get(at) {
            Some(sealed) => Some(Segment::Sealed(number, sealed)),
            None => self.open.get(at - self.sealed.len()).map(Segment::Open),
        }
    }

    /// The first segment that has something from `time` on, or the one behind the last.
    pub(crate) fn segment_at(&self, time: i64) -> u32 {
        let sealed = self.sealed.partition_point(|sealed| sealed.times.last() < time);
        let is_before = |open: &OpenSegment| open.times.last().is_none_or(|last| *last < time);
        let open = match sealed == self.sealed.len() {
            true => self.open.partition_point(is_before),
            false => 0,
        };
        self.lowest + u32::try_from(sealed + open).unwrap_or(u32::MAX)
    }

    /// The first segment that is not sealed, if it is full.
    pub(crate) fn full(&self) -> Option<&OpenSegment> {
        self.open.front().filter(|open| open.len() == self.segment)
    }

    pub(crate) fn open_segments(&self) -> usize {
        self.open.len()
    }

    // Takes note of the next segment that was sealed.
    fn seal(
        &mut self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<()> {
        let (number, _) = head.place(self.start);
        let (mut times, mut presence) = (None, None);
        let part = |part| layout::segment_part(environment, head.generation, number, part);
        let (key, table) = (part(SegmentPart::Times), Table::ActivitySegments);
        snapshot.get(table, key.as_bytes(), &mut |bytes| times = Times::read(bytes))?;
        let key = part(SegmentPart::Presence);
        snapshot.get(table, key.as_bytes(), &mut |bytes| presence = Some(Presence::read(bytes)))?;
        let times = times.ok_or_else(|| corrupt(table, "a segment has no times"))?;
        self.sealed.push_back(Sealed { times, presence });
        if let Some(old) = self.sealed.len().checked_sub(PRESENT + 1)
            && let Some(old) = self.sealed.get_mut(old)
        {
            old.presence = None;
        }
        self.open.pop_front();
        self.start += u64::from(self.segment);
        Ok(())
    }

    fn read_facets(
        &mut self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<()> {
        if self.next >= head.next {
            return Ok(());
        }
        let key = |row| layout::activity_facets(environment, head.generation, row);
        let first = self.next / u64::from(ROW);
        let bound = |row| key(row).as_bytes().to_vec();
        let range = (
            Bound::Included(bound(first)),
            Bound::Excluded(bound(head.next.div_ceil(u64::from(ROW)))),
        );
        let mut rows = first..;
        let mut is_intact = true;
        snapshot.scan(Table::ActivityFacets, &range, Order::Ascending, &mut |found, bytes| {
            let row = rows.next().unwrap_or(u64::MAX);
            is_intact = found == key(row).as_bytes() && self.read_row(row, bytes, head).is_some();
            if is_intact { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let complete = is_intact && self.next >= head.next;
        if complete { Ok(()) } else { Err(corrupt(Table::ActivityFacets, "facets are missing")) }
    }

    fn read_row(&mut self, row: u64, mut bytes: &[u8], head: &Head) -> Option<()> {
        for ordinal in row * u64::from(ROW).. {
            if bytes.is_empty() || ordinal == head.next {
                break;
            }
            let (facets, rest) = Facets::read(bytes)?;
            bytes = rest;
            if ordinal == self.next {
                self.push(&facets);
            }
        }
        Some(())
    }

    fn push(&mut self, facets: &Facets) {
        if self.open.back().is_none_or(|last| last.len() == self.segment) {
            self.open.push_back(OpenSegment::default());
        }
        if let Some(last) = self.open.back_mut() {
            last.push(facets);
        }
        self.next += 1;
    }
}
