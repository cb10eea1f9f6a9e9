//! A store over another one, which fails, stops, pauses or repeats where it is told to.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Bound, ControlFlow, Deref};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use store::memory::MemoryStore;
use store::{
    Change, Codec, Decision, Error, KeyRange, Listener, Order, ReadBody, Result, Snapshot, Store,
    Table, Transaction, Visit, VisitValue, WriteBody, WriteScope,
};

use crate::tables::{Entry, dump, load};

const EVERYTHING: KeyRange = (Bound::Unbounded, Bound::Unbounded);

/// A store over another one. Clones share everything.
///
/// The store works as the one below it until something else is planned. A plan names a
/// [`Point`] and the number of times, counted from the moment of planning, that the point is passed
/// before the plan takes effect.
#[derive(Clone, Debug)]
pub struct Interposed(Arc<State>);

/// A place in the work of a store at which a plan takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before any call: the beginning of a read or a write, a get of one or many, a scan, a put, a
    /// delete, a commit.
    Call,
    /// After a get of one or many, a scan, a put, a delete or a commit that has succeeded.
    Called,
    /// Before a read or a write begins.
    Begin,
    /// Before a write begins.
    Write,
    /// Before a commit, after the body has run.
    Commit,
    /// After a commit. An error here hides a transaction that lasts.
    Committed,
}

/// A lie of a store that is damaged below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// A scan also shows the first entry of its table, wherever that lies.
    Foreign,
    /// A scan of one table does so.
    ForeignIn(Table),
    /// A scan of one table does so that comes to the end of its range before its limit.
    ForeignBehind(Table),
    /// A scan shows each entry twice.
    Repeated,
    /// A scan shows the entries that were there when the lies began. Gets see the truth.
    Undeleted,
    /// A get shows the value of another key, the first of the table.
    OtherKey,
    /// A read shows what was there when the lies began. Transactions see the truth.
    Stale,
}

/// A call of a store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Call {
    Read,
    Write,
    Get(Table, Vec<u8>),
    GetMany(Table, Vec<Vec<u8>>),
    Scan(Table),
    Put(Table, Vec<u8>),
    Delete(Table, Vec<u8>),
    Commit,
}

/// Keys that were written or deleted.
pub type Touched = BTreeSet<(Table, Vec<u8>)>;

#[derive(Debug, Default)]
struct State {
    // `None` while the store is closed.
    below: Mutex<Option<Arc<dyn Store>>>,
    // Number of times that the store has lost commits.
    losses: AtomicU64,
    plans: Mutex<Plans>,
    repeats: AtomicBool,
    discards: AtomicBool,
    side_by_side: AtomicBool,
    // Number of transactions that write to any environment.
    writes_of_all: AtomicU64,
    // A body that writes runs.
    is_writing: AtomicBool,
    calls: Mutex<Option<Vec<Call>>>,
    touched: Mutex<Option<Touched>>,
    states: Mutex<Option<Vec<Vec<Entry>>>>,
    // The lie, and the entries at its beginning.
    lie: Mutex<Option<(Lie, Arc<MemoryStore>)>>,
}

#[derive(Debug, Default)]
struct Plans {
    fault: Option<Planned<Fault>>,
    pause: Option<Planned<Pause>>,
    has_failed: bool,
    is_stopped: bool,
}

#[derive(Debug)]
struct Planned<T> {
    point: Point,
    left: usize,
    what: T,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Once,
    ForGood,
}

struct Pause(Box<dyn FnOnce() + Send>);

impl Interposed {
    /// A store over `below`.
    pub fn new(below: impl Store) -> Self {
        Self::over(Arc::new(below))
    }

    /// Returns `true` while the body of a transaction that writes runs.
    pub fn is_writing(&self) -> bool {
        self.0.is_writing.load(Relaxed)
    }

    /// A store over one that is shared.
    pub fn over(below: Arc<dyn Store>) -> Self {
        Self(Arc::new(State { below: Mutex::new(Some(below)), ..State::default() }))
    }

    /// The same store, which says that it runs bodies of different environments side by side.
    #[must_use]
    pub fn side_by_side(self) -> Self {
        self.0.side_by_side.store(true, Relaxed);
        self
    }

    /// Returns the number of transactions so far that may write to any environment.
    pub fn writes_of_all(&self) -> u64 {
        self.0.writes_of_all.load(Relaxed)
    }

