//! Merging: the rare terms of a span are written, from its segments or from smaller spans.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::ids::EnvironmentId;
use store::layout::SpanPart;
use store::{Bytes, Key, Result, Snapshot, Store, WriteRecords};

use crate::block::{self, Block, Directory, Writer};
use crate::cache::SealedSegments;
use crate::facets::Term;
use crate::head::Head;
use crate::set::View;
use crate::span::{self, LoadedSpan, Span};

/// Number of blocks of each source that one transaction reads: a quarter of a megabyte in all.
const STEP: usize = 12;

/// Source of terms for a span: one of its segments, or a smaller span.
#[derive(Debug)]
pub(crate) struct Source {
    /// The place in the span at which its own places start.
    from: u32,
    directory: Arc<Directory>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Segment(u32),
    Span(LoadedSpan),
}

/// Places of each term. `None` if the term is not rare.
pub(crate) type Terms = BTreeMap<Term, Option<Vec<u32>>>;

/// A span that is being merged.
#[derive(Debug)]
pub(crate) struct Merging {
    head: Head,
    span: Span,
    sources: Vec<Source>,
    next: Option<Term>,
    writer: Writer,
    firsts: Vec<Term>,
    frequent: Vec<Term>,
}

/// Entries of a span.
type Rows = Vec<(Key<Bytes>, Vec<u8>)>;

impl Merging {
    /// Starts to merge the next span, if its parts are sealed or merged.
    pub(crate) fn start(head: &Head, sealed: &SealedSegments) -> Option<Self> {
        let span = head.next_span().filter(|_| sealed.is_merged_as(head))?;
        Some(Self {
            head: *head,
            span,
            sources: Source::below(span, head, sealed)?,
            next: None,
            writer: Writer::default(),
            firsts: Vec::new(),
            frequent: Vec::new(),
        })
    }

    /// The head at the start of the merging.
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// Writes the next part of the span. The last part also marks the span as merged. Returns `None`
    /// if nothing is left to do.
    pub(crate) fn step(
        mut self,
        store: &dyn Store,
        environment: EnvironmentId,
    ) -> Result<Option<Self>> {
        let window = (self.next, window_end(&self.sources, self.next));
        let terms = store::read(store, |snapshot| {
            // The segments may be gone, and the span merged already.
            let is_same = Head::find(snapshot, environment)?.is_some_and(|head| self.fits(&head));
            let (head, most) = (&self.head, self.span.most(&self.head));
            let read = || read_window(snapshot, environment, head, &self.sources, window, most);
            is_same.then(read).transpose()
        })?;
        let Some(terms) = terms else { return Ok(None) };
        self.next = window.1;
        let rows = self.take(environment, terms);
        let is_last = self.next.is_none();
        let is_current = store::write_in(store, environment, |txn| {
            let head = Head::find(&*txn, environment)?;
            let Some(mut head) = head.filter(|head| self.fits(head)) else { return Ok(false) };
            rows.iter().try_for_each(|(key, row)| txn.put_bytes(key, row))?;
            if is_last {
                head.merge(self.span);
                head.put(txn, environment)?;
            }
            Ok::<_, store::Error>(true)
        })?;
        Ok((is_current && !is_last).then_some(self))
    }

    fn fits(&self, head: &Head) -> bool {
        let state = |head: &Head| (head.era, head.generation, head.merged, head.lowest());
        state(head) == state(&self.head)
    }

    // The entries of `terms`, and of all that is left if those are the last.
    fn take(&mut self, environment: EnvironmentId, terms: Terms) -> Rows {
        let mut blocks = Vec::new();
        for (term, places) in terms {
            match places {
                Some(places) => blocks.extend(self.writer.add(term, 3 * places.len(), |out| {
                    span::write_places(&places, out);
                })),
                None => self.frequent.push(term),
            }
        }
        if self.next.is_none() {
            blocks.extend(self.writer.finish());
        }
        self.firsts.extend(blocks.iter().map(|(first, _)| *first));
        let key = |part| self.span.key(environment, &self.head, part);
        let block = |(first, block): (Term, Vec<u8>)| {
            let (dimension, value) = first.parts();
            (key(SpanPart::Block { dimension, value }), block)
        };
        let mut rows: Rows = blocks.into_iter().map(block).collect();
        // A span whose segments are deleted is never read.
        if self.next.is_none() && !self.sources.is_empty() {
            rows.push((key(SpanPart::Frequent), span::write_terms(&self.frequent)));
            rows.push((key(SpanPart::Directory), span::write_terms(&self.firsts)));
        }
        rows
    }
}

