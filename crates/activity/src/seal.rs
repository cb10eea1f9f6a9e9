//! Sealing: writing down a segment that is full.

use domain::ids::EnvironmentId;
use store::layout::{self, SegmentPart};
use store::{Bytes, Key, Result, Store, Transaction, WriteRecords};

use crate::block::{self, Directory};
use crate::head::Head;
use crate::open::OpenSegment;
use crate::presence::Presence;
use crate::times;

/// The rows of a segment, of which some are written.
#[derive(Debug)]
pub(crate) struct SegmentRows {
    environment: EnvironmentId,
    rows: Vec<(Key<Bytes>, Vec<u8>)>,
    written: usize,
}

/// A segment that is being sealed.
#[derive(Debug)]
pub(crate) struct Sealing {
    head: Head,
    rows: SegmentRows,
}

/// Number of bytes that one transaction writes.
const STEP: usize = 256 << 10;

impl SegmentRows {
    /// The rows of the segment with this number.
    pub(crate) fn of(
        environment: EnvironmentId,
        head: &Head,
        number: u32,
        open: &OpenSegment,
    ) -> Self {
        let key = |part| layout::segment_part(environment, head.generation, number, part);
        let mut rows = vec![(key(SegmentPart::Times), open.ranges.bytes())];
        for (row, times) in (0..).zip(open.times.chunks(times::TIMES_IN_ROW)) {
            rows.push((key(SegmentPart::TimeRow(row)), times::write_row(times)));
        }
        let terms = open.sorted();
        let mut presence = Presence::empty(head.segment_size);
        for (term, _) in &terms {
            presence.add(*term);
        }
        rows.push((key(SegmentPart::Presence), presence.as_bytes().to_vec()));
        let blocks = block::write(&terms);
        let directory = Directory::of(blocks.iter().map(|(first, _)| *first));
        rows.push((key(SegmentPart::Directory), directory.as_bytes().to_vec()));
        for (first, block) in blocks {
            let (dimension, value) = first.parts();
            rows.push((key(SegmentPart::Block { dimension, value }), block));
        }
        rows.sort_unstable_by(|(one, _), (other, _)| one.as_bytes().cmp(other.as_bytes()));
        Self { environment, rows, written: 0 }
    }

    /// Writes the next rows in a transaction that starts with `begin`, whose argument is `true` if these are
    /// the last. Writes nothing if `begin` returns `false`.
    pub(crate) fn step(
        &mut self,
        store: &dyn Store,
        mut begin: impl FnMut(&mut dyn Transaction, bool) -> Result<bool>,
    ) -> Result<bool> {
        let left = self.rows.get(self.written..).unwrap_or_default();
        let mut bytes = 0;
        let fits = |(_, row): &&(Key<Bytes>, Vec<u8>)| {
            bytes += row.len();
            bytes <= STEP
        };
        let count = left.iter().take_while(fits).count().max(1).min(left.len());
        let is_wanted = store::write_in(store, self.environment, |txn| {
            let is_wanted = begin(txn, count == left.len())?;
            for (key, row) in left.iter().take(if is_wanted { count } else { 0 }) {
                txn.put_bytes(key, row)?;
            }
            Ok::<_, store::Error>(is_wanted)
        })?;
        self.written += count;
        Ok(is_wanted)
    }

    /// Returns `true` if all rows are written.
    pub(crate) fn is_done(&self) -> bool {
        self.written == self.rows.len()
    }
}

impl Sealing {
    /// Starts to seal the first segment that is not sealed.
    pub(crate) fn start(environment: EnvironmentId, head: Head, open: &OpenSegment) -> Self {
        Self { head, rows: SegmentRows::of(environment, &head, head.open(), open) }
    }

    /// The head at the start of the sealing.
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// Writes the next part of the segment. The last part also marks the segment as sealed. Returns
    /// `None` if nothing is left to do.
    pub(crate) fn step(
        mut self,
        store: &dyn Store,
        environment: EnvironmentId,
    ) -> Result<Option<Self>> {
        let known = self.head;
        let is_current = self.rows.step(store, |txn, is_last| {
            let head = Head::find(&*txn, environment)?;
            let state = |head: &Head| (head.era, head.generation, head.sealed);
            // The segment may be sealed already, or the index rebuilt.
            let is_same = |head: &Head| state(head) == state(&known);
            let Some(mut head) = head.filter(is_same) else { return Ok(false) };
            if is_last {
                head.sealed += u64::from(head.segment_size);
                head.put(txn, environment)?;
            }
            Ok(true)
        })?;
        Ok((is_current && !self.rows.is_done()).then_some(self))
    }
}
