//! The tables of the activity index. They are derived from the notifications.
//!
//! Each generation of the index has its own keys. Besides the generation in use there may be one
//! that is being built, or one that is being removed.

use domain::ids::EnvironmentId;
use domain::notification::NotificationOutcome;

use super::{
    ACTIVITY_DELETED, ACTIVITY_FACETS, ACTIVITY_HEADS, ACTIVITY_MERGED, ACTIVITY_SEGMENTS,
    NOTIFICATION_OUTCOMES, Table,
};
use crate::key::{Bytes, Key, KeyPart, Open, Prefix, Range, TableOf, parts};

/// The tables that have keys of generations.
pub const ACTIVITY: [Table; 4] =
    [Table::ActivityFacets, Table::ActivitySegments, Table::ActivityMerged, Table::ActivityDeleted];

/// A part of a segment in [`Table::ActivitySegments`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPart {
    /// The first time of each row of times.
    Times,
    /// The filter of the terms in the segment.
    Presence,
    /// The first term of each block.
    Directory,
    /// A row of times.
    TimeRow(u32),
    /// A block of terms of one dimension.
    Block {
        /// The number of the dimension, from 1 on.
        dimension: u8,
        /// The first value of the block.
        value: u128,
    },
}

impl KeyPart for SegmentPart {
    type Form<'f> = Self;
    type Read<'k> = Self;

    fn write(part: Self, key: &mut Vec<u8>) {
        match part {
            Self::Times => key.extend([0, 0]),
            Self::Presence => key.extend([0, 1]),
            Self::Directory => key.extend([0, 2]),
            Self::TimeRow(row) => {
                key.extend([0, 3]);
                u32::write(row, key);
            }
            Self::Block { dimension, value } => {
                key.push(dimension);
                u128::write(value, key);
            }
        }
    }

    fn read(key: &mut &[u8]) -> Option<Self> {
        Some(match u8::read(key)? {
            0 => match u8::read(key)? {
                0 => Self::Times,
                1 => Self::Presence,
                2 => Self::Directory,
                3 => Self::TimeRow(u32::read(key)?),
                _ => return None,
            },
            dimension => Self::Block { dimension, value: u128::read(key)? },
        })
    }
}

/// A part of a span of segments in [`Table::ActivityMerged`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanPart {
    /// The terms that name many notifications of the span.
    Frequent,
    /// The first term of each block.
    Directory,
    /// A block of the other terms of one dimension.
    Block {
        /// The number of the dimension, from 1 on.
        dimension: u8,
        /// The first value of the block.
        value: u128,
    },
}

impl KeyPart for SpanPart {
    type Form<'f> = Self;
    type Read<'k> = Self;

    fn write(part: Self, key: &mut Vec<u8>) {
        match part {
            Self::Frequent => key.extend([0, 0]),
            Self::Directory => key.extend([0, 1]),
            Self::Block { dimension, value } => {
                key.push(dimension);
                u128::write(value, key);
            }
        }
    }

    fn read(key: &mut &[u8]) -> Option<Self> {
        Some(match u8::read(key)? {
            0 => match u8::read(key)? {
                0 => Self::Frequent,
                1 => Self::Directory,
                _ => return None,
            },
            dimension => Self::Block { dimension, value: u128::read(key)? },
        })
    }
}

/// The head of the index of an environment.
pub fn activity_head(environment: EnvironmentId) -> Key<Bytes> {
    ACTIVITY_HEADS.within(environment).end()
}

// A table of generations, without the parts of its keys behind the generation.
const fn generations(table: Table) -> TableOf<Bytes, (EnvironmentId, (u32, Open))> {
    TableOf::new(table)
}

/// The keys of all generations in each table of generations.
pub fn activity_generations(environment: EnvironmentId) -> [Range<Bytes>; 4] {
    ACTIVITY.map(|table| generations(table).within(environment).range())
}

/// The keys of the generations before `generation` in each table of generations.
pub fn activity_before(environment: EnvironmentId, generation: u32) -> [Range<Bytes>; 4] {
    ACTIVITY.map(|table| generations(table).within(environment).before(generation))
}

/// The keys of the generations after `generation`, `through` included, in each table of generations.
pub fn activity_after(
    environment: EnvironmentId,
    generation: u32,
    through: u32,
) -> [Range<Bytes>; 4] {
    let within = generation.saturating_add(1)..through.saturating_add(1);
    ACTIVITY.map(|table| generations(table).within(environment).between(within.clone()))
}

/// The generation in a key of a table of generations.
pub fn activity_generation(key: &[u8]) -> Option<u32> {
    let mut rest = key;
    EnvironmentId::read(&mut rest)?;
    u32::read(&mut rest)
}

/// A row of facets.
pub fn activity_facets(environment: EnvironmentId, generation: u32, row: u64) -> Key<Bytes> {
    ACTIVITY_FACETS.within(environment).then(generation).then(row.into()).end()
}

/// The rows of facets before `row`.
pub fn activity_facets_before(
    environment: EnvironmentId,
    generation: u32,
    row: u64,
) -> Range<Bytes> {
    activity_facets_between(environment, generation, 0..row)
}

