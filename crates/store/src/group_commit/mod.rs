//! Group commit: one commit of the base makes the changes of several callers durable.
//!
//! Bodies run one after the other, each on its caller's thread. Their changes are gathered in the
//! pending batch. One of the callers in the batch becomes its leader and commits it, while the
//! bodies of the next batch run already.
//!
//! A caller waits for the batch with the latest change that its body may have seen, also if its body
//! aborts or fails. When that batch is durable, the caller also waits for the body that runs then:
//! bodies have to be short.

mod queue;

use std::fmt;

use self::queue::{News, Queue, Ticket};
use super::sync::Mutex;
use crate::overlay::{Changes, Overlay};
use crate::{Decision, Error, ReadBody, Result, Snapshot, Store, WriteBody};

/// A store that takes changes in batches. [`GroupCommit`] makes a [`Store`] of it.
pub(crate) trait Base: Send + Sync + 'static {
    /// A fixed view of the committed batches.
    type Snapshot<'s>: Snapshot;

    /// The reason why a batch was not committed. Each caller in the batch gets a clone.
    type Failure: Clone + Send + Sync;

    /// Takes a snapshot.
    fn snapshot(&self) -> Result<Self::Snapshot<'_>>;

    /// Makes all of `changes` durable, or none of them. Does not panic, because callers wait for the
    /// outcome.
    fn commit(&self, changes: &Changes) -> Result<(), Self::Failure>;

    /// The error that a caller gets for `failure`.
    fn error(&self, failure: Self::Failure) -> Error;
}

/// A [`Store`] whose callers share commits.
pub(crate) struct GroupCommit<B: Base> {
    base: B,
    queue: Mutex<Queue<B::Failure>>,
}

impl<B: Base> GroupCommit<B> {
    pub(crate) fn new(base: B) -> Self {
        Self { base, queue: Mutex::default() }
    }

    pub(crate) fn base(&self) -> &B {
        &self.base
    }

    fn wait(&self, ticket: &Ticket<B::Failure>) -> Result<(), B::Failure> {
        match ticket.wait() {
            News::Lead => self.lead(),
            News::Over(outcome) => outcome,
        }
    }

    // Commits the pending batch, in which the caller is.
    fn lead(&self) -> Result<(), B::Failure> {
        let changes = self.queue.lock().take();
        let outcome = self.base.commit(&changes);
        self.queue.lock().settle(&outcome);
        outcome
    }
}

impl<B: Base> Store for GroupCommit<B> {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        body(&self.base.snapshot()?)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        let mut queue = self.queue.lock();
        let mut transaction = Overlay::new(queue.layers(), || self.base.snapshot());
        let decision = body(&mut transaction);
        let changes = match decision {
            Ok(Decision::Commit) => transaction.into_changes(),
            Ok(Decision::Abort) | Err(_) => Changes::default(),
        };
        let ticket = queue.join(changes);
        drop(queue);
        let outcome = ticket.map_or(Ok(()), |ticket| self.wait(&ticket));
        // An error of the body may rest on changes that were lost.
        outcome.map_err(|failure| self.base.error(failure))?;
        decision.map(drop)
    }
}

// The changes may hold secrets.
impl<B: Base> fmt::Debug for GroupCommit<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}
