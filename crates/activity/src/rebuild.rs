//! Making the index of an environment anew from its notifications.
//!
//! The new generation is built beside the one in use, in small transactions. The last transaction
//! takes in the notifications created meanwhile, and puts the new generation in place of the old.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem;
use std::ops::{ControlFlow, Range};

use domain::ids::{EnvironmentId, TransactionId};
use domain::notification::Ordinal;
use domain::time::Timestamp;
use domain::trigger::AcceptedTrigger;
use store::{
    OnRows, Order, ReadRecords, Result, Snapshot, Store, Table, Transaction, WriteRecords, layout,
};

use crate::append::{Runs, put_facets};
use crate::facets::Facets;
use crate::head::Head;
use crate::open::OpenSegment;
use crate::row::LastRow;
use crate::seal::SegmentRows;
use crate::set::Set;
use crate::upkeep::{Upkeep, remove_all};
use crate::{ActivityIndex, corrupt, deleted};

/// Number of notifications that one transaction reads.
const STEP: u64 = 1_024;

/// Number of triggers that one transaction looks for.
const RUNS: usize = 1_024;

/// Number of deletions that one transaction looks up.
const COMPARED: usize = 1_024;

/// Number of segments whose deletions one transaction reads: 512 KiB.
const SEGMENTS: usize = 64;

/// Number of times that a rebuild starts anew after the upkeep of another process has removed it.
const RESTARTS: u32 = 8;

impl ActivityIndex {
    /// Rebuilds the index of an environment from its notifications. The old one is in use until
    /// then; other threads may go on reading and writing. An environment without a head and without
    /// notifications has no index. Ends if `progress` breaks, with the old index in use.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](store::Error::Corrupt), if the notifications cannot be gone through, two steps do not come
    /// further, or the upkeep of other processes removes the new index again and again. A notification that
    /// cannot be read is left out.
    pub fn rebuild(
        &self,
        store: &dyn Store,
        environment: EnvironmentId,
        progress: &mut OnRows<'_>,
    ) -> Result<ControlFlow<()>> {
        let known = self.environment(environment);
        // Nothing is sealed meanwhile. `progress` may rebuild the index as well.
        let upkeep = known.upkeep.lock();
        let _rebuilding = Rebuilding::begin(&upkeep);
        // If this call is interrupted, the next upkeep removes what it leaves.
        upkeep.borrow_mut().look_for_interrupted();
        let mut above = 0;
        let known = store::read(store, |snapshot| {
            match store::if_readable(Head::find(snapshot, environment))? {
                Some(None) => Ok(None),
                found => {
                    head_of(snapshot, environment, found.flatten(), self.segment_size).map(Some)
                }
            }
        })?;
        // A generation without a head would be extra to a check.
        let Some(known) = known else {
            remove_all(store, environment)?;
            return Ok(ControlFlow::Continue(()));
        };
        for _ in 0..=RESTARTS {
            let start = |txn: &mut dyn Transaction| Building::start(txn, environment, known, above);
            let building = store::write_in(store, environment, start)?;
            above = building.head.generation;
            if let Some(ended) = building.run(store, progress)? {
                return Ok(ended);
            }
            // A rebuild that was begun later may have ended first, and upkeep removes this one then.
            let current = store::read(store, |snapshot| Head::salvage(snapshot, environment))?;
            if current.is_some_and(|current| current.generation > above) {
                return Ok(ControlFlow::Continue(()));
            }
        }
        Err(corrupt(Table::ActivityDeleted, "the mark of a rebuild is removed again and again"))
    }
}

/// While this exists, there is no other upkeep.
struct Rebuilding<'u> {
    upkeep: &'u RefCell<Upkeep>,
    is_outermost: bool,
}

impl<'u> Rebuilding<'u> {
    fn begin(upkeep: &'u RefCell<Upkeep>) -> Self {
        let was_rebuilding = mem::replace(&mut upkeep.borrow_mut().is_rebuilding, true);
        Self { upkeep, is_outermost: !was_rebuilding }
    }
}

