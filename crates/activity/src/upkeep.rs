//! Upkeep: sealing full segments, merging their rare terms, and clearing away entries that are no
//! longer needed. It is done in small transactions, one after each trigger, so that no caller waits
//! for long.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use domain::ids::EnvironmentId;
use store::{
    Bytes, Error, Order, Range, ReadRecords, Result, Snapshot, Store, Table, Transaction, layout,
};

use crate::cache::Cache;
use crate::facets::FACETS_IN_ROW;
use crate::head::Head;
use crate::merge::Merging;
use crate::rebuild::newest_generation;
use crate::seal::Sealing;
use crate::span::LEVELS;
use crate::{ActivityIndex, Environment, corrupt};

/// What a call has done for the upkeep of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tended {
    /// A part of it. There may be more to do.
    Part,
    /// Nothing: there is nothing to do.
    Nothing,
    /// Nothing: another thread does the upkeep, or the index is being rebuilt.
    Elsewhere,
}

/// Progress of the upkeep of an environment.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    /// The era of the store that it goes on in.
    era: u64,
    sealing: Option<Sealing>,
    merging: Option<Merging>,
    /// The last head for which there was nothing to clear away.
    clear: Option<Head>,
    /// The head at the start of the last sealing that has ended.
    sealed: Option<Head>,
    /// The head at the start of the last merging that has ended.
    merged: Option<Head>,
    /// The last part that was cleared away, and the head at that time.
    cleared: Option<(Head, Cleared)>,
    interrupted: Interrupted,
    /// `true` while the index is rebuilt.
    pub(crate) is_rebuilding: bool,
}

/// What is known of the generations of rebuilds that were interrupted.
#[derive(Debug, Default)]
enum Interrupted {
    /// There may be some: those that a process has left that has ended.
    #[default]
    Perhaps,
    /// There are some, up to this generation. The last part that was cleared away.
    Through(u32, Cleared),
    /// There are none.
    No,
}

/// Place of an entry that is not needed: the number of its range, and its key.
type Place = (usize, Vec<u8>);

/// A part that was cleared away.
#[derive(Debug)]
struct Cleared {
    /// The last of its entries.
    last: Place,
    /// `true` if it begins in front of the end of the part before.
    goes_back: bool,
}

/// Number of triggers between two looks at an environment that needs no upkeep, at most.
const REST: u32 = 16;

/// Number of entries that one transaction removes.
const STEP: usize = 1_024;

impl ActivityIndex {
    /// Reads the committed changes, and does the next part of the upkeep of an environment. A call
    /// beside another thread that does the upkeep reads nothing.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](store::Error::Corrupt), if a part was done before and is there again. Otherwise
    /// the upkeep of a damaged store would have no end.
    pub fn tend(&self, store: &dyn Store, environment: EnvironmentId) -> Result<Tended> {
        let known = self.environment(environment);
        // Before the head is read, so that it shows the last step of another thread.
        let Some(upkeep) = known.upkeep.try_lock() else { return Ok(Tended::Elsewhere) };
        let Ok(mut upkeep) = upkeep.try_borrow_mut() else { return Ok(Tended::Elsewhere) };
        if upkeep.is_rebuilding {
            return Ok(Tended::Elsewhere);
        }
        let before = known.cache.read().progress();
        let head = store::read(store, |snapshot| {
            let head = Head::find(snapshot, environment)?;
            if let Some(head) = &head {
                // A later head is behind only if it is a new one, in place of one that was lost. Its
                // generations may have been in use before.
                if head.progress() < before {
                    *known.cache.write() = Cache::default();
                    self.blocks.forget();
                    *upkeep = Upkeep::default();
                }
                known.catch_up(snapshot, environment, head)?;
            }
            Ok::<_, store::Error>(head)
        })?;
        let Some(head) = head else { return Ok(Tended::Nothing) };
        upkeep.enter(head.era);
        let is_more = upkeep.seal(store, environment, &known, &head)?
            || upkeep.clear(store, environment, &head)?
            || upkeep.clear_interrupted(store, environment, &head)?
            || upkeep.merge(store, environment, &known, &head)?;
        // Meanwhile, little is added in proportion to a segment.
        let rest = if is_more { 0 } else { REST.min(self.segment_size / 1_024) };
        known.rest.store(rest, Ordering::Relaxed);
        Ok(if is_more { Tended::Part } else { Tended::Nothing })
    }

    /// Returns `true` if a caller that has added notifications should [`tend`](Self::tend).
    pub fn is_due(&self, environment: EnvironmentId) -> bool {
        let one_less = |rest: u32| rest.checked_sub(1);
        let rest = &self.environment(environment).rest;
        rest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err()
    }

