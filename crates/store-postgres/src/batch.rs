//! Group commit: one transaction of the server takes the changes of several callers.
//!
//! Bodies run one after the other, each on its caller's thread. A caller behind whom others wait
//! leaves the transaction to the next one, and waits for its commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};
use store::overlay::{Changes, Overlay};
use store::{Decision, Error, Result, WriteBody};

use crate::Shared;
use crate::failure::Failure;
use crate::patience::Patience;
use crate::view::{Mode, View};

/// Number of callers in a transaction at most.
const MOST: usize = 64;

/// Writers of this process, one after the other.
#[derive(Default)]
pub(crate) struct Writers {
    /// The transaction that the next caller goes on with.
    turn: Mutex<Option<Batch>>,
    waiting: AtomicUsize,
}

/// A transaction with the changes of some callers.
struct Batch {
    view: View,
    changes: Changes,
    callers: usize,
    outcome: Arc<Outcome>,
}

/// What has become of a transaction.
#[derive(Default)]
struct Outcome {
    known: Mutex<Option<Result<(), Unwritten>>>,
    told: Condvar,
}

/// Why the changes of a caller were not made.
#[derive(Clone)]
pub(crate) enum Unwritten {
    /// The transaction has failed. The body may run again if the failure allows that.
    Undone(Failure),
    /// The connection was lost during the commit, and the server cannot be asked.
    Unknown(Failure),
}

/// Why a body has not run to its end.
enum Stopped {
    /// The server has failed.
    Server(Failure),
    /// The body has returned an error.
    Body(Error),
}

impl Writers {
    /// Runs `body` once. Returns the error of the body, or of the server.
    pub(crate) fn write(
        &self,
        shared: &Arc<Shared>,
        body: &mut WriteBody<'_>,
    ) -> Result<Result<(), Unwritten>> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut turn = self.turn.lock();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        let batch = match turn.take() {
            Some(batch) => batch,
            None => match Batch::begin(shared) {
                Ok(batch) => batch,
                Err(failure) => return Ok(Err(Unwritten::Undone(failure))),
            },
        };
        let outcome = Arc::clone(&batch.outcome);
        let mut held = Held { writers: self, shared, turn, batch: Some(batch) };
        let ran = held.run(body);
        drop(held);
        match ran {
            Ok(()) => Ok(outcome.wait()),
            Err(Stopped::Server(failure)) => Ok(Err(Unwritten::Undone(failure))),
            Err(Stopped::Body(error)) => Err(error),
        }
    }
}

/// The turn of a caller. When it is dropped, also by a panic, the next caller goes on with the batch,
/// or it is committed.
struct Held<'w> {
    writers: &'w Writers,
    shared: &'w Arc<Shared>,
    turn: MutexGuard<'w, Option<Batch>>,
    batch: Option<Batch>,
}

impl Held<'_> {
    fn run(&mut self, body: &mut WriteBody<'_>) -> Result<(), Stopped> {
        let Some(batch) = &mut self.batch else { return Ok(()) };
        let mut transaction = Overlay::new(vec![&batch.changes], || Ok(&batch.view));
        let decision = body(&mut transaction);
        let own = transaction.into_changes();
        if let Some(failure) = batch.view.failure() {
            return Err(Stopped::Server(failure));
        }
        if decision.map_err(Stopped::Body)? == Decision::Commit {
            batch.changes.then(own);
        }
        batch.callers += 1;
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let Some(batch) = self.batch.take() else { return };
        let goes_on = batch.callers < MOST && batch.view.failure().is_none();
        if goes_on && self.writers.waiting.load(Ordering::SeqCst) > 0 {
            *self.turn = Some(batch);
        } else {
            batch.end(self.shared);
        }
    }
}

impl Batch {
    fn begin(shared: &Arc<Shared>) -> Result<Self, Failure> {
        let view = View::begin(shared, Mode::Write)?;
        Ok(Self { view, changes: Changes::default(), callers: 0, outcome: Arc::default() })
    }

    /// Ends the transaction, with the changes of all callers.
    fn end(self, shared: &Arc<Shared>) {
        let outcome = match self.view.failure() {
            Some(failure) => Err(Unwritten::Undone(failure)),
            None if self.changes.is_empty() => Ok(()),
            None => commit(shared, self.view, &self.changes),
        };
        *self.outcome.known.lock() = Some(outcome);
        self.outcome.told.notify_all();
    }
}

impl Outcome {
    fn wait(&self) -> Result<(), Unwritten> {
        let mut known = self.known.lock();
        loop {
            if let Some(outcome) = &*known {
                return outcome.clone();
            }
            self.told.wait(&mut known);
        }
    }
}

fn commit(shared: &Arc<Shared>, view: View, changes: &Changes) -> Result<(), Unwritten> {
    let mut batch = [0; 16];
    getrandom::fill(&mut batch)
        .map_err(|error| Unwritten::Undone(Failure::refused("identify a commit", error)))?;
    let number = view.next_commit();
    let Err(failure) = view.commit(changes, batch) else { return Ok(()) };
    if !failure.is_lost() {
        return Err(Unwritten::Undone(failure));
    }
    match is_committed(shared, number, batch) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Unwritten::Undone(failure)),
        Err(failure) => Err(Unwritten::Unknown(failure)),
    }
}

/// Asks the server what has become of a commit whose connection was lost. The lock waits for the end
/// of its transaction.
fn is_committed(shared: &Arc<Shared>, number: u64, batch: [u8; 16]) -> Result<bool, Failure> {
    let mut patience = Patience::new(shared.patience);
    loop {
        let view = View::begin(shared, Mode::Write);
        match view.and_then(|view| view.batch_of(number)) {
            Err(failure) if failure.may_go_on() && patience.wait() => {}
            found => return Ok(found? == Some(batch.to_vec())),
        }
    }
}
