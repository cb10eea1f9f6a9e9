//! Spans: several sealed segments whose rare terms are merged, so that a search for a rare term
//! asks one span and not each of its segments.
//!
//! A span has blocks as a segment has them. A place of a span is counted from the start of its first
//! segment, and takes three bytes. Terms that name many notifications are in a list without places:
//! a search for them asks the segments.

use std::ops::Range;
use std::sync::Arc;

use domain::ids::EnvironmentId;
use store::layout::{self, SpanPart};
use store::{Bytes, Key, ReadRecords, Result, Snapshot, Table};

use crate::block::{self, Block, Directory};
use crate::blocks::{Holder, Reader};
use crate::corrupt;
use crate::facets::Term;
use crate::head::Head;
use crate::lockstep;

/// Levels of spans: for each, its number and the number of segments in one of its spans.
pub(crate) const LEVELS: [(u8, u32); 3] = [(0, 4), (1, 16), (2, 64)];

/// A rare term names one of this many notifications of a segment at most, on average.
const RARE: u32 = 120;

/// Maximum number of places of a rare term, on any level: less than 65,536 bytes.
const MOST: u32 = 20_000;

/// A short list has one place for this many notifications of a segment at most.
const SHORT: u32 = 60;

/// Number of places by which a list for another term may be longer.
const SHORT_FOR_EACH: usize = 64;

/// A span of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Number of its level.
    pub(crate) level: u8,
    /// The first segment.
    pub(crate) first: u32,
    /// The segment behind the last one.
    pub(crate) end: u32,
}

/// A span, and the part of it that is in memory.
#[derive(Clone, Debug)]
pub(crate) struct LoadedSpan {
    pub(crate) span: Span,
    pub(crate) directory: Arc<Directory>,
    pub(crate) frequent: Arc<Directory>,
}

impl Span {
    /// The span of `len` segments on a level.
    pub(crate) const fn new(level: u8, first: u32, len: u32) -> Self {
        Self { level, first, end: first.saturating_add(len) }
    }

    /// Maximum number of places of a term that is rare.
    pub(crate) fn most(self, head: &Head) -> usize {
        let each = (head.segment_size / RARE).max(1);
        usize::try_from((each * (self.end - self.first)).min(MOST)).unwrap_or(usize::MAX)
    }

    pub(crate) fn key(self, environment: EnvironmentId, head: &Head, part: SpanPart) -> Key<Bytes> {
        layout::span_part(environment, head.generation, self.level, self.end, part)
    }

    /// Shows `visit` the block that starts with `first`.
    pub(crate) fn block(
        self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
        first: Term,
        visit: &mut dyn FnMut(Block<'_>),
    ) -> Result<()> {
        let (dimension, value) = first.parts();
        let key = self.key(environment, head, SpanPart::Block { dimension, value });
        block::read(snapshot, &key, visit)
    }
}

impl LoadedSpan {
    pub(crate) fn read(
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
        span: Span,
    ) -> Result<Self> {
        let read = |part| {
            let mut terms = None;
            let key = span.key(environment, head, part);
            snapshot.get_bytes(&key, &mut |bytes| terms = read_terms(bytes))?;
            let damaged = "a part of a span is missing: rebuild the index";
            terms.map(Arc::new).ok_or_else(|| corrupt(Table::ActivityMerged, damaged))
        };
        let (directory, frequent) = (read(SpanPart::Directory)?, read(SpanPart::Frequent)?);
        Ok(Self { span, directory, frequent })
    }

    /// Returns `true` if one of `terms` is in the list of those without places.
    pub(crate) fn is_frequent(&self, terms: &[Term]) -> bool {
        self.frequent.has_any(terms)
    }

    /// The places within `range` that have one of `terms`, which are in order and rare. Returns `None`
    /// if there are more than are worth a list.
    pub(crate) fn places(
        &self,
        reader: &Reader<'_>,
        terms: &[Term],
        range: &Range<u32>,
    ) -> Result<Option<Vec<u32>>> {
        let short =
            usize::try_from((reader.head.segment_size / SHORT).max(2)).unwrap_or(usize::MAX);
        // The more terms there are, the more look-ups a list saves.
        let short = short + SHORT_FOR_EACH * (terms.len() - terms.len().min(1));
        let (mut all, mut is_short) = (Vec::with_capacity(4 * terms.len()), true);
        self.each(reader, terms, &mut |places| {
            let places = within(places, range);
            is_short &= all.len() + places.len() <= short;
            if is_short {
                all.extend(places.iter().copied().map(number));
            }
            is_short
        })?;
        if !is_short {
            return Ok(None);
        }
        if terms.len() > 1 {
            all.sort_unstable();
            all.dedup();
        }
        Ok(Some(all))
    }

    /// Those of `places` that have one of `terms`, which are in order and rare.
    pub(crate) fn keep(
        &self,
        reader: &Reader<'_>,
        terms: &[Term],
        places: &[u32],
    ) -> Result<Vec<u32>> {
        let mut kept = Vec::with_capacity(places.len());
        self.each(reader, terms, &mut |others| {
            let is_behind = |other: &[u8; 3], place: &u32| number(*other) > *place;
            lockstep::nearest(others, places, is_behind, |place, other| {
                kept.extend(Some(*place).filter(|place| number(*other) == *place));
            });
            true
        })?;
        kept.sort_unstable();
        kept.dedup();
        Ok(kept)
    }

    // Shows `visit` the places of those of `terms` that the span has, until it returns `false`.
    fn each(
        &self,
        reader: &Reader<'_>,
        terms: &[Term],
        visit: &mut dyn FnMut(&[[u8; 3]]) -> bool,
    ) -> Result<()> {
        let Span { level, end, .. } = self.span;
        let asked = self.directory.blocks_of(terms);
        reader.each(Holder::Span { level, end }, &asked, &mut |bytes, values| {
            let Some(block) = Block::read(bytes) else { return true };
            let mut found = values.iter().filter_map(|(_, value)| block.bytes_of(*value));
            found.all(|bytes| visit(read_places(bytes)))
        })
    }
}

/// The bytes of a list of terms: their number, and each one.
pub(crate) fn write_terms(terms: &[Term]) -> Vec<u8> {
    let mut bytes = u32::try_from(terms.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    bytes.extend_from_slice(Directory::of(terms.iter().copied()).as_bytes());
    bytes
}

fn read_terms(bytes: &[u8]) -> Option<Directory> {
    let (count, terms) = bytes.split_first_chunk()?;
    let terms = Directory::read(terms)?;
    (u32::try_from(terms.len()) == Ok(u32::from_be_bytes(*count))).then_some(terms)
}

/// Adds the bytes of `places` to `out`.
pub(crate) fn write_places(places: &[u32], out: &mut Vec<u8>) {
    for place in places {
        let [_, place @ ..] = place.to_be_bytes();
        out.extend_from_slice(&place);
    }
}

/// The places that were written as `bytes`.
pub(crate) fn read_places(bytes: &[u8]) -> &[[u8; 3]] {
    bytes.as_chunks().0
}

/// The number of a place.
pub(crate) fn number([high, middle, low]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, high, middle, low])
}

fn within<'a>(places: &'a [[u8; 3]], range: &Range<u32>) -> &'a [[u8; 3]] {
    let is_within =
        |end: Option<&[u8; 3]>| end.is_some_and(|place| range.contains(&number(*place)));
    if is_within(places.first()) && is_within(places.last()) {
        return places;
    }
    let before = |bound: u32| places.partition_point(|place| number(*place) < bound);
    places.get(before(range.start)..before(range.end)).unwrap_or_default()
}
