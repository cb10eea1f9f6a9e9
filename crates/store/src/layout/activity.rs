//! The tables of the activity index. They are derived from the notifications.
//!
//! Each generation of the index has its own keys. Besides the generation in use there may be one
//! that is being built, or one that is being removed.

use domain::ids::{EnvironmentId, TransactionId};

use super::Table;
use crate::key::{Bytes, Key, Prefix, Range, TableOf};

const HEADS: TableOf<Bytes> = TableOf::new(Table::ActivityHeads);
const TRANSACTION_NOTIFICATIONS: TableOf<Bytes> = TableOf::new(Table::TransactionNotifications);
const FACETS: TableOf<Bytes> = TableOf::new(Table::ActivityFacets);
const SEGMENTS: TableOf<Bytes> = TableOf::new(Table::ActivitySegments);
const DELETED: TableOf<Bytes> = TableOf::new(Table::ActivityDeleted);

/// The tables that have keys of generations.
pub const ACTIVITY: [Table; 4] = [
    Table::TransactionNotifications,
    Table::ActivityFacets,
    Table::ActivitySegments,
    Table::ActivityDeleted,
];

/// A part of a segment in [`Table::ActivitySegments`].
#[derive(Clone, Copy, Debug)]
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

/// The head of the index of an environment.
pub fn activity_head(environment: EnvironmentId) -> Key<Bytes> {
    HEADS.within(environment).end()
}

/// The keys of all generations in each table of generations.
pub fn activity_generations(environment: EnvironmentId) -> [Range<Bytes>; 4] {
    ACTIVITY.map(|table| TableOf::new(table).within(environment).range())
}

/// The keys of the generations before `generation` in each table of generations.
pub fn activity_before(environment: EnvironmentId, generation: u32) -> [Range<Bytes>; 4] {
    ACTIVITY.map(|table| {
        let all = TableOf::new(table).within(environment);
        all.clone().end().until(all.number(generation).end())
    })
}

/// The generation in a key of a table of generations.
pub fn activity_generation(key: &[u8]) -> Option<u32> {
    key.get(16..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// A row of facets.
pub fn activity_facets(environment: EnvironmentId, generation: u32, row: u64) -> Key<Bytes> {
    FACETS.within(environment).number(generation).value(row.into()).end()
}

/// The rows of facets before `row`.
pub fn activity_facets_before(
    environment: EnvironmentId,
    generation: u32,
    row: u64,
) -> Range<Bytes> {
    let all = FACETS.within(environment).number(generation).end();
    all.until(activity_facets(environment, generation, row))
}

/// The rows of facets within `rows`.
pub fn activity_facets_between(
    environment: EnvironmentId,
    generation: u32,
    rows: std::ops::Range<u64>,
) -> Range<Bytes> {
    let key = |row| activity_facets(environment, generation, row);
    key(rows.start).until(key(rows.end))
}

/// The parts of a segment.
pub fn activity_segment(
    environment: EnvironmentId,
    generation: u32,
    segment: u32,
) -> Prefix<Bytes> {
    SEGMENTS.within(environment).number(generation).number(segment)
}

/// A part of a segment.
pub fn segment_part(
    environment: EnvironmentId,
    generation: u32,
    segment: u32,
    part: SegmentPart,
) -> Key<Bytes> {
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

/// The dimension of the terms in a part of a segment, by its key. It is 0 if the part has no terms.
pub fn segment_dimension(key: &[u8]) -> Option<u8> {
    key.get(24).copied()
}

/// The keys of the segments before `segment`: their parts, and their deleted notifications.
pub fn activity_segments_before(
    environment: EnvironmentId,
    generation: u32,
    segment: u32,
) -> [Range<Bytes>; 2] {
    [SEGMENTS, DELETED].map(|table| {
        let all = table.within(environment).number(generation);
        all.clone().end().until(all.number(segment).end())
    })
}

/// The deleted notifications of the segments of a generation.
pub fn activity_deletions(environment: EnvironmentId, generation: u32) -> Prefix<Bytes> {
    DELETED.within(environment).number(generation)
}

/// The deleted notifications of a segment.
pub fn activity_deleted(environment: EnvironmentId, generation: u32, segment: u32) -> Key<Bytes> {
    activity_deletions(environment, generation).number(segment).end()
}

/// The segment in a key of [`activity_deletions`].
pub fn deleted_segment(key: &[u8]) -> Option<u32> {
    key.last_chunk().copied().map(u32::from_be_bytes)
}

/// The triggers of a generation with their notifications.
pub fn transactions_with_notifications(
    environment: EnvironmentId,
    generation: u32,
) -> Prefix<Bytes> {
    TRANSACTION_NOTIFICATIONS.within(environment).number(generation)
}

/// The notifications of a trigger.
pub fn transaction_notifications(
    environment: EnvironmentId,
    generation: u32,
    id: &TransactionId,
) -> Key<Bytes> {
    transactions_with_notifications(environment, generation).text(id.as_str()).end()
}
