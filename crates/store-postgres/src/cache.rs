//! Entries that were read, in memory.
//!
//! A view looks at the counts of the heads when it begins, and at the keys that the commits of other
//! processes have changed since the cache was right. So the cache is right for each view.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use parking_lot::Mutex;
use store::overlay::Changes;
use store::{Table, layout};

use crate::gaps::Gaps;
use crate::heads::{Counts, Head, Lock, by_head};
use crate::keys;
use crate::scan::Span;
use crate::tables::Tables;

/// Largest value that is kept, in bytes.
const LARGEST: usize = 16 << 10;

/// Size of the other parts of an entry, in bytes.
const ENTRY: usize = 96;

/// Largest gap that is kept, in bytes of its span.
const LARGEST_GAP: usize = 1 << 10;

/// Number of values of a head that are wanted at most.
const WANTED: usize = 32;

/// Number of those that are of the same table at most.
const WANTED_OF_A_TABLE: usize = 8;

/// Number of stale keys of a table of a head that are kept.
const STALE: usize = 512;

/// Number of changed keys of a head that are remembered.
const RECENT: usize = 4_096;

/// Number of transactions that want a value which another process has changed.
const TIMES_WANTED: u8 = 4;

/// Number of commits in a row of this process, from which on the next one of a head is likely to be of
/// this process, too.
const OWN_IN_A_ROW: u32 = 4;

/// The entries that were read, at the counts of their heads.
pub(crate) struct Cache {
    state: Mutex<State>,
    most: usize,
}

struct State {
    /// Counts up to which the entries are right.
    counts: Counts,
    entries: HashMap<Head, Entries>,
    gaps: HashMap<Head, Gaps>,
    /// What the latest commits have changed, oldest first. The last one ends at the count of the head.
    recent: HashMap<Head, VecDeque<Recent>>,
    /// Number of commits of this process behind the last one of another process.
    own: HashMap<Head, u32>,
    /// Commits of this process that are under way. A reader may hear of one before its writer does.
    under_way: HashMap<Head, UnderWay>,
    /// Keys whose values were known, and were changed by other processes of late.
    wanted: HashMap<Head, Vec<Wanted>>,
    /// Keys whose values were known before other processes have changed them.
    stale: HashMap<Head, HashMap<Table, BTreeSet<Vec<u8>>>>,
    size: usize,
}

/// The keys that some commits in a row have changed.
struct Recent {
    /// Count of the head before the first of them, and behind the last one.
    after: u64,
    until: u64,
    keys: BTreeSet<(Table, Vec<u8>)>,
}

struct UnderWay {
    batch: [u8; 16],
    changes: Arc<Changes>,
}

struct Wanted {
    table: Table,
    key: Vec<u8>,
    /// Number of transactions that still want it.
    times: u8,
}

/// The entries of a head.
type Entries = HashMap<Table, HashMap<Vec<u8>, Entry>>;

/// A value, or `None` where there is none.
pub(crate) type Value = Option<Arc<[u8]>>;

struct Entry {
    /// Count of its head since which the value is known to be this one.
    since: u64,
    value: Value,
}

/// A commit that has changed keys of a head.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) head: Head,
    pub(crate) number: u64,
    /// `None` if they are too many, or not known.
    pub(crate) keys: Option<Vec<(Table, Vec<u8>)>>,
    /// What identifies the changes.
    pub(crate) batch: Vec<u8>,
}

impl News {
    /// The news in a row. Returns `None` for a head that this version does not know.
    pub(crate) fn read(
        tables: &Tables,
        (head, number, keys): (i16, i64, Option<Vec<u8>>),
        batch: Vec<u8>,
    ) -> Option<Self> {
        let keys = keys.and_then(|keys| keys::decode(tables, &keys));
        Some(Self { head: Head::read(head)?, number: number.cast_unsigned(), keys, batch })
    }
}

/// The keys that have changed between two counts. Returns `None` if they are not known.
pub(crate) fn changed_keys(
    news: &[News],
    (head, before, after): (Head, u64, u64),
) -> Option<Vec<(Table, Vec<u8>)>> {
    let mut keys = Vec::new();
    let mut last = before;
    for news in news.iter().filter(|news| news.head == head && news.number > before) {
        if news.number != last + 1 {
            return None;
        }
        last = news.number;
        keys.extend_from_slice(news.keys.as_deref()?);
    }
    (last == after).then_some(keys)
}

