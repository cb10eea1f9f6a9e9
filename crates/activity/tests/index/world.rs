//! An environment, two indexes of it, and what must be in it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use domain::ids::InternalSubscriberId;
use domain::notification::{Notification, Ordinal};
use domain::trigger::AcceptedTrigger;
use store::memory::MemoryStore;
use store::{Order, ReadRecords, Result, Snapshot, Store, WriteRecords, layout};
use testkit::dice::Dice;
use testkit::interposed::{Interposed, Point};
use testkit::world::Backend;
use tidings_activity::{ActivityIndex, Facets, Filter};

use crate::sample;
use crate::wanted::{Query, Wanted};

/// The notifications of an environment by their ordinals.
pub(crate) type Records = BTreeMap<u64, Notification>;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) store: Interposed,
    backend: Mutex<Backend>,
    segment: u32,
    indexes: Mutex<[Arc<ActivityIndex>; 2]>,
    model: Mutex<Model>,
    kept: Mutex<Option<(MemoryStore, Model)>>,
}

#[derive(Clone, Debug)]
struct Model {
    clock: i64,
    /// What was acknowledged.
    records: Records,
    /// What is there if a deed that has failed was done nevertheless.
    perhaps: Option<Records>,
    /// The first ordinal that no notification ever had.
    next: u64,
    random: u64,
}

/// Something that changes what the index has to say, or how it says it.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// So many notifications of that transaction, when the clock has moved on.
    Append {
        count: u16,
        transaction: u8,
        traits: u16,
        later: i64,
    },
    Tend(u8),
    TendAll,
    /// So many notifications, from the one on that is so far from the newest.
    Delete(usize, usize),
    /// At most so many, until that long ago.
    DeleteBefore {
        ago: i64,
        limit: usize,
    },
    Rebuild,
    /// Keeps the state of a store in memory.
    Keep,
    /// Loses the commits behind the state that was kept, if there is one.
    Lose,
}

impl World {
    pub(crate) fn new(backend: Backend, segment: u32) -> Self {
        let index = || Arc::new(ActivityIndex::with_segments_of(segment));
        let model = Model { clock: 0, records: Records::new(), perhaps: None, next: 0, random: 1 };
        Self {
            store: Interposed::over(backend.open()),
            backend: Mutex::new(backend),
            segment,
            indexes: Mutex::new([index(), index()]),
            model: Mutex::new(model),
            kept: Mutex::default(),
        }
    }

    /// The same environment in another place.
    pub(crate) fn with(&self, backend: Backend) -> Self {
        let world = Self::new(backend, self.segment);
        *world.model.lock().unwrap() = self.model.lock().unwrap().clone();
        world
    }

    /// Does something with one of the two indexes.
    pub(crate) fn does(&self, which: usize, deed: &Deed) -> Result<()> {
        let (store, environment) = (&self.store, sample::environment());
        let index = self.index(which);
        match *deed {
            Deed::Append { count, transaction, traits, later } => {
                self.append(&index, count, transaction, traits, later)
            }
            Deed::Tend(times) => {
                (0..times).try_for_each(|_| index.tend(store, environment).map(drop))
            }
            Deed::TendAll => index.tend_all(store, environment),
            Deed::Delete(at, count) => self.delete(&index, at, count),
            Deed::DeleteBefore { ago, limit } => self.delete_before(&index, ago, limit),
            Deed::Rebuild => {
                index.rebuild(store, environment, &mut |_, _| ControlFlow::Continue(())).map(drop)
            }
            Deed::Keep => {
                self.keep();
                Ok(())
            }
            Deed::Lose => {
                self.lose();
                Ok(())
            }
        }
    }

    /// The first or the second index.
    pub(crate) fn index(&self, which: usize) -> Arc<ActivityIndex> {
        Arc::clone(&self.indexes.lock().unwrap()[which % 2])
    }

    /// Forgets what is in memory, and opens the store again.
    pub(crate) fn reopen(&self) {
        let backend = self.backend.lock().unwrap().clone();
        self.reopen_from(backend);
    }

    /// As after a power cut.
    pub(crate) fn reopen_from(&self, backend: Backend) {
        let index = || Arc::new(ActivityIndex::with_segments_of(self.segment));
        *self.indexes.lock().unwrap() = [index(), index()];
        self.store.reopen(|| backend.open());
    }

    /// Checks that both indexes agree with the notifications, and these with what was done.
    #[track_caller]
    pub(crate) fn agrees(&self, queries: &[Query]) {
        self.settle("");
        let expected = self.records();
        for which in 0..2 {
            self.reads(|snapshot| agrees(&self.index(which), snapshot, &expected, queries));
        }
    }

    /// Checks everything that there is to check, at length.
    #[track_caller]
    pub(crate) fn is_in_order(&self, queries: &[Query]) {
        self.agrees(queries);
        // What is in memory plays no part in this.
        self.reads(|snapshot| is_in_order(&self.index(0), snapshot, &self.records()));
    }

    pub(crate) fn reads(&self, mut body: impl FnMut(&dyn Snapshot)) {
        let read = self.store.read(&mut |snapshot| {
            body(snapshot);
            Ok(())
        });
        read.unwrap();
    }

