//! Opening a file whose name is not yet durable.

use super::super::log::SYNCED_FOLDERS;
use super::super::{RedbOptions, RedbStore};
use super::*;

/// Nothing but an opening makes the name durable if there is no log.
#[test]
fn each_opening_without_a_log_syncs_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.redb");
    let without = RedbOptions::default().log(None);
    drop(RedbStore::open(&path).unwrap());
    for opening in 1..3 {
        let before = SYNCED_FOLDERS.get();
        let store = RedbStore::open_with(&path, &without).unwrap();
        assert_eq!(SYNCED_FOLDERS.get() - before, 1, "opening {opening}");
        write(&store, b"ada").unwrap();
    }
}
