//! Entries that were read, in memory.
//!
//! A view looks at the counts of the heads when it begins, and at the keys that the commits of other
//! processes have changed since the cache was right. So the cache is right for each view.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use store::Table;

use crate::heads::{Changed, Counts, Head};
use crate::keys;
use crate::tables::Tables;

/// Largest value that is kept, in bytes.
const LARGEST: usize = 16 << 10;

/// Size of the other parts of an entry, in bytes.
const ENTRY: usize = 96;

/// The entries that were read, at the counts of their heads.
pub(crate) struct Cache {
    state: Mutex<State>,
    most: usize,
}

struct State {
    /// Counts up to which the entries are right.
    counts: Counts,
    entries: HashMap<Head, Entries>,
    size: usize,
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
}

impl News {
    /// The news in a row. Returns `None` for a head that this version does not know.
    pub(crate) fn read(tables: &Tables, told: (i16, i64, Option<Vec<u8>>)) -> Option<Self> {
        let (head, number, keys) = told;
        let keys = keys.and_then(|keys| keys::decode(tables, &keys));
        Some(Self { head: Head::read(head)?, number: number.cast_unsigned(), keys })
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
        let state = State { counts, entries: HashMap::new(), size: 0 };
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
        if state.counts.get(head) == Some(since) {
            state.set(self.most, head, (table, key), Entry { since, value: value.clone() });
        }
    }

    /// Follows up to `counts`, by the news of all commits since.
    pub(crate) fn follow(&self, counts: &Counts, news: &[News]) {
        let mut state = self.state.lock();
        for (head, count) in counts.known() {
            let before = state.counts.get(head).unwrap_or_default();
            if before >= count {
                continue;
            }
            match changed_keys(news, (head, before, count)) {
                Some(keys) => keys.iter().for_each(|(table, key)| state.remove(head, *table, key)),
                None => state.clear(head),
            }
            state.counts.set(head, count);
        }
    }

    /// Follows a commit of this process.
    pub(crate) fn commit(&self, head: Head, number: u64, changes: &[Changed<'_>]) {
        let mut state = self.state.lock();
        if state.counts.get(head).unwrap_or_default() + 1 != number {
            return;
        }
        for (table, key, value) in changes {
            let entry = Entry { since: number, value: value.map(Arc::from) };
            state.set(self.most, head, (*table, key), entry);
        }
        state.counts.set(head, number);
    }
}

impl State {
    fn set(&mut self, most: usize, head: Head, (table, key): (Table, &[u8]), entry: Entry) {
        self.remove(head, table, key);
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

    fn remove(&mut self, head: Head, table: Table, key: &[u8]) {
        let entries = self.entries.get_mut(&head).and_then(|entries| entries.get_mut(&table));
        let removed = entries.and_then(|entries| entries.remove(key));
        self.size -= removed.map_or(0, |entry| entry.size(key));
    }

    fn clear(&mut self, head: Head) {
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
