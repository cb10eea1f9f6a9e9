//! Entries that were read, in memory.
//!
//! A view looks at the counts of the heads when it begins, and at the keys that the commits of other
//! processes have changed since the cache was right. So the cache is right for each view. If the server
//! has lost commits, the cache forgets everything, and knows nothing for views of the era before.

mod changed;
mod state;

use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::{Mutex, MutexGuard};
use store::overlay::Changes;
use store::{Table, layout};

use self::changed::ChangedKeys;
use self::state::{Entry, State, UnderWay};
use crate::commit::CommitId;
use crate::commit_news::{CommitNews, changed_keys};
use crate::failure::Failure;
use crate::heads::{Counts, Era, Head, Lock, heads_of};
use crate::scan::Span;

/// Largest gap that is kept, in bytes of its span.
const LARGEST_GAP: usize = 1 << 10;

/// Number of commits in a row of this process, from which on the next one of a head is likely to be of
/// this process, too.
const OWN_IN_A_ROW: u32 = 4;

/// The entries that were read, at the counts of their heads.
pub(crate) struct Cache {
    state: Mutex<State>,
    most: usize,
}

/// A value, or `None` where there is none.
pub(crate) type Value = Option<Arc<[u8]>>;

impl Cache {
    /// An empty cache at these counts.
    pub(crate) fn of(most: usize, counts: Counts) -> Self {
        Self { state: Mutex::new(State::at(counts)), most }
    }

    /// Counts up to which the cache is right.
    pub(crate) fn counts(&self) -> Counts {
        self.state.lock().counts.clone()
    }