impl Cache {
    /// An empty cache at these counts.
    pub(crate) fn of(most: usize, counts: Counts) -> Self {
        let state = State {
            counts,
            entries: HashMap::new(),
            gaps: HashMap::new(),
            own: HashMap::new(),
            under_way: HashMap::new(),
            recent: HashMap::new(),
            wanted: HashMap::new(),
            stale: HashMap::new(),
            size: 0,
        };
        Self { state: Mutex::new(state), most }
    }

    /// Counts up to which the cache is right.
    pub(crate) fn counts(&self) -> Counts {
        self.state.lock().counts.clone()
    }

    /// The value under `key` at these counts. Returns `None` if the cache does not know.
    pub(crate) fn get(&self, counts: &Counts, table: Table, key: &[u8]) -> Option<Value> {
        let head = Head::of(table, key);
        let count = counts.get(head)?;
        let state = self.state.lock();
        let entry = state.entries.get(&head)?.get(&table)?.get(key)?;
        let is_right = entry.since <= count && Some(count) <= state.counts.get(head);
        is_right.then(|| entry.value.clone())
    }

    /// Keeps what a view at these counts has read.
    pub(crate) fn keep(&self, counts: &Counts, table: Table, key: &[u8], value: &Value) {
        let head = Head::of(table, key);
        let Some(since) = counts.get(head) else { return };
        let mut state = self.state.lock();
        let place = (table, key.to_vec());
        if state.is_unchanged(head, since, |changed| !changed.contains(&place)) {
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
        let state = self.state.lock();
        let since = state.gaps.get(&head).and_then(|gaps| gaps.since(table, span));
        Some(count) <= state.counts.get(head) && since.is_some_and(|since| since <= count)
    }

    /// Keeps a span in which a view at these counts has found nothing.
    pub(crate) fn keep_gap(&self, counts: &Counts, table: Table, span: &Span) {
        let Some(head) = head_of(table, span) else { return };
        let Some(since) = counts.get(head) else { return };
        let mut state = self.state.lock();
        let is_empty = |changed: &BTreeSet<_>| has_none(changed, table, span);
        if span.size() <= LARGEST_GAP && state.is_unchanged(head, since, is_empty) {
            state.gaps.entry(head).or_default().keep(table, span, since);
        }
    }

    /// Returns `true` if the value under `key` is the same as at these counts, as far as the cache is
    /// right.
    pub(crate) fn is_same(&self, counts: &Counts, table: Table, key: &[u8]) -> bool {
        let head = Head::of(table, key);
        let place = (table, key.to_vec());
        let is_spared = |changed: &BTreeSet<_>| !changed.contains(&place);
        let since = counts.get(head);
        since.is_some_and(|since| self.state.lock().is_unchanged(head, since, is_spared))
    }

    /// Returns `true` if a span has the same entries as at these counts, as far as the cache is right.
    pub(crate) fn is_same_span(&self, counts: &Counts, table: Table, span: &Span) -> bool {
        let Some(head) = head_of(table, span) else { return false };
        let is_spared = |changed: &BTreeSet<_>| has_none(changed, table, span);
        let since = counts.get(head);
        since.is_some_and(|since| self.state.lock().is_unchanged(head, since, is_spared))
    }

    /// Returns `true` if the next commit of what is locked is likely to be one of this process.
    pub(crate) fn is_own(&self, lock: Lock) -> bool {
        let state = self.state.lock();
        let is_own = |head: Head| state.own.get(&head).is_some_and(|own| *own >= OWN_IN_A_ROW);
        lock.one().is_some_and(is_own)
    }

    /// Notes that another process has changed keys of a head.
    pub(crate) fn doubt(&self, head: Head) {
        self.state.lock().own.remove(&head);
    }

    /// Follows up to `counts`, by the news of all commits since.
    pub(crate) fn follow(&self, counts: &Counts, news: &[News]) {
        let mut state = self.state.lock();
        for (head, count) in counts.known() {
            let before = state.counts.get(head).unwrap_or_default();
            if before >= count {
                continue;
            }
            if state.is_under_way(news, (head, before, count)) {
                state.commit(self.most, head, count);
                continue;
            }
            state.own.remove(&head);
            match changed_keys(news, (head, before, count)) {
                Some(keys) => {
                    state.remember(head, (before, count), keys.iter().cloned());
                    state.forget(head, keys);
                }
                None => state.clear(head),
            }
            state.counts.set(head, count);
        }
    }

    /// Notes that a commit of this process is under way.
    pub(crate) fn expect(&self, batch: [u8; 16], changes: &Arc<Changes>) {
        let mut state = self.state.lock();
        for head in by_head(changes).into_keys() {
            state.under_way.insert(head, UnderWay { batch, changes: Arc::clone(changes) });
        }
    }

    /// Follows a commit of this process, unless a reader has heard of it before. `number` is `None` if
    /// it was not made.
    pub(crate) fn commit(&self, head: Head, number: Option<u64>) {
        let mut state = self.state.lock();
        match number {
            Some(number) if state.counts.get(head).unwrap_or_default() + 1 == number => {
                state.commit(self.most, head, number);
            }
            Some(_) | None => drop(state.under_way.remove(&head)),
        }
    }
}

impl State {
    /// Returns `true` if the news of a head is the commit that is under way, and nothing else.
    fn is_under_way(&self, news: &[News], (head, before, count): (Head, u64, u64)) -> bool {
        let own = self.under_way.get(&head);
        let is_it = |news: &News| (news.head, news.number) == (head, count);
        let news = news.iter().find(|news| is_it(news));
        before + 1 == count
            && own.zip(news).is_some_and(|(own, news)| own.batch[..] == news.batch[..])
    }

