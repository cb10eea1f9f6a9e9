//! Upkeep: sealing what fills a segment, and clearing away what is no longer needed. It is done in
//! small transactions, one after each trigger, so that nobody waits for it for long.

use std::ops::ControlFlow;

use domain::ids::EnvironmentId;
use store::layout::{self, SegmentPart};
use store::{Key, KeyRange, Order, Result, Store, Table};

use crate::ActivityIndex;
use crate::append::ROW;
use crate::block::BlockWriter;
use crate::head::Head;
use crate::open::OpenSegment;
use crate::presence::Presence;
use crate::times::{self, Times};

/// How far the upkeep of an environment has come.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    sealing: Option<Sealing>,
    /// The last head for which there was nothing to clear away.
    clear: Option<Head>,
}

/// A segment that is being sealed.
#[derive(Debug)]
struct Sealing {
    head: Head,
    rows: Vec<Row>,
    written: usize,
}

/// An entry in the table of segments.
pub(crate) type Row = (Key, Vec<u8>);

/// How much is written in one transaction, and how many entries are cleared away in one.
const STEP_BYTES: usize = 256 << 10;
const STEP_ENTRIES: usize = 1_024;

impl ActivityIndex {
    /// Takes note of what was committed, and does the next part of the upkeep of an environment, if
    /// there is anything to do. Says whether there may be more.
    pub fn tend(&self, store: &dyn Store, environment: EnvironmentId) -> Result<bool> {
        let known = self.environment(environment);
        let head = store::read(store, |snapshot| {
            let head = Head::find(snapshot, environment)?;
            head.iter().try_for_each(|head| known.catch_up(snapshot, environment, head))?;
            Ok::<_, store::Error>(head)
        })?;
        let Some(head) = head else { return Ok(false) };
        // Somebody else is at it.
        let Some(mut upkeep) = known.upkeep.try_lock() else { return Ok(false) };
        if upkeep.sealing.is_none() && head.is_full() {
            let cache = known.cache.read();
            let full = cache.full().filter(|_| cache.shows(&head));
            drop(cache);
            upkeep.sealing = full.map(|open| Sealing::start(environment, head, &open));
        }
        match upkeep.sealing.take() {
            Some(sealing) => {
                upkeep.sealing = sealing.step(store, environment)?;
                Ok(true)
            }
            None if upkeep.is_clear(&head) => Ok(false),
            None => {
                let cleared = clear(store, environment, &head)?;
                upkeep.clear = (cleared == 0).then_some(head);
                Ok(cleared > 0)
            }
        }
    }

    /// Does all of the upkeep of an environment that there is to do.
    pub fn tend_all(&self, store: &dyn Store, environment: EnvironmentId) -> Result<()> {
        while self.tend(store, environment)? {}
        Ok(())
    }

    /// Whether so much is waiting to be sealed that whoever adds to it should help.
    pub fn is_behind(&self, environment: EnvironmentId) -> bool {
        self.environment(environment).cache.read().open().len() > 2
    }
}

impl Upkeep {
    fn is_clear(&self, head: &Head) -> bool {
        let state = |head: &Head| (head.generation, head.sealed, head.lowest());
        self.clear.as_ref().is_some_and(|clear| state(clear) == state(head))
    }
}

impl Sealing {
    fn start(environment: EnvironmentId, head: Head, open: &OpenSegment) -> Self {
        Self { head, rows: rows(environment, &head, head.open(), open), written: 0 }
    }

    // Writes some more of the segment. With the last of it goes the word that it is sealed.
    fn step(mut self, store: &dyn Store, environment: EnvironmentId) -> Result<Option<Self>> {
        let (rows, is_last) = step_of(&self.rows, self.written);
        let is_current = store::write(store, |txn| {
            let Some(mut head) = Head::find(&*txn, environment)? else { return Ok(false) };
            if (head.generation, head.sealed) != (self.head.generation, self.head.sealed) {
                return Ok(false);
            }
            for (key, bytes) in rows {
                txn.put(Table::ActivitySegments, key.as_bytes(), bytes)?;
            }
            if is_last {
                head.sealed += u64::from(head.segment_size);
                head.put(txn, environment)?;
            }
            Ok::<_, store::Error>(true)
        })?;
        self.written += rows.len();
        Ok((is_current && !is_last).then_some(self))
    }
}

