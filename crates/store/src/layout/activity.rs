//! Where the activity index of an environment lies. It is derived from the notifications.
//!
//! Besides the generation in use there can be one that is being built to take its place, or was.

use std::ops::Bound;

use domain::ids::{EnvironmentId, TransactionId};

use super::{Table, scope};
use crate::{Key, KeyRange, Prefix};

/// A part of a segment in [`Table::ActivitySegments`](super::Table::ActivitySegments).
#[derive(Clone, Copy, Debug)]
pub enum SegmentPart {
    /// The times at which its rows of times begin.
    Times,
    /// The terms that it may have.
    Presence,
    /// The first term of each block.
    Directory,
    /// A row of times.
    TimeRow(u32),
    /// A block of terms about the same thing. The value is the first one in it.
    Block {
        /// The number of what the terms are about, from 1 on.
        dimension: u8,
        /// The first value of the block.
        value: u128,
    },
}

/// The entry of an environment in [`Table::ActivityHeads`](super::Table::ActivityHeads).
pub fn activity_head(environment: EnvironmentId) -> Key {
    scope(environment).end()
}

/// The tables of the index that are derived from the notifications.
pub const ACTIVITY: [Table; 4] = [
    Table::TransactionNotifications,
    Table::ActivityFacets,
    Table::ActivitySegments,
    Table::ActivityDeleted,
];

/// What every generation has in any of the tables of the index.
pub fn activity_generations(environment: EnvironmentId) -> Prefix {
    scope(environment)
}

/// The generation that has `key` in one of the tables of the index.
pub fn activity_generation(key: &[u8]) -> Option<u32> {
    key.get(16..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// What the terms are about that a part of a segment has; 0 if it has none.
pub fn segment_dimension(key: &[u8]) -> Option<u8> {
    key.get(24).copied()
}

/// What a generation has in any of the tables of the index.
pub fn activity(environment: EnvironmentId, generation: u32) -> Prefix {
    scope(environment).number(generation)
}

/// What the generations before `generation` have in any of the tables of the index.
pub fn activity_before(environment: EnvironmentId, generation: u32) -> KeyRange {
    between(scope(environment), activity(environment, generation))
}

/// The rows of facets before `row`.
pub fn activity_facets_before(environment: EnvironmentId, generation: u32, row: u64) -> KeyRange {
    let generation = activity(environment, generation);
    between(generation.clone(), generation.value(row.into()))
}

/// The segments before `segment`.
pub fn activity_segments_before(
    environment: EnvironmentId,
    generation: u32,
    segment: u32,
) -> KeyRange {
    let generation = activity(environment, generation);
    between(generation.clone(), generation.number(segment))
}

/// A row of facets in [`Table::ActivityFacets`](super::Table::ActivityFacets).
pub fn activity_facets(environment: EnvironmentId, generation: u32, row: u64) -> Key {
    activity(environment, generation).value(row.into()).end()
}

/// A segment in [`Table::ActivitySegments`](super::Table::ActivitySegments).
pub fn activity_segment(environment: EnvironmentId, generation: u32, segment: u32) -> Prefix {
    activity(environment, generation).number(segment)
}

/// A part of a segment.
pub fn segment_part(
    environment: EnvironmentId,
    generation: u32,
    segment: u32,
    part: SegmentPart,
) -> Key {
    let segment = activity_segment(environment, generation, segment);
    match part {
        SegmentPart::Times => segment.tag(0).tag(0),
        SegmentPart::Presence => segment.tag(0).tag(1),
        SegmentPart::Directory => segment.tag(0).tag(2),
        SegmentPart::TimeRow(row) => segment.tag(0).tag(3).number(row),
        SegmentPart::Block { dimension, value } => segment.tag(dimension).value(value),
    }
    .end()
}

/// What of a segment is deleted, in [`Table::ActivityDeleted`](super::Table::ActivityDeleted).
pub fn activity_deleted(environment: EnvironmentId, generation: u32, segment: u32) -> Key {
    activity_segment(environment, generation, segment).end()
}

/// The notifications of a trigger in
/// [`Table::TransactionNotifications`](super::Table::TransactionNotifications).
pub fn transaction_notifications(
    environment: EnvironmentId,
    generation: u32,
    id: &TransactionId,
) -> Key {
    activity(environment, generation).text(id.as_str()).end()
}

fn between(start: Prefix, end: Prefix) -> KeyRange {
    let (start, end) = (start.end(), end.end());
    (Bound::Included(start.as_bytes().to_vec()), Bound::Excluded(end.as_bytes().to_vec()))
}