    /// Follows the commit that is under way.
    fn commit(&mut self, most: usize, head: Head, number: u64) {
        let Some(UnderWay { changes, .. }) = self.under_way.remove(&head) else { return };
        let changes = by_head(&changes).remove(&head).unwrap_or_default();
        let keys = changes.iter().map(|(table, key, _)| (*table, key.to_vec()));
        self.remember(head, (number - 1, number), keys);
        for (table, key, value) in &changes {
            self.end_gaps(head, *table, key);
            let entry = Entry { since: number, value: value.map(Arc::from) };
            self.set(most, head, (*table, key), entry);
        }
        *self.own.entry(head).or_default() += 1;
        self.counts.set(head, number);
    }

    fn set(&mut self, most: usize, head: Head, (table, key): (Table, &[u8]), entry: Entry) {
        self.remove(head, table, key);
        if let Some(stale) = self.stale.get_mut(&head).and_then(|stale| stale.get_mut(&table)) {
            stale.remove(key);
        }
        let size = entry.size(key);
        if size > LARGEST {
            return;
        }
        if self.size + size > most {
            self.entries.clear();
            self.size = 0;
        }
        self.size += size;
        let entries = self.entries.entry(head).or_default().entry(table).or_default();
        entries.insert(key.to_vec(), entry);
    }

    /// Returns `true` if the value of the key was known.
    fn remove(&mut self, head: Head, table: Table, key: &[u8]) -> bool {
        let entries = self.entries.get_mut(&head).and_then(|entries| entries.get_mut(&table));
        let removed = entries.and_then(|entries| entries.remove(key));
        self.size -= removed.as_ref().map_or(0, |entry| entry.size(key));
        removed.is_some()
    }

    /// Forgets the values of keys. Those that were known are wanted again.
    fn forget(&mut self, head: Head, keys: Vec<(Table, Vec<u8>)>) {
        for (table, key) in keys {
            self.end_gaps(head, table, &key);
            if self.remove(head, table, &key) {
                let stale = self.stale.entry(head).or_default().entry(table).or_default();
                if stale.len() < STALE {
                    stale.insert(key.clone());
                }
                self.want(head, table, key);
            }
        }
    }

    // A commit with many keys of a table leaves room for those of others.
    fn want(&mut self, head: Head, table: Table, key: Vec<u8>) {
        let wanted = self.wanted.entry(head).or_default();
        wanted.retain(|wanted| wanted.table != table || wanted.key != key);
        wanted.insert(0, Wanted { table, key, times: TIMES_WANTED });
        let mut of_table = 0;
        wanted.retain(|wanted| {
            of_table += usize::from(wanted.table == table);
            wanted.table != table || of_table <= WANTED_OF_A_TABLE
        });
        wanted.truncate(WANTED);
    }

