//! A store of which a call fails, or before which something else happens.

use std::fmt;
use std::sync::{Arc, Mutex};

use store::{
    Decision, Error, KeyRange, Order, ReadBody, Result, Snapshot, Store, Table, Transaction, Visit,
    WriteBody,
};

/// A store with a fault. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct FaultyStore(Arc<State>);

#[derive(Debug)]
struct State {
    inner: Mutex<Option<Arc<dyn Store>>>,
    fault: Mutex<Option<(Fault, usize)>>,
    pause: Mutex<Option<(usize, Pause)>>,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A call fails: the beginning of a read or a write, a get, a scan, a put, a delete, a commit.
    Call,
    /// A transaction is committed, and nobody is told.
    Told,
}

/// What happens meanwhile.
struct Pause(Box<dyn FnOnce() + Send>);

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pause")
    }
}

impl FaultyStore {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        let inner = Mutex::new(Some(inner));
        Self(Arc::new(State { inner, fault: Mutex::default(), pause: Mutex::default() }))
    }

    /// Lets it go wrong once, after so many times that it went well.
    pub(crate) fn fail_after(&self, calls: usize, fault: Fault) {
        *self.0.fault.lock().unwrap() = Some((fault, calls));
    }

    /// Lets everything go well from now on, and says whether something went wrong.
    pub(crate) fn recover(&self) -> bool {
        self.0.fault.lock().unwrap().take().is_none()
    }

    /// The fault that is still to come; it does not come until it is put back.
    pub(crate) fn take_fault(&self) -> Option<(Fault, usize)> {
        self.0.fault.lock().unwrap().take()
    }

    pub(crate) fn put_fault(&self, fault: Option<(Fault, usize)>) {
        *self.0.fault.lock().unwrap() = fault;
    }

    /// Runs `meanwhile` after so many reads and writes, before the next one.
    pub(crate) fn pause_after(&self, calls: usize, meanwhile: impl FnOnce() + Send + 'static) {
        *self.0.pause.lock().unwrap() = Some((calls, Pause(Box::new(meanwhile))));
    }

    pub(crate) fn go_on(&self) {
        self.0.pause.lock().unwrap().take();
    }

    /// Closes the store behind it.
    pub(crate) fn close(&self) {
        self.0.inner.lock().unwrap().take();
    }

    /// Closes the store behind it, and opens what `open` returns.
    pub(crate) fn reopen(&self, open: impl FnOnce() -> Arc<dyn Store>) {
        self.close();
        *self.0.inner.lock().unwrap() = Some(open());
    }

    fn begin(&self) -> Result<Arc<dyn Store>> {
        let pause = count_down(&mut self.0.pause.lock().unwrap());
        if let Some(Pause(meanwhile)) = pause {
            meanwhile();
        }
        self.call(Fault::Call)?;
        Ok(Arc::clone(self.0.inner.lock().unwrap().as_ref().unwrap()))
    }

    fn call(&self, kind: Fault) -> Result<()> {
        let mut fault = self.0.fault.lock().unwrap();
        let failed = match &*fault {
            Some((other, _)) if *other != kind => None,
            Some(_) => {
                let mut count = fault.take().map(|(fault, count)| (count, fault));
                let failed = count_down(&mut count);
                *fault = count.map(|(count, fault)| (fault, count));
                failed
            }
            None => None,
        };
        match failed {
            Some(_) => {
                let source = "it was told to fail".into();
                Err(Error::Backend { backend: "faulty", action: "go on", source })
            }
            None => Ok(()),
        }
    }
}

// What is to happen now, if its time has come.
fn count_down<T>(what: &mut Option<(usize, T)>) -> Option<T> {
    match what {
        Some((0, _)) => what.take().map(|(_, now)| now),
        Some((left, _)) => {
            *left -= 1;
            None
        }
        None => None,
    }
}

impl Store for FaultyStore {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.begin()?.read(&mut |snapshot| body(&View { snapshot, store: self }))
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        let mut is_committed = false;
        self.begin()?.write(&mut |transaction| {
            let decision = body(&mut Draft { transaction, store: self })?;
            is_committed = decision == Decision::Commit;
            if is_committed {
                self.call(Fault::Call)?;
            }
            Ok(decision)
        })?;
        if is_committed { self.call(Fault::Told) } else { Ok(()) }
    }
}

struct View<'s> {
    snapshot: &'s dyn Snapshot,
    store: &'s FaultyStore,
}

impl Snapshot for View<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.store.call(Fault::Call)?;
        self.snapshot.get(table, key, visit)
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.store.call(Fault::Call)?;
        self.snapshot.scan(table, range, order, visit)
    }
}

struct Draft<'s> {
    transaction: &'s mut dyn Transaction,
    store: &'s FaultyStore,
}

impl Snapshot for Draft<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.store.call(Fault::Call)?;
        self.transaction.get(table, key, visit)
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.store.call(Fault::Call)?;
        self.transaction.scan(table, range, order, visit)
    }
}

impl Transaction for Draft<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.call(Fault::Call)?;
        self.transaction.put(table, key, value)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.store.call(Fault::Call)?;
        self.transaction.delete(table, key)
    }
}
