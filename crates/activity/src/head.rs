//! Head of an environment: the extent of its activity list, and of the index.

use std::ops;

use domain::fnv;
use domain::ids::EnvironmentId;
use domain::notification::{Notification, Ordinal};
use store::{Error, Order, Range, ReadRecords, Result, Snapshot, Table, Transaction, layout};

use crate::corrupt;
use crate::facets::FACETS_IN_ROW;
use crate::set::CAPACITY;
use crate::span::{LEVELS, Span};

/// The largest ordinal.
const LAST: u64 = (1 << Ordinal::BITS) - 1;

/// The state of the activity list of an environment, as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The era of the store that it was read in, which is not stored.
    pub(crate) era: u64,
    /// Rises whenever the index is rebuilt.
    pub(crate) generation: u32,
    /// Number of notifications in a segment.
    pub(crate) segment_size: u32,
    /// The first ordinal that is free.
    pub(crate) next: u64,
    /// The first ordinal that is in no sealed segment.
    pub(crate) sealed: u64,
    /// The first segment that is in no span of each level.
    pub(crate) merged: [u32; LEVELS.len()],
    /// Everything before this ordinal is deleted.
    pub(crate) floor: u64,
    /// Number of deleted notifications from there on.
    pub(crate) deleted: u64,
}

impl Head {
    pub(crate) fn new(era: u64, segment_size: u32) -> Self {
        let merged = [0; LEVELS.len()];
        Self { era, generation: 0, segment_size, next: 0, sealed: 0, merged, floor: 0, deleted: 0 }
    }

    /// The head of an environment. Returns `None` if it never had a notification.
    pub(crate) fn find(
        snapshot: &(impl Snapshot + ?Sized),
        environment: EnvironmentId,
    ) -> Result<Option<Self>> {
        let mut head = None;
        let key = layout::activity_head(environment);
        snapshot.get_bytes(&key, &mut |bytes| {
            let damaged = || corrupt(Table::ActivityHeads, "it is not a head: rebuild the index");
            head = Some(Self::read(snapshot.era(), bytes).ok_or_else(damaged));
        })?;
        if let Some(head) = head {
            return head.map(Some);
        }
        if has_ordinals(snapshot, environment)? {
            return Err(corrupt(Table::ActivityHeads, "the index has no head: rebuild it"));
        }
        Ok(None)
    }

    /// The head of an environment, if it has one that is not damaged.
    pub(crate) fn salvage(
        snapshot: &(impl Snapshot + ?Sized),
        environment: EnvironmentId,
    ) -> Result<Option<Self>> {
        match Self::find(snapshot, environment) {
            Err(Error::Corrupt { .. }) => Ok(None),
            found => found,
        }
    }

    /// The head of an environment, which may be its first.
    pub(crate) fn get(
        snapshot: &(impl Snapshot + ?Sized),
        environment: EnvironmentId,
        segment_size: u32,
    ) -> Result<Self> {
        Ok(Self::find(snapshot, environment)?
            .unwrap_or_else(|| Self::new(snapshot.era(), segment_size)))
    }

    /// Returns the head, moved behind the last notification and the last message that can be read, and behind
    /// the ordinals of the last trigger, whose notifications may be lost. A message stays when its notification
    /// and its trigger are gone, and its key has the ordinal. An entry that cannot be read keeps its ordinal if it
    /// is at most a segment further. A damaged page may hold keys of other records, with any ordinal.
    pub(crate) fn behind(
        mut self,
        snapshot: &(impl Snapshot + ?Sized),
        environment: EnvironmentId,
    ) -> Result<Self> {
        let notifications = layout::notifications(environment).range();
        let last = snapshot.readable(&notifications, Order::Descending, 1)?.pop();
        let behind_notification = last.map_or(0, |last| last.id.ordinal().get() + 1);
        let messages = layout::messages(environment).range();
        let last = snapshot.readable(&messages, Order::Descending, 1)?.pop();
        let behind_message = last.map_or(0, |last| last.id.place().ordinal().get() + 1);
        let triggers = layout::triggers(environment).range();
        let last = snapshot.readable(&triggers, Order::Descending, 1)?.pop();
        let behind_trigger = last.map_or(0, |last| last.ordinals.end);
        let behind = [self.floor, behind_notification, behind_message, behind_trigger];
        self.next = behind.into_iter().fold(self.next, u64::max);
        while self.next < LAST {
            let near = self.next..(self.next + u64::from(CAPACITY)).min(LAST);
            let Some(last) = last_ordinal(snapshot, environment, near)? else { break };
            self.next = last + 1;
        }
        Ok(self)
    }

    pub(crate) fn put(&self, txn: &mut dyn Transaction, environment: EnvironmentId) -> Result<()> {
        let key = layout::activity_head(environment);
        txn.put(key.table(), key.as_bytes(), &self.bytes())
    }

    /// How far the list is: in the era, the generation and the ordinals. A later head is not behind it.
    pub(crate) fn progress(&self) -> (u64, u32, u64) {
        (self.era, self.generation, self.next)
    }

    /// Sets the number of deleted notifications, or as many as there can be. Where rows of deletions are
    /// lost, the floor passes some that nothing takes from the number.
    pub(crate) fn count_deleted(&mut self, deleted: u64) {
        self.deleted = deleted.min(self.next.saturating_sub(self.floor));
    }

    /// The segment that an ordinal is in, and its place there.
    pub(crate) fn place(&self, ordinal: u64) -> (u32, u16) {
        let size = u64::from(self.segment_size);
        let segment = u32::try_from(ordinal / size).unwrap_or(u32::MAX);
        (segment, u16::try_from(ordinal % size).unwrap_or(u16::MAX))
    }