    /// Fails once, after `point` was passed so many times.
    pub fn fail(&self, point: Point, after: usize) {
        self.plans().fault = Some(Planned { point, left: after, what: Fault::Once });
    }

    /// Fails in every call, after `point` was passed so many times.
    pub fn stop(&self, point: Point, after: usize) {
        self.plans().fault = Some(Planned { point, left: after, what: Fault::ForGood });
    }

    /// Fails in every call, as the store of a killed process does.
    pub fn kill(&self) {
        self.plans().is_stopped = true;
    }

    /// Drops every plan, and returns whether a call has failed because of one.
    pub fn recover(&self) -> bool {
        std::mem::take(&mut *self.plans()).has_failed
    }

    /// Runs `meanwhile` once, after `point` was passed so many times.
    pub fn pause(&self, point: Point, after: usize, meanwhile: impl FnOnce() + Send + 'static) {
        let what = Pause(Box::new(meanwhile));
        self.plans().pause = Some(Planned { point, left: after, what });
    }

    /// Runs `body` without the planned fault, which neither happens nor comes nearer.
    pub fn undisturbed<T>(&self, body: impl FnOnce() -> T) -> T {
        let fault = self.plans().fault.take();
        let result = body();
        self.plans().fault = fault;
        result
    }

    /// Runs the body of each write twice from now on. The first run is aborted: a store with
    /// optimistic concurrency does so after a conflict.
    #[must_use]
    pub fn repeating(self) -> Self {
        self.0.repeats.store(true, Relaxed);
        self
    }

    /// Reports success for every commit from now on, and changes nothing.
    #[must_use]
    pub fn discarding(self) -> Self {
        self.0.discards.store(true, Relaxed);
        self
    }

    /// Tells this lie from now on.
    pub fn tell(&self, lie: Lie) {
        let copy = MemoryStore::default();
        load(&copy, &dump(self));
        *lock(&self.0.lie) = Some((lie, Arc::new(copy)));
    }

    /// Returns the calls that `body` makes, with its result.
    pub fn calls_of<T>(&self, body: impl FnOnce() -> T) -> (Vec<Call>, T) {
        *lock(&self.0.calls) = Some(Vec::new());
        let result = body();
        (lock(&self.0.calls).take().unwrap_or_default(), result)
    }

    /// Returns the keys that `body` writes or deletes, in transactions that are undone too, with its
    /// result.
    pub fn touched_by<T>(&self, body: impl FnOnce() -> T) -> (Touched, T) {
        *lock(&self.0.touched) = Some(Touched::new());
        let result = body();
        (lock(&self.0.touched).take().unwrap_or_default(), result)
    }

    /// Returns what is in the store before `body` and after each transaction that it commits, with
    /// its result.
    pub fn states_of<T>(&self, body: impl FnOnce() -> T) -> (Vec<Vec<Entry>>, T) {
        *lock(&self.0.states) = Some(vec![dump(self)]);
        let result = body();
        (lock(&self.0.states).take().unwrap_or_default(), result)
    }

    /// Closes the store below.
    pub fn close(&self) {
        lock(&self.0.below).take();
    }

    /// Closes the store below, and puts the one that `open` returns in its place.
    pub fn reopen(&self, open: impl FnOnce() -> Arc<dyn Store>) {
        self.close();
        *lock(&self.0.below) = Some(open());
    }

    /// Loses the commits behind an earlier state, which `earlier` has: views from now on are of another
    /// era.
    pub fn lose(&self, earlier: Arc<dyn Store>) {
        self.reopen(|| earlier);
        self.0.losses.fetch_add(1, Relaxed);
    }

