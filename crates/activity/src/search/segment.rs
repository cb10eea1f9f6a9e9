//! A segment that is searched.

use crate::cache::Sealed;
use crate::open::OpenSegment;
use crate::presence::Probe;
use crate::times::{TimeRange, Times};

/// A segment, with its number if it is sealed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Segment<'a> {
    Sealed(u32, &'a Sealed),
    Open(&'a OpenSegment),
}

impl<'a> Segment<'a> {
    /// Range of all its times.
    pub(super) fn range(self) -> TimeRange {
        match self {
            Segment::Sealed(_, sealed) => sealed.range,
            Segment::Open(open) => open.ranges.all(),
        }
    }

    /// The ranges of its times.
    pub(super) fn times(self) -> &'a Times {
        match self {
            Segment::Sealed(_, sealed) => &sealed.times,
            Segment::Open(open) => &open.ranges,
        }
    }

    /// Returns `true` if it may have the term.
    pub(super) fn may_have(self, term: &Probe) -> bool {
        match self {
            Segment::Sealed(_, sealed) => sealed.may_have(term),
            Segment::Open(open) => open.find(term.term).is_some(),
        }
    }
}
