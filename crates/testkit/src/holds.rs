//! A store that notes what each transaction does while it holds the writer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use store::{
    Change, Codec, KeyRange, Listener, Order, ReadBody, Result, Snapshot, Store, Table,
    Transaction, Visit, VisitValue, WriteBody,
};

/// A store over another one, which notes each transaction. Clones share everything.
#[derive(Clone, Debug)]
pub struct Noted {
    below: Arc<dyn Store>,
    holds: Arc<Mutex<Vec<Hold>>>,
}

/// What one transaction has done while it held the writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// Number of keys that were asked for.
    pub gets: usize,
    /// Number of rows that scans have shown.
    pub rows: usize,
    /// Size of the values that gets and scans have shown, in bytes.
    pub shown: usize,
    /// Number of values that were put.
    pub puts: usize,
    /// Number of keys that were deleted.
    pub deletes: usize,
    /// Time from the start of the body to the end of the commit.
    pub span: Duration,
}

impl Hold {
    /// Number of rows that were looked at or changed.
    pub const fn touched(&self) -> usize {
        self.gets + self.rows + self.puts + self.deletes
    }
}

impl Noted {
    /// A store over `below`.
    pub fn over(below: Arc<dyn Store>) -> Self {
        Self { below, holds: Arc::default() }
    }

    /// Returns the transactions since the last call, and forgets them.
    pub fn take(&self) -> Vec<Hold> {
        std::mem::take(&mut self.holds.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, hold: Hold) {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).push(hold);
    }
}

impl Store for Noted {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.below.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        let (mut begun, mut done) = (Instant::now(), Hold::default());
        let written = self.below.write(&mut |transaction| {
            begun = Instant::now();
            let mut counting = Counting { below: transaction, hold: Mutex::default() };
            let decision = body(&mut counting);
            done = *counting.hold();
            decision
        });
        self.note(Hold { span: begun.elapsed(), ..done });
        written
    }

    fn listen(&self, listener: Listener) {
        self.below.listen(listener);
    }
}

struct Counting<'t> {
    below: &'t mut dyn Transaction,
    hold: Mutex<Hold>,
}

impl Counting<'_> {
    fn hold(&self) -> std::sync::MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshot for Counting<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.hold().gets += 1;
        self.below.get(table, key, &mut |value| {
            self.hold().shown += value.len();
            visit(value);
        })
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        self.hold().gets += keys.len();
        self.below.get_many(table, keys, &mut |value| {
            self.hold().shown += value.map_or(0, <[u8]>::len);
            visit(value);
        })
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        // A look at nothing is a look as well.
        self.hold().gets += 1;
        self.below.scan(table, range, order, limit, &mut |key, value| {
            {
                let mut hold = self.hold();
                hold.rows += 1;
                hold.shown += value.len();
            }
            visit(key, value)
        })
    }

    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        self.below.prefetch(keys)
    }

    fn era(&self) -> u64 {
        self.below.era()
    }

    fn codec(&self) -> Codec<'_> {
        self.below.codec()
    }
}

impl Transaction for Counting<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.hold().puts += 1;
        self.below.put(table, key, value)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.hold().deletes += 1;
        self.below.delete(table, key)
    }

    fn changed(&mut self, change: Change) {
        self.below.changed(change);
    }
}
