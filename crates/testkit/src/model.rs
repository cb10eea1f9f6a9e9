//! A store that is obviously right.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Mutex;

use store::{
    Decision, KeyRange, Order, ReadBody, Result, Snapshot, Store, Table, Transaction, Visit,
    VisitValue, WriteBody,
};

/// A store that is obviously right.
#[derive(Debug, Default)]
pub struct Model(Mutex<Rows>);

type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

struct Draft(Rows);

// A body that panics has changed only a draft.
const UNHARMED: &str = "no thread panics with the lock in hand";

impl Store for Model {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        let rows = self.0.lock().expect(UNHARMED).clone();
        body(&Draft(rows))
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        let mut draft = Draft(self.0.lock().expect(UNHARMED).clone());
        if body(&mut draft)? == Decision::Commit {
            *self.0.lock().expect(UNHARMED) = draft.0;
        }
        Ok(())
    }
}

impl Snapshot for Draft {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.0.get(&(table, key.to_vec()));
        Ok(value.map(|value| visit(value)).is_some())
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        for key in keys {
            visit(self.0.get(&(table, key.to_vec())).map(Vec::as_slice));
        }
        Ok(())
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let within = |(t, key): &(Table, Vec<u8>)| *t == table && range.contains(key);
        let mut rows: Vec<_> = self.0.iter().filter(|(key, _)| within(key)).collect();
        if order == Order::Descending {
            rows.reverse();
        }
        let mut rows = rows.into_iter().take(limit.unwrap_or(usize::MAX));
        while rows.next().is_some_and(|((_, key), value)| visit(key, value).is_continue()) {}
        Ok(())
    }
}

impl Transaction for Draft {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert((table, key.to_vec()), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.0.remove(&(table, key.to_vec()));
        Ok(())
    }
}