    /// Does the upkeep of an environment until nothing is left to do, or until another thread does
    /// it.
    pub fn tend_all(&self, store: &dyn Store, environment: EnvironmentId) -> Result<()> {
        while self.tend(store, environment)? == Tended::Part {}
        Ok(())
    }

    /// Returns `true` if so much is waiting to be sealed that a caller that adds more should help.
    pub fn is_behind(&self, environment: EnvironmentId) -> bool {
        self.environment(environment).cache.read().open().len() > 2
    }
}

impl Upkeep {
    // Forgets what was done in another era, which may be undone.
    fn enter(&mut self, era: u64) {
        if self.era != era {
            *self = Self { era, ..Self::default() };
        }
    }

    fn is_clear(&self, head: &Head) -> bool {
        self.clear.as_ref().is_some_and(|clear| extent(clear) == extent(head))
    }

    // Seals a part of a full segment. Returns `true` if there was one.
    fn seal(
        &mut self,
        store: &dyn Store,
        environment: EnvironmentId,
        known: &Environment,
        head: &Head,
    ) -> Result<bool> {
        if self.sealing.is_none() && head.is_full() {
            let cache = known.cache.read();
            let full = cache.full().filter(|_| cache.shows(head));
            drop(cache);
            if let Some(open) = full {
                self.begins_anew(head)?;
                self.sealing = Some(Sealing::start(environment, *head, &open));
            }
        }
        let Some(sealing) = self.sealing.take() else { return Ok(false) };
        let start = sealing.head();
        self.sealing = sealing.step(store, environment)?;
        self.sealed = self.sealing.is_none().then_some(start).or(self.sealed);
        Ok(true)
    }

    // Merges a part of the rare terms of sealed segments. Returns `true` if there was one.
    fn merge(
        &mut self,
        store: &dyn Store,
        environment: EnvironmentId,
        known: &Environment,
        head: &Head,
    ) -> Result<bool> {
        if self.merging.is_none() {
            let cache = known.cache.read();
            let sealed = cache.shows(head).then(|| cache.sealed());
            drop(cache);
            self.merging = sealed.and_then(|sealed| Merging::start(head, &sealed));
            if self.merging.is_some() {
                self.merges_anew(head)?;
            }
        }
        let Some(merging) = self.merging.take() else { return Ok(false) };
        let start = merging.head();
        self.merging = merging.step(store, environment)?;
        self.merged = self.merging.is_none().then_some(start).or(self.merged);
        Ok(true)
    }

    // Refuses to seal a segment again whose sealing has ended.
    fn begins_anew(&self, head: &Head) -> Result<()> {
        let place = |head: &Head| (head.generation, head.sealed);
        if self.sealed.as_ref().is_some_and(|sealed| place(sealed) == place(head)) {
            return Err(corrupt(Table::ActivityHeads, "a sealed segment is not sealed"));
        }
        Ok(())
    }

    // Refuses to merge a span again whose merging has ended.
    fn merges_anew(&self, head: &Head) -> Result<()> {
        if self.merged.as_ref().is_some_and(|merged| extent(merged) == extent(head)) {
            return Err(corrupt(Table::ActivityHeads, "a merged span is not merged"));
        }
        Ok(())
    }

