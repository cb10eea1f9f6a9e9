//! Comparing the index of an environment with its notifications.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use domain::ids::{EnvironmentId, TransactionId};
use domain::notification::Ordinal;
use store::layout::{self, SegmentPart};
use store::{OnRows, Order, ReadRecords, Result, Snapshot, Table};

use crate::append::Runs;
use crate::block::{Block, Directory};
use crate::cache::Cache;
use crate::facets::Term;
use crate::head::Head;
use crate::merge::{Source, Terms, read_window, window_end};
use crate::open::OpenSegment;
use crate::presence::Probe;
use crate::rebuild::{Gathered, gather};
use crate::set::Set;
use crate::span::{LoadedSpan, Span};
use crate::times::{self, Times};
use crate::{ActivityIndex, corrupt, deleted};

/// The result of comparing the activity index of an environment with its notifications.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "it has the disagreements, and says whether everything was compared"]
pub struct IndexCheck {
    /// The number of notifications.
    pub notifications: u64,
    /// The number of segments, with the one that is not sealed.
    pub segments: u32,
    /// The contradictions. Empty if the index is sound.
    pub disagreements: Vec<Disagreement>,
    /// `true` if everything was compared; `false` if `progress` has ended the comparison.
    pub is_finished: bool,
}

/// A contradiction between the activity index and the notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disagreement {
    /// The term of a notification is missing in the index, or the index has one too many.
    Term {
        /// The notification.
        ordinal: Ordinal,
        /// The term.
        term: Term,
    },
    /// The index has another time of creation.
    Time {
        /// The notification.
        ordinal: Ordinal,
    },
    /// The list of terms of a segment lacks one that the segment has.
    Presence {
        /// The number of the segment.
        segment: u32,
        /// The term.
        term: Term,
    },
    /// The directory of a segment names other blocks than there are.
    Directory {
        /// The number of the segment.
        segment: u32,
    },
    /// A deleted notification is listed, or an existing one is not.
    Deleted {
        /// The notification.
        ordinal: Ordinal,
    },
    /// The index names other notifications for a trigger than were created by it.
    Transaction {
        /// The trigger.
        id: TransactionId,
    },
    /// The number of entries of triggers, or that of deleted notifications, is wrong.
    Count,
}

impl ActivityIndex {
    /// Compares the index of an environment with its notifications. The comparison reads all of
    /// both. Ends if `progress` breaks.
    pub fn check(
        &self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        progress: &mut OnRows<'_>,
    ) -> Result<IndexCheck> {
        let Some(head) = Head::find(snapshot, environment)? else {
            return Ok(IndexCheck { is_finished: true, ..IndexCheck::default() });
        };
        let cache = Cache::load(snapshot, environment, &head)?;
        let mut checking =
            Checking { snapshot, environment, head, cache, check: IndexCheck::default() };
        let is_finished = checking.all(progress)?.is_continue();
        Ok(IndexCheck { is_finished, ..checking.check })
    }
}

struct Checking<'s> {
    snapshot: &'s dyn Snapshot,
    environment: EnvironmentId,
    head: Head,
    cache: Cache,
    check: IndexCheck,
}

// The times of a segment, and the places of each term in it.
type Contents = (Vec<i64>, Vec<(Term, Set)>);