    /// What was acknowledged.
    pub(crate) fn records(&self) -> Records {
        self.model.lock().unwrap().records.clone()
    }

    /// Removes the oldest notifications, and not from the index.
    pub(crate) fn loses(&self, count: usize) {
        let mut model = self.model.lock().unwrap();
        let lost: Vec<u64> = model.records.keys().take(count).copied().collect();
        store::write(&self.store, |txn| {
            lost.iter().try_for_each(|ordinal| {
                txn.delete_key(&layout::notification(sample::environment(), Ordinal::new(*ordinal)))
            })
        })
        .unwrap();
        model.records.retain(|ordinal, _| !lost.contains(ordinal));
    }

    fn keep(&self) {
        if let Backend::Memory(store) = &*self.backend.lock().unwrap() {
            let model = self.model.lock().unwrap().clone();
            *self.kept.lock().unwrap() = Some((store.fork(), model));
        }
    }

    // What is in memory of the indexes stays.
    fn lose(&self) {
        let Some((store, model)) = self.kept.lock().unwrap().clone() else { return };
        let store = store.fork();
        self.store.lose(Arc::new(store.clone()));
        *self.backend.lock().unwrap() = Backend::Memory(store);
        let mut present = self.model.lock().unwrap();
        *present = Model { clock: present.clock, ..model };
    }

    fn append(
        &self,
        index: &ActivityIndex,
        count: u16,
        transaction: u8,
        traits: u16,
        later: i64,
    ) -> Result<()> {
        let (now, mut after, next, random) = {
            let mut model = self.model.lock().unwrap();
            model.clock += later;
            let now = sample::time(model.clock);
            model.random = Dice::new(model.random).roll(u64::MAX);
            (now, model.records.clone(), model.next, model.random)
        };
        let id = sample::transaction(transaction);
        let mut new = Records::new();
        let result = store::write(&self.store, |txn| {
            new.clear();
            let mut log = index.append(&*txn, sample::environment())?;
            for nth in 0..count {
                let traits = traits.wrapping_mul(nth.wrapping_mul(2_654).wrapping_add(40_503));
                let found = sample::notification(log.next_id(now, random), now, &id, traits);
                txn.insert(&found)?;
                log.add(Facets::from(&found));
                new.insert(found.id.ordinal().get(), found);
            }
            log.finish(txn, AcceptedTrigger::bare(sample::environment(), now, id.clone()))
        });
        if let Some((first, _)) = new.first_key_value() {
            assert!(*first >= next, "ordinal {first} was given away before");
        }
        after.extend(new);
        self.note(after, &result);
        result
    }

    fn delete(&self, index: &ActivityIndex, at: usize, count: usize) -> Result<()> {
        let mut after = self.records();
        let skip = at % after.len().max(1);
        let ordinals: Vec<u64> = after.keys().rev().skip(skip).take(count).copied().collect();
        let gone: Vec<Notification> =
            ordinals.iter().filter_map(|ordinal| after.remove(ordinal)).collect();
        let result = store::write(&self.store, |txn| {
            gone.iter().try_for_each(|notification| index.delete(txn, notification))
        });
        self.note(after, &result);
        result
    }

    fn delete_before(&self, index: &ActivityIndex, ago: i64, limit: usize) -> Result<()> {
        let time = sample::time(self.model.lock().unwrap().clock - ago);
        let mut after = self.records();
        let old: Vec<u64> = after
            .iter()
            .filter(|(_, found)| found.created_at < time)
            .map(|(ordinal, _)| *ordinal)
            .take(limit)
            .collect();
        after.retain(|ordinal, _| !old.contains(ordinal));
        let environment = sample::environment();
        let result =
            store::read(&self.store, |snapshot| index.created_before(snapshot, environment, time))
                .and_then(|old| {
                    store::write(&self.store, |txn| {
                        let (removed, rest) = old.first(&*txn, environment, time, limit)?;
                        index.delete_all(txn, environment, &removed)?;
                        Ok((removed.len(), rest))
                    })
                });
        self.note(after, &result);
        let (count, rest) = result?;
        assert_eq!(count, old.len(), "another number of them was deleted");
        assert!(rest.is_empty() || count == limit, "some are left");
        Ok(())
    }

    fn note<T>(&self, after: Records, result: &Result<T>) {
        let mut model = self.model.lock().unwrap();
        match result {
            Ok(_) => model.becomes(after),
            Err(_) => model.perhaps = Some(after),
        }
    }

    /// Finds out what has become of a deed that has failed, and whether any notification is lost.
    #[track_caller]
    pub(crate) fn settle(&self, why: &str) {
        let mut found = Records::new();
        store::read(&self.store, |snapshot| {
            found = read(snapshot);
            Ok::<_, store::Error>(())
        })
        .unwrap();
        let mut model = self.model.lock().unwrap();
        if let Some(perhaps) = model.perhaps.take()
            && found == perhaps
        {
            model.becomes(perhaps);
        }
        assert!(found == model.records, "the notifications are others: {why}");
    }
}

