//! What a step of a check has found, and what mends it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use domain::ids::EnvironmentId;
use domain::quarantine::Unreadable;

use super::{Homes, Problem, TableFinding};
use crate::batch::{Batch, Limit, Row};
use crate::layout::{CountedList, SearchedField, TextIndex};
use crate::{Range, Result, Snapshot, Table, Transaction, backfill, list_counts};

/// Rows that were looked at.
#[derive(Debug, Default)]
pub struct PassStep {
    /// Number of rows.
    pub rows: u64,
    /// Contradictions, each with what mends it. `None` if another fix mends it, or none is known.
    pub found: Vec<(TableFinding, Option<Fix>)>,
    /// The key behind which the pass goes on. `None` at its end.
    pub next: Option<Vec<u8>>,
}

/// What mends a contradiction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// A row is put or removed.
    Row(RowChange),
    /// A record is moved into quarantine.
    PutAside(Table, Unreadable),
    /// An environment gets a record under this key, in place of one that is gone.
    StandIn(Vec<u8>),
    /// An environment gets a key of its unsubscribe links, in place of one that is gone.
    LinkKey(EnvironmentId),
    /// Rows are rebuilt, in transactions of their own.
    Rebuild(Rebuild),
}

/// Change of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// Table of the row.
    pub table: Table,
    /// Key of the row.
    pub key: Vec<u8>,
    /// New value. `None` removes the row.
    pub value: Option<Vec<u8>>,
}

/// Rows that are rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rebuild {
    /// An index of texts.
    Texts(TextIndex),
    /// The counters of a subscriber under this key.
    Counters(Vec<u8>),
    /// The number of records in a list.
    ListCount(CountedList),
}

impl RowChange {
    /// Makes the change.
    pub fn apply(&self, transaction: &mut dyn Transaction) -> Result<()> {
        let Self { table, key, value } = self;
        list_counts::forget(transaction, *table, key)?;
        match value {
            Some(value) => transaction.put(*table, key, value),
            None => transaction.delete(*table, key),
        }
    }
}

impl From<RowChange> for Fix {
    fn from(change: RowChange) -> Self {
        Self::Row(change)
    }
}

impl From<Rebuild> for Fix {
    fn from(rebuild: Rebuild) -> Self {
        Self::Rebuild(rebuild)
    }
}

impl PassStep {
    /// Reads the next rows of a table, for the step that looks at them.
    pub(super) fn begin(
        snapshot: &dyn Snapshot,
        table: Table,
        behind: Option<&[u8]>,
        limit: impl Into<Limit>,
    ) -> Result<(Self, Vec<Row>)> {
        let Batch { rows, next } = Batch::read(snapshot, &Range::of_table(table, behind), limit)?;
        Ok((Self { rows: rows.len() as u64, found: Vec::new(), next }, rows))
    }

    /// What mends the contradictions.
    pub fn fixes(&self) -> impl Iterator<Item = &Fix> {
        self.found.iter().filter_map(|(_, fix)| fix.as_ref())
    }

    /// The contradictions of tables that cannot be gone through. They are those of no row.
    pub fn impassable(&self) -> impl Iterator<Item = &TableFinding> {
        let all = self.found.iter().map(|(finding, _)| finding);
        all.filter(|finding| finding.key.is_empty())
    }

    /// What is to be rebuilt.
    pub fn rebuilds(&self) -> impl Iterator<Item = &Rebuild> {
        self.fixes().filter_map(|fix| match fix {
            Fix::Rebuild(rebuild) => Some(rebuild),
            Fix::Row(_) | Fix::PutAside(..) | Fix::StandIn(_) | Fix::LinkKey(_) => None,
        })
    }

    /// Leaves out the contradictions of environments that are being deleted.
    pub(super) fn forget_deleted(&mut self, snapshot: &dyn Snapshot, homes: &Homes) -> Result<()> {
        let mut are_deleted = BTreeMap::new();
        for environment in self.found.iter().filter_map(|(finding, _)| finding.environment) {
            if let Entry::Vacant(place) = are_deleted.entry(environment) {
                place.insert(homes.is_deleted(snapshot, environment)?);
            }
        }
        let is_deleted = |of: EnvironmentId| are_deleted.get(&of) == Some(&true);
        self.found.retain(|(finding, _)| !finding.environment.is_some_and(is_deleted));
        Ok(())
    }

    /// Leaves out the missing rows that a backfill puts. A rebuild of texts stays with the first contradiction
    /// that is left.
    pub(super) fn forget_backfilled(&mut self) {
        let texts = self.rebuilds().find(|rebuild| matches!(rebuild, Rebuild::Texts(_))).cloned();
        self.found.retain(|(finding, _)| !is_backfilled(finding));
        if let (Some(texts), Some((_, fix))) = (texts, self.found.first_mut()) {
            *fix = Some(Fix::Rebuild(texts));
        }
    }

    /// Adds a contradiction, and what mends it.
    pub(super) fn found(
        &mut self,
        table: Table,
        key: &[u8],
        problem: Problem,
        fix: impl Into<Fix>,
    ) {
        self.found.push((TableFinding::new(table, key, problem), Some(fix.into())));
    }

    /// Adds a contradiction of a row that gets another value, or that is removed if `value` is `None`.
    pub(super) fn found_row(
        &mut self,
        table: Table,
        key: &[u8],
        problem: Problem,
        value: Option<Vec<u8>>,
    ) {
        self.found(table, key, problem, RowChange { table, key: key.to_vec(), value });
    }

    /// Adds a contradiction that another fix mends, or for which none is known.
    pub(super) fn found_only(&mut self, table: Table, key: &[u8], problem: Problem) {
        self.found.push((TableFinding::new(table, key, problem), None));
    }
}

// Returns `true` if a row is missing that a backfill puts.
fn is_backfilled(finding: &TableFinding) -> bool {
    let is_put = Table::named(finding.table).is_some_and(|table| match table {
        // A name that is missing has the key of its subscriber.
        Table::NameIndex => SearchedField::Name.read(&finding.key).is_none(),
        table => backfill::puts(table, &finding.key),
    });
    is_put && finding.problem == Problem::Missing
}