impl Drop for Rebuilding<'_> {
    fn drop(&mut self) {
        self.upkeep.borrow_mut().is_rebuilding = !self.is_outermost;
    }
}

/// A generation in the making.
struct Building {
    environment: EnvironmentId,
    head: Head,
    /// The first ordinal whose facets are not written.
    tail: u64,
    /// The first ordinal that was not compared with the deletions of the index in use.
    compared: u64,
}

/// What has become of a part of a rebuild.
enum Part {
    /// It is done.
    Done,
    /// It is done, and was the last one.
    Last,
    /// Another process has removed the generation, or the store may have lost a part of it.
    Removed,
}

/// Successive notifications, and the ordinals without a notification between them.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(crate) facets: Vec<Facets>,
    /// Time of creation of the last notification before them.
    before: Timestamp,
    pub(crate) runs: BTreeMap<TransactionId, Runs>,
    /// The ordinals that have no notification any more.
    pub(crate) gone: Vec<u64>,
}

impl Building {
    fn start(
        txn: &mut dyn Transaction,
        environment: EnvironmentId,
        known: Head,
        above: u32,
    ) -> Result<Self> {
        let snapshot: &dyn Snapshot = &*txn;
        let mut head = Head::salvage(snapshot, environment)?.unwrap_or(known);
        head.era = snapshot.era();
        head.next = head.next.max(known.next);
        let newest = newest_generation(snapshot, environment)?.max(head.generation).max(above);
        let too_many = || corrupt(Table::ActivityHeads, "there is no generation after this one");
        head.generation = newest.checked_add(1).ok_or_else(too_many)?;
        head.start_from(head.lowest());
        let building = Self { environment, head, tail: head.sealed, compared: head.floor };
        // Each rebuild has a generation of its own. The entry is also its mark.
        deleted::add(txn, environment, &head, head.lowest(), &Set::default())?;
        Ok(building)
    }

    fn progress(&self) -> (u64, u64, u64) {
        (self.head.sealed, self.tail, self.compared)
    }

    // Does all parts. Returns `None` if the generation was removed meanwhile.
    fn run(
        mut self,
        store: &dyn Store,
        progress: &mut OnRows<'_>,
    ) -> Result<Option<ControlFlow<()>>> {
        let mut is_stuck = false;
        loop {
            let before = self.progress();
            match self.step(store)? {
                Part::Last => return Ok(Some(ControlFlow::Continue(()))),
                Part::Removed => return Ok(None),
                Part::Done => {}
            }
            let rows = self.tail.saturating_sub(before.1);
            if progress(Table::ActivitySegments, rows).is_break() {
                return Ok(Some(ControlFlow::Break(())));
            }
            // One step without progress means that others have added more meanwhile.
            let goes_on = self.progress() > before;
            if is_stuck && !goes_on {
                return Err(corrupt(Table::Notifications, "their number is not certain"));
            }
            is_stuck = !goes_on;
        }
    }

    fn step(&mut self, store: &dyn Store) -> Result<Part> {
        let size = u64::from(self.head.segment_size);
        let next = store::read(store, |snapshot| self.next(snapshot))?;
        if next - self.head.sealed >= size {
            return self.seal(store);
        }
        if next.saturating_sub(self.tail) > STEP {
            let range = self.tail..self.tail + STEP;
            let is_there = self.write(store, |txn| self.put_tail(txn, range.clone()))?;
            self.tail = range.end;
            return Ok(if is_there { Part::Done } else { Part::Removed });
        }
        if next.saturating_sub(self.compared) > COMPARED as u64 {
            return self.compare(store, next);
        }
        store::write_in(store, self.environment, |txn| self.finish(txn))
    }

