//! Options of a store in a file.

/// Options of a [`RedbStore`](super::RedbStore).
///
/// ```
/// use tidings_store::redb::{AppliedBy, LogOptions, RedbOptions, RedbStore};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.redb");
/// let log = LogOptions::default().memtable_bytes(4 << 20).applied_by(AppliedBy::Callers);
/// let options = RedbOptions::default().cache_bytes(16 << 20).log(log);
/// let store = RedbStore::open_with(&path, &options)?;
/// store.checkpoint()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedbOptions {
    /// `true` to create a store if the file does not exist or is empty, which is the default. Tools that
    /// look at a store set `false`, so that a wrong path is refused with
    /// [`NoStore`](crate::Error::NoStore).
    pub create: bool,
    /// Size of the cache of pages, in bytes; 64 MiB by default.
    pub cache_bytes: usize,
    /// `true` to check every page of the file on opening; `false` by default. Without the check a
    /// damaged page is noticed on reading, if its content makes no sense. The log is always checked.
    pub verify: bool,
    /// The log beside the file. `None` makes each batch of callers a transaction of redb, which is
    /// slower and writes more. A log that is there is used up on opening in any case.
    pub log: Option<LogOptions>,
    /// `true` to open a file whose log is missing or damaged, without the changes behind the damage;
    /// `false` by default.
    pub discard_damaged_log: bool,
}

/// Options of the log of a [`RedbStore`](super::RedbStore).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogOptions {
    /// Number of bytes that are gathered in memory and in the log before they are applied to the
    /// file; 8 MiB by default. Memory and log hold twice as much, and callers wait if that is full.
    pub memtable_bytes: usize,
    /// Thread that applies the changes; one of the store by default.
    pub applied_by: AppliedBy,
}

/// Thread that applies the changes of the log to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedBy {
    /// A thread of the store, which ends when the store is dropped.
    Thread,
    /// The calls that write, each a small part, and
    /// [`checkpoint`](super::RedbStore::checkpoint).
    Callers,
}

impl Default for RedbOptions {
    fn default() -> Self {
        let log = Some(LogOptions::default());
        Self { create: true, cache_bytes: 64 << 20, verify: false, log, discard_damaged_log: false }
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { memtable_bytes: 8 << 20, applied_by: AppliedBy::Thread }
    }
}

impl RedbOptions {
    /// Sets whether to create a store if the file does not exist or is empty.
    #[must_use]
    pub fn create(self, create: bool) -> Self {
        Self { create, ..self }
    }

    /// Sets the size of the cache of pages, in bytes.
    #[must_use]
    pub fn cache_bytes(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }

    /// Sets whether to check every page of the file on opening.
    #[must_use]
    pub fn verify(self, verify: bool) -> Self {
        Self { verify, ..self }
    }

    /// Sets the options of the log beside the file. There is no log with `None`.
    #[must_use]
    pub fn log(self, log: impl Into<Option<LogOptions>>) -> Self {
        Self { log: log.into(), ..self }
    }

    /// Sets whether to open a file whose log is missing or damaged, without the changes behind the
    /// damage.
    #[must_use]
    pub fn discard_damaged_log(self, discard_damaged_log: bool) -> Self {
        Self { discard_damaged_log, ..self }
    }
}

impl LogOptions {
    /// Sets the number of bytes that are gathered before they are applied to the file.
    #[must_use]
    pub fn memtable_bytes(self, memtable_bytes: usize) -> Self {
        Self { memtable_bytes, ..self }
    }

    /// Sets the thread that applies the changes.
    #[must_use]
    pub fn applied_by(self, applied_by: AppliedBy) -> Self {
        Self { applied_by, ..self }
    }
}
