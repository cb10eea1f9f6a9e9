//! Where redb's errors and panics become ours.

use std::any::Any;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::{error, result};

use thiserror::Error;

use crate::Error;

/// Why redb did not do something. Clones tell everybody who waited for it.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// What it read cannot have been written by it.
    Damaged(Cause),
    /// It could not do what it was asked to.
    Refused { action: &'static str, cause: Cause },
}

type Cause = Arc<dyn error::Error + Send + Sync>;

type Result<T, E = Failure> = result::Result<T, E>;

#[derive(Debug, Error)]
#[error("redb panicked: {0}")]
struct Panicked(String);

impl Failure {
    pub(super) fn damaged(cause: impl error::Error + Send + Sync + 'static) -> Self {
        Failure::Damaged(Arc::new(cause))
    }

    /// The same failure, for whoever knows the file by its path.
    pub(super) fn at(self, path: &Path) -> Error {
        match self {
            Failure::Damaged(cause) => {
                Error::Damaged { path: path.to_owned(), source: Box::new(cause) }
            }
            Failure::Refused { action, cause } => {
                Error::Backend { backend: "redb", action, source: Box::new(cause) }
            }
        }
    }

    fn new(action: &'static str, error: redb::Error) -> Self {
        if is_damage(&error) {
            Failure::Damaged(Arc::new(error))
        } else {
            Failure::Refused { action, cause: Arc::new(error) }
        }
    }
}

/// Asks redb to do something that it may refuse.
pub(super) fn attempt<T, E: Into<redb::Error>>(
    action: &'static str,
    ask: impl FnOnce() -> Result<T, E>,
) -> Result<T> {
    caught(ask)?.map_err(|error| Failure::new(action, error.into()))
}

/// Asks redb to do something that can only fail by a panic.
///
/// redb checks checksums when it recovers from a crash, not when it reads, and trips over its own
/// assertions where a page is damaged. No code but redb's may run inside, or else a panic of the
/// caller's would be taken for damage.
pub(super) fn caught<T>(ask: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(ask))
        .map_err(|payload| Failure::damaged(Panicked(message(&*payload))))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

fn is_damage(error: &redb::Error) -> bool {
    match error {
        redb::Error::Corrupted(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TypeDefinitionChanged { .. } => true,
        // The file is shorter than it says.
        redb::Error::Io(error) => error.kind() == ErrorKind::UnexpectedEof,
        _ => false,
    }
}