    fn seal(&mut self, store: &dyn Store) -> Result<Part> {
        let range = self.head.sealed..self.head.sealed + u64::from(self.head.segment_size);
        let mut open = OpenSegment::default();
        let all = store::read(store, |snapshot| gather(snapshot, self.environment, range.clone()))?;
        all.facets.iter().for_each(|facets| open.push(facets));
        let mut rows = SegmentRows::of(self.environment, &self.head, self.head.open(), &open);
        while !rows.is_done() {
            if !rows.step(store, |txn, _| self.is_marked(&*txn))? {
                return Ok(Part::Removed);
            }
        }
        let runs: Vec<_> = all.runs.iter().collect();
        for part in runs.chunks(RUNS) {
            let put = |txn: &mut dyn Transaction| {
                self.put_missing_runs(txn, (range.start, &all), part.iter().copied())
            };
            if !self.write(store, put)? {
                return Ok(Part::Removed);
            }
        }
        let is_there = self.write(store, |txn| self.put_all_gone(txn, &all))?;
        self.head.sealed = range.end;
        self.tail = range.end;
        Ok(if is_there { Part::Done } else { Part::Removed })
    }

    // Takes in some of the deletions made meanwhile, so that few are left for the last transaction. Those of
    // notifications that are there are taken out of the index in use, or the last transaction would look them
    // up again.
    fn compare(&mut self, store: &dyn Store, next: u64) -> Result<Part> {
        let mut compared = next;
        let is_there = self.write(store, |txn| {
            if let Some(current) = Head::salvage(&*txn, self.environment)? {
                let range = self.compared..next;
                compared = self.put_deleted(txn, &current, range, (COMPARED, SEGMENTS))?;
            }
            Ok(())
        })?;
        self.compared = compared;
        Ok(if is_there { Part::Done } else { Part::Removed })
    }

    // Runs `body` in a transaction. Returns `false` if the generation was removed meanwhile.
    fn write(
        &self,
        store: &dyn Store,
        mut body: impl FnMut(&mut dyn Transaction) -> Result<()>,
    ) -> Result<bool> {
        store::write_in(store, self.environment, |txn| {
            let is_marked = self.is_marked(&*txn)?;
            if is_marked {
                body(txn)?;
            }
            Ok(is_marked)
        })
    }

    // The upkeep of another process removes the mark first. In another era, parts may be lost.
    fn is_marked(&self, snapshot: &(impl Snapshot + ?Sized)) -> Result<bool> {
        let Head { era, generation, .. } = self.head;
        let mark = layout::activity_deleted(self.environment, generation, self.head.lowest());
        Ok(snapshot.era() == era && snapshot.contains(&mark)?)
    }

    fn put_tail(&self, txn: &mut dyn Transaction, range: Range<u64>) -> Result<()> {
        let all = gather(&*txn, self.environment, range.clone())?;
        let Head { generation, .. } = self.head;
        let place = (self.environment, generation, range.start);
        put_facets(txn, place, &all.facets, &LastRow::default())?;
        self.put_missing_runs(txn, (range.start, &all), &all.runs)?;
        self.put_all_gone(txn, &all)
    }

