//! Blocks that are read again and again. A block of a sealed segment or of a span never changes, and
//! a rebuilt index has other keys, so that a block in memory is that of every snapshot.

use std::sync::Arc;

use domain::ids::EnvironmentId;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use store::{Bytes, Key, Once, ReadRecords, Result, Snapshot, Table};

use crate::block::{self, Block};
use crate::head::Head;

/// Maximum size of all blocks and their keys, in bytes.
const MOST: usize = 16 << 20;

/// Size of the other parts of an entry, in bytes.
const ENTRY: usize = 64;

/// Blocks in memory.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    kept: RwLock<Kept>,
    once: Once,
}

/// Place from which a search reads blocks.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'r> {
    pub(crate) snapshot: &'r dyn Snapshot,
    pub(crate) environment: EnvironmentId,
    pub(crate) head: &'r Head,
    pub(crate) blocks: &'r Blocks,
}

#[derive(Debug, Default)]
struct Kept {
    // Callers do not choose the values of keys.
    blocks: FxHashMap<Table, FxHashMap<Vec<u8>, Arc<[u8]>>>,
    size: usize,
}

impl Reader<'_> {
    /// Shows `visit` the block under `key`.
    pub(crate) fn block(&self, key: &Key<Bytes>, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        self.blocks.read(self.snapshot, key, visit)
    }
}

impl Blocks {
    // Nothing is locked while `visit` runs, which may read other blocks.
    fn read(
        &self,
        snapshot: &dyn Snapshot,
        key: &Key<Bytes>,
        visit: &mut dyn FnMut(Block<'_>),
    ) -> Result<()> {
        let known = self.kept.read().get(key);
        if let Some(block) = known.as_deref().and_then(Block::read) {
            visit(block);
            return Ok(());
        }
        block::read(snapshot, key, visit)?;
        if self.once.has_read(key.as_bytes()) {
            let mut bytes = None;
            snapshot.get_bytes(key, &mut |found| bytes = Some(found.into()))?;
            if let Some(bytes) = bytes {
                self.kept.write().keep(key, bytes);
            }
        }
        Ok(())
    }
}

impl Kept {
    fn get(&self, key: &Key<Bytes>) -> Option<Arc<[u8]>> {
        self.blocks.get(&key.table())?.get(key.as_bytes()).map(Arc::clone)
    }

    fn keep(&mut self, key: &Key<Bytes>, block: Arc<[u8]>) {
        let size = key.as_bytes().len() + block.len() + ENTRY;
        if self.size + size > MOST {
            *self = Self::default();
        }
        let of_table = self.blocks.entry(key.table()).or_default();
        if of_table.insert(key.as_bytes().to_vec(), block).is_none() {
            self.size += size;
        }
    }
}
