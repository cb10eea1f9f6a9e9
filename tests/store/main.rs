//! The stores keep their contract, alone and in a crowd, and whatever happens to the disk.
//!
//! `TIDINGS_TEST_SCALE` multiplies how often the tests that roll dice do so.

use std::path::PathBuf;

use store::redb::{AppliedBy, RedbStore};
use store::{Decision, Error, Store, Table, Transaction};
use tempfile::{TempDir, tempdir};
use testkit::disk::Disk;
use testkit::files::log_of;
use testkit::tables::dump;

mod agreement;
mod contract;
mod damage;
mod full;
mod group_commit;
mod interposed;
mod kill;
mod log;
mod opening;
mod power;
mod trouble;

/// Opens the store on a disk, or creates it.
type Open = fn(&Disk) -> store::Result<RedbStore>;

const WITHOUT_A_LOG: Open = Disk::try_open;
const BY_A_THREAD: Open = |disk| disk.try_open_logged(AppliedBy::Thread);
const BY_CALLERS: Open = |disk| disk.try_open_logged(AppliedBy::Callers);

/// Without a log, and with one that either applies.
const KINDS: [Open; 3] = [WITHOUT_A_LOG, BY_A_THREAD, BY_CALLERS];

/// The path of a new file, in a folder that is there as long as the other value.
fn place() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("store.redb");
    (folder, path)
}

/// Writes one transaction of five records, all of them named after `id`.
fn write_five(store: &dyn Store, id: &str) -> Result<(), Error> {
    store.write(&mut |transaction| put_five(transaction, id).map(|()| Decision::Commit))
}

fn put_five(transaction: &mut dyn Transaction, id: &str) -> Result<(), Error> {
    for table in &Table::ALL[..5] {
        transaction.put(*table, id.as_bytes(), &value_of(id))?;
    }
    Ok(())
}

fn value_of(id: &str) -> Vec<u8> {
    id.bytes().cycle().take(200).collect()
}

/// Checks that transactions of [`write_five`] are there as a whole or not at all, and returns the
/// ids of those that are.
#[track_caller]
fn check_whole(store: &dyn Store) -> Vec<String> {
    let entries = dump(store);
    let in_table = |table| entries.iter().filter(move |(t, _, _)| *t == table);
    let ids: Vec<_> =
        in_table(Table::ALL[0]).map(|(_, id, _)| String::from_utf8(id.clone()).unwrap()).collect();
    for table in &Table::ALL[..5] {
        let expected = ids.iter().map(|id| (*table, id.clone().into_bytes(), value_of(id)));
        assert!(in_table(*table).cloned().eq(expected), "{} has other transactions", table.name());
    }
    ids
}

#[track_caller]
fn check_contains(found: &[String], acknowledged: &[String]) {
    let lost: Vec<_> = acknowledged.iter().filter(|id| !found.contains(id)).collect();
    assert!(lost.is_empty(), "lost {lost:?}");
}
