//! A store that stops working when it is told to.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use tidings::store::memory::MemoryStore;
use tidings::store::redb::RedbStore;
use tidings::store::{Error, Order, ReadBody, Result, Store, Table, WriteBody};
use tidings::{Engine, ManualClock, Scope, SeededEntropy};

use crate::world::{Dump, START, time};

/// An environment in a store that stops working when it is told to.
pub struct Shaky {
    pub env: Scope,
    store: ShakyStore,
}

#[derive(Clone)]
struct ShakyStore {
    inner: Arc<dyn Store>,
    transactions: Arc<AtomicUsize>,
}

const NEVER: usize = usize::MAX;

/// Runs `scenario` on each backend.
pub fn on_both(scenario: impl Fn(Shaky)) {
    in_memory(&scenario);
    let folder = tempfile::tempdir().unwrap();
    let file = RedbStore::open(folder.path().join("tidings.redb")).unwrap();
    scenario(Shaky::on(file));
}

/// Runs `scenario` in memory, where a thousand calls do not take a thousand syncs.
pub fn in_memory(scenario: impl Fn(Shaky)) {
    scenario(Shaky::on(MemoryStore::default()));
}

impl Shaky {
    fn on(store: impl Store) -> Self {
        let transactions = Arc::new(AtomicUsize::new(NEVER));
        let store = ShakyStore { inner: Arc::new(store), transactions };
        let builder = Engine::builder()
            .clock(ManualClock::at(time(START)))
            .entropy(SeededEntropy::new(7))
            .activity_segments(16);
        let engine = builder.build(store.clone());
        let env = engine.organization("acme".try_into().unwrap()).development().unwrap();
        Self { env, store }
    }

    /// Runs `operation` with a store that stops working after so many transactions, and works
    /// again afterwards.
    pub fn interrupted<T>(&self, after: usize, operation: impl FnOnce() -> T) -> T {
        self.store.transactions.store(after, Relaxed);
        let answer = operation();
        self.store.transactions.store(NEVER, Relaxed);
        answer
    }

    /// Everything in the store, but for these tables.
    pub fn dump_without(&self, tables: &[Table]) -> Dump {
        let mut dump = BTreeMap::new();
        let everything = (Bound::Unbounded, Bound::Unbounded);
        let read = self.store.read(&mut |snapshot| {
            for table in Table::ALL.into_iter().filter(|table| !tables.contains(table)) {
                snapshot.scan(table, &everything, Order::Ascending, &mut |key, value| {
                    dump.insert((table.name(), key.into()), value.into());
                    ControlFlow::Continue(())
                })?;
            }
            Ok(())
        });
        read.unwrap();
        dump
    }
}

impl fmt::Debug for ShakyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShakyStore")
    }
}

impl Store for ShakyStore {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.inner.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        match self.transactions.load(Relaxed) {
            NEVER => {}
            0 => {
                let source = "it was told to stop".into();
                return Err(Error::Backend { backend: "shaky", action: "go on", source });
            }
            left => self.transactions.store(left - 1, Relaxed),
        }
        self.inner.write(body)
    }
}
