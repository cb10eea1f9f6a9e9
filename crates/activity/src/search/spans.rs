//! Searching in spans, by the lists of their rare terms.

use std::ops::Range;

use domain::notification::Ordinal;
use store::Result;

use super::{Asked, Search};
use crate::facets::Term;
use crate::presence::Probe;
use crate::set::View;
use crate::span::{LoadedSpan, Span};
use crate::walk::{Any, Page};
use crate::window::{Overlap, Window};

/// Maximum number of places that are looked up one by one in the lists of other terms.
const FEW: usize = 16;

/// Result of looking up groups of terms in a span.
struct Met<'g> {
    /// Places that have a term of each group with rare terms only. `None` if no group has a short list.
    few: Option<Vec<u32>>,
    /// Groups with frequent terms, which are tested in the segments.
    others: Vec<&'g [Probe]>,
}

impl Search<'_> {
    // Fills the page with the matches within `range`, which are ordinals of a span.
    pub(super) fn fill_from_span(
        &self,
        loaded: &LoadedSpan,
        range: Range<u64>,
        asked: &Asked<'_>,
        page: &mut Page<Ordinal>,
    ) -> Result<()> {
        let range = self.overlapping(range, asked.window)?;
        if range.is_empty() {
            return Ok(());
        }
        let start = self.head.start(loaded.span.first);
        let place = |ordinal: u64| u32::try_from(ordinal - start).unwrap_or(u32::MAX);
        let places = place(range.start)..place(range.end);
        let Some(known) = self.sealed.may_meet(loaded.span, asked.groups) else { return Ok(()) };
        let met = self.meet(loaded, &places, (asked.groups, known))?;
        let Some(few) = met.few else { return self.fill_from_segments(range, asked, page) };
        self.fill_from_places(loaded.span, &few, &Asked { groups: &met.others, ..*asked }, page)
    }

    // Looks up the places within `range` of a span that have a term of each group. Of each group, the span has
    // no terms but the known ones.
    fn meet<'g>(
        &self,
        loaded: &LoadedSpan,
        range: &Range<u32>,
        (groups, known): (&[&'g [Probe]], Vec<Vec<Term>>),
    ) -> Result<Met<'g>> {
        let (reader, mut few) = (self.reader(), None::<Vec<u32>>);
        let (mut long, mut others) = (Vec::new(), Vec::new());
        for (group, known) in groups.iter().zip(known) {
            if loaded.is_frequent(&known) {
                others.push(*group);
                continue;
            }
            if let Some(places) = few.take_if(|few| few.len() <= FEW) {
                few = Some(loaded.keep(&reader, &known, &places)?);
            } else if let Some(places) = loaded.places(&reader, &known, range)? {
                few = Some(common(few, places));
            } else {
                long.push(known);
            }
            if few.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
        }
        for terms in long {
            few = few.map(|few| loaded.keep(&reader, &terms, &few)).transpose()?;
        }
        Ok(Met { few, others })
    }

    // Fills the page with those of `places`, which are places of a span, that have one of each group.
    fn fill_from_places(
        &self,
        span: Span,
        places: &[u32],
        asked: &Asked<'_>,
        page: &mut Page<Ordinal>,
    ) -> Result<()> {
        if self.is_all_of(asked) {
            let start = self.head.start(span.first);
            page.extend(places.iter().rev().copied(), |at| Ordinal::new(start + u64::from(at)));
            return Ok(());
        }
        let (size, mut few) = (self.head.segment_size, Vec::with_capacity(places.len()));
        for of_one in places.chunk_by(|one, next| one / size == next / size).rev() {
            let Some(number) = of_one.first().map(|place| place / size) else { continue };
            let (number, places) = (span.first + number, of_one.iter().map(|place| place % size));
            few.clear();
            few.extend(places.filter_map(|place| Some(u16::try_from(place).ok()?.to_le_bytes())));
            for group in asked.groups {
                self.keep(number, group, &mut few)?;
            }
            if !few.is_empty() {
                let (few, asked) = (Some(View::Few(&few)), Asked { groups: &[], ..*asked });
                self.fill_from_segment(number, 0..size, &asked, few, page)?;
            }
            if page.is_full() {
                break;
            }
        }
        Ok(())
    }

    // Returns `true` if every place matches.
    fn is_all_of(&self, asked: &Asked<'_>) -> bool {
        let Asked { groups, window, outcomes, subscribers } = asked;
        let is_everything = groups.is_empty() && outcomes.is_empty() && subscribers.is_none();
        is_everything && **window == Window::default() && self.head.deleted == 0
    }

    // Keeps those of `places` of a segment that have one of `terms`, which are in order.
    fn keep(&self, number: u32, terms: &[Probe], places: &mut Vec<[u8; 2]>) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        let mut kept = Vec::with_capacity(places.len());
        self.any(self.segment(number)?, terms, &mut |sets| {
            for places in places.chunks(64) {
                let mask = Any::Several(sets).mask(places, u64::MAX >> (64 - places.len()));
                let all = places.iter().enumerate();
                kept.extend(all.filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, place)| *place));
            }
        })?;
        *places = kept;
        Ok(())
    }

    // The part of `range` from the first to the last segment that may overlap the window.
    fn overlapping(&self, range: Range<u64>, window: &Window) -> Result<Range<u64>> {
        if *window == Window::default() {
            return Ok(range);
        }
        let (first, _) = self.head.place(range.start);
        let (last, _) = self.head.place(range.end - 1);
        let mut part = range.end..range.start;
        for number in first..=last {
            if window.overlap(self.segment(number)?.range()) != Overlap::None {
                part.start = part.start.min(self.head.start(number).max(range.start));
                part.end = self.head.start(number + 1).min(range.end);
            }
        }
        Ok(part)
    }
}

// The places that are in both lists, which are in order.
fn common(one: Option<Vec<u32>>, other: Vec<u32>) -> Vec<u32> {
    let Some(one) = one else { return other };
    let (mut few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.retain(|place| many.binary_search(place).is_ok());
    few
}
