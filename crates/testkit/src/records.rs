//! Arbitrary bytes as the content of a table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use store::memory::MemoryStore;
use store::{Store, Table};
use tidings::{Clock, Engine, ManualClock, RecordingProvider, SeededEntropy};

use crate::effort::Effort;
use crate::interposed::{Call, Interposed};
use crate::requests::{self, Answer, Refusal};
use crate::seeded;
use crate::tables::{self, Entry};

/// An entry of the seeded world, and the bytes in place of its value: either a line with the name
/// of a table and a number, and what comes after it, or else a byte for the table, one for the
/// entry, and the rest.
pub fn decode(bytes: &[u8]) -> Option<(&'static Entry, &[u8])> {
    named(bytes).or_else(|| match bytes {
        [table, which, value @ ..] => {
            let table = Table::ALL[usize::from(*table) % Table::ALL.len()];
            Some((entry(table, usize::from(*which))?, value))
        }
        _ => None,
    })
}

fn named(bytes: &[u8]) -> Option<(&'static Entry, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (name, which) = std::str::from_utf8(&bytes[..end]).ok()?.split_once(' ')?;
    Some((entry(Table::named(name)?, which.parse().ok()?)?, &bytes[end + 1..]))
}

fn entry(table: Table, which: usize) -> Option<&'static Entry> {
    let entries = || seeded::entries_of(table);
    entries().nth(which.checked_rem(entries().count())?)
}

/// Makes every sound request that reads the table in the seeded world, with one value of the store
/// replaced. The others cannot tell the difference. A fuzzer makes a few of them.
///
/// # Panics
///
/// If a request panics.
pub fn run(damage: Option<(&Entry, &[u8])>, effort: Effort) {
    let Some(((table, key, _), value)) = damage else { return };
    let ruins = Ruins::default();
    ruins.put(*table, key, Some(value));
    for request in effort.some_of(readers(*table), 4) {
        ruins.ask(request);
    }
}

/// The requests that read a table of the seeded world. The others answer the same, whatever is in it.
pub fn readers(table: Table) -> &'static [Value] {
    static READERS: LazyLock<BTreeMap<Table, Vec<Value>>> = LazyLock::new(|| {
        let ruins = Ruins::default();
        let mut readers: BTreeMap<Table, Vec<Value>> = BTreeMap::new();
        for request in requests::sound().iter().cloned().chain(requests::stopped()) {
            for table in ruins.tables_of(&request) {
                readers.entry(table).or_default().push(request.clone());
            }
        }
        readers
    });
    READERS.get(&table).map_or(&[], Vec::as_slice)
}

/// The seeded world over a store that can be damaged, and that no operation changes. Clones are the
/// same store.
#[derive(Clone, Debug)]
pub struct Ruins(MemoryStore);

impl Default for Ruins {
    fn default() -> Self {
        Self(seeded::store())
    }
}

impl Ruins {
    /// Puts `value` into the store, or leaves nothing there.
    pub fn put(&self, table: Table, key: &[u8], value: Option<&[u8]>) {
        tables::put(&self.0, table, key, value);
    }

    /// Returns the text of the answer of a new engine to `request`.
    pub fn ask(&self, request: &Value) -> String {
        requests::text(&self.answer(request))
    }

    /// Returns the answer of a new engine to `request`.
    pub fn answer(&self, request: &Value) -> Answer {
        answer(&Interposed::new(self.0.clone()).discarding(), request)
    }

    /// Returns the answer of a new engine to `request`, over a copy that the request may change.
    pub fn answer_in_a_copy(&self, request: &Value) -> Answer {
        answer(&Interposed::new(self.0.fork()), request)
    }

    // The tables that a request reads.
    fn tables_of(&self, request: &Value) -> BTreeSet<Table> {
        let store = Interposed::new(self.0.clone()).discarding();
        let (calls, _) = store.calls_of(|| answer(&store, request));
        let table = |call: &Call| match call {
            Call::Get(table, _) | Call::GetMany(table, _) | Call::Scan(table) => Some(*table),
            Call::Read | Call::Write | Call::Put(..) | Call::Delete(..) | Call::Commit => None,
        };
        calls.iter().filter_map(table).collect()
    }
}

/// An engine on a store with the seeded world, at a time when every job is due.
pub fn engine(store: impl Store) -> Engine {
    let now = seeded::world().clock.now().after(Duration::from_secs(1_000));
    Engine::builder()
        .clock(ManualClock::at(now))
        .entropy(SeededEntropy::new(1))
        .default_provider(RecordingProvider::default())
        .activity_segments(16)
        .build(store)
}

fn answer(store: &Interposed, request: &Value) -> Answer {
    let engine = engine(store.clone());
    match engine.environment(seeded::world().env.environment_id()) {
        Ok(env) => requests::call(&engine, &env, request),
        Err(error) => Err(Refusal::By(error)),
    }
}
