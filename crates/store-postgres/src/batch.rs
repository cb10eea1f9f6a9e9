//! Group commit: one transaction of the server takes the changes of several callers.
//!
//! Bodies run one after the other, each on its caller's thread. A caller behind whom others wait
//! leaves the transaction to the next one, and waits for its commit. A transaction locks what those
//! touch who wait when it begins.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};
use store::overlay::{Changes, Overlay};
use store::{Decision, Error, Result, Scoped, WriteBody, WriteScope};

use crate::Shared;
use crate::failure::Failure;
use crate::heads::{Head, Lock, by_head};
use crate::patience::Patience;
use crate::view::{Mode, View};

/// Number of callers in a transaction at most.
const MOST: usize = 64;

/// Writers of this process, one after the other.
#[derive(Default)]
pub(crate) struct Writers {
    /// The transaction that the next caller goes on with.
    turn: Mutex<Option<Batch>>,
    /// What those touch who wait for their turn.
    waiting: Mutex<Vec<Lock>>,
}

/// A transaction with the changes of some callers.
struct Batch {
    lock: Lock,
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
    /// The body has touched something outside its scope.
    OutOfScope,
    /// The transaction has failed. The body may run again if the failure allows that.
    Undone(Failure),
    /// The connection was lost during the commit, and the server cannot be asked.
    Unknown(Failure),
}

/// Why a body has not run to its end.
enum Stopped {
    /// The body has touched something outside its scope.
    OutOfScope,
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
        scope: WriteScope,
        body: &mut WriteBody<'_>,
    ) -> Result<Result<(), Unwritten>> {
        let lock = Lock::of(scope);
        let mut turn = self.wait_for_turn(lock);
        let batch = match turn.take() {
            Some(batch) if batch.lock.covers(lock) => batch,
            other => {
                if let Some(batch) = other {
                    batch.end(shared);
                }
                match Batch::begin(shared, self.of_all_waiting(lock)) {
                    Ok(batch) => batch,
                    Err(failure) => return Ok(Err(Unwritten::Undone(failure))),
                }
            }
        };
        let outcome = Arc::clone(&batch.outcome);
        let mut held = Held { writers: self, shared, turn, batch: Some(batch) };
        let ran = held.run(scope, body);
        drop(held);
        match ran {
            Ok(()) => Ok(outcome.wait()),
            Err(Stopped::OutOfScope) => Ok(Err(Unwritten::OutOfScope)),
            Err(Stopped::Server(failure)) => Ok(Err(Unwritten::Undone(failure))),
            Err(Stopped::Body(error)) => Err(error),
        }
    }

    fn wait_for_turn(&self, lock: Lock) -> MutexGuard<'_, Option<Batch>> {
        self.waiting.lock().push(lock);
        let turn = self.turn.lock();
        let mut waiting = self.waiting.lock();
        if let Some(own) = waiting.iter().position(|waits| *waits == lock) {
            waiting.swap_remove(own);
        }
        turn
    }

    fn of_all_waiting(&self, own: Lock) -> Lock {
        self.waiting.lock().iter().fold(own, |all, lock| all.and(*lock))
    }

    fn has_next(&self, batch: &Batch) -> bool {
        self.waiting.lock().iter().any(|lock| batch.lock.covers(*lock))
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
    fn run(&mut self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<(), Stopped> {
        let Some(batch) = &mut self.batch else { return Ok(()) };
        let mut transaction = Overlay::new(vec![&batch.changes], || Ok(&batch.view));
        let mut scoped = Scoped::new(&mut transaction, scope);
        let decision = body(&mut scoped);
        let has_left = scoped.has_left();
        let own = transaction.into_changes();
        if let Some(failure) = batch.view.failure() {
            return Err(Stopped::Server(failure));
        }
        if has_left {
            return Err(Stopped::OutOfScope);
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
        if goes_on && self.writers.has_next(&batch) {
            *self.turn = Some(batch);
        } else {
            batch.end(self.shared);
        }
    }
}

impl Batch {
    fn begin(shared: &Arc<Shared>, lock: Lock) -> Result<Self, Failure> {
        let view = View::begin(shared, Mode::Write(lock))?;
        Ok(Self { lock, view, changes: Changes::default(), callers: 0, outcome: Arc::default() })
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
    let mut random = [0; 8];
    getrandom::fill(&mut random)
        .map_err(|error| Unwritten::Undone(Failure::refused("identify a commit", error)))?;
    let mut batch = [0; 16];
    batch[..8].copy_from_slice(&shared.id);
    batch[8..].copy_from_slice(&random);
    // All heads have the commit, or none has it.
    let Some(head) = by_head(changes).into_keys().next() else { return Ok(()) };
    let number = view.next_commit(head).map_err(Unwritten::Undone)?;
    let Err(failure) = view.commit(changes, batch) else { return Ok(()) };
    if !failure.is_lost() {
        return Err(Unwritten::Undone(failure));
    }
    match is_committed(shared, (head, number), batch) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Unwritten::Undone(failure)),
        Err(failure) => Err(Unwritten::Unknown(failure)),
    }
}

/// Asks the server what has become of a commit whose connection was lost. The lock waits for the end
/// of its transaction.
fn is_committed(
    shared: &Arc<Shared>,
    (head, number): (Head, u64),
    batch: [u8; 16],
) -> Result<bool, Failure> {
    let mut patience = Patience::new(shared.patience);
    loop {
        let view = View::begin(shared, Mode::Write(Lock::of_one(head)));
        match view.and_then(|view| view.batch_of(head, number)) {
            Err(failure) if failure.may_go_on() && patience.wait() => {}
            found => return Ok(found? == Some(batch.to_vec())),
        }
    }
}