/// Those of `rows` behind the first `written` that go into one transaction, and whether they are
/// the last.
pub(crate) fn step_of(rows: &[Row], written: usize) -> (&[Row], bool) {
    let left = rows.get(written..).unwrap_or_default();
    let mut bytes = 0;
    let fits = |(_, row): &&Row| {
        bytes += row.len();
        bytes <= STEP_BYTES
    };
    let count = left.iter().take_while(fits).count().max(1).min(left.len());
    (left.get(..count).unwrap_or_default(), count == left.len())
}

/// The entries of a segment.
pub(crate) fn rows(
    environment: EnvironmentId,
    head: &Head,
    number: u32,
    open: &OpenSegment,
) -> Vec<Row> {
    let key = |part| layout::segment_part(environment, head.generation, number, part);
    let mut rows = vec![(key(SegmentPart::Times), Times::of(&open.times).bytes())];
    for (row, times) in (0..).zip(open.times.chunks(times::ROW)) {
        rows.push((key(SegmentPart::TimeRow(row)), times::write_row(times)));
    }
    let mut presence = Presence::empty(head.segment_size);
    let sorted = open.sorted();
    for of_one in sorted.chunk_by(|(one, _), (next, _)| one.parts().0 == next.parts().0) {
        let mut writer = BlockWriter::default();
        let mut finish = |dimension, writer: &mut BlockWriter| {
            let block = writer.finish();
            rows.extend(
                block.map(|(value, bytes)| (key(SegmentPart::Block { dimension, value }), bytes)),
            );
        };
        let mut dimension = 0;
        for (term, set) in of_one {
            presence.add(*term);
            if !writer.has_room(set) {
                finish(dimension, &mut writer);
            }
            let value;
            (dimension, value) = term.parts();
            writer.add(value, set);
        }
        finish(dimension, &mut writer);
    }
    rows.push((key(SegmentPart::Presence), presence.as_bytes().to_vec()));
    rows.sort_unstable();
    rows
}

// Clears away facets that are sealed, segments that are deleted and generations that are over, and
// says how many entries that were.
fn clear(store: &dyn Store, environment: EnvironmentId, head: &Head) -> Result<usize> {
    let entries = store::read(store, |snapshot| {
        let mut entries = Vec::new();
        for (table, range) in not_needed(environment, head) {
            snapshot.scan(table, &range, Order::Ascending, &mut |key, _| {
                entries.push((table, key.to_vec()));
                if entries.len() < STEP_ENTRIES {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
            if entries.len() >= STEP_ENTRIES {
                break;
            }
        }
        Ok::<_, store::Error>(entries)
    })?;
    if !entries.is_empty() {
        store::write(store, |txn| {
            entries.iter().try_for_each(|(table, key)| txn.delete(*table, key))
        })?;
    }
    Ok(entries.len())
}

fn not_needed(environment: EnvironmentId, head: &Head) -> Vec<(Table, KeyRange)> {
    let Head { generation, sealed, .. } = *head;
    let over = layout::activity_before(environment, generation);
    let mut ranges = layout::ACTIVITY.map(|table| (table, over.clone())).to_vec();
    let rows = layout::activity_facets_before(environment, generation, sealed / u64::from(ROW));
    ranges.push((Table::ActivityFacets, rows));
    let lowest = head.lowest().min(head.open());
    let segments = layout::activity_segments_before(environment, generation, lowest);
    ranges.push((Table::ActivitySegments, segments.clone()));
    ranges.push((Table::ActivityDeleted, segments));
    ranges
}