    /// What is known in the era of these counts.
    fn of_era(&self, counts: &Counts) -> Option<MutexGuard<'_, State>> {
        let state = self.state.lock();
        (state.counts.era == counts.era).then_some(state)
    }

    /// The value under `key` at these counts. Returns `None` if the cache does not know.
    pub(crate) fn get(&self, counts: &Counts, table: Table, key: &[u8]) -> Option<Value> {
        let head = Head::of(table, key);
        let count = counts.get(head)?;
        let state = self.of_era(counts)?;
        let entry = state.entries.get(&head)?.get(&table)?.get(key)?;
        let is_right = entry.since <= count && Some(count) <= state.counts.get(head);
        is_right.then(|| entry.value.clone())
    }

    /// Keeps what a view at these counts has read.
    pub(crate) fn keep(&self, counts: &Counts, table: Table, key: &[u8], value: &Value) {
        let head = Head::of(table, key);
        let Some(since) = counts.get(head) else { return };
        let Some(mut state) = self.of_era(counts) else { return };
        let is_spared = |changed: &ChangedKeys| !changed.contains(table, key);
        if state.is_unchanged(head, since, is_spared) {
            let since = state.unchanged_since(head, since, is_spared);
            state.set(self.most, head, (table, key), Entry { since, value: value.clone() });
        }
    }

    /// The keys that a transaction with this lock is likely to read, and whose values others are
    /// likely to have changed.
    pub(crate) fn wanted(&self, lock: Lock) -> Vec<(Table, Vec<u8>)> {
        let mut state = self.state.lock();
        let mut keys = Vec::new();
        for (_, wanted) in state.wanted.iter_mut().filter(|(head, _)| lock.has(**head)) {
            keys.extend(wanted.iter().map(|wanted| (wanted.table, wanted.key.clone())));
            wanted.retain_mut(|wanted| {
                wanted.times -= 1;
                wanted.times > 0
            });
        }
        keys
    }

    /// Up to `most` stale keys of the table and the head of `key`: those behind `key`, and then those
    /// before it. A view that has missed several values of a table is likely to miss these as well.
    pub(crate) fn stale(&self, table: Table, key: &[u8], most: usize) -> Vec<Vec<u8>> {
        let state = self.state.lock();
        let keys = state.stale.get(&Head::of(table, key)).and_then(|tables| tables.get(&table));
        let Some(keys) = keys else { return Vec::new() };
        let behind = keys.range::<[u8], _>((Excluded(key), Unbounded));
        let before = keys.range::<[u8], _>((Unbounded, Excluded(key)));
        behind.chain(before).take(most).cloned().collect()
    }

    /// Returns `true` if the cache knows that a span has no entries at these counts.
    pub(crate) fn is_gap(&self, counts: &Counts, table: Table, span: &Span) -> bool {
        let Some(head) = head_of(table, span) else { return false };
        let Some(count) = counts.get(head) else { return false };
        let Some(state) = self.of_era(counts) else { return false };
        let since = state.gaps.get(&head).and_then(|gaps| gaps.since(table, span));
        Some(count) <= state.counts.get(head) && since.is_some_and(|since| since <= count)
    }

    /// Keeps a span in which a view at these counts has found nothing.
    pub(crate) fn keep_gap(&self, counts: &Counts, table: Table, span: &Span) {
        let Some(head) = head_of(table, span) else { return };
        let Some(since) = counts.get(head) else { return };
        let Some(mut state) = self.of_era(counts) else { return };
        let is_spared = |changed: &ChangedKeys| !changed.has_within(table, span);
        if span.size() <= LARGEST_GAP && state.is_unchanged(head, since, is_spared) {
            let since = state.unchanged_since(head, since, is_spared);
            state.gaps.entry(head).or_default().keep(table, span, since);
        }
    }

    /// Returns `true` if the value under `key` is the same as at these counts, as far as the cache is
    /// right.
    pub(crate) fn is_same(&self, counts: &Counts, table: Table, key: &[u8]) -> bool {
        let head = Head::of(table, key);
        let is_spared = |changed: &ChangedKeys| !changed.contains(table, key);
        let known = counts.get(head).zip(self.of_era(counts));
        known.is_some_and(|(since, state)| state.is_unchanged(head, since, is_spared))
    }

    /// Returns `true` if a span has the same entries as at these counts, as far as the cache is right.
    pub(crate) fn is_same_span(&self, counts: &Counts, table: Table, span: &Span) -> bool {
        let Some(head) = head_of(table, span) else { return false };
        let is_spared = |changed: &ChangedKeys| !changed.has_within(table, span);
        let known = counts.get(head).zip(self.of_era(counts));
        known.is_some_and(|(since, state)| state.is_unchanged(head, since, is_spared))
    }

    /// Returns `true` if the next commit of what is locked is likely to be one of this process.
    pub(crate) fn is_own(&self, lock: Lock) -> bool {
        let state = self.state.lock();
        let is_own = |head: Head| state.own.get(&head).is_some_and(|own| *own >= OWN_IN_A_ROW);
        lock.one().is_some_and(is_own)
    }

    /// Notes that another process has changed keys of a head.
    pub(crate) fn note_foreign_commit(&self, head: Head) {
        self.state.lock().own.remove(&head);
    }

    /// Follows the news since `known`. Fails, and forgets
    /// everything, if the server has lost commits.
    pub(crate) fn follow(&self, known: &Counts, news: &CommitNews) -> Result<(), Failure> {
        if !news.goes_on_from(known) {
            self.end(known.era, news.start);
        }
        let Some(mut state) = self.of_era(known) else { return Err(Failure::lost_commits()) };
        for (head, count) in news.counts.iter().copied() {
            let Some(before) = state.counts.get(head) else {
                state.counts.set(head, count);
                continue;
            };
            if before >= count {
                continue;
            }
            if state.is_under_way(&news.commits, (head, before, count)) {
                state.commit(self.most, head, count);
                continue;
            }
            state.own.remove(&head);
            match changed_keys(&news.commits, (head, before, count)) {
                Some(keys) => {
                    let changed = keys.iter().map(|(table, key)| (*table, &key[..]));
                    state.remember(head, (before, count), ChangedKeys::of(changed));
                    state.forget(head, keys);
                }
                None => state.clear(head),
            }
            state.counts.set(head, count);
        }
        Ok(())
    }

    /// Ends an era, and forgets everything, unless it has ended before. `start` is that of the server,
    /// if it is known.
    pub(crate) fn end(&self, era: Era, start: Option<SystemTime>) {
        let mut state = self.state.lock();
        if state.counts.era == era {
            *state = State::at(Counts::of(era.next(start.unwrap_or(era.start))));
        }
    }

    /// Notes that a commit of this process is under way, behind these counts.
    pub(crate) fn expect(&self, counts: &Counts, id: CommitId, changes: &Arc<Changes>) {
        let Some(mut state) = self.of_era(counts) else { return };
        for head in heads_of(changes) {
            state.under_way.insert(head, UnderWay { id, changes: Arc::clone(changes) });
        }
    }

    /// Follows a commit of this process behind these counts, if it was made, and unless a reader has
    /// had the news of it before. A transaction of another lock may have taken its place meanwhile: then the next
    /// transaction asks for it.
    pub(crate) fn commit(&self, counts: &Counts, head: Head, (id, is_made): (CommitId, bool)) {
        let Some(mut state) = self.of_era(counts) else { return };
        if state.under_way.get(&head).is_none_or(|own| own.id != id) {
            return;
        }
        match counts.get(head).filter(|_| is_made) {
            Some(before) if state.counts.get(head) == Some(before) => {
                state.commit(self.most, head, before + 1);
            }
            Some(_) | None => drop(state.under_way.remove(&head)),
        }
    }
}

/// The head of all keys in a span. Returns `None` if there are several.
pub(crate) fn head_of(table: Table, span: &Span) -> Option<Head> {
    let prefix = layout::prefix_of_environment(table, &span.start)?;
    // The first key behind those of the environment is the end of its last span.
    let is_within = |end: &Vec<u8>| end.starts_with(prefix);
    span.end.as_ref().is_some_and(is_within).then(|| Head::of(table, &span.start))
}

#[cfg(test)]
mod tests;