impl Model {
    fn becomes(&mut self, records: Records) {
        let last = records.last_key_value().map_or(0, |(ordinal, _)| ordinal + 1);
        self.next = self.next.max(last);
        self.records = records;
    }
}

/// The notifications that a snapshot shows.
pub(crate) fn read(snapshot: &dyn Snapshot) -> Records {
    let mut records = Records::new();
    let all = layout::notifications(sample::environment()).range();
    let mut visit = |found: Notification| {
        records.insert(found.id.ordinal().get(), found);
        ControlFlow::Continue(())
    };
    snapshot.each(&all, Order::Ascending, &mut visit).unwrap();
    records
}

/// Checks that the index finds the right ones of `records`, which are those of the snapshot.
#[track_caller]
pub(crate) fn agrees(
    index: &ActivityIndex,
    snapshot: &dyn Snapshot,
    records: &Records,
    queries: &[Query],
) {
    let everything = Query { wanted: Wanted::default(), skip: 0, limit: usize::MAX };
    for Query { wanted, skip, limit } in queries.iter().chain([&everything]) {
        let newest = records.iter().rev().filter(|(_, found)| wanted.matches(found));
        let all: Vec<u64> = newest.map(|(ordinal, _)| *ordinal).collect();
        let filter = wanted.filter();
        let found = index.find(snapshot, sample::environment(), &filter, *skip, *limit).unwrap();
        let found: Vec<u64> = found.into_iter().map(Ordinal::get).collect();
        let from = usize::try_from(*skip).unwrap().min(all.len());
        let page = &all[from..from.saturating_add(*limit).min(all.len())];
        assert_eq!(found, page, "{wanted:?} but for {skip}, at most {limit}");
        let count = index.count(snapshot, sample::environment(), &filter).unwrap();
        assert_eq!(count, all.len() as u64, "{wanted:?}");
        if let Some((filter, subscribers)) = wanted.apart() {
            let found = apart(index, snapshot, (&filter, &subscribers), (*skip, *limit));
            assert_eq!(found, (page.to_vec(), count), "{wanted:?} apart, but for {skip}");
        }
    }
}

/// What is found with subscribers that are shown to the index one by one: a page, and a number.
fn apart(
    index: &ActivityIndex,
    snapshot: &dyn Snapshot,
    (filter, subscribers): (&Filter, &[InternalSubscriberId]),
    (skip, limit): (u64, usize),
) -> (Vec<u64>, u64) {
    let each = |visit: &mut dyn FnMut(InternalSubscriberId)| {
        for id in subscribers {
            visit(*id);
        }
        Ok(())
    };
    let wanted = filter.among(&each);
    let found = index.find(snapshot, sample::environment(), wanted, skip, limit).unwrap();
    let count = index.count(snapshot, sample::environment(), wanted).unwrap();
    (found.into_iter().map(Ordinal::get).collect(), count)
}

/// Checks that the index has nothing to complain about.
#[track_caller]
pub(crate) fn is_in_order(index: &ActivityIndex, snapshot: &dyn Snapshot, records: &Records) {
    let check = index
        .check(snapshot, sample::environment(), &mut |_, _| ControlFlow::Continue(()))
        .unwrap();
    assert_eq!(check.disagreements, []);
    assert_eq!(check.notifications, records.len() as u64);
}

/// Some deeds that leave something of everything: sealed segments, half a segment that is not,
/// notifications that were deleted one by one and all at once.
pub(crate) fn past(world: &World, seed: u64) {
    let mut dice = Dice::new(seed);
    for round in 0_u8..8 {
        let count = 4 + u16::try_from(dice.roll(14)).unwrap();
        let traits = u16::try_from(dice.roll(1 << 16)).unwrap();
        let later = i64::try_from(dice.roll(6)).unwrap() - 1;
        world.does(0, &Deed::Append { count, transaction: round % 5, traits, later }).unwrap();
        if round % 3 == 1 {
            world.does(0, &Deed::Delete(usize::try_from(dice.roll(30)).unwrap(), 2)).unwrap();
        }
        if round % 4 == 3 {
            world.does(0, &Deed::Tend(3)).unwrap();
        }
    }
    world.does(0, &Deed::DeleteBefore { ago: 10, limit: 9 }).unwrap();
    let append = Deed::Append { count: 20, transaction: 5, traits: 5, later: 1 };
    world.does(0, &append).unwrap();
}

/// Queries of every kind, the same ones for the same seed.
pub(crate) fn queries(seed: u64, count: usize) -> Vec<Query> {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let bytes: Vec<u8> = seed.to_le_bytes().repeat(4);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    (0..count).map(|_| crate::wanted::query().new_tree(&mut runner).unwrap().current()).collect()
}

impl World {
    /// Does something of which a call fails, and says whether it did.
    pub(crate) fn fails(&self, deed: &Deed, calls: usize, point: Point) -> bool {
        self.store.fail(point, calls);
        let result = self.does(0, deed);
        let has_failed = self.store.recover();
        assert!(has_failed || result.is_ok(), "{result:?}");
        has_failed
    }
}
