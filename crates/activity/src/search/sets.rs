//! The sets of terms in a segment.

use std::sync::Arc;

use store::Result;

use super::{Search, Segment};
use crate::block::Block;
use crate::blocks::{Holder, Reader};
use crate::facets::Term;
use crate::presence::Probe;
use crate::set::{Set, View};

/// Maximum number of blocks whose sets are not united.
const BLOCKS: usize = 32;

/// A block, and some of its terms: pairs of the first term of the block and a value.
type Part<'a> = (Arc<[u8]>, &'a [(Term, u128)]);

impl Search<'_> {
    // Shows `visit` the set of a term, if the segment has it.
    pub(super) fn set(
        &self,
        segment: Segment<'_>,
        term: &Probe,
        visit: &mut dyn FnMut(View<'_>),
    ) -> Result<()> {
        match segment {
            Segment::Open(open) => open.find(term.term).map(visit),
            Segment::Sealed(number, sealed) if sealed.may_have(term) => {
                let Some(first) = sealed.directory.block_of(term.term) else { return Ok(()) };
                let bytes = self.block(number, first)?;
                Block::read(&bytes).and_then(|block| block.find(term.term.parts().1)).map(visit)
            }
            Segment::Sealed(..) => None,
        };
        Ok(())
    }

    // Shows `visit` the sets of those of `terms`, which are in order, that the segment has, if it has any.
    pub(super) fn any(
        &self,
        segment: Segment<'_>,
        terms: &[Probe],
        visit: &mut dyn FnMut(&[View<'_>]),
    ) -> Result<()> {
        if let [term] = terms {
            return self.set(segment, term, &mut |set| visit(&[set]));
        }
        let (number, sealed) = match segment {
            Segment::Sealed(number, sealed) => (number, sealed),
            Segment::Open(open) => {
                visit(&terms.iter().filter_map(|it| open.find(it.term)).collect::<Vec<_>>());
                return Ok(());
            }
        };
        let mut known = Vec::with_capacity(terms.len());
        known.extend(terms.iter().filter(|term| sealed.may_have(term)).map(|it| it.term));
        let asked = sealed.directory.blocks_of(&known);
        let (mut union, mut blocks) = (None, Vec::new());
        self.reader().each(Holder::Segment(number), &asked, &mut |bytes, values| {
            if blocks.len() == BLOCKS {
                unite(union.get_or_insert_with(Set::roomy), &blocks);
                blocks.clear();
            }
            blocks.push((Arc::clone(bytes), values));
            true
        })?;
        if let Some(union) = &mut union {
            unite(union, &blocks);
            visit(&[union.view()]);
        } else {
            let mut all = Vec::with_capacity(asked.len());
            all.extend(sets(&blocks));
            visit(&all);
        }
        Ok(())
    }

    // The bytes of the block that starts with `first`.
    pub(super) fn block(&self, segment: u32, first: Term) -> Result<Arc<[u8]>> {
        self.reader().block(Holder::Segment(segment), first)
    }

    pub(super) fn reader(&self) -> Reader<'_> {
        let Self { snapshot, environment, head, blocks, .. } = self;
        Reader { snapshot: *snapshot, environment: *environment, head, blocks }
    }
}

fn unite(union: &mut Set, blocks: &[Part<'_>]) {
    sets(blocks).for_each(|set| union.unite(set));
}

fn sets<'a>(blocks: &'a [Part<'a>]) -> impl Iterator<Item = View<'a>> {
    let blocks = blocks.iter().filter_map(|(bytes, terms)| Some((Block::read(bytes)?, *terms)));
    blocks.flat_map(|(block, terms)| terms.iter().filter_map(move |(_, value)| block.find(*value)))
}
