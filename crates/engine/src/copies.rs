//! Backups, and copies into other stores.

use std::ops::ControlFlow;

use store::Store;
use store::transfer::Copied;

use crate::{Engine, Progress, Result, trace};

impl Engine {
    /// Copies all records into a new file at `path`, while other operations and workers go on. The
    /// copy is the state of one moment: it has each call that had returned before, and no call in
    /// parts. [`Engine::open`] takes it, and [`restore`](crate::store::redb::restore) puts it in
    /// place. On Unix it is readable for its owner alone.
    ///
    /// ```
    /// use tidings::Engine;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("copy.redb");
    /// # let engine = Engine::in_memory();
    /// engine.organization("shop")?.production()?;
    /// let copied = engine.backup(&path)?;
    /// assert!(copied.is_finished);
    ///
    /// let copy = Engine::open(&path)?;
    /// assert_eq!(copy.check()?.findings, []);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`TargetExists`](store::Error::TargetExists) if there is something at `path`;
    /// [`Unopenable`](store::Error::Unopenable) if `path` is the name of the log of a file that is
    /// there; [`AlreadyOpen`](store::Error::AlreadyOpen) if another backup to `path` is under way;
    /// [`StorageFull`](store::Error::StorageFull) if there is no room for the copy;
    /// [`Interrupted`](store::Error::Interrupted) if the disk of the engine was full meanwhile, and
    /// its file was opened again. Nothing is at `path` then.
    #[cfg(feature = "redb")]
    pub fn backup(&self, path: impl AsRef<std::path::Path>) -> Result<Copied> {
        self.backup_with(path, |_| ControlFlow::Continue(()))
    }

    /// [`backup`](Self::backup) that calls `progress` after each megabyte, and ends if `progress`
    /// breaks. The next backup to `path` goes on with what is there then, if all of that is still in the
    /// store. Otherwise it begins anew, so that no erased byte is left in the file.
    ///
    /// # Errors
    ///
    /// As [`backup`](Self::backup).
    #[cfg(feature = "redb")]
    pub fn backup_with(
        &self,
        path: impl AsRef<std::path::Path>,
        progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Copied> {
        trace::operation("engine.backup", None, || {
            Ok(store::redb::backup(self.store(), path, progress)?)
        })
    }

    /// Copies all records into `store`, which has none, while other operations and workers go on. The
    /// copy is the state of one moment, and is compared with it, by a count and a hash for each table.
    ///
    /// A copy that was interrupted is started again. It is the state of that moment, and what is there
    /// already is not written again. An engine on an unfinished copy has no environments,
    /// and [`check`](Self::check) finds them missing.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tidings::Engine;
    /// use tidings::store::memory::MemoryStore;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::in_memory();
    /// engine.organization("shop")?.production()?;
    /// let memory = Arc::new(MemoryStore::default());
    /// assert!(engine.copy_to(&memory)?.is_finished);
    ///
    /// let copy = Engine::builder().build(memory);
    /// assert_eq!(copy.check()?.findings, []);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`TargetInUse`](store::Error::TargetInUse) if `store` has environments;
    /// [`UnfinishedCopy`](store::Error::UnfinishedCopy) if the store of this engine is an unfinished copy;
    /// [`CopyDiffers`](store::Error::CopyDiffers) if the copy is not as its origin.
    pub fn copy_to(&self, store: &impl Store) -> Result<Copied> {
        self.copy_to_with(store, |_| ControlFlow::Continue(()))
    }

    /// [`copy_to`](Self::copy_to) that calls `progress` after each megabyte, and ends if `progress`
    /// breaks.
    ///
    /// # Errors
    ///
    /// As [`copy_to`](Self::copy_to).
    pub fn copy_to_with(
        &self,
        store: &impl Store,
        progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Copied> {
        trace::operation("engine.copy_to", None, || {
            Ok(::store::transfer::copy(self.store(), store, progress)?)
        })
    }
}