    /// Returns `true` if `is_spared` holds for the changed keys of all commits behind a count. Returns
    /// `false` if these keys are not known.
    fn is_unchanged(
        &self,
        head: Head,
        since: u64,
        is_spared: impl Fn(&BTreeSet<(Table, Vec<u8>)>) -> bool,
    ) -> bool {
        if self.counts.get(head) == Some(since) {
            return true;
        }
        let Some(recent) = self.recent.get(&head) else { return false };
        let mut later = recent.iter().rev().take_while(|recent| recent.until > since);
        let mut oldest = None;
        let is_unchanged = later.by_ref().all(|recent| {
            oldest = Some(recent.after);
            is_spared(&recent.keys)
        });
        is_unchanged && oldest.is_some_and(|after| after <= since)
    }

    fn remember(
        &mut self,
        head: Head,
        (after, until): (u64, u64),
        keys: impl Iterator<Item = (Table, Vec<u8>)>,
    ) {
        let recent = self.recent.entry(head).or_default();
        recent.push_back(Recent { after, until, keys: keys.collect() });
        let mut size = recent.iter().map(|recent| recent.keys.len()).sum::<usize>();
        while size > RECENT {
            size -= recent.pop_front().map_or(size, |oldest| oldest.keys.len());
        }
    }

    fn end_gaps(&mut self, head: Head, table: Table, key: &[u8]) {
        if let Some(gaps) = self.gaps.get_mut(&head) {
            gaps.end(table, key);
        }
    }

