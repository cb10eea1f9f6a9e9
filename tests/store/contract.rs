//! Every backend keeps the contract of [`store::Store`].

mod memory {
    store::conformance_tests!(store::memory::MemoryStore::default());
}

mod redb {
    use store::redb::RedbStore;
    use store::{ReadBody, Result, Store, WriteBody};
    use tempfile::TempDir;

    /// A store in a folder that ends with it.
    #[derive(Debug)]
    struct InFolder(
        RedbStore,
        #[expect(dead_code, reason = "it is removed behind the store")] TempDir,
    );

    impl Store for InFolder {
        fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
            self.0.read(body)
        }

        fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
            self.0.write(body)
        }
    }

    store::conformance_tests!({
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path().join("store.redb")).unwrap();
        InFolder(store, folder)
    });
}

mod redb_without_a_log {
    store::conformance_tests!(testkit::disk::Disk::new().open());
}

// The log is so small that the laws fill it.
mod redb_applied_by_a_thread {
    use store::redb::AppliedBy::Thread;

    store::conformance_tests!(testkit::disk::Disk::new().open_logged(Thread));
}

mod redb_applied_by_callers {
    use store::redb::AppliedBy::Callers;

    store::conformance_tests!(testkit::disk::Disk::new().open_logged(Callers));
}

mod fork {
    use std::sync::Arc;

    store::conformance_tests!(store::Fork::new(
        Arc::new(store::memory::MemoryStore::default()),
        &[]
    ));
}