    fn watched<T>(&self, losses: u64, below: T) -> Watched<'_, T> {
        Watched { below, losses, store: self }
    }

    fn losses(&self) -> u64 {
        self.0.losses.load(Relaxed)
    }

    fn plans(&self) -> MutexGuard<'_, Plans> {
        lock(&self.0.plans)
    }

    fn begin(&self, call: Call) -> Result<Arc<dyn Store>> {
        self.pass(Point::Begin)?;
        if call == Call::Write {
            self.pass(Point::Write)?;
        }
        self.call(|| call)?;
        Ok(lock(&self.0.below).clone().expect("the store is open"))
    }

    // The key whose value any get of the table shows.
    fn other_key(&self, table: Table) -> Result<Option<Vec<u8>>> {
        let Some((Lie::OtherKey, entries)) = lock(&self.0.lie).clone() else { return Ok(None) };
        let mut first = None;
        entries.read(&mut |entries| {
            entries.scan(table, &EVERYTHING, Order::Ascending, Some(1), &mut |key, _| {
                first = Some(key.to_vec());
                ControlFlow::Break(())
            })
        })?;
        Ok(first)
    }

    fn call(&self, call: impl FnOnce() -> Call) -> Result<()> {
        if let Some(calls) = &mut *lock(&self.0.calls) {
            calls.push(call());
        }
        self.pass(Point::Call)
    }

    fn touch(&self, table: Table, key: &[u8]) {
        if let Some(touched) = &mut *lock(&self.0.touched) {
            touched.insert((table, key.to_vec()));
        }
    }

    // Nothing is locked while a pause lasts.
    fn pass(&self, point: Point) -> Result<()> {
        let mut plans = self.plans();
        if let Some(Pause(meanwhile)) = due(&mut plans.pause, point) {
            drop(plans);
            meanwhile();
            plans = self.plans();
        }
        plans.pass(point)
    }

    fn has_committed(&self) -> Result<()> {
        if let Some(states) = &mut *lock(&self.0.states) {
            let below = lock(&self.0.below).clone().expect("the store is open");
            states.push(dump(&*below));
        }
        self.pass(Point::Called)?;
        self.pass(Point::Committed)
    }
}

impl Plans {
    fn pass(&mut self, point: Point) -> Result<()> {
        let fault = due(&mut self.fault, point);
        self.is_stopped |= matches!(fault, Some(Fault::ForGood));
        if fault.is_none() && !self.is_stopped {
            return Ok(());
        }
        self.has_failed = true;
        let source = "the test has planned this".into();
        Err(Error::Backend { backend: Interposed::NAME, action: "go on", source })
    }
}

impl Lie {
    // Returns whether a scan also shows the first entry of its table, after so many others.
    fn shows_foreign(self, table: Table, shown: usize, limit: Option<usize>) -> bool {
        match self {
            Self::Foreign => true,
            Self::ForeignIn(one) => one == table,
            Self::ForeignBehind(one) => one == table && limit.is_none_or(|limit| shown < limit),
            Self::Repeated | Self::Undeleted | Self::OtherKey | Self::Stale => false,
        }
    }
}

// Returns the action that is planned for this pass of `point`.
fn due<T>(planned: &mut Option<Planned<T>>, point: Point) -> Option<T> {
    let next = planned.as_mut().filter(|planned| planned.point == point)?;
    if let Some(left) = next.left.checked_sub(1) {
        next.left = left;
        return None;
    }
    planned.take().map(|planned| planned.what)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with the lock in hand")
}

impl Interposed {
    /// The name of the backend in the errors that were planned.
    pub const NAME: &str = "interposed";
}

impl Default for Interposed {
    /// A store over an empty memory store.
    fn default() -> Self {
        Self::new(MemoryStore::default())
    }
}

impl Interposed {
    fn begin_read(&self) -> Result<Arc<dyn Store>> {
        let below = self.begin(Call::Read)?;
        let lie = lock(&self.0.lie).clone();
        Ok(if let Some((Lie::Stale, before)) = lie { before } else { below })
    }
}

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pause")
    }
}

