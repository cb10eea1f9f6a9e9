//! What has become of a transaction, for the callers that wait for it.

use parking_lot::{Condvar, Mutex};

use crate::failure::Failure;

/// What has become of a transaction.
#[derive(Default)]
pub(crate) struct Outcome {
    known: Mutex<Option<Result<(), Unwritten>>>,
    published: Condvar,
}

/// Why the changes of a caller were not made.
#[derive(Clone)]
pub(crate) enum Unwritten {
    /// The body has touched something outside its scope.
    OutOfScope,
    /// The server has refused the changes of several callers. The body may run again, in a transaction of its
    /// own.
    BatchRefused,
    /// The transaction has failed. The body may run again if the failure allows that.
    Undone(Failure),
    /// The connection was lost during the commit, and the server cannot be asked or does not know.
    Unknown(Failure),
}

impl Outcome {
    pub(crate) fn is_known(&self) -> bool {
        self.known.lock().is_some()
    }

    /// Publishes what has become of a transaction, or `panicked` if `make` panics.
    pub(crate) fn publish(
        &self,
        make: impl FnOnce() -> Result<(), Unwritten>,
        panicked: impl Fn() -> Unwritten,
    ) {
        let mut publication = Publication { outcome: self, known: None, panicked };
        publication.known = Some(make());
    }

    pub(crate) fn wait(&self) -> Result<(), Unwritten> {
        let mut known = self.known.lock();
        loop {
            if let Some(outcome) = &*known {
                return outcome.clone();
            }
            self.published.wait(&mut known);
        }
    }
}

/// An outcome that is published when this is dropped, also by a panic.
struct Publication<'o, P: Fn() -> Unwritten> {
    outcome: &'o Outcome,
    known: Option<Result<(), Unwritten>>,
    panicked: P,
}

impl<P: Fn() -> Unwritten> Drop for Publication<'_, P> {
    fn drop(&mut self) {
        let known = self.known.take().unwrap_or_else(|| Err((self.panicked)()));
        *self.outcome.known.lock() = Some(known);
        self.outcome.published.notify_all();
    }
}

impl Unwritten {
    /// The failure of a transaction behind this one. Without a server it fails as well. Otherwise it may run
    /// again at once.
    pub(crate) fn behind(self) -> Failure {
        match self {
            Self::Undone(failure) | Self::Unknown(failure) if failure.is_of_connection() => failure,
            Self::OutOfScope | Self::BatchRefused | Self::Undone(_) | Self::Unknown(_) => {
                Failure::stale()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_panic_of_a_commit_keeps_no_callers_waiting() {
        let outcome = Outcome::default();
        let unknown = || Unwritten::Unknown(Failure::no_answer());
        let commit = || outcome.publish(|| panic!("on purpose"), unknown);
        assert!(catch_unwind(AssertUnwindSafe(commit)).is_err());
        assert!(outcome.is_known() && matches!(outcome.wait(), Err(Unwritten::Unknown(_))));
    }
}