    /// The first ordinal of a segment.
    pub(crate) fn start(&self, segment: u32) -> u64 {
        u64::from(segment) * u64::from(self.segment_size)
    }

    /// The first segment that is not sealed.
    pub(crate) fn open(&self) -> u32 {
        self.place(self.sealed).0
    }

    /// The first segment that is not deleted as a whole.
    pub(crate) fn lowest(&self) -> u32 {
        self.place(self.floor).0
    }

    /// Returns `true` if there are enough notifications to seal a segment.
    pub(crate) fn is_full(&self) -> bool {
        self.next - self.sealed >= u64::from(self.segment_size)
    }

    /// The next span to merge, if its segments are sealed, or the spans that it is made of merged.
    pub(crate) fn next_span(&self) -> Option<Span> {
        let ready = [self.open()].into_iter().chain(self.merged);
        let levels = LEVELS.into_iter().zip(self.merged).zip(ready);
        let mut next = levels
            .map(|(((level, len), first), ready)| (Span::new(level, first, len), ready))
            .filter(|(span, ready)| span.end <= *ready);
        next.next().map(|(span, _)| span)
    }

    /// Takes note that a span is merged.
    pub(crate) fn merge(&mut self, span: Span) {
        if let Some(merged) = self.merged.get_mut(usize::from(span.level)) {
            *merged = span.end;
        }
    }

    /// The segments of a new generation start with `lowest`.
    pub(crate) fn start_from(&mut self, lowest: u32) {
        self.sealed = self.start(lowest);
        self.merged = LEVELS.map(|(_, len)| lowest - lowest % len);
    }

    /// The largest spans that are merged, and not deleted as a whole, oldest first.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut first = 0;
        for ((level, len), merged) in LEVELS.into_iter().zip(self.merged).rev() {
            // Those in front are deleted.
            first = first.max(self.lowest() - self.lowest() % len);
            while first < merged {
                spans.push(Span::new(level, first, len));
                first += len;
            }
        }
        spans
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(&self.generation.to_be_bytes());
        bytes.extend_from_slice(&self.segment_size.to_be_bytes());
        for count in [self.next, self.sealed, self.floor, self.deleted] {
            bytes.extend_from_slice(&count.to_be_bytes());
        }
        bytes.extend(self.merged.iter().flat_map(|merged| merged.to_be_bytes()));
        // The checksum reveals damage of the head, on which every creation depends.
        bytes.extend_from_slice(&fnv::hash(&bytes).to_be_bytes());
        bytes
    }

    fn read(era: u64, bytes: &[u8]) -> Option<Self> {
        let (bytes, sum) = bytes.split_last_chunk()?;
        if fnv::hash(bytes) != u64::from_be_bytes(*sum) {
            return None;
        }
        let (generation, rest) = bytes.split_first_chunk()?;
        let (segment_size, rest) = rest.split_first_chunk()?;
        let (rest, merged) = rest.split_last_chunk::<{ 4 * LEVELS.len() }>()?;
        let [next, sealed, floor, deleted] = rest.as_chunks::<8>().0 else { return None };
        let merged: [[u8; 4]; LEVELS.len()] = merged.as_chunks().0.try_into().ok()?;
        let head = Self {
            era,
            generation: u32::from_be_bytes(*generation),
            segment_size: u32::from_be_bytes(*segment_size),
            next: u64::from_be_bytes(*next),
            sealed: u64::from_be_bytes(*sealed),
            merged: merged.map(u32::from_be_bytes),
            floor: u64::from_be_bytes(*floor),
            deleted: u64::from_be_bytes(*deleted),
        };
        head.makes_sense().then_some(head)
    }

    fn makes_sense(&self) -> bool {
        (1..=CAPACITY).contains(&self.segment_size)
            && self.segment_size.is_multiple_of(FACETS_IN_ROW)
            && self.deleted <= self.next.saturating_sub(self.floor)
            && self.sealed <= self.next
            && self.floor <= self.next
            && self.next <= 1 << Ordinal::BITS
            && self.sealed.is_multiple_of(self.segment_size.into())
            && self.merged.iter().zip(LEVELS).all(|(merged, (_, len))| merged.is_multiple_of(len))
            && [self.open()].iter().chain(&self.merged).is_sorted_by(|one, next| one >= next)
    }
}

// Returns `true` if an environment has records with ordinals, which a head gives.
fn has_ordinals(snapshot: &(impl Snapshot + ?Sized), environment: EnvironmentId) -> Result<bool> {
    let all = layout::triggers(environment).range();
    // An event for nobody has none: before the first notification, its range is `0..0`.
    let last = snapshot.first_known(&all, Order::Descending, layout::ordinals_of_trigger)?;
    let are_given = last.is_some_and(|ordinals| ordinals.end > 0);
    Ok(are_given || last_ordinal(snapshot, environment, 0..LAST)?.is_some())
}

// The last ordinal of the notifications and messages within a range, whether they can be read or not.
fn last_ordinal(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    within: ops::Range<u64>,
) -> Result<Option<u64>> {
    let notifications = layout::notifications_between(environment, within.clone());
    let messages = layout::messages_of(environment, within);
    let place = |key: &[u8]| layout::place_of_message(key).map(|place| place.ordinal().get());
    let last_message = snapshot.first_known(&messages, Order::Descending, place)?;
    Ok(end(snapshot, &notifications, Order::Descending)?.max(last_message))
}

/// The first ordinal in `order` of the notifications within a range, whether they can be read or not.
pub(crate) fn end(
    snapshot: &(impl Snapshot + ?Sized),
    range: &Range<Notification>,
    order: Order,
) -> Result<Option<u64>> {
    snapshot.first_known(range, order, |key| layout::ordinal_of(key).map(Ordinal::get))
}