    // Clears away facets that are sealed, spans that are merged into larger ones, segments that are
    // deleted and generations that are over. Returns `true` if there were any.
    fn clear(
        &mut self,
        store: &dyn Store,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<bool> {
        if self.is_clear(head) {
            return Ok(false);
        }
        self.clear = None;
        let ranges = not_needed(environment, head);
        let Some(places) = places_in(head.era, store, &ranges)? else { return Ok(true) };
        let before = self.cleared.as_ref().filter(|(before, _)| extent(before) == extent(head));
        let Some(cleared) = Cleared::behind(before.map(|(_, part)| part), &ranges, &places)? else {
            self.clear = Some(*head);
            return Ok(false);
        };
        store::write_in(store, environment, |txn| {
            // What is not needed may be needed again where commits are lost.
            if txn.era() == head.era { remove(txn, &ranges, &places) } else { Ok(()) }
        })?;
        self.cleared = Some((*head, cleared));
        Ok(true)
    }

    /// A rebuild begins, which may be interrupted.
    pub(crate) fn look_for_interrupted(&mut self) {
        self.interrupted = Interrupted::Perhaps;
    }

    // Clears away generations that are newer than the one in use. A rebuild of this process is not
    // under way. One of another process notices that its mark is gone, and starts anew.
    fn clear_interrupted(
        &mut self,
        store: &dyn Store,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<bool> {
        let (through, before) = match &self.interrupted {
            Interrupted::No => return Ok(false),
            Interrupted::Through(through, cleared) => (*through, Some(cleared)),
            Interrupted::Perhaps => {
                (store::read(store, |snapshot| newest_generation(snapshot, environment))?, None)
            }
        };
        let ranges = marks_first(layout::activity_after(environment, head.generation, through));
        let Some(places) = places_in(head.era, store, &ranges)? else { return Ok(true) };
        let Some(cleared) = Cleared::behind(before, &ranges, &places)? else {
            self.interrupted = Interrupted::No;
            return Ok(false);
        };
        let is_removed = store::write_in(store, environment, |txn| {
            // A rebuild of another process may have ended, and its generation is in use then.
            let current = Head::find(&*txn, environment)?;
            let is_same = current.is_none_or(|current| current.generation == head.generation);
            let is_over = is_same && txn.era() == head.era;
            if is_over {
                remove(txn, &ranges, &places)?;
            }
            Ok::<_, Error>(is_over)
        })?;
        if is_removed {
            self.interrupted = Interrupted::Through(through, cleared);
        }
        // Another head is read by the next call.
        Ok(true)
    }
}

impl Cleared {
    // The part of `places`, behind the one before. Returns `None` if there are no places. A rebuild of
    // another process may add an entry just before its mark is removed, and a later one may take the
    // same generation. So one part may lie in front of the one before, but not two in succession.
    fn behind(
        before: Option<&Self>,
        ranges: &[Range<Bytes>],
        places: &[Place],
    ) -> Result<Option<Self>> {
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return Ok(None) };
        let goes_back = before.is_some_and(|before| *first <= before.last);
        if goes_back && before.is_some_and(|before| before.goes_back) {
            return Err(still_there(ranges, first));
        }
        Ok(Some(Self { last: last.clone(), goes_back }))
    }
}

/// Removes all generations of an environment that has neither a head nor notifications.
pub(crate) fn remove_all(store: &dyn Store, environment: EnvironmentId) -> Result<()> {
    let ranges = layout::activity_generations(environment);
    let mut removed: Option<Place> = None;
    loop {
        let places = store::read(store, |snapshot| first_places(snapshot, &ranges))?;
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return Ok(()) };
        if removed.is_some_and(|removed| *first <= removed) {
            return Err(still_there(&ranges, first));
        }
        let is_removed = store::write_in(store, environment, |txn| {
            // The first trigger may have begun an index meanwhile.
            let is_over = Head::find(&*txn, environment)?.is_none();
            if is_over {
                remove(txn, &ranges, &places)?;
            }
            Ok::<_, Error>(is_over)
        })?;
        if !is_removed {
            return Ok(());
        }
        removed = Some(last.clone());
    }
}

fn still_there(ranges: &[Range<Bytes>], place: &Place) -> Error {
    let table = ranges.get(place.0).map_or(Table::ActivityHeads, Range::table);
    corrupt(table, "a removed entry is still there")
}

// The part of a head that decides what is not needed. No entry is added to that.
fn extent(head: &Head) -> (u32, u64, [u32; LEVELS.len()], u32) {
    (head.generation, head.sealed, head.merged, head.lowest())
}

// The marks of rebuilds are deletions. They go first, and alone, so that nothing is added to the other
// entries of their generations.
fn marks_first([facets, segments, merged, deleted]: [Range<Bytes>; 4]) -> Vec<Range<Bytes>> {
    vec![deleted, facets, segments, merged]
}

// The first entries of `ranges`, as many as one transaction removes, and of the first range alone.
// Returns `None` in another era.
fn places_in(era: u64, store: &dyn Store, ranges: &[Range<Bytes>]) -> Result<Option<Vec<Place>>> {
    store::read(store, |snapshot| {
        if snapshot.era() != era {
            return Ok(None);
        }
        let mut places = first_places(snapshot, ranges)?;
        if places.first().is_some_and(|(range, _)| *range == 0) {
            places.retain(|(range, _)| *range == 0);
        }
        Ok(Some(places))
    })
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

fn remove(txn: &mut dyn Transaction, ranges: &[Range<Bytes>], places: &[Place]) -> Result<()> {
    places.iter().try_for_each(|(range, key)| {
        ranges.get(*range).map_or(Ok(()), |range| txn.delete(range.table(), key))
    })
}

fn not_needed(environment: EnvironmentId, head: &Head) -> Vec<Range<Bytes>> {
    let Head { generation, sealed, merged, .. } = *head;
    let mut ranges = marks_first(layout::activity_before(environment, generation));
    let rows =
        layout::activity_facets_before(environment, generation, sealed / u64::from(FACETS_IN_ROW));
    ranges.push(rows);
    let lowest = head.lowest().min(head.open());
    ranges.extend(layout::activity_segments_before(environment, generation, lowest));
    let above = merged.into_iter().skip(1).chain([0]);
    for ((level, _), above) in LEVELS.into_iter().zip(above) {
        let end = above.max(lowest);
        ranges.push(layout::activity_spans_until(environment, generation, level, end));
    }
    ranges
}
