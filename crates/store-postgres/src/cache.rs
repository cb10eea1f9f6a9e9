//! Entries that were read, in memory.
//!
//! A view looks at the number of commits when it begins, and at the keys that the commits of other
//! processes have changed since the cache was right. So the cache is right for each view.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use store::Table;
use store::overlay::Changes;

use crate::keys;
use crate::tables::Tables;

/// Largest value that is kept, in bytes.
const LARGEST: usize = 16 << 10;

/// Size of the other parts of an entry, in bytes.
const ENTRY: usize = 96;

/// The entries that were read, at a number of commits.
pub(crate) struct Cache {
    state: Mutex<State>,
    most: usize,
}

#[derive(Default)]
struct State {
    /// Number of commits up to which the entries are right.
    commits: u64,
    tables: HashMap<Table, HashMap<Vec<u8>, Entry>>,
    size: usize,
}

/// A value, or `None` where there is none.
pub(crate) type Value = Option<Arc<[u8]>>;

struct Entry {
    /// Number of commits since which the value is known to be this one.
    since: u64,
    value: Value,
}

/// The keys that a commit has changed.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) commit: u64,
    /// `None` if there are too many of them.
    pub(crate) keys: Option<Vec<(Table, Vec<u8>)>>,
}

impl News {
    /// The news of numbers and keys of commits.
    pub(crate) fn read(tables: &Tables, told: Vec<(i64, Option<Vec<u8>>)>) -> Vec<Self> {
        let read = |(commit, keys): (i64, Option<Vec<u8>>)| Self {
            commit: commit.cast_unsigned(),
            keys: keys.and_then(|keys| keys::decode(tables, &keys)),
        };
        told.into_iter().map(read).collect()
    }
}

impl Cache {
    /// An empty cache after so many commits.
    pub(crate) fn of(most: usize, commits: u64) -> Self {
        Self { state: Mutex::new(State { commits, ..State::default() }), most }
    }

    /// Number of commits up to which the cache is right.
    pub(crate) fn commits(&self) -> u64 {
        self.state.lock().commits
    }

    /// The value under `key` after so many commits. Returns `None` if the cache does not know.
    pub(crate) fn get(&self, commits: u64, table: Table, key: &[u8]) -> Option<Value> {
        let state = self.state.lock();
        let entry = state.tables.get(&table)?.get(key)?;
        (entry.since <= commits && commits <= state.commits).then(|| entry.value.clone())
    }

    /// Keeps what a view after so many commits has read.
    pub(crate) fn keep(&self, commits: u64, table: Table, key: &[u8], value: &Value) {
        let mut state = self.state.lock();
        if state.commits == commits {
            state.set(self.most, table, key, Entry { since: commits, value: value.clone() });
        }
    }

    /// Follows up to `commits`, by the news of all commits since.
    pub(crate) fn follow(&self, commits: u64, news: Vec<News>) {
        let mut state = self.state.lock();
        if state.commits >= commits {
            return;
        }
        let before = state.commits;
        let mut expected = (before..commits).map(|commit| commit + 1);
        let mut keys = Vec::new();
        let is_whole = news.into_iter().filter(|news| news.commit > before).all(|news| {
            let is_next = expected.next() == Some(news.commit);
            news.keys.map(|more| keys.extend(more)).is_some() && is_next
        });
        if is_whole && expected.next().is_none() {
            for (table, key) in &keys {
                state.remove(*table, key);
            }
        } else {
            *state = State::default();
        }
        state.commits = commits;
    }

    /// Follows a commit of this process.
    pub(crate) fn commit(&self, commit: u64, changes: &Changes) {
        let mut state = self.state.lock();
        if state.commits + 1 != commit {
            return;
        }
        for (table, changes) in changes.tables() {
            for (key, value) in changes {
                let value = value.as_deref().map(Arc::from);
                state.set(self.most, table, key, Entry { since: commit, value });
            }
        }
        state.commits = commit;
    }
}

impl State {
    fn set(&mut self, most: usize, table: Table, key: &[u8], entry: Entry) {
        self.remove(table, key);
        let size = entry.size(key);
        if size > LARGEST {
            return;
        }
        if self.size + size > most {
            self.tables.clear();
            self.size = 0;
        }
        self.size += size;
        self.tables.entry(table).or_default().insert(key.to_vec(), entry);
    }

    fn remove(&mut self, table: Table, key: &[u8]) {
        let removed = self.tables.get_mut(&table).and_then(|entries| entries.remove(key));
        self.size -= removed.map_or(0, |entry| entry.size(key));
    }
}

impl Entry {
    fn size(&self, key: &[u8]) -> usize {
        ENTRY + key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}