impl Checking<'_> {
    fn all(&mut self, progress: &mut OnRows<'_>) -> Result<ControlFlow<()>> {
        let size = u64::from(self.head.segment_size);
        let mut gone = 0;
        let mut start = self.head.start(self.head.lowest().min(self.head.open()));
        while start < self.head.next {
            let end = (start + size).min(self.head.next);
            let all = gather(self.snapshot, self.environment, start..end)?;
            self.segment(start, &all)?;
            self.transactions(&all)?;
            gone += self.deleted(start, &all)?;
            if progress(Table::ActivitySegments, end - start).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            start = end;
        }
        self.check.notifications = self.head.next - self.head.floor - gone;
        self.deleted_behind(start)?;
        if self.head.deleted != gone {
            self.disagree(Disagreement::Count);
        }
        for loaded in self.cache.sealed().spans() {
            self.span(loaded)?;
            if progress(Table::ActivitySegments, 1).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.runs()?;
        Ok(ControlFlow::Continue(()))
    }

    // Compares the terms of a span with those of its segments.
    fn span(&mut self, loaded: &LoadedSpan) -> Result<()> {
        let (span, head) = (loaded.span, self.head);
        let missing = || corrupt(Table::ActivitySegments, "a segment is missing");
        let segments = Source::segments(span, &head, &self.cache.sealed()).ok_or_else(missing)?;
        let (own, most) = ([Source::span(loaded, span, &head)], span.most(&head));
        let mut start = None;
        loop {
            let end = [window_end(&segments, start), window_end(&own, start)];
            let end = end.into_iter().flatten().min();
            let read = |sources: &[Source]| {
                let (snapshot, environment) = (self.snapshot, self.environment);
                read_window(snapshot, environment, &head, sources, (start, end), most)
            };
            let (expected, there) = (read(&segments)?, read(&own)?);
            self.span_terms(span, &expected, &there);
            start = end;
            if end.is_none() {
                break;
            }
        }
        Ok(())
    }

    // Compares the terms of a span. A term that is said to be frequent is looked up in the segments.
    fn span_terms(&mut self, span: Span, expected: &Terms, there: &Terms) {
        let start = self.head.start(span.first);
        let none = Some(Vec::new());
        let terms: BTreeSet<Term> = expected.keys().chain(there.keys()).copied().collect();
        for term in terms {
            let Some(places) = there.get(&term).unwrap_or(&none) else { continue };
            let listed = |places: &[u32]| -> BTreeSet<u64> {
                let ordinals = places.iter().map(|place| start + u64::from(*place));
                ordinals.filter(|ordinal| *ordinal >= self.head.start(self.head.lowest())).collect()
            };
            let wrong: Vec<u64> = match expected.get(&term).unwrap_or(&none) {
                Some(expected) if expected == places => Vec::new(),
                Some(expected) => {
                    listed(expected).symmetric_difference(&listed(places)).copied().collect()
                }
                None => vec![start],
            };
            for ordinal in wrong {
                self.disagree(Disagreement::Term { ordinal: Ordinal::new(ordinal), term });
            }
        }
    }

    fn segment(&mut self, start: u64, all: &Gathered) -> Result<()> {
        self.check.segments += 1;
        let (number, _) = self.head.place(start);
        let mut expected = OpenSegment::default();
        all.facets.iter().for_each(|facets| expected.push(facets));
        let gone: BTreeSet<u16> =
            all.gone.iter().map(|ordinal| self.head.place(*ordinal).1).collect();
        let (times, terms) = self.there(number)?;
        for (place, time) in (0..).zip(&expected.times) {
            if times.get(usize::from(place)) != Some(time) && !gone.contains(&place) {
                let ordinal = Ordinal::new(start + u64::from(place));
                self.disagree(Disagreement::Time { ordinal });
            }
        }
        let expected: Vec<(Term, Set)> =
            expected.sorted().into_iter().map(|(term, set)| (term, set.clone())).collect();
        for (term, one, other) in both(&expected, &terms) {
            for place in difference(one, other, &gone) {
                let ordinal = Ordinal::new(start + u64::from(place));
                self.disagree(Disagreement::Term { ordinal, term });
            }
        }
        Ok(())
    }

    // The times and the terms that the index has of a segment.
    fn there(&mut self, number: u32) -> Result<Contents> {
        let Some(at) = number.checked_sub(self.head.open()) else { return self.sealed(number) };
        let open = usize::try_from(at).ok().and_then(|at| self.cache.open().get(at));
        let open = open.ok_or_else(|| corrupt(Table::ActivitySegments, "a segment is missing"))?;
        let terms = open.sorted().into_iter().map(|(term, set)| (term, set.clone()));
        Ok((open.times.clone(), terms.collect()))
    }

    fn sealed(&mut self, number: u32) -> Result<Contents> {
        let (environment, generation) = (self.environment, self.head.generation);
        let (mut times, mut terms, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_intact = true;
        let rows = layout::segment_part(environment, generation, number, SegmentPart::TimeRow(0));
        let prefix = layout::activity_segment(environment, generation, number);
        self.snapshot.scan_bytes(&prefix.range(), Order::Ascending, None, &mut |key, bytes| {
            let intact = match layout::segment_dimension(key) {
                Some(0) if key >= rows.as_bytes() => times::read_row(bytes, &mut times),
                Some(0) => Some(()),
                Some(dimension) => {
                    let first = terms.len();
                    let block = read_block(dimension, bytes, &mut terms);
                    firsts.extend(terms.get(first).map(|(term, _)| *term));
                    block
                }
                None => None,
            };
            is_intact &= intact.is_some();
            ControlFlow::Continue(())
        })?;
        if !is_intact {
            return Err(corrupt(Table::ActivitySegments, "it is not a part of a segment"));
        }
        times.truncate(usize::try_from(self.head.segment_size).unwrap_or_default());
        self.summaries(number, &times, &terms, firsts);
        Ok((times, terms))
    }

    // Compares the summaries of a sealed segment with its contents.
    fn summaries(&mut self, number: u32, times: &[i64], terms: &[(Term, Set)], firsts: Vec<Term>) {
        let known = self.cache.sealed();
        let Some(sealed) = known.get(number) else { return };
        if *sealed.times != Times::of(times) {
            let ordinal = Ordinal::new(self.head.start(number));
            self.disagree(Disagreement::Time { ordinal });
        }
        if *sealed.directory != Directory::of(firsts.into_iter()) {
            self.disagree(Disagreement::Directory { segment: number });
        }
        let probe = |term| Probe::of(term, self.head.segment_size);
        let missing = terms.iter().filter(|(term, _)| !sealed.may_have(&probe(*term)));
        for (term, _) in missing.collect::<Vec<_>>() {
            self.disagree(Disagreement::Presence { segment: number, term: *term });
        }
    }

    fn transactions(&mut self, all: &Gathered) -> Result<()> {
        for (id, runs) in &all.runs {
            let there = Runs::find(self.snapshot, self.environment, id)?;
            if !runs.iter().flatten().all(|ordinal| there.contains(ordinal)) {
                self.disagree(Disagreement::Transaction { id: id.clone() });
            }
        }
        Ok(())
    }

    // Compares the deleted places of the segment that starts with an ordinal. Returns how many are gone.
    fn deleted(&mut self, start: u64, all: &Gathered) -> Result<u64> {
        let Head { floor, .. } = self.head;
        let (segment, _) = self.head.place(start);
        let there = deleted::find(self.snapshot, self.environment, &self.head, segment)?;
        let there = there.unwrap_or_default();
        let there = there.view().places().map(|place| start + u64::from(place));
        let there: BTreeSet<u64> = there.filter(|ordinal| *ordinal >= floor).collect();
        let gone: BTreeSet<u64> =
            all.gone.iter().copied().filter(|ordinal| *ordinal >= floor).collect();
        for ordinal in there.symmetric_difference(&gone) {
            self.disagree(Disagreement::Deleted { ordinal: Ordinal::new(*ordinal) });
        }
        Ok(gone.len() as u64)
    }

    // Nothing is deleted in the segments behind the last one, which ends in front of `end`.
    fn deleted_behind(&mut self, end: u64) -> Result<()> {
        let (environment, generation) = (self.environment, self.head.generation);
        let last = end.checked_sub(1).map(|last| self.head.place(last).0);
        let first = last.map_or(0, |last| last.saturating_add(1));
        let there = deleted::from(self.snapshot, environment, generation, first, usize::MAX)?;
        for (segment, places) in there {
            let start = self.head.start(segment);
            for place in places.view().places() {
                let ordinal = Ordinal::new(start + u64::from(place));
                self.disagree(Disagreement::Deleted { ordinal });
            }
        }
        Ok(())
    }

    // Every notification is of one trigger, so there are as many of them as there are notifications.
    fn runs(&mut self) -> Result<()> {
        let floor = self.head.floor;
        let mut count = 0_u64;
        let triggers = layout::triggers(self.environment).range();
        self.snapshot.scan_bytes(&triggers, Order::Ascending, None, &mut |key, _| {
            let run = layout::ordinals_of_trigger(key).unwrap_or_default();
            count = count.saturating_add(run.end.saturating_sub(run.start.max(floor)));
            ControlFlow::Continue(())
        })?;
        let deleted = self.head.deleted;
        // Deleted notifications may have been of any trigger, or of none that is known.
        let there = self.check.notifications;
        if count < there || count > there + deleted {
            self.disagree(Disagreement::Count);
        }
        Ok(())
    }

    fn disagree(&mut self, disagreement: Disagreement) {
        const MANY: usize = 1_000;
        if self.check.disagreements.len() < MANY {
            self.check.disagreements.push(disagreement);
        }
    }
}

fn read_block(dimension: u8, bytes: &[u8], terms: &mut Vec<(Term, Set)>) -> Option<()> {
    for (value, set) in Block::read(bytes)?.iter() {
        terms.push((Term::of_parts(dimension, value)?, set?.to_set()));
    }
    Some(())
}

// The terms of both, with their sets in each.
fn both<'s>(
    one: &'s [(Term, Set)],
    other: &'s [(Term, Set)],
) -> impl Iterator<Item = (Term, Option<&'s Set>, Option<&'s Set>)> {
    let find = |terms: &'s [(Term, Set)], term: Term| {
        let at = terms.binary_search_by_key(&term, |(term, _)| *term).ok()?;
        terms.get(at).map(|(_, set)| set)
    };
    let terms: BTreeSet<Term> = one.iter().chain(other).map(|(term, _)| *term).collect();
    terms.into_iter().map(move |term| (term, find(one, term), find(other, term)))
}

// The places that only one of them has, but for those that are gone.
fn difference(one: Option<&Set>, other: Option<&Set>, gone: &BTreeSet<u16>) -> Vec<u16> {
    let places = |set: Option<&Set>| -> BTreeSet<u16> {
        set.into_iter().flat_map(|set| set.view().places()).collect()
    };
    let (one, other) = (places(one), places(other));
    one.symmetric_difference(&other).copied().filter(|place| !gone.contains(place)).collect()
}
