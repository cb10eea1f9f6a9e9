//! Upkeep: sealing full segments, and clearing away entries that are no longer needed. It is done
//! in small transactions, one after each trigger, so that no caller waits for long.

use std::ops::ControlFlow;

use domain::ids::EnvironmentId;
use store::{Bytes, Order, Range, ReadRecords, Result, Store, layout};

use crate::ActivityIndex;
use crate::facets::FACETS_IN_ROW;
use crate::head::Head;
use crate::seal::Sealing;

/// Progress of the upkeep of an environment.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    sealing: Option<Sealing>,
    /// The last head for which there was nothing to clear away.
    clear: Option<Head>,
}

/// Number of entries that one transaction removes.
const STEP: usize = 1_024;

impl ActivityIndex {
    /// Reads the committed changes, and does the next part of the upkeep of an environment. Returns
    /// `false` if there is nothing to do, or if another thread does the upkeep.
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
        let state = |head: &Head| (head.generation, head.sealed, head.lowest());
        self.clear.as_ref().is_some_and(|clear| state(clear) == state(head))
    }
}

// Clears away facets that are sealed, segments that are deleted and generations that are over.
// Returns the number of removed entries.
fn clear(store: &dyn Store, environment: EnvironmentId, head: &Head) -> Result<usize> {
    let entries = store::read(store, |snapshot| {
        let mut entries = Vec::new();
        for range in not_needed(environment, head) {
            let left = STEP - entries.len();
            snapshot.scan_bytes(&range, Order::Ascending, Some(left), &mut |key, _| {
                entries.push((range.table(), key.to_vec()));
                ControlFlow::Continue(())
            })?;
            if entries.len() >= STEP {
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