/// The rows of facets within `rows`.
pub fn activity_facets_between(
    environment: EnvironmentId,
    generation: u32,
    rows: std::ops::Range<u64>,
) -> Range<Bytes> {
    let all = ACTIVITY_FACETS.within(environment).then(generation);
    all.between(rows.start.into()..rows.end.into())
}

/// The parts of a segment.
pub fn activity_segment(
    environment: EnvironmentId,
    generation: u32,
    segment: u32,
) -> Prefix<Bytes, parts![SegmentPart]> {
    ACTIVITY_SEGMENTS.within(environment).then(generation).then(segment)
}

/// A part of a segment.
pub fn segment_part(
    environment: EnvironmentId,
    generation: u32,
    segment: u32,
    part: SegmentPart,
) -> Key<Bytes> {
    activity_segment(environment, generation, segment).then(part).end()
}

/// The dimension of the terms in a part of a segment, by its key. It is 0 if the part has no terms.
pub fn segment_dimension(key: &[u8]) -> Option<u8> {
    let (_, (_, (_, (part, ())))) = ACTIVITY_SEGMENTS.read(key)?;
    Some(match part {
        SegmentPart::Block { dimension, .. } => dimension,
        SegmentPart::Times
        | SegmentPart::Presence
        | SegmentPart::Directory
        | SegmentPart::TimeRow(_) => 0,
    })
}

/// The keys of the segments before `segment`: their parts, and their deleted notifications.
pub fn activity_segments_before(
    environment: EnvironmentId,
    generation: u32,
    segment: u32,
) -> [Range<Bytes>; 2] {
    let parts = ACTIVITY_SEGMENTS.within(environment).then(generation);
    let deleted = activity_deletions(environment, generation);
    [parts.before(segment), deleted.before(segment)]
}

/// A part of the span of that level that ends in front of the segment `end`.
pub fn span_part(
    environment: EnvironmentId,
    generation: u32,
    level: u8,
    end: u32,
    part: SpanPart,
) -> Key<Bytes> {
    activity_spans(environment, generation, level).then(end).then(part).end()
}

/// The parts of the spans of that level that end in front of the segment `end`, or earlier.
pub fn activity_spans_until(
    environment: EnvironmentId,
    generation: u32,
    level: u8,
    end: u32,
) -> Range<Bytes> {
    activity_spans(environment, generation, level).until(end)
}

fn activity_spans(
    environment: EnvironmentId,
    generation: u32,
    level: u8,
) -> Prefix<Bytes, parts![u32, SpanPart]> {
    ACTIVITY_MERGED.within(environment).then(generation).then(level)
}

/// The level and the end of the span in a key of [`Table::ActivityMerged`].
pub fn span_of_key(key: &[u8]) -> Option<(u8, u32)> {
    let (_, (_, (level, (end, _)))) = ACTIVITY_MERGED.read(key)?;
    Some((level, end))
}

/// The deleted notifications of the segments of a generation.
pub fn activity_deletions(
    environment: EnvironmentId,
    generation: u32,
) -> Prefix<Bytes, parts![u32]> {
    ACTIVITY_DELETED.within(environment).then(generation)
}

/// The deleted notifications of the segments from `first` to `last`.
pub fn activity_deletions_within(
    environment: EnvironmentId,
    generation: u32,
    (first, last): (u32, u32),
) -> Range<Bytes> {
    activity_deletions(environment, generation).between(first..last.saturating_add(1))
}

/// The deleted notifications of the segments from `first` on.
pub fn activity_deletions_from(
    environment: EnvironmentId,
    generation: u32,
    first: u32,
) -> Range<Bytes> {
    activity_deletions(environment, generation).from(first)
}

/// The deleted notifications of a segment.
pub fn activity_deleted(environment: EnvironmentId, generation: u32, segment: u32) -> Key<Bytes> {
    activity_deletions(environment, generation).then(segment).end()
}

/// The segment in a key of [`activity_deletions`].
pub fn deleted_segment(key: &[u8]) -> Option<u32> {
    let (_, (_, (segment, ()))) = ACTIVITY_DELETED.read(key)?;
    Some(segment)
}

/// The row with this number of the notifications with an outcome.
pub fn outcome_row(
    environment: EnvironmentId,
    outcome: NotificationOutcome,
    row: u32,
) -> Key<Bytes> {
    NOTIFICATION_OUTCOMES.within(environment).then(outcome).then(row).end()
}

/// The rows with these numbers of the notifications with an outcome.
pub fn outcome_rows(
    environment: EnvironmentId,
    outcome: NotificationOutcome,
    rows: std::ops::Range<u32>,
) -> Range<Bytes> {
    NOTIFICATION_OUTCOMES.within(environment).then(outcome).between(rows)
}

/// The rows of all outcomes.
pub fn all_outcome_rows(environment: EnvironmentId) -> Range<Bytes> {
    NOTIFICATION_OUTCOMES.within(environment).range()
}

/// The outcome and the number in the key of a row.
pub fn outcome_of_row(key: &[u8]) -> Option<(NotificationOutcome, u32)> {
    let (_, (outcome, (row, ()))) = NOTIFICATION_OUTCOMES.read(key)?;
    Some((outcome, row))
}
