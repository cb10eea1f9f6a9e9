//! Subscribers that are too many to be held: each segment takes those of them that it has.

use std::fmt;

use domain::ids::InternalSubscriberId;
use foldhash::HashSet;
use store::Result;

use crate::block::{Block, Directory};
use crate::facets::Term;
use crate::filter::Filter;
use crate::open::OpenSegment;
use crate::set::Set;

/// Function that calls its argument with each of some subscribers. Each call names the same ones.
pub type EachSubscriber<'a> = dyn Fn(&mut dyn FnMut(InternalSubscriberId)) -> Result<()> + 'a;

/// Filter, and subscribers of whom a notification must have one.
#[derive(Clone, Copy)]
pub struct ScopedFilter<'a> {
    pub(crate) filter: &'a Filter,
    pub(crate) subscribers: Option<&'a EachSubscriber<'a>>,
}

impl<'a> From<&'a Filter> for ScopedFilter<'a> {
    fn from(filter: &'a Filter) -> Self {
        Self { filter, subscribers: None }
    }
}

impl fmt::Debug for ScopedFilter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedFilter").field("filter", self.filter).finish_non_exhaustive()
    }
}

impl Filter {
    /// Narrows the filter to notifications for one of `subscribers`. A search calls that function
    /// once for each segment that it comes to, and holds the subscribers of one segment only.
    pub fn among<'a>(&'a self, subscribers: &'a EachSubscriber<'a>) -> ScopedFilter<'a> {
        ScopedFilter { filter: self, subscribers: Some(subscribers) }
    }
}

/// Function that shows the block of a segment that starts with a term.
pub(crate) type ReadBlock<'a> = dyn Fn(Term, &mut dyn FnMut(Block<'_>)) -> Result<()> + 'a;

/// The places of `subscribers` in a segment that is not sealed.
pub(crate) fn in_open(open: &OpenSegment, subscribers: &EachSubscriber<'_>) -> Result<Set> {
    let mut found = Set::roomy();
    subscribers(&mut |id| {
        if let Some(places) = open.find(Term::subscriber(id)) {
            found.unite(places);
        }
    })?;
    Ok(found)
}

/// The places of `subscribers` in a sealed segment with this directory.
pub(crate) fn in_sealed(
    directory: &Directory,
    read: &ReadBlock<'_>,
    subscribers: &EachSubscriber<'_>,
) -> Result<Set> {
    let blocks = || directory.from(0).filter(|first| first.is_subscriber());
    let mut others = HashSet::default();
    for first in blocks() {
        read(first, &mut |block| others.extend(block.iter().map(|(value, _)| value)))?;
    }
    subscribers(&mut |id| _ = others.remove(&Term::subscriber(id).parts().1))?;
    let mut found = Set::roomy();
    for first in blocks() {
        read(first, &mut |block| {
            let wanted = block.iter().filter(|(value, _)| !others.contains(value));
            wanted.filter_map(|(_, places)| places).for_each(|places| found.unite(places));
        })?;
    }
    Ok(found)
}
