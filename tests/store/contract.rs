//! Every backend keeps the contract of [`store::Store`].

mod memory {
    store::conformance_tests!(store::memory::MemoryStore::default());
}

mod redb {
    store::conformance_tests!({
        let file = tempfile::NamedTempFile::new().unwrap();
        store::redb::RedbStore::open(file.path()).unwrap()
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
