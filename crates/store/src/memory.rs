//! A store in memory, for tests and for hosts that keep nothing.
//!
//! Tables are persistent maps: a snapshot is a pointer, and a dropped transaction is undone.

use std::fmt;
use std::sync::Arc;
use std::thread;

use parking_lot::{Mutex, MutexGuard, RwLock};
use rpds::RedBlackTreeMapSync;

use crate::{
    Decision, KeyRange, Order, ReadBody, Result, Snapshot, Store, Table, Transaction, Visit,
    VisitValue, WriteBody, range,
};

/// Number of times that a writer lets other threads run before it sleeps until its turn.
const YIELDS: usize = 64;

/// A store in memory. Clones share the tables, which end with the last clone.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    committed: RwLock<Arc<Tables>>,
    turn: Mutex<()>,
}

// A clone shares all tables, so that threads do not count its references at the same time.
#[derive(Clone, Default)]
struct Tables(RedBlackTreeMapSync<Table, Rows>);

type Rows = RedBlackTreeMapSync<Vec<u8>, Vec<u8>>;

impl Store for MemoryStore {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        body(&*self.committed())
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        let _turn = self.turn();
        let mut tables = Tables::clone(&self.committed());
        match body(&mut tables)? {
            Decision::Commit => *self.shared.committed.write() = Arc::new(tables),
            Decision::Abort => {}
        }
        Ok(())
    }
}

impl MemoryStore {
    /// Returns a store with the same rows. Later changes of either one are not seen by the other.
    #[doc(hidden)]
    #[must_use]
    pub fn fork(&self) -> Self {
        let committed = RwLock::new(self.committed());
        Self { shared: Arc::new(Shared { committed, turn: Mutex::default() }) }
    }

    /// Returns `true` if nothing was committed to either store since one was forked from the other.
    #[doc(hidden)]
    #[must_use]
    pub fn shares_rows_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.committed(), &other.committed())
    }

    // Most transactions take less time than a thread that sleeps takes to wake up.
    fn turn(&self) -> MutexGuard<'_, ()> {
        for _ in 0..YIELDS {
            if let Some(turn) = self.shared.turn.try_lock() {
                return turn;
            }
            thread::yield_now();
        }
        self.shared.turn.lock()
    }

    fn committed(&self) -> Arc<Tables> {
        Arc::clone(&self.shared.committed.read())
    }
}

impl Tables {
    // Changes the rows of a table.
    fn rows(&mut self, table: Table, change: impl FnOnce(&mut Rows)) {
        if let Some(rows) = self.0.get_mut(&table) {
            change(rows);
        } else {
            let mut rows = Rows::default();
            change(&mut rows);
            self.0.insert_mut(table, rows);
        }
    }
}

impl Snapshot for Tables {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let Some(value) = self.0.get(&table).and_then(|rows| rows.get(key)) else {
            return Ok(false);
        };
        visit(value);
        Ok(true)
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        let rows = self.0.get(&table);
        for key in keys {
            visit(rows.and_then(|rows| rows.get(*key)).map(Vec::as_slice));
        }
        Ok(())
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let (Some(rows), Some(bounds)) = (self.0.get(&table), range::borrow(range)) else {
            return Ok(());
        };
        let mut entries = rows.range::<[u8], _>(bounds);
        for (key, value) in order.first(limit, &mut entries) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Transaction for Tables {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.rows(table, |rows| rows.insert_mut(key.to_vec(), value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.rows(table, |rows| {
            rows.remove_mut(key);
        });
        Ok(())
    }
}

// The values may be secrets.
impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
