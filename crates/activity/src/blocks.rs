//! Blocks that are read again and again. A block of a sealed segment or of a span never changes, and
//! a rebuilt index has another generation, so that a block in memory is that of every snapshot of its
//! era.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use domain::ids::EnvironmentId;
use foldhash::HashMap;
use parking_lot::RwLock;
use store::layout::{self, SegmentPart, SpanPart};
use store::{Bytes, Key, Once, ReadRecords, Result, Snapshot};
use uuid::Uuid;

use crate::block::Block;
use crate::corrupt;
use crate::facets::Term;
use crate::head::Head;

/// Maximum size of all blocks and their entries, in bytes.
const MOST: usize = 16 << 20;

/// Size of the other parts of an entry, in bytes.
const ENTRY: usize = 128;

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

/// Function that gets the bytes of a block with what is asked of it, and returns `false` to see no more.
pub(crate) type VisitBlock<'v, 't> = dyn FnMut(&Arc<[u8]>, &'t [(Term, u128)]) -> bool + 'v;

/// Owner of blocks: a segment or a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The segment with that number.
    Segment(u32),
    /// The span of that level that ends in front of that segment.
    Span { level: u8, end: u32 },
}

// Identity of a block in memory. It is hashed and compared faster than the key in the store, which is built
// only to read the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    era: u64,
    environment: EnvironmentId,
    generation: u32,
    holder: Holder,
    first: Term,
}

#[derive(Debug, Default)]
struct Kept {
    blocks: HashMap<Name, Arc<[u8]>>,
    size: usize,
}

impl Reader<'_> {
    /// The bytes of the block of `holder` that starts with `first`.
    pub(crate) fn block(&self, holder: Holder, first: Term) -> Result<Arc<[u8]>> {
        self.blocks.read(self.snapshot, self.name(holder, first))
    }

    /// Shows `visit` the bytes of blocks of `holder`, until it returns `false`. `asked` are first terms of
    /// blocks, in order, and values in these blocks, which `visit` gets with the block. It must not read
    /// blocks itself.
    pub(crate) fn each<'t>(
        &self,
        holder: Holder,
        asked: &'t [(Term, u128)],
        visit: &mut VisitBlock<'_, 't>,
    ) -> Result<()> {
        let parts = asked.chunk_by(|(block, _), (next, _)| block == next);
        let named = parts.filter_map(|part| Some((self.name(holder, part.first()?.0), part)));
        let mut named = named.peekable();
        while named.peek().is_some() {
            let kept = self.blocks.kept.read();
            while let Some((name, part)) = named.peek()
                && let Some(known) = kept.blocks.get(name)
            {
                if !visit(known, part) {
                    return Ok(());
                }
                named.next();
            }
            drop(kept);
            let Some((name, part)) = named.next() else { break };
            if !visit(&self.blocks.read(self.snapshot, name)?, part) {
                break;
            }
        }
        Ok(())
    }

    fn name(&self, holder: Holder, first: Term) -> Name {
        let (environment, Head { era, generation, .. }) = (self.environment, *self.head);
        Name { era, environment, generation, holder, first }
    }
}

impl Blocks {
    /// Forgets all blocks.
    pub(crate) fn forget(&self) {
        *self.kept.write() = Kept::default();
    }

    fn read(&self, snapshot: &dyn Snapshot, name: Name) -> Result<Arc<[u8]>> {
        if let Some(known) = self.kept.read().blocks.get(&name) {
            return Ok(Arc::clone(known));
        }
        let (key, mut found) = (name.key(), None);
        snapshot.get_bytes(&key, &mut |bytes| {
            found = Block::read(bytes).map(|_| Arc::<[u8]>::from(bytes));
        })?;
        let block = found.ok_or_else(|| corrupt(key.table(), "a block is missing"))?;
        if self.once.has_read(key.as_bytes()) {
            self.kept.write().keep(name, Arc::clone(&block));
        }
        Ok(block)
    }
}

// The blocks of an environment differ in their holders and in the values of their first terms.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let holder = match self.holder {
            Holder::Segment(number) => u64::from(number) << 8 | u64::from(u8::MAX),
            Holder::Span { level, end } => u64::from(end) << 8 | u64::from(level),
        };
        state.write_u128(Uuid::from(self.environment).as_u128());
        state.write_u64(holder);
        state.write_u128(self.first.parts().1);
    }
}

impl Name {
    fn key(self) -> Key<Bytes> {
        let Self { environment, generation, holder, first, .. } = self;
        let (dimension, value) = first.parts();
        match holder {
            Holder::Segment(number) => {
                let part = SegmentPart::Block { dimension, value };
                layout::segment_part(environment, generation, number, part)
            }
            Holder::Span { level, end } => {
                let part = SpanPart::Block { dimension, value };
                layout::span_part(environment, generation, level, end, part)
            }
        }
    }
}

impl Kept {
    fn keep(&mut self, name: Name, block: Arc<[u8]>) {
        let size = block.len() + ENTRY;
        if self.size + size > MOST {
            *self = Self::default();
        }
        if self.blocks.insert(name, block).is_none() {
            self.size += size;
        }
    }
}
