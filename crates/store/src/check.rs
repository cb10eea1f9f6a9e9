//! Comparing the rows of a store with the records that they follow from, and mending them.
//!
//! The rows are looked at in passes, and a pass in steps of some rows. A step says for each
//! contradiction what mends it. A check runs all steps on one snapshot. A repair runs each step on a
//! snapshot of its own, and once more in a transaction if it has found something.

mod derived;
mod finding;
mod homes;
mod lanes;
mod rows;
mod stalled;
mod step;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use domain::environment::Environment;
use domain::ids::EnvironmentId;

use crate::batch::Limit;
use crate::layout::{CountedList, Derived, Role, SearchedField};
use crate::record::if_readable;
use crate::{Error, OnRows, Order, Prefix, ReadRecords, Result, Snapshot, Table, backfill};

pub use self::finding::{Problem, TableCheck, TableFinding};
pub use self::homes::Homes;
pub(crate) use self::rows::{has_records, is_readable};
pub use self::stalled::{Stalled, StalledPart, Waiting, stalled};
pub use self::step::{Fix, PassStep, Rebuild, RowChange};

// Size of the steps through records, and of those through index entries.
const ROWS: Limit = Limit { rows: 256, bytes: 1 << 20 };

/// A part of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The records of a table, and the entries that each of them has.
    Records(Table),
    /// The environments, each of which has a record of its own.
    Homes,
    /// The environments, each of which has a key of its unsubscribe links.
    LinkKeys,
    /// The entries of an index.
    Index(Table),
    /// The rows of counters.
    Counters,
    /// The subscribers in this table, who have a row of counters.
    Counted(Table),
    /// The lists that have records, each of which has a row with their number.
    Lists,
    /// The rows with the numbers of records in lists.
    ListCounts,
    /// The rows of lanes in this table, or those of its workflows or tasks.
    Lanes(Table),
    /// The rows of outcomes.
    Outcomes,
    /// The indexes of a field of subscribers.
    Texts(SearchedField),
    /// The keys of a table of derived rows.
    Keys(Table),
}

impl Pass {
    /// Every part, in the order in which a repair goes through them.
    pub fn all() -> Vec<Self> {
        let of = |wanted: fn(Table) -> Option<Self>| Table::ALL.into_iter().filter_map(wanted);
        let records = of(|table| (table.role() == Role::Records).then_some(Self::Records(table)));
        let indexes = of(|table| match table.role() {
            Role::IndexOf(_) => Some(Self::Index(table)),
            Role::Records | Role::Derived(_) | Role::Marks => None,
        });
        let keys = of(|table| match table.role() {
            Role::Derived(Derived::Activity | Derived::Outcomes | Derived::Texts(_)) => {
                Some(Self::Keys(table))
            }
            Role::Records | Role::IndexOf(_) | Role::Derived(_) | Role::Marks => None,
        });
        let counted = [Table::MessageLists, Table::DeletedMessages].map(Self::Counted);
        let counts = [Self::Counters, Self::Lists, Self::ListCounts];
        let derived = counts.into_iter().chain(lanes::TABLES.map(Self::Lanes));
        let derived = derived.chain([Self::Outcomes]).chain(SearchedField::ALL.map(Self::Texts));
        // The entry of an environment says where its record was, until the index is mended.
        let homes = [Self::Homes, Self::LinkKeys];
        records.chain(homes).chain(indexes).chain(keys).chain(counted).chain(derived).collect()
    }

    /// The table that its progress names, and its finding if a scan is out of order.
    pub const fn table(self) -> Table {
        match self {
            Self::Records(table)
            | Self::Index(table)
            | Self::Counted(table)
            | Self::Keys(table) => table,
            Self::Homes | Self::LinkKeys => Table::Environments,
            Self::Counters => Table::MessageCounters,
            Self::Lists | Self::ListCounts => Table::ListCounts,
            Self::Lanes(_) => Table::Lanes,
            Self::Outcomes => Table::NotificationOutcomes,
            Self::Texts(field) => field.table(),
        }
    }

