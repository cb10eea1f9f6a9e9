//! Conversion of redb's errors and panics into ours.

use std::any::Any;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::{error, result};

use thiserror::Error;

use super::medium::Outdated;
use crate::record::misplaced;
use crate::{Error, Table};

/// Reason why redb did not carry out an action. Each caller that waited for it gets a clone.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// Data that redb has read cannot have been written by redb.
    Damaged(Cause),
    /// A scan of the table has shown a key outside its range, or out of order.
    Misplaced(Table),
    /// redb could not carry out an action.
    Refused { action: &'static str, cause: Cause },
    /// The disk has no room for an action, or the file may not grow.
    Full { action: &'static str, cause: Cause },
    /// The operating system does not let the file be changed.
    ReadOnly { action: &'static str, cause: Cause },
    /// The file was opened again while a snapshot was read.
    Interrupted(Cause),
    /// The file has another name, or none.
    Replaced,
    /// There were no commits since an earlier failure.
    Stopped(Box<Failure>),
}

type Cause = Arc<dyn error::Error + Send + Sync>;

type Result<T, E = Failure> = result::Result<T, E>;

#[derive(Debug, Error)]
#[error("redb or its storage panicked: {0}")]
struct Panicked(String);

impl Failure {
    pub(super) fn damaged(cause: impl error::Error + Send + Sync + 'static) -> Self {
        Failure::Damaged(Arc::new(cause))
    }

    /// The failure of an action by an error of the operating system.
    pub(super) fn of_disk(action: &'static str, cause: Arc<io::Error>) -> Self {
        match cause.kind() {
            _ if is_full(&cause) => Failure::Full { action, cause },
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                Failure::ReadOnly { action, cause }
            }
            // The file ends before the data that redb reads.
            ErrorKind::UnexpectedEof => Failure::Damaged(cause),
            _ if Outdated::is_in(&cause) => Failure::Interrupted(cause),
            _ => Failure::Refused { action, cause },
        }
    }

    /// The same failure, as the error of the file at `path`.
    pub(super) fn at(self, path: &Path) -> Error {
        let path = || path.to_owned();
        let backend = |action, cause: Cause| {
            Box::new(Error::Backend { backend: "redb", action, source: Box::new(cause) })
        };
        match self {
            Failure::Damaged(cause) => Error::Damaged { path: path(), source: Box::new(cause) },
            Failure::Misplaced(table) => misplaced(table),
            Failure::Refused { action, cause } if would_refuse_again(&*cause) => {
                Error::Refused { backend: "redb", action, source: Box::new(cause) }
            }
            Failure::Refused { action, cause } => *backend(action, cause),
            Failure::Full { action, cause } => {
                Error::StorageFull { path: path(), source: backend(action, cause) }
            }
            Failure::ReadOnly { action, cause } => {
                Error::ReadOnly { path: path(), source: backend(action, cause) }
            }
            Failure::Interrupted(cause) => {
                Error::Interrupted { path: path(), source: Box::new(cause) }
            }
            Failure::Replaced => Error::Replaced { path: path() },
            Failure::Stopped(cause) => match *cause {
                cause @ (Failure::ReadOnly { .. } | Failure::Replaced) => cause.at(&path()),
                cause => Error::NeedsReopen { path: path(), source: Box::new(cause.at(&path())) },
            },
        }
    }

    fn new(action: &'static str, error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => Failure::of_disk(action, Arc::new(error)),
            error if is_damage(&error) => Failure::Damaged(Arc::new(error)),
            error => Failure::Refused { action, cause: Arc::new(error) },
        }
    }
}

/// Returns `true` if the disk has no room, or the file may not grow.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

/// Runs an action of redb that may return an error.
pub(super) fn attempt<T, E: Into<redb::Error>>(
    action: &'static str,
    ask: impl FnOnce() -> Result<T, E>,
) -> Result<T> {
    caught(ask)?.map_err(|error| Failure::new(action, error.into()))
}

/// Runs an action of redb that can only fail by a panic.
///
/// redb verifies checksums on recovery from a crash, not on reads, and its own assertions fail on a
/// damaged page. No code but redb's and that of the storage may run inside: a panic of other code would
/// count as damage.
pub(super) fn caught<T>(ask: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(ask))
        .map_err(|payload| Failure::damaged(Panicked(message(&*payload))))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// Returns `true` if redb does not take what it was given, whenever that is.
fn would_refuse_again(cause: &(dyn error::Error + Send + Sync + 'static)) -> bool {
    matches!(
        cause.downcast_ref(),
        Some(
            redb::Error::ValueTooLarge(_)
                | redb::Error::UpgradeRequired(_)
                | redb::Error::TableDoesNotExist(_)
                | redb::Error::DatabaseClosed
        )
    )
}

fn is_damage(error: &redb::Error) -> bool {
    matches!(
        error,
        redb::Error::Corrupted(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::TypeDefinitionChanged { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_fail_again_is_not_worth_another_call() {
        let io = |kind: ErrorKind| redb::Error::Io(kind.into());
        for (error, is_retryable) in [
            (io(ErrorKind::StorageFull), true),
            (io(ErrorKind::QuotaExceeded), true),
            (io(ErrorKind::Other), true),
            (io(ErrorKind::PermissionDenied), false),
            (io(ErrorKind::ReadOnlyFilesystem), false),
            (io(ErrorKind::UnexpectedEof), false),
            (redb::Error::Corrupted("odd".to_owned()), false),
            (redb::Error::UpgradeRequired(1), false),
            (redb::Error::ValueTooLarge(1 << 40), false),
        ] {
            let told = error.to_string();
            let error = Failure::new("write", error).at(Path::new("shop.redb"));
            assert_eq!(error.is_retryable(), is_retryable, "{told}: {error:?}");
        }
    }
}
