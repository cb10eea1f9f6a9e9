//! What the cache knows, and how it follows commits.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use foldhash::HashMap;
use store::Table;
use store::overlay::Changes;

use super::Value;
use super::changed::ChangedKeys;
use crate::commit::CommitId;
use crate::commit_news::HeadCommit;
use crate::gaps::Gaps;
use crate::heads::{Counts, Head, changed_in};

/// Largest value that is kept however small the memory is, in bytes, and that is read ahead.
const SMALL: usize = 16 << 10;

/// The share of the memory that a larger value may take.
const SHARE: usize = 64;

/// Size of the other parts of an entry, in bytes.
const ENTRY: usize = 96;

/// Number of values of a head that are wanted at most.
const WANTED: usize = 32;

/// Number of those that are of the same table at most.
pub(super) const WANTED_OF_A_TABLE: usize = 8;

/// Number of stale keys of a table of a head that are kept.
const STALE: usize = 512;

/// Number of changed keys of a head that are remembered.
pub(super) const RECENT: usize = 4_096;

/// Largest number of keys of a head in a commit of this process whose values are all kept.
pub(super) const SMALL_COMMIT: usize = 64;

/// Number of entries of [`State::recent`] that are looked at for the first count of a value.
const LOOK_BACK: usize = 4;

/// Number of transactions that want a value which another process has changed.
pub(super) const TIMES_WANTED: u8 = 4;

/// What is known, and since when.
pub(super) struct State {
    /// Counts up to which the entries are right.
    pub(super) counts: Counts,
    pub(super) entries: HashMap<Head, Entries>,
    pub(super) gaps: HashMap<Head, Gaps>,
    /// What the latest commits have changed, oldest first. The last one ends at the count of the head.
    recent: HashMap<Head, VecDeque<Recent>>,
    /// Number of commits of this process behind the last one of another process.
    pub(super) own: HashMap<Head, u32>,
    /// Commits of this process that are under way. A reader may learn of one before its writer does.
    pub(super) under_way: HashMap<Head, UnderWay>,
    /// Keys whose values were known, and were changed by other processes of late.
    pub(super) wanted: HashMap<Head, Vec<LikelyRead>>,
    /// Keys whose values were known before other processes have changed them.
    pub(super) stale: HashMap<Head, HashMap<Table, BTreeSet<Vec<u8>>>>,
    size: usize,
}

/// The keys that some commits in a row have changed.
struct Recent {
    /// Count of the head before the first of them, and behind the last one.
    after: u64,
    until: u64,
    keys: ChangedKeys,
}

/// A commit that is not known to be made.
pub(super) struct UnderWay {
    pub(super) id: CommitId,
    pub(super) changes: Arc<Changes>,
}

/// A key whose value was known, and is likely to be read.
pub(super) struct LikelyRead {
    pub(super) table: Table,
    pub(super) key: Vec<u8>,
    /// Number of transactions that still want it.
    pub(super) times: u8,
}

/// The entries of a head.
type Entries = HashMap<Table, HashMap<Vec<u8>, Entry>>;

/// A value that was read or written.
pub(super) struct Entry {
    /// Count of its head since which the value is known to be this one.
    pub(super) since: u64,
    pub(super) value: Value,
}

impl State {
    /// Nothing is known at these counts.
    pub(super) fn at(counts: Counts) -> Self {
        Self {
            counts,
            entries: HashMap::default(),
            gaps: HashMap::default(),
            own: HashMap::default(),
            under_way: HashMap::default(),
            recent: HashMap::default(),
            wanted: HashMap::default(),
            stale: HashMap::default(),
            size: 0,
        }
    }

    /// Returns `true` if the news of a head is the commit that is under way, and nothing else.
    pub(super) fn is_under_way(
        &self,
        commits: &[HeadCommit],
        (head, before, count): (Head, u64, u64),
    ) -> bool {
        let own = self.under_way.get(&head);
        let is_it = |commit: &HeadCommit| (commit.head, commit.number) == (head, count);
        let commit = commits.iter().find(|commit| is_it(commit));
        before + 1 == count
            && own.zip(commit).is_some_and(|(own, commit)| own.id.bytes() == commit.id)
    }