    // The tables that its rows follow from. The rows are compared and mended only if these are sound.
    const fn follows(self) -> &'static [Table] {
        match self {
            Self::Counters | Self::Counted(_) => {
                &[Table::Messages, Table::MessageLists, Table::DeletedMessages]
            }
            Self::Lists | Self::ListCounts => &CountedList::TABLES,
            Self::Lanes(_) => &[Table::Due],
            Self::Records(_)
            | Self::Homes
            | Self::LinkKeys
            | Self::Index(_)
            | Self::Outcomes
            | Self::Texts(_)
            | Self::Keys(_) => &[],
        }
    }

    /// Looks at some rows behind `behind`, or at the first ones. Steps on one snapshot share `homes`.
    pub fn step(
        self,
        snapshot: &dyn Snapshot,
        behind: Option<&[u8]>,
        homes: &Homes,
    ) -> Result<PassStep> {
        let step = match self {
            Self::Records(table) => rows::records(snapshot, table, behind),
            Self::Homes => homes::homes(snapshot, behind, homes),
            Self::LinkKeys => homes::link_keys(snapshot, behind),
            Self::Index(table) => rows::index(snapshot, table, behind),
            Self::Keys(table) => rows::keys(snapshot, table, behind, homes),
            Self::Counters => derived::counters(snapshot, behind),
            Self::Counted(table) => derived::counted(snapshot, table, behind),
            Self::Lists => derived::lists(snapshot, behind),
            Self::ListCounts => derived::list_counts(snapshot, behind),
            Self::Lanes(table) => lanes::lanes(snapshot, table, behind),
            Self::Outcomes => derived::outcomes(snapshot, behind),
            Self::Texts(field) => derived::texts(snapshot, field, behind),
        };
        let mut step = match step {
            // A key is not in its place: what is behind it cannot be looked at.
            Err(Error::Corrupt { table: _, source }) => {
                let problem = Problem::Unreadable { reason: source.to_string() };
                let mut step = PassStep::default();
                step.found_only(self.table(), &[], problem);
                step
            }
            step => step?,
        };
        if !step.found.is_empty() {
            step.forget_deleted(snapshot, homes)?;
            if backfill::is_pending(snapshot)? {
                step.forget_backfilled();
            }
        }
        Ok(step)
    }
}

/// Compares all tables that `snapshot` shows, but for the activity index, which has a comparison of
/// its own. Ends if `progress` breaks.
pub fn check_with(snapshot: &dyn Snapshot, progress: &mut OnRows<'_>) -> Result<TableCheck> {
    let (mut comparison, homes) = (Comparison::default(), Homes::default());
    for pass in Pass::all() {
        if comparison.unsound.holds_up(pass) {
            continue;
        }
        if comparison.run(pass, (snapshot, &homes), progress)?.is_break() {
            return Ok(comparison.check);
        }
    }
    let is_finished = comparison.look_for_stalled(snapshot, progress)?.is_continue();
    Ok(TableCheck { is_finished, ..comparison.check })
}

/// Tables that do not say what they should. Rows that follow from them cannot be compared, nor rebuilt.
#[derive(Debug, Default)]
pub struct Unsound(BTreeSet<Table>);

impl Unsound {
    /// Adds the table of a contradiction.
    pub fn add(&mut self, finding: &TableFinding) {
        self.0.extend(Table::named(finding.table));
    }

    /// Returns `true` if the rows of `pass` follow from one of the tables.
    pub fn holds_up(&self, pass: Pass) -> bool {
        self.has_any(pass.follows())
    }

    fn has_any(&self, tables: &[Table]) -> bool {
        tables.iter().any(|table| self.0.contains(table))
    }
}

// A comparison of all tables, and those with findings.
#[derive(Default)]
struct Comparison {
    check: TableCheck,
    unsound: Unsound,
}

impl Comparison {
    // Goes through all rows of a pass. Breaks if `progress` does.
    fn run(
        &mut self,
        pass: Pass,
        (snapshot, homes): (&dyn Snapshot, &Homes),
        progress: &mut OnRows<'_>,
    ) -> Result<ControlFlow<()>> {
        let (mut behind, mut rows) = (None, 0);
        loop {
            let step = pass.step(snapshot, behind.as_deref(), homes)?;
            rows += step.rows;
            let next = progress(pass.table(), step.rows);
            for (finding, _) in step.found {
                self.unsound.add(&finding);
                self.check.add(finding);
            }
            if next.is_break() {
                return Ok(next);
            }
            behind = step.next;
            if behind.is_none() {
                self.count(pass, rows);
                return Ok(next);
            }
        }
    }

