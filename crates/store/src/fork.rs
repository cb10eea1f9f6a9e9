//! Forks: stores whose changes stay in memory, over a store that they only read.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::overlay::{Changes, Overlay};
use crate::{
    Codec, Decision, KeyRange, Order, ReadBody, Result, Snapshot, Store, Table, Visit, VisitValue,
    WriteBody,
};

/// A store that shows the tables of another one, and its own changes over them. The other store
/// does not change. Each read sees it as it is at that time.
#[doc(hidden)]
pub struct Fork {
    base: Arc<dyn Store>,
    /// Tables that start without entries.
    hidden: &'static [Table],
    changes: RwLock<Arc<Changes>>,
    turn: Mutex<()>,
}

impl Fork {
    /// Returns a fork of `base`. The `hidden` tables start without entries.
    pub fn new(base: Arc<dyn Store>, hidden: &'static [Table]) -> Self {
        Self { base, hidden, changes: RwLock::default(), turn: Mutex::default() }
    }
}

impl Store for Fork {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        let changes = Arc::clone(&self.changes.read());
        self.base.read(&mut |base| {
            let shown = || Ok(Shown { base, hidden: self.hidden });
            body(&Overlay::new(vec![&changes], shown).encoded_by(base.codec()).in_era(base.era()))
        })
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        let _turn = self.turn.lock();
        let changes = Arc::clone(&self.changes.read());
        let mut own = None;
        self.base.read(&mut |base| {
            let shown = || Ok(Shown { base, hidden: self.hidden });
            let mut overlay =
                Overlay::new(vec![&changes], shown).encoded_by(base.codec()).in_era(base.era());
            own = match body(&mut overlay)? {
                Decision::Commit => Some(overlay.into_changes()),
                Decision::Abort => None,
            };
            Ok(())
        })?;
        // So that the changes are not copied.
        drop(changes);
        if let Some(own) = own {
            Arc::make_mut(&mut self.changes.write()).then(own);
        }
        Ok(())
    }
}

// The values may be secrets.
impl fmt::Debug for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fork").finish_non_exhaustive()
    }
}

/// Tables of the store below, but for the hidden ones.
struct Shown<'b> {
    base: &'b dyn Snapshot,
    hidden: &'static [Table],
}

impl Shown<'_> {
    fn hides(&self, table: Table) -> bool {
        self.hidden.contains(&table)
    }
}

impl Snapshot for Shown<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if self.hides(table) { Ok(false) } else { self.base.get(table, key, visit) }
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        if self.hides(table) {
            for _ in keys {
                visit(None);
            }
            return Ok(());
        }
        self.base.get_many(table, keys, visit)
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        if self.hides(table) { Ok(()) } else { self.base.scan(table, range, order, limit, visit) }
    }

    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        self.base.prefetch(keys)
    }

    fn era(&self) -> u64 {
        self.base.era()
    }

    fn codec(&self) -> Codec<'_> {
        self.base.codec()
    }
}