    // Puts bare records in place of those triggers that are lost, so that their transaction ids stay
    // taken. `start` is the first ordinal of `all`, and `runs` are some of its runs.
    fn put_missing_runs<'r>(
        &self,
        txn: &mut dyn Transaction,
        (start, all): (u64, &Gathered),
        runs: impl IntoIterator<Item = (&'r TransactionId, &'r Runs)>,
    ) -> Result<()> {
        for (id, runs) in runs {
            let found = Runs::find(&*txn, self.environment, id);
            // Entries that are out of order are left to a repair.
            let Some(known) = store::if_readable(found)? else { continue };
            let missing = runs.iter().flat_map(|run| known.missing(run)).flatten();
            for ordinals in self.there(&*txn, missing)?.iter() {
                let place = usize::try_from(ordinals.start - start).unwrap_or(usize::MAX);
                let created_at = all.facets.get(place).map_or(all.before, |one| one.created_at);
                let bare = AcceptedTrigger::bare(self.environment, created_at, id.clone());
                txn.insert(&AcceptedTrigger { ordinals, ..bare })?;
            }
        }
        Ok(())
    }

    // Those of `ordinals` whose notifications are there: others were deleted since they were gathered.
    fn there(
        &self,
        snapshot: &(impl Snapshot + ?Sized),
        ordinals: impl Iterator<Item = u64>,
    ) -> Result<Runs> {
        let mut there = Runs::default();
        for ordinal in ordinals {
            let key = layout::notification(self.environment, Ordinal::new(ordinal));
            if snapshot.contains(&key)? {
                there.add(ordinal..ordinal + 1);
            }
        }
        Ok(there)
    }

    fn put_all_gone(&self, txn: &mut dyn Transaction, all: &Gathered) -> Result<()> {
        let mut gone: BTreeMap<u32, Set> = BTreeMap::new();
        for ordinal in all.gone.iter().filter(|ordinal| **ordinal >= self.head.floor) {
            let (segment, place) = self.head.place(*ordinal);
            gone.entry(segment).or_default().insert(place);
        }
        gone.iter().try_for_each(|(segment, places)| self.put_gone(txn, *segment, places))
    }

    fn put_gone(&self, txn: &mut dyn Transaction, segment: u32, places: &Set) -> Result<()> {
        if places.view().is_empty() {
            return Ok(());
        }
        deleted::add(txn, self.environment, &self.head, segment, places)
    }

    // Puts those of `ordinals` that were deleted meanwhile, as the index in use says. The entry of a deletion is
    // no proof, because it may be damaged. Returns the first ordinal that is left when so many were looked up,
    // or the deletions of so many segments were read.
    fn put_deleted(
        &self,
        txn: &mut dyn Transaction,
        current: &Head,
        ordinals: Range<u64>,
        (lookups, segments): (usize, usize),
    ) -> Result<u64> {
        let Self { environment, head, .. } = self;
        let ordinals = ordinals.start.max(current.floor)..ordinals.end;
        let (first, _) = head.place(ordinals.start);
        let all = deleted::from(&*txn, *environment, current.generation, first, segments)?;
        let mut left = lookups;
        for (segment, places) in &all {
            let (mut gone, mut there, mut end) = (Set::default(), Set::default(), None);
            for (place, ordinal) in self.new_deletions(&*txn, *segment, places, &ordinals)? {
                if left == 0 {
                    end = Some(ordinal);
                    break;
                }
                left -= 1;
                let key = layout::notification(*environment, Ordinal::new(ordinal));
                let found = if txn.contains(&key)? { &mut there } else { &mut gone };
                found.insert(place);
            }
            self.put_gone(txn, *segment, &gone)?;
            if !there.view().is_empty() {
                deleted::take_out(txn, *environment, current, *segment, &there)?;
            }
            if let Some(end) = end {
                return Ok(end);
            }
        }
        // A damaged key names any segment.
        let next = |last: u32| head.start(last.saturating_add(1)).min(ordinals.end);
        let last = all.last_key_value().filter(|_| all.len() == segments);
        Ok(last.map_or(ordinals.end, |(last, _)| next(*last)))
    }

    // Those of `places` within `ordinals` that were not known to be gone before, with their ordinals.
    fn new_deletions(
        &self,
        snapshot: &(impl Snapshot + ?Sized),
        segment: u32,
        places: &Set,
        ordinals: &Range<u64>,
    ) -> Result<Vec<(u16, u64)>> {
        let mut places = places.clone();
        if let Some(known) = deleted::find(snapshot, self.environment, &self.head, segment)? {
            places.leave_out(known.view());
        }
        let start = self.head.start(segment);
        let places = places.view().places();
        let places = places.filter(|place| u32::from(*place) < self.head.segment_size);
        let places = places.map(|place| (place, start + u64::from(place)));
        Ok(places.filter(|(_, ordinal)| ordinals.contains(ordinal)).collect())
    }

    // Takes in the notifications from `tail` on, and the deletions made meanwhile. Then puts the
    // new generation in place of the old one.
    fn finish(&self, txn: &mut dyn Transaction) -> Result<Part> {
        let tail = self.tail;
        let next = self.next(&*txn)?;
        if next.saturating_sub(tail) > STEP {
            return Ok(Part::Done);
        }
        let current = Head::salvage(&*txn, self.environment)?;
        if current.is_some_and(|current| current.generation >= self.head.generation) {
            // Another rebuild has finished meanwhile.
            return Ok(Part::Last);
        }
        if !self.is_marked(&*txn)? {
            return Ok(Part::Removed);
        }
        self.put_tail(txn, tail..next.max(tail))?;
        let mut head = self.head;
        if let Some(current) = current {
            // Nearly all of them were compared before.
            self.put_deleted(txn, &current, head.floor..next, (usize::MAX, usize::MAX))?;
            head.floor = head.floor.max(current.floor);
        }
        head.next = next;
        let deleted = deleted::count(&*txn, self.environment, &head, head.floor..next)?;
        Head { deleted, ..head }.put(txn, self.environment)?;
        Ok(Part::Last)
    }

    fn next(&self, snapshot: &(impl Snapshot + ?Sized)) -> Result<u64> {
        let current = Head::salvage(snapshot, self.environment)?;
        Ok(current.map_or(0, |head| head.next).max(self.head.next).max(self.head.sealed))
    }
}

