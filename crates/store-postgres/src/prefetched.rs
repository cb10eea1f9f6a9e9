//! Values that a transaction has read ahead.

use std::cell::RefCell;
use std::sync::Arc;

use foldhash::HashMap;
use store::Table;
use tokio_postgres::{Error, Row};

use crate::cache::Value;
use crate::failure::Failure;
use crate::heads::{Counts, Head};
use crate::tables::Tables;

/// Values that a transaction has read ahead. They stay the same until its end.
#[derive(Default)]
pub(crate) struct Prefetched(RefCell<HashMap<Table, HashMap<Vec<u8>, Value>>>);

impl Prefetched {
    /// The value under `key`. Returns `None` if it was not read ahead.
    pub(crate) fn get(&self, table: Table, key: &[u8]) -> Option<Value> {
        self.0.borrow().get(&table)?.get(key).cloned()
    }

    pub(crate) fn keep(&self, table: Table, key: Vec<u8>, value: Value) {
        self.0.borrow_mut().entry(table).or_default().insert(key, value);
    }
}

/// The keys of `keys` whose values a transaction has to ask for. It shows these counts. Keys of other
/// heads are left out: they are not locked, so that their values may change at any time.
pub(crate) fn unknown(
    counts: &Counts,
    keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>,
    is_known: impl Fn(Table, &[u8]) -> bool,
) -> Vec<(Table, Vec<u8>)> {
    let is_fixed = |table, key: &[u8]| counts.get(Head::of(table, key)).is_some();
    keys.filter(|(table, key)| is_fixed(*table, key) && !is_known(*table, key)).collect()
}

/// The values under `keys`, from the rows of [`GET_WANTED`](crate::schema::GET_WANTED).
pub(crate) fn values_of(
    tables: &Tables,
    keys: Vec<(Table, Vec<u8>)>,
    rows: &[Row],
) -> Result<impl Iterator<Item = (Table, Vec<u8>, Value)>, Failure> {
    let entry = |row: &Row| {
        let value: Arc<[u8]> = Arc::from(row.try_get::<_, &[u8]>(3)?);
        Ok(((row.try_get(0)?, [row.try_get::<_, &[u8]>(1)?, row.try_get(2)?].concat()), value))
    };
    let values = rows.iter().map(entry).collect::<Result<HashMap<(i16, Vec<u8>), _>, Error>>();
    let values = values.map_err(|error| Failure::of("read entries", error))?;
    Ok(keys.into_iter().map(move |(table, key)| {
        let place = (tables.number(table), key);
        let value = values.get(&place).cloned();
        (table, place.1, value)
    }))
}
