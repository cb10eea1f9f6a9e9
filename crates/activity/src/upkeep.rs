//! Upkeep: sealing full segments, and clearing away entries that are no longer needed. It is done
//! in small transactions, one after each trigger, so that no caller waits for long.

use std::ops::ControlFlow;

use domain::ids::EnvironmentId;
use store::{Bytes, Order, Range, ReadRecords, Result, Snapshot, Store, Table, layout};

use crate::facets::FACETS_IN_ROW;
use crate::head::Head;
use crate::seal::Sealing;
use crate::{ActivityIndex, corrupt};

/// Progress of the upkeep of an environment.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    sealing: Option<Sealing>,
    /// The last head for which there was nothing to clear away.
    clear: Option<Head>,
    /// The head at the start of the last sealing that has ended.
    sealed: Option<Head>,
    /// The last entry that was cleared away, and the head at that time.
    cleared: Option<(Head, Place)>,
}

/// Place of an entry that is not needed: the number of its range, and its key.
type Place = (usize, Vec<u8>);

/// Number of entries that one transaction removes.
const STEP: usize = 1_024;

impl ActivityIndex {
    /// Reads the committed changes, and does the next part of the upkeep of an environment. Returns
    /// `false` if there is nothing to do, or if another thread does the upkeep.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](store::Error::Corrupt), if a part was done before and is there again. Otherwise the upkeep of a
    /// damaged store would have no end.
    pub fn tend(&self, store: &dyn Store, environment: EnvironmentId) -> Result<bool> {
        let known = self.environment(environment);
        let head = store::read(store, |snapshot| {
            let head = Head::find(snapshot, environment)?;
            head.iter().try_for_each(|head| known.catch_up(snapshot, environment, head))?;
            Ok::<_, store::Error>(head)
        })?;
        let Some(head) = head else { return Ok(false) };
        // Another thread does the upkeep.
        let Some(mut upkeep) = known.upkeep.try_lock() else { return Ok(false) };
        if upkeep.sealing.is_none() && head.is_full() {
            let cache = known.cache.read();
            let full = cache.full().filter(|_| cache.shows(&head));
            drop(cache);
            if let Some(open) = full {
                upkeep.begins_anew(&head)?;
                upkeep.sealing = Some(Sealing::start(environment, head, &open));
            }
        }
        match upkeep.sealing.take() {
            Some(sealing) => {
                let start = sealing.head();
                upkeep.sealing = sealing.step(store, environment)?;
                upkeep.sealed = upkeep.sealing.is_none().then_some(start).or(upkeep.sealed);
                Ok(true)
            }
            None if upkeep.is_clear(&head) => Ok(false),
            None => {
                let cleared = upkeep.clear(store, environment, &head)?;
                upkeep.clear = (!cleared).then_some(head);
                Ok(cleared)
            }
        }
    }

    /// Does the upkeep of an environment until nothing is left to do, or until another thread does
    /// it.
    pub fn tend_all(&self, store: &dyn Store, environment: EnvironmentId) -> Result<()> {
        while self.tend(store, environment)? {}
        Ok(())
    }

    /// Returns `true` if so much is waiting to be sealed that a caller that adds more should help.
    pub fn is_behind(&self, environment: EnvironmentId) -> bool {
        self.environment(environment).cache.read().open().len() > 2
    }
}

impl Upkeep {
    fn is_clear(&self, head: &Head) -> bool {
        self.clear.as_ref().is_some_and(|clear| extent(clear) == extent(head))
    }

    // Refuses to seal a segment again whose sealing has ended.
    fn begins_anew(&self, head: &Head) -> Result<()> {
        let place = |head: &Head| (head.generation, head.sealed);
        if self.sealed.as_ref().is_some_and(|sealed| place(sealed) == place(head)) {
            return Err(corrupt(Table::ActivityHeads, "a sealed segment is not sealed"));
        }
        Ok(())
    }

    // Clears away facets that are sealed, segments that are deleted and generations that are over.
    // Returns `true` if there were any.
    fn clear(
        &mut self,
        store: &dyn Store,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<bool> {
        let ranges = not_needed(environment, head);
        let places = store::read(store, |snapshot| first_places(snapshot, &ranges))?;
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return Ok(false) };
        if let Some((before, cleared)) = &self.cleared
            && extent(before) == extent(head)
            && first <= cleared
        {
            let table = ranges.get(first.0).map_or(Table::ActivityHeads, Range::table);
            return Err(corrupt(table, "a removed entry is still there"));
        }
        store::write(store, |txn| {
            places.iter().try_for_each(|(range, key)| {
                ranges.get(*range).map_or(Ok(()), |range| txn.delete(range.table(), key))
            })
        })?;
        self.cleared = Some((*head, last.clone()));
        Ok(true)
    }
}

// The part of a head that decides what is not needed. No entry is added to that.
fn extent(head: &Head) -> (u32, u64, u32) {
    (head.generation, head.sealed, head.lowest())
}

// The first entries of `ranges`, as many as one transaction removes.
fn first_places(snapshot: &dyn Snapshot, ranges: &[Range<Bytes>]) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for (number, range) in ranges.iter().enumerate() {
        let left = STEP - places.len();
        snapshot.scan_bytes(range, Order::Ascending, Some(left), &mut |key, _| {
            places.push((number, key.to_vec()));
            ControlFlow::Continue(())
        })?;
        if places.len() >= STEP {
            break;
        }
    }
    Ok(places)
}

fn not_needed(environment: EnvironmentId, head: &Head) -> Vec<Range<Bytes>> {
    let Head { generation, sealed, .. } = *head;
    let mut ranges = layout::activity_before(environment, generation).to_vec();
    let rows =
        layout::activity_facets_before(environment, generation, sealed / u64::from(FACETS_IN_ROW));
    ranges.push(rows);
    let lowest = head.lowest().min(head.open());
    ranges.extend(layout::activity_segments_before(environment, generation, lowest));
    ranges
}