    fn clear(&mut self, head: Head) {
        self.gaps.remove(&head);
        self.recent.remove(&head);
        self.wanted.remove(&head);
        self.stale.remove(&head);
        let removed = self.entries.remove(&head).unwrap_or_default();
        let entries = removed.values().flatten();
        self.size -= entries.map(|(key, entry)| entry.size(key)).sum::<usize>();
    }
}

/// Returns `true` if none of the changed keys lies in the span.
fn has_none(changed: &BTreeSet<(Table, Vec<u8>)>, table: Table, span: &Span) -> bool {
    let start = Included((table, span.start.clone()));
    let next = changed.range((start, Unbounded)).next();
    next.is_none_or(|(other, key)| *other != table || !span.contains(key))
}

/// The head of all keys in a span. Returns `None` if there are several.
pub(crate) fn head_of(table: Table, span: &Span) -> Option<Head> {
    let prefix = layout::prefix_of_environment(table, &span.start)?;
    // The first key behind those of the environment is the end of its last span.
    let is_within = |end: &Vec<u8>| end.starts_with(prefix);
    span.end.as_ref().is_some_and(is_within).then(|| Head::of(table, &span.start))
}

impl Entry {
    fn size(&self, key: &[u8]) -> usize {
        ENTRY + key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table::Subscribers;

    /// A key of an environment.
    fn key(rest: &[u8]) -> Vec<u8> {
        [&[7; 16][..], rest].concat()
    }

    fn head() -> Head {
        Head::of(TABLE, &key(b""))
    }

    fn counts(count: u64) -> Counts {
        let mut counts = Counts::read(&[]);
        counts.set(head(), count);
        counts
    }

    fn span(start: &[u8], end: &[u8]) -> Span {
        Span { start: key(start), end: Some(key(end)) }
    }

    fn cache() -> Cache {
        Cache::of(1 << 20, counts(1))
    }

    /// A commit of another process.
    fn follow(cache: &Cache, number: u64, changed: &[u8]) {
        let keys = Some(vec![(TABLE, key(changed))]);
        cache.follow(&counts(number), &[news(number, keys)]);
    }

    fn news(number: u64, keys: Option<Vec<(Table, Vec<u8>)>>) -> News {
        News { head: head(), number, keys, batch: Vec::new() }
    }

    /// A commit of this process.
    fn commit(cache: &Cache, number: u64, changed: &[u8]) {
        let mut own = Changes::default();
        own.set(TABLE, &key(changed), Some(b"value".to_vec()));
        cache.expect([7; 16], &Arc::new(own));
        cache.commit(head(), Some(number));
    }

    #[test]
    fn a_gap_is_known_until_a_key_in_it_is_written() {
        let (kept, part) = (span(b"b", b"d"), span(b"c", b"d"));
        let own = |cache: &Cache| commit(cache, 2, b"c");
        let others = |cache: &Cache| follow(cache, 2, b"c");
        let far = |cache: &Cache| cache.follow(&counts(9), &[]);
        for write in [&own as &dyn Fn(&Cache), &others, &far] {
            let cache = cache();
            assert!(!cache.is_gap(&counts(1), TABLE, &kept));
            cache.keep_gap(&counts(1), TABLE, &kept);
            assert!(
                cache.is_gap(&counts(1), TABLE, &kept) && cache.is_gap(&counts(1), TABLE, &part)
            );
            assert!(!cache.is_gap(&counts(1), TABLE, &span(b"b", b"e")));
            assert!(!cache.is_gap(&counts(1), Table::Topics, &kept));
            // A view that is older may have seen an entry that was deleted since.
            assert!(!cache.is_gap(&counts(0), TABLE, &kept));
            write(&cache);
            assert!(!cache.is_gap(&counts(2), TABLE, &kept));
        }
    }

    #[test]
    fn a_gap_outlives_a_key_beside_it() {
        let (cache, kept) = (cache(), span(b"b", b"d"));
        cache.keep_gap(&counts(1), TABLE, &kept);
        follow(&cache, 2, b"d");
        follow(&cache, 3, b"a");
        assert!(cache.is_gap(&counts(3), TABLE, &kept));
    }

    /// A view that began before other commits may keep what they have not changed.
    #[test]
    fn what_a_view_has_read_is_kept_unless_it_was_changed_meanwhile() {
        let own = |cache: &Cache| commit(cache, 2, b"c");
        let others = |cache: &Cache| follow(cache, 2, b"c");
        for write in [&own as &dyn Fn(&Cache), &others] {
            let cache = cache();
            write(&cache);
            follow(&cache, 3, b"d");
            let knows = |name| cache.get(&counts(3), TABLE, &key(name)).is_some();
            let before = knows(b"c");
            for name in [b"b", b"c", b"d"] {
                cache.keep(&counts(1), TABLE, &key(name), &None);
            }
            assert!(knows(b"b") && knows(b"c") == before && !knows(b"d"));
            cache.keep(&counts(2), TABLE, &key(b"c"), &None);
            assert!(knows(b"c"));
            for (start, end, is_kept) in [(b"a", b"c", true), (b"c", b"e", false)] {
                cache.keep_gap(&counts(1), TABLE, &span(start, end));
                assert_eq!(cache.is_gap(&counts(3), TABLE, &span(start, end)), is_kept);
            }
        }
    }

    #[test]
    fn a_gap_is_as_long_as_all_spans_that_touch() {
        let cache = cache();
        for (start, end) in [(b"b", b"c"), (b"e", b"f"), (b"h", b"i"), (b"c", b"e")] {
            cache.keep_gap(&counts(1), TABLE, &span(start, end));
        }
        let is_gap = |start: &[u8], end: &[u8]| cache.is_gap(&counts(1), TABLE, &span(start, end));
        assert!(is_gap(b"b", b"f") && is_gap(b"d", b"e") && is_gap(b"h", b"i"));
        assert!(!is_gap(b"b", b"g") && !is_gap(b"a", b"c") && !is_gap(b"f", b"h"));
    }

    /// A reader asks for news before the writer knows that its commit is made.
    #[test]
    fn a_commit_that_a_reader_hears_of_first_is_an_own_one() {
        for (batch, is_own) in [([7; 16], true), ([8; 16], false)] {
            let cache = cache();
            let mut changes = Changes::default();
            changes.set(TABLE, &key(b"a"), Some(b"value".to_vec()));
            cache.expect([7; 16], &Arc::new(changes));
            let news = News { batch: batch.to_vec(), ..news(2, Some(vec![(TABLE, key(b"a"))])) };
            cache.follow(&counts(2), &[news]);
            let value = || cache.get(&counts(2), TABLE, &key(b"a")).flatten();
            assert_eq!(value().is_some(), is_own);
            cache.commit(head(), is_own.then_some(2));
            assert_eq!(value().is_some(), is_own);
        }
    }

    #[test]
    fn a_head_is_own_behind_some_commits_without_others() {
        let (cache, lock) = (cache(), Lock::of_one(head()));
        for number in 2..2 + u64::from(OWN_IN_A_ROW) {
            assert!(!cache.is_own(lock));
            commit(&cache, number, b"a");
        }
        assert!(
            cache.is_own(lock) && !cache.is_own(lock.and(Lock::of_one(Head::of(TABLE, &[0; 16]))))
        );
        follow(&cache, 2 + u64::from(OWN_IN_A_ROW), b"b");
        assert!(!cache.is_own(lock));
    }

    #[test]
    fn nothing_is_kept_behind_commits_that_are_not_known() {
        let cache = cache();
        cache.follow(&counts(2), &[]);
        cache.keep(&counts(1), TABLE, &key(b"a"), &None);
        assert!(cache.get(&counts(2), TABLE, &key(b"a")).is_none());
        let many = (0..=RECENT).map(|number| (TABLE, key(&number.to_be_bytes()))).collect();
        cache.follow(&counts(3), &[news(3, Some(many))]);
        follow(&cache, 4, b"b");
        cache.keep(&counts(2), TABLE, &key(b"a"), &None);
        assert!(cache.get(&counts(4), TABLE, &key(b"a")).is_none());
        cache.keep(&counts(3), TABLE, &key(b"a"), &None);
        assert!(cache.get(&counts(4), TABLE, &key(b"a")).is_some());
    }

    #[test]
    fn a_gap_of_several_environments_is_not_kept() {
        let cache = cache();
        let all = Span { start: key(b""), end: Some(vec![8; 16]) };
        let open = Span { start: key(b""), end: None };
        for span in [all, open] {
            cache.keep_gap(&counts(1), TABLE, &span);
            assert!(!cache.is_gap(&counts(1), TABLE, &span));
        }
    }

    #[test]
    fn a_known_value_that_others_change_is_wanted_for_a_while() {
        let (cache, lock) = (cache(), Lock::of_one(head()));
        follow(&cache, 2, b"unknown");
        assert!(cache.wanted(lock).is_empty());
        cache.keep(&counts(2), TABLE, &key(b"known"), &None);
        follow(&cache, 3, b"known");
        assert!(cache.wanted(Lock::of_one(Head::of(TABLE, &[0; 16]))).is_empty());
        for _ in 0..TIMES_WANTED {
            assert_eq!(cache.wanted(lock), [(TABLE, key(b"known"))]);
        }
        assert!(cache.wanted(lock).is_empty());
    }

    #[test]
    fn keys_that_others_have_changed_are_stale_until_they_are_read() {
        let cache = cache();
        for name in [b"a", b"b", b"c", b"d"] {
            cache.keep(&counts(1), TABLE, &key(name), &None);
        }
        for (number, name) in (2..).zip([b"a", b"b", b"c", b"x"]) {
            follow(&cache, number, name);
        }
        let stale = |most| cache.stale(TABLE, &key(b"b"), most);
        assert_eq!(stale(9), [key(b"c"), key(b"a")]);
        assert_eq!(stale(1), [key(b"c")]);
        cache.keep(&counts(5), TABLE, &key(b"c"), &None);
        assert_eq!(stale(9), [key(b"a")]);
        cache.follow(&counts(9), &[]);
        assert!(stale(9).is_empty());
    }

    #[test]
    fn many_keys_of_a_table_leave_room_for_others_that_are_wanted() {
        let (cache, lock) = (cache(), Lock::of_one(head()));
        let names: Vec<[u8; 1]> = (0..40).map(|name| [name]).collect();
        cache.keep(&counts(1), Table::Topics, &key(b"topic"), &None);
        for name in &names {
            cache.keep(&counts(1), TABLE, &key(name), &None);
        }
        let many = names.iter().map(|name| (TABLE, key(name)));
        let keys = Some([(Table::Topics, key(b"topic"))].into_iter().chain(many).collect());
        cache.follow(&counts(2), &[news(2, keys)]);
        let wanted = cache.wanted(lock);
        assert_eq!(wanted.len(), WANTED_OF_A_TABLE + 1);
        assert!(wanted.contains(&(Table::Topics, key(b"topic"))));
    }
}
