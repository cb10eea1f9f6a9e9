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