impl Store for Interposed {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        let (below, losses) = (self.begin_read()?, self.losses());
        below.read(&mut |snapshot| body(&self.watched(losses, snapshot)))
    }

    fn read_pure(&self, body: &mut ReadBody<'_>) -> Result<()> {
        let (below, losses) = (self.begin_read()?, self.losses());
        let mut run = |snapshot: &dyn Snapshot| body(&self.watched(losses, snapshot));
        if self.0.repeats.load(Relaxed) {
            below.read_pure(&mut run)?;
        }
        below.read_pure(&mut run)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.write_within(WriteScope::Everything, body)
    }

    fn write_within(&self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<()> {
        let of_all = scope == WriteScope::Everything;
        self.0.writes_of_all.fetch_add(u64::from(of_all), Relaxed);
        let (below, losses) = (self.begin(Call::Write)?, self.losses());
        let mut run = |transaction: &mut dyn Transaction, commits: bool| {
            self.0.is_writing.store(true, Relaxed);
            let decision = body(&mut self.watched(losses, transaction));
            self.0.is_writing.store(false, Relaxed);
            let decision = decision?;
            if decision == Decision::Commit && commits {
                self.call(|| Call::Commit)?;
                self.pass(Point::Commit)?;
            }
            Ok(decision)
        };
        if self.0.repeats.load(Relaxed) {
            let mut abort = |transaction: &mut dyn Transaction| {
                run(transaction, false).map(|_| Decision::Abort)
            };
            below.write_within(scope, &mut abort)?;
        }
        let discards = self.0.discards.load(Relaxed);
        let mut decision = Decision::Abort;
        below.write_within(scope, &mut |transaction| {
            decision = run(transaction, true)?;
            Ok(if discards { Decision::Abort } else { decision })
        })?;
        if decision == Decision::Commit { self.has_committed() } else { Ok(()) }
    }

    fn runs_side_by_side(&self) -> bool {
        let below = || lock(&self.0.below).as_ref().is_some_and(Store::runs_side_by_side);
        self.0.side_by_side.load(Relaxed) || below()
    }

    fn now(&self) -> Option<SystemTime> {
        lock(&self.0.below).as_ref().and_then(Store::now)
    }

    fn listen(&self, listener: Listener) {
        if let Some(below) = &*lock(&self.0.below) {
            below.listen(listener);
        }
    }

    fn forget_history(&self, scope: WriteScope) -> Result<()> {
        let below = lock(&self.0.below).clone();
        below.map_or(Ok(()), |below| below.forget_history(scope))
    }
}

// A snapshot or a transaction of the store below.
struct Watched<'s, T> {
    below: T,
    losses: u64,
    store: &'s Interposed,
}

impl<T> Watched<'_, T> {
    fn around<R>(
        &self,
        call: impl FnOnce() -> Call,
        body: impl FnOnce(&T) -> Result<R>,
    ) -> Result<R> {
        self.store.call(call)?;
        let result = body(&self.below)?;
        self.store.pass(Point::Called)?;
        Ok(result)
    }
}

impl<T: Deref<Target: Snapshot>> Snapshot for Watched<'_, T> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let other = self.store.other_key(table)?;
        let key = other.as_deref().unwrap_or(key);
        self.around(|| Call::Get(table, key.into()), |below| below.get(table, key, visit))
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        let call = || Call::GetMany(table, keys.iter().map(|key| key.to_vec()).collect());
        let other = self.store.other_key(table)?;
        let others = other.as_deref().map(|other| vec![other; keys.len()]);
        let keys = others.as_deref().unwrap_or(keys);
        self.around(call, |below| below.get_many(table, keys, visit))
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let lie = lock(&self.store.0.lie).clone();
        self.around(
            || Call::Scan(table),
            |below| match &lie {
                Some((Lie::Repeated, _)) => {
                    below.scan(table, range, order, limit, &mut |key, value| {
                        visit(key, value)?;
                        visit(key, value)
                    })
                }
                Some((Lie::Undeleted, before)) => {
                    before.read(&mut |before| before.scan(table, range, order, limit, visit))
                }
                Some((lie @ (Lie::Foreign | Lie::ForeignIn(_) | Lie::ForeignBehind(_)), _)) => {
                    let mut shown = 0;
                    below.scan(table, range, order, limit, &mut |key, value| {
                        shown += 1;
                        visit(key, value)
                    })?;
                    if !lie.shows_foreign(table, shown, limit) {
                        return Ok(());
                    }
                    below.scan(table, &EVERYTHING, Order::Ascending, Some(1), visit)
                }
                Some((Lie::OtherKey | Lie::Stale, _)) | None => {
                    below.scan(table, range, order, limit, visit)
                }
            },
        )
    }

    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        self.below.prefetch(keys)
    }

    fn era(&self) -> u64 {
        self.below.era() + self.losses
    }

    // A view that lies shows something else than the one below.
    fn stamp(&self) -> Option<u64> {
        let is_true = lock(&self.store.0.lie).is_none();
        self.below.stamp().filter(|_| is_true)
    }

    fn codec(&self) -> Codec<'_> {
        self.below.codec()
    }
}

impl Transaction for Watched<'_, &mut dyn Transaction> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.call(|| Call::Put(table, key.into()))?;
        self.store.touch(table, key);
        self.below.put(table, key, value)?;
        self.store.pass(Point::Called)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.store.call(|| Call::Delete(table, key.into()))?;
        self.store.touch(table, key);
        self.below.delete(table, key)?;
        self.store.pass(Point::Called)
    }

    fn changed(&mut self, change: Change) {
        self.below.changed(change);
    }
}