    /// Follows the commit that is under way. Of the values of a large one those are kept whose keys are
    /// known, so that a bulk of events leaves room for what is read again.
    pub(super) fn commit(&mut self, most: usize, head: Head, number: u64) {
        let Some(UnderWay { changes, .. }) = self.under_way.remove(&head) else { return };
        let changed = || changed_in(&changes, head);
        let keys = ChangedKeys::of(changed().map(|(table, key, _)| (table, key)));
        let is_small = keys.len() <= SMALL_COMMIT;
        self.remember(head, (number - 1, number), keys);
        for (table, key, value) in changed() {
            self.end_gaps(head, table, key);
            if is_small || self.knows(head, table, key) {
                let entry = Entry { since: number, value: value.map(Arc::from) };
                self.set(most, head, (table, key), entry);
            }
        }
        *self.own.entry(head).or_default() += 1;
        self.counts.set(head, number);
    }

    pub(super) fn set(
        &mut self,
        most: usize,
        head: Head,
        (table, key): (Table, &[u8]),
        entry: Entry,
    ) {
        self.remove(head, table, key);
        if let Some(stale) = self.stale.get_mut(&head).and_then(|stale| stale.get_mut(&table)) {
            stale.remove(key);
        }
        let size = entry.size(key);
        if size > SMALL.max(most / SHARE) {
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

    fn knows(&self, head: Head, table: Table, key: &[u8]) -> bool {
        let entries = self.entries.get(&head).and_then(|entries| entries.get(&table));
        entries.is_some_and(|entries| entries.contains_key(key))
    }

    /// Returns the size of the entry, if the value of the key was known.
    fn remove(&mut self, head: Head, table: Table, key: &[u8]) -> Option<usize> {
        let entries = self.entries.get_mut(&head).and_then(|entries| entries.get_mut(&table));
        let removed = entries.and_then(|entries| entries.remove(key));
        let size = removed.map(|entry| entry.size(key));
        self.size -= size.unwrap_or_default();
        size
    }

    /// Forgets the values of keys. Those that were known are wanted again, unless they are large: many of
    /// them are read together.
    pub(super) fn forget(&mut self, head: Head, keys: Vec<(Table, Vec<u8>)>) {
        for (table, key) in keys {
            self.end_gaps(head, table, &key);
            if self.remove(head, table, &key).is_some_and(|size| size <= SMALL) {
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
        wanted.insert(0, LikelyRead { table, key, times: TIMES_WANTED });
        let mut of_table = 0;
        wanted.retain(|wanted| {
            of_table += usize::from(wanted.table == table);
            wanted.table != table || of_table <= WANTED_OF_A_TABLE
        });
        wanted.truncate(WANTED);
    }

    /// Returns `true` if `is_spared` holds for the changed keys of all commits behind a count. Returns
    /// `false` if these keys are not known.
    pub(super) fn is_unchanged(
        &self,
        head: Head,
        since: u64,
        is_spared: impl Fn(&ChangedKeys) -> bool,
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

    /// The first count from which on `is_spared` holds for all commits up to `count`, as far as the
    /// last few before that tell. A transaction that waits for one of them sees the state before it.
    pub(super) fn unchanged_since(
        &self,
        head: Head,
        count: u64,
        is_spared: impl Fn(&ChangedKeys) -> bool,
    ) -> u64 {
        let mut since = count;
        let recent = self.recent.get(&head).into_iter().flatten().rev();
        for recent in recent.skip_while(|recent| recent.until > count).take(LOOK_BACK) {
            if recent.until != since || !is_spared(&recent.keys) {
                break;
            }
            since = recent.after;
        }
        since
    }

    pub(super) fn remember(&mut self, head: Head, (after, until): (u64, u64), keys: ChangedKeys) {
        let recent = self.recent.entry(head).or_default();
        recent.push_back(Recent { after, until, keys });
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

    pub(super) fn clear(&mut self, head: Head) {
        self.gaps.remove(&head);
        self.recent.remove(&head);
        self.wanted.remove(&head);
        self.stale.remove(&head);
        let removed = self.entries.remove(&head).unwrap_or_default();
        let entries = removed.values().flatten();
        self.size -= entries.map(|(key, entry)| entry.size(key)).sum::<usize>();
    }
}

impl Entry {
    fn size(&self, key: &[u8]) -> usize {
        ENTRY + key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}