    // Counts the rows of a pass that has ended. Some rows are those of several passes.
    fn count(&mut self, pass: Pass, rows: u64) {
        match pass {
            Pass::Records(_) => self.check.records += rows,
            Pass::Index(_) | Pass::Counters | Pass::ListCounts | Pass::Lanes(_) => {
                self.check.entries += rows;
            }
            Pass::Keys(table) if table.role() != Role::Derived(Derived::Activity) => {
                self.check.entries += rows;
            }
            Pass::Homes
            | Pass::LinkKeys
            | Pass::Keys(_)
            | Pass::Counted(_)
            | Pass::Lists
            | Pass::Outcomes
            | Pass::Texts(_) => {}
        }
    }

    // Looks for records that wait for a task which is not there. Breaks if `progress` does. What is in an
    // unsound table is not known.
    fn look_for_stalled(
        &mut self,
        snapshot: &dyn Snapshot,
        progress: &mut OnRows<'_>,
    ) -> Result<ControlFlow<()>> {
        if self.unsound.has_any(&[Table::Tasks, Table::Quarantine]) {
            return Ok(ControlFlow::Continue(()));
        }
        for table in Waiting::TABLES {
            let mut behind = None;
            while !self.unsound.has_any(&[table]) {
                let part = stalled(snapshot, table, behind.as_deref(), progress)?;
                let ControlFlow::Continue(part) = part else { return Ok(ControlFlow::Break(())) };
                for Stalled { table, key, .. } in part.found {
                    self.check.add(TableFinding::new(table, &key, Problem::Stalled));
                }
                behind = part.next;
                if behind.is_none() {
                    break;
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Checks the store as [`check_with`] does, without a callback.
pub fn check(snapshot: &dyn Snapshot) -> Result<TableCheck> {
    check_with(snapshot, &mut |_, _| ControlFlow::Continue(()))
}

// The environments that are being deleted.
fn deleted_environments(snapshot: &dyn Snapshot) -> Result<BTreeSet<EnvironmentId>> {
    let (all, mut deleted) = (Prefix::<Environment>::of_all().range(), BTreeSet::new());
    let read = snapshot.each_readable::<Environment>(&all, Order::Ascending, |environment| {
        deleted.extend(environment.is_deleted().then_some(environment.id));
        ControlFlow::Continue(())
    });
    // Those behind a damaged page are not known.
    if_readable(read)?;
    Ok(deleted)
}

/// The environments of the activity index and of records with ordinals, but for those that are being deleted.
/// Those behind a damaged page are not known.
pub fn listed_environments(snapshot: &dyn Snapshot) -> Result<BTreeSet<EnvironmentId>> {
    let mut found = BTreeSet::new();
    for table in [Table::Notifications, Table::Messages, Table::Triggers, Table::ActivityHeads] {
        if_readable(derived::environments(snapshot, table, &mut found))?;
    }
    Ok(&found - &deleted_environments(snapshot)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{DamagedView, leading_back};
    use crate::memory::MemoryStore;
    use crate::{read, write};

    /// A pass through a table whose scans lead back to its start ends there. A pass that reads rows in batches
    /// reports it.
    #[test]
    fn a_pass_ends_where_a_scan_leads_back() {
        let store = MemoryStore::default();
        write(&store, |txn| {
            let mut rows = Table::ALL
                .into_iter()
                .flat_map(|table| (0..300_u64).map(move |number| (table, number.to_be_bytes())));
            rows.try_for_each(|(table, key)| txn.put(table, &key, b"row"))
        })
        .unwrap();
        read(&store, |snapshot| {
            let view = DamagedView(snapshot, leading_back);
            for pass in Pass::all() {
                let (mut behind, mut problems) = (None, Vec::new());
                for steps in 0.. {
                    assert!(steps < 1_000, "{pass:?} has no end");
                    let step = pass.step(&view, behind.as_deref(), &Homes::default())?;
                    problems.extend(step.found.into_iter().map(|(finding, _)| finding.problem));
                    behind = step.next;
                    if behind.is_none() {
                        break;
                    }
                }
                let is_found = problems.pop().is_some_and(|last| {
                    matches!(last, Problem::Unreadable { reason } if reason == "an entry is not in its place")
                });
                let looks_at_rows = match pass {
                    Pass::Records(_)
                    | Pass::LinkKeys
                    | Pass::Index(_)
                    | Pass::Counters
                    | Pass::ListCounts
                    | Pass::Keys(_) => true,
                    Pass::Lanes(table) => table != Table::Due,
                    Pass::Homes
                    | Pass::Counted(_)
                    | Pass::Lists
                    | Pass::Outcomes
                    | Pass::Texts(_) => false,
                };
                assert!(is_found || !looks_at_rows, "{pass:?}");
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}