/// The notifications of that range, and the ordinals without a notification between them. One that
/// cannot be read is none.
pub(crate) fn gather(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    range: Range<u64>,
) -> Result<Gathered> {
    let mut all =
        Gathered { before: before(snapshot, environment, range.start)?, ..Gathered::default() };
    let mut next = range.start;
    let within = layout::notifications_between(environment, range.clone());
    snapshot.each_readable(&within, Order::Ascending, |found| {
        let ordinal = found.id.ordinal().get();
        all.skip(next..ordinal);
        let facets = Facets::from(&found);
        all.facets.push(facets);
        all.runs.entry(found.transaction_id).or_default().add(ordinal..ordinal + 1);
        next = ordinal + 1;
        ControlFlow::Continue(())
    })?;
    all.skip(next..range.end);
    Ok(all)
}

impl Gathered {
    // The ordinals of `range` have no notification. They have the time of the one before them, so
    // that they widen no range of times.
    fn skip(&mut self, range: Range<u64>) {
        let created_at = self.facets.last().map_or(self.before, |last| last.created_at);
        for ordinal in range {
            self.gone.push(ordinal);
            self.facets.push(Facets { created_at, terms: Vec::new() });
        }
    }
}

// Time of creation of the last notification before `ordinal`.
fn before(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    ordinal: u64,
) -> Result<Timestamp> {
    let range = layout::notifications_between(environment, 0..ordinal);
    let last = snapshot.readable(&range, Order::Descending, 1)?;
    Ok(last.first().map_or(Timestamp::MIN, |last| last.created_at))
}

// Returns the extent of the list for a rebuild: that of the head in use, or of the notifications that
// can be read.
fn head_of(
    snapshot: &dyn Snapshot,
    environment: EnvironmentId,
    found: Option<Head>,
    segment_size: u32,
) -> Result<Head> {
    let head = if let Some(found) = found {
        found
    } else {
        let all = layout::notifications(environment).range();
        let first = snapshot.readable(&all, Order::Ascending, 1)?.pop();
        let floor = first.map_or(0, |first| first.id.ordinal().get());
        Head { floor, ..Head::new(snapshot.era(), segment_size) }
    };
    head.behind(snapshot, environment)
}

// Newest generation that has entries. An interrupted rebuild leaves entries of its generation,
// which no later rebuild may take for its own.
pub(crate) fn newest_generation(
    snapshot: &dyn Snapshot,
    environment: EnvironmentId,
) -> Result<u32> {
    let mut newest = 0;
    for all in layout::activity_generations(environment) {
        let last = snapshot.first_known(&all, Order::Descending, layout::activity_generation)?;
        newest = newest.max(last.unwrap_or_default());
    }
    Ok(newest)
}
