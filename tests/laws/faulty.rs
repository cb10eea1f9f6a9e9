//! Stores to test with: they fail when told to, remember, forget, or run everything twice.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use store::memory::MemoryStore;
use store::{
    Decision, Error, KeyRange, Order, ReadBody, Result, Snapshot, Store, Table, Transaction, Visit,
    WriteBody,
};
use testkit::tables::{Entry, dump};

/// A memory store of which one call fails. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct FaultyStore {
    inner: MemoryStore,
    calls: Arc<Countdown>,
    commits: Arc<Countdown>,
}

/// Which of the calls fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Any call, in the order in which they are made: beginning, get, scan, put, delete, commit.
    Call(usize),
    /// A commit, after the body has run.
    Commit(usize),
}

// How many times it goes well before it fails once. It has failed when it has run past zero.
#[derive(Debug)]
struct Countdown(AtomicUsize);

const NEVER: usize = usize::MAX / 2;

impl FaultyStore {
    /// Lets `fault` happen, counting from now on.
    pub fn fail_at(&self, fault: Fault) {
        let (call, commit) = match fault {
            Fault::Call(number) => (number, NEVER),
            Fault::Commit(number) => (NEVER, number),
        };
        self.calls.0.store(call, Relaxed);
        self.commits.0.store(commit, Relaxed);
    }

    /// Works from now on, and says whether something has failed.
    pub fn recover(&self) -> bool {
        self.calls.reset() | self.commits.reset()
    }
}

impl Store for FaultyStore {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.calls.call()?;
        let calls = &self.calls;
        self.inner.read(&mut |snapshot| body(&View { snapshot, calls }))
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.calls.call()?;
        self.inner.write(&mut |transaction| {
            let decision = body(&mut Draft { transaction, calls: &self.calls })?;
            if decision == Decision::Commit {
                self.calls.call()?;
                self.commits.call()?;
            }
            Ok(decision)
        })
    }
}

struct View<'s> {
    snapshot: &'s dyn Snapshot,
    calls: &'s Countdown,
}

impl Snapshot for View<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.calls.call()?;
        self.snapshot.get(table, key, visit)
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.calls.call()?;
        self.snapshot.scan(table, range, order, visit)
    }
}

struct Draft<'s> {
    transaction: &'s mut dyn Transaction,
    calls: &'s Countdown,
}

impl Snapshot for Draft<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.calls.call()?;
        self.transaction.get(table, key, visit)
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.calls.call()?;
        self.transaction.scan(table, range, order, visit)
    }
}

impl Transaction for Draft<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.calls.call()?;
        self.transaction.put(table, key, value)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.calls.call()?;
        self.transaction.delete(table, key)
    }
}

impl Default for Countdown {
    fn default() -> Self {
        Self(AtomicUsize::new(NEVER))
    }
}

impl Countdown {
    fn call(&self) -> Result<()> {
        match self.0.fetch_sub(1, Relaxed) {
            0 => Err(Error::Backend {
                backend: "faulty",
                action: "go on",
                source: "no calls left".into(),
            }),
            _ => Ok(()),
        }
    }

    fn reset(&self) -> bool {
        self.0.swap(NEVER, Relaxed) > NEVER
    }
}

/// A memory store that remembers what was in it after each of its transactions. Clones share
/// everything.
#[derive(Clone, Debug, Default)]
pub struct RecordingStore {
    inner: MemoryStore,
    states: Arc<Mutex<Vec<Vec<Entry>>>>,
}

impl RecordingStore {
    pub fn states(&self) -> Vec<Vec<Entry>> {
        self.states.lock().unwrap().clone()
    }
}

impl Store for RecordingStore {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.inner.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.inner.write(body)?;
        self.states.lock().unwrap().push(dump(&self.inner));
        Ok(())
    }
}

/// A memory store that runs the body of each transaction again after it has thrown away what it
/// did: what a store with optimistic concurrency does when somebody else was quicker.
#[derive(Debug, Default)]
pub struct HesitantStore(MemoryStore);

impl Store for HesitantStore {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.0.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.0.write(&mut |transaction| body(transaction).map(|_| Decision::Abort))?;
        self.0.write(body)
    }
}
