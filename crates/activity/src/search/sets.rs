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

/// A block, and some of its terms: pairs of the first term of the block and a term.
type Part<'a> = (Arc<[u8]>, &'a [(Term, Term)]);

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

    // Shows `visit` the sets of those of `terms`, which are in order, that the segment has.
    pub(super) fn any(
        &self,
        segment: Segment<'_>,
        terms: &[Probe],
        visit: &mut dyn FnMut(&[View<'_>]),
    ) -> Result<()> {
        let (number, sealed) = match segment {
            Segment::Sealed(number, sealed) => (number, sealed),
            Segment::Open(open) => {
                visit(&terms.iter().filter_map(|it| open.find(it.term)).collect::<Vec<_>>());
                return Ok(());
            }
        };
        let known = terms.iter().filter(|term| sealed.may_have(term)).map(|it| it.term);
        let asked = known.filter_map(|term| Some((sealed.directory.block_of(term)?, term)));
        let asked: Vec<(Term, Term)> = asked.collect();
        let (mut union, mut blocks) = (None, Vec::new());
        for of_one in asked.chunk_by(|(block, _), (next, _)| block == next) {
            let Some((first, _)) = of_one.first() else { continue };
            if blocks.len() == BLOCKS {
                unite(union.get_or_insert_with(Set::roomy), &blocks);
                blocks.clear();
            }
            blocks.push((self.block(number, *first)?, of_one));
        }
        if let Some(union) = &mut union {
            unite(union, &blocks);
            visit(&[union.view()]);
        } else {
            visit(&sets(&blocks).collect::<Vec<_>>());
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
    blocks.flat_map(|(block, terms)| {
        terms.iter().filter_map(move |(_, term)| block.find(term.parts().1))
    })
}