impl Source {
    // The parts of a span: segments, or spans of the level below. Deleted ones are left out.
    fn below(span: Span, head: &Head, sealed: &SealedSegments) -> Option<Vec<Self>> {
        let Some(level) = span.level.checked_sub(1) else {
            return Self::segments(span, head, sealed);
        };
        let is_part = |part: &&LoadedSpan| {
            part.span.level == level
                && (span.first..span.end).contains(&part.span.first)
                && part.span.end > head.lowest()
        };
        Some(sealed.spans().filter(is_part).map(|part| Self::span(part, span, head)).collect())
    }

    /// The segments of a span. Deleted ones are left out.
    pub(crate) fn segments(span: Span, head: &Head, sealed: &SealedSegments) -> Option<Vec<Self>> {
        let there = span.first.max(head.lowest())..span.end;
        let source = |number| {
            let directory = Arc::clone(&sealed.get(number)?.directory);
            let from = (number - span.first) * head.segment_size;
            Some(Self { from, directory, kind: Kind::Segment(number) })
        };
        there.map(source).collect()
    }

    /// A span as a part of a larger one, or of itself.
    pub(crate) fn span(part: &LoadedSpan, span: Span, head: &Head) -> Self {
        let from = (part.span.first - span.first) * head.segment_size;
        Self { from, directory: Arc::clone(&part.directory), kind: Kind::Span(part.clone()) }
    }

    // Index of the block that has the terms from `start` on.
    fn block_at(&self, start: Option<Term>) -> usize {
        start.map_or(0, |start| self.directory.at(start))
    }

    // Shows `visit` the block that starts with `first`.
    fn block(
        &self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
        first: Term,
        visit: &mut dyn FnMut(Block<'_>),
    ) -> Result<()> {
        match &self.kind {
            Kind::Segment(number) => {
                block::find(snapshot, environment, head, *number, first, visit)
            }
            Kind::Span(part) => part.span.block(snapshot, environment, head, first, visit),
        }
    }

    // Adds the places of a term, which are written as `bytes`, to `places`.
    fn add(&self, bytes: &[u8], places: &mut Option<Vec<u32>>, most: usize) {
        let count = match &self.kind {
            Kind::Segment(_) => bytes.len() / 2,
            Kind::Span(_) => bytes.len() / 3,
        };
        let Some(all) = places.as_mut().filter(|all| all.len() + count <= most) else {
            *places = None;
            return;
        };
        match &self.kind {
            Kind::Segment(_) => {
                all.extend(View::read(bytes).places().map(|place| self.from + u32::from(place)));
            }
            Kind::Span(_) => {
                let there = span::read_places(bytes).iter();
                all.extend(there.map(|place| self.from.saturating_add(span::number(*place))));
            }
        }
    }
}

/// Returns the term behind a window from `start` on that has so few blocks of each of `sources`
/// that one transaction reads them. Returns `None` if there is none.
pub(crate) fn window_end(sources: &[Source], start: Option<Term>) -> Option<Term> {
    let is_behind = |term: &Term| start.is_none_or(|start| *term > start);
    let end = |source: &Source| source.directory.get(source.block_at(start) + STEP);
    sources.iter().filter_map(end).filter(is_behind).min()
}

/// The terms of `sources`, which are in order, from `start` on and before `end`. A term with
/// more than `most` places has none.
pub(crate) fn read_window(
    snapshot: &dyn Snapshot,
    environment: EnvironmentId,
    head: &Head,
    sources: &[Source],
    (start, end): (Option<Term>, Option<Term>),
    most: usize,
) -> Result<Terms> {
    let is_within = |term: Term| start <= Some(term) && end.is_none_or(|end| term < end);
    let mut terms = Terms::new();
    for source in sources {
        let blocks = source.directory.from(source.block_at(start));
        for first in blocks.take_while(|first| end.is_none_or(|end| *first < end)) {
            source.block(snapshot, environment, head, first, &mut |block| {
                for (value, bytes) in block.entries() {
                    let term = first.with_value(value);
                    if is_within(term) {
                        let places = terms.entry(term).or_insert_with(|| Some(Vec::new()));
                        source.add(bytes, places, most);
                    }
                }
            })?;
        }
        if let Kind::Span(part) = &source.kind {
            let frequent = part.frequent.from(0).filter(|term| is_within(*term));
            terms.extend(frequent.map(|term| (term, None)));
        }
    }
    Ok(terms)
}
