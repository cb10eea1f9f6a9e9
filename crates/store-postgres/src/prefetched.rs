//! Values that a transaction has read ahead.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use store::Table;
use tokio_postgres::{Error, Row};

use crate::cache::Value;
use crate::failure::Failure;
use crate::tables::Tables;

/// Values that a transaction has read ahead, which nobody can change before its end.
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
