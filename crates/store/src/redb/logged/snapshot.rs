//! A snapshot of the database with the changes that lie over it.

use std::sync::Arc;

use super::super::database::DatabaseFile;
use super::super::disk::Disk;
use crate::memtable::Memtable;
use crate::overlay::{Changed, Layer, Run, get_many_over, get_over, merged, scan_over};
use crate::{KeyRange, Order, Result, Snapshot, Table, Visit, VisitValue, range};

/// Memtables over a snapshot of the database.
pub(in crate::redb) struct Merged<'s> {
    /// Latest first.
    memtables: [Option<Arc<Memtable>>; 2],
    disk: Disk<'s>,
    stamp: Option<u64>,
}

impl<'s> Merged<'s> {
    pub(super) fn now(
        file: &'s DatabaseFile,
        memtables: [Option<&Arc<Memtable>>; 2],
        stamp: Option<u64>,
    ) -> Result<Self> {
        let disk = Disk::now(file)?;
        let memtables = memtables.map(|it| it.filter(|it| !it.is_empty()).map(Arc::clone));
        Ok(Self { memtables, disk, stamp })
    }

    fn change(&self, table: Table, key: &[u8]) -> Option<Changed<'_>> {
        self.memtables.iter().flatten().find_map(|it| it.change(table, key))
    }

    fn run(&self, table: Table, range: &KeyRange, order: Order) -> Option<Run<'_>> {
        let span = range::borrow(range)?;
        let memtables = self.memtables.iter().flatten();
        merged(memtables.filter_map(|it| it.run(table, span, order)), order)
    }
}

impl Snapshot for Merged<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        get_over(self.change(table, key), || Ok(&self.disk), table, key, visit)
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        let change = |key: &[u8]| self.change(table, key);
        get_many_over(change, || Ok(&self.disk), table, keys, visit)
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let Some(run) = self.run(table, range, order) else {
            return self.disk.scan(table, range, order, limit, visit);
        };
        // The merge ends the scan, however many entries were removed.
        let scan = &mut |visit: &mut Visit<'_>| self.disk.scan(table, range, order, None, visit);
        scan_over(run, order, limit, visit, scan)
    }

    fn stamp(&self) -> Option<u64> {
        self.stamp
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::super::super::{AppliedBy, LogOptions, RedbOptions, RedbStore};
    use super::super::sample;
    use crate::group_commit::Base;
    use crate::overlay::Changes;
    use crate::range::EVERYTHING;
    use crate::{Decision, Order, Snapshot, Store, Table, Transaction};

    type Entries = Vec<(Vec<u8>, Vec<u8>)>;

    const TABLE: Table = Table::ALL[0];

    /// Half of the log: larger changes go into the file at once.
    const HALF: usize = 8_192;

    fn store(log: bool) -> (tempfile::TempDir, RedbStore) {
        let folder = tempfile::tempdir().unwrap();
        let log_options = LogOptions { memtable_bytes: HALF, applied_by: AppliedBy::Callers };
        let options = RedbOptions { log: log.then_some(log_options), ..RedbOptions::default() };
        let store = RedbStore::open_with(folder.path().join("shop.redb"), &options).unwrap();
        (folder, store)
    }

    fn shown(view: &(impl Snapshot + ?Sized)) -> (Option<u64>, Entries) {
        let mut entries = Entries::new();
        let visit = &mut |key: &[u8], value: &[u8]| {
            entries.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        view.scan(TABLE, &EVERYTHING, Order::Ascending, None, visit).unwrap();
        (view.stamp(), entries)
    }

    fn read(store: &RedbStore) -> (Option<u64>, Entries) {
        let mut found = None;
        store
            .read(&mut |view| {
                found = Some(shown(view));
                Ok(())
            })
            .unwrap();
        found.unwrap()
    }

    /// Small and large changes, removals and checkpoints, with a log and without.
    #[test]
    fn views_with_one_stamp_show_the_same() {
        for log in [true, false] {
            let (_folder, store) = store(log);
            let mut before: Vec<(Option<u64>, Entries)> = vec![read(&store)];
            for round in 0..120_u8 {
                let value = vec![round; if round % 17 == 16 { HALF * 2 } else { 300 }];
                let write = &mut |txn: &mut dyn Transaction| {
                    // Behind the last commit, nothing is on its way.
                    assert_eq!(shown(txn), before.last().cloned().unwrap());
                    txn.put(TABLE, &[round % 7], &value)?;
                    if round % 5 == 0 {
                        txn.delete(TABLE, &[(round + 1) % 7])?;
                    }
                    assert_eq!(txn.stamp(), None);
                    Ok(if round % 11 == 10 { Decision::Abort } else { Decision::Commit })
                };
                store.write(write).unwrap();
                if round % 40 == 39 {
                    store.checkpoint().unwrap();
                }
                let now = read(&store);
                assert!(now.0.is_some());
                assert_eq!(read(&store), now);
                before.push(now);
            }
            for (stamp, entries) in &before {
                let same = before.iter().filter(|(other, _)| other == stamp);
                assert!(same.into_iter().all(|(_, other)| other == entries));
            }
        }
    }

    /// Nobody can tell on which side of the change a view is.
    #[test]
    fn a_view_during_a_change_has_no_stamp() {
        let (_folder, logged) = sample::logged();
        let stamp = || logged.snapshot().unwrap().stamp();

        let before = stamp();
        logged.shared.changing(|| {
            assert_eq!(stamp(), None);
            logged.shared.changing(|| ());
            assert_eq!(stamp(), None);
        });
        let after = stamp();
        assert!(before.is_some() && after.is_some() && before != after);

        let mut changes = Changes::default();
        changes.set(TABLE, b"ada", Some(b""));
        logged.commit(&changes).unwrap();
        assert_ne!(stamp(), after);
    }
}
