//! Group commit: one transaction of the server takes the changes of several callers.
//!
//! The bodies of callers with the same lock run one after the other, each on its caller's thread. A caller
//! with others waiting behind it leaves the transaction open for the next one, and waits for its commit.
//! Callers with another lock have a transaction of their own: the lock of another process delays only the
//! callers that need it. Such transactions may still share a commit of the server (`commits.rs`).
//!
//! While a transaction is committed, the bodies of the next one run over its changes. If the commit
//! fails, they run again.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use foldhash::HashMap;
use parking_lot::{Condvar, Mutex, MutexGuard};
use store::overlay::{Changes, Overlay};
use store::{Decision, Error, Result, Scoped, WriteBody, WriteScope};

use crate::Shared;
use crate::commit::CommitId;
use crate::failure::Failure;
use crate::heads::{Changed, Counts, Head, Lock, heads_of};
use crate::retry::Retry;
use crate::view::{Mode, View};

/// Number of callers in a transaction at most.
const MOST: usize = 64;

/// Number of bytes of changes from which on a transaction takes no further caller.
const BYTES: usize = 1 << 20;

/// Writers of this process, by their locks.
#[derive(Default)]
pub(crate) struct Writers(Mutex<HashMap<Lock, Arc<Lane>>>);

/// Writers with the same lock, one after the other.
#[derive(Default)]
struct Lane {
    turn: Mutex<LaneState>,
    /// Number of callers that wait for their turn.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct LaneState {
    /// The transaction that the next caller goes on with.
    batch: Option<Batch>,
    /// The transaction that is committed, or the last one that was.
    ahead: Option<Arc<Ahead>>,
}

/// A transaction with the changes of some callers.
struct Batch {
    view: View,
    changes: Changes,
    callers: usize,
    /// Number of bytes of the changes of all callers.
    bytes: usize,
    /// No other caller may join.
    is_alone: bool,
    outcome: Arc<Outcome>,
}

/// A transaction whose bodies have run.
pub(crate) struct Ahead {
    /// Counts of the heads behind its commit.
    pub(crate) counts: Counts,
    pub(crate) changes: Arc<Changes>,
    pub(crate) outcome: Arc<Outcome>,
    callers: usize,
}

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
    /// Runs `body` once, in a transaction without others if it is alone. Waits for its first turn up to
    /// `until`. To end a transaction that it cannot join may take longer. Returns the error of the body, or of
    /// the server.
    pub(crate) fn write(
        &self,
        shared: &Arc<Shared>,
        (scope, is_alone): (WriteScope, bool),
        until: Option<Instant>,
        body: &mut WriteBody<'_>,
    ) -> Result<Result<(), Unwritten>> {
        let lock = Lock::of(scope);
        let lane = Arc::clone(self.0.lock().entry(lock).or_default());
        let Some(mut turn) = lane.wait_for_turn(until) else {
            return Ok(Err(Unwritten::Undone(Failure::held())));
        };
        while let Some(batch) = turn.batch.as_ref().filter(|batch| is_alone || !batch.goes_on()) {
            let outcome = Arc::clone(&batch.outcome);
            lane.end(shared, turn, &outcome);
            turn = lane.turn.lock();
        }
        if turn.batch.is_none() {
            match Batch::begin(shared, lock, turn.ahead.clone()) {
                Ok(batch) => turn.batch = Some(Batch { is_alone, ..batch }),
                Err(failure) => return Ok(Err(Unwritten::Undone(failure))),
            }
        }
        let Some(batch) = &turn.batch else { return Ok(Err(Unwritten::Undone(Failure::closed()))) };
        let (outcome, is_first) = (Arc::clone(&batch.outcome), batch.changes.is_empty());
        let mut held = LaneGuard { lane: &lane, shared, turn: Some(turn) };
        let ran = held.run(scope, body);
        drop(held);
        match ran {
            Ok(()) => Ok(outcome.wait()),
            Err(Stopped::OutOfScope) => Ok(Err(Unwritten::OutOfScope)),
            Err(Stopped::Server(failure)) => Ok(Err(Unwritten::Undone(failure))),
            Err(Stopped::Body(error)) if is_first => Err(error),
            // It rests on changes of others, which count if they are made.
            Err(Stopped::Body(error)) => match outcome.wait() {
                Ok(()) => Err(error),
                Err(unwritten) => Ok(Err(unwritten)),
            },
        }
    }
}

impl Lane {
    /// Ends the transaction with this outcome, behind the one that is committed.
    fn end<'l>(
        &'l self,
        shared: &Arc<Shared>,
        mut turn: MutexGuard<'l, LaneState>,
        outcome: &Arc<Outcome>,
    ) {
        while let Some(ahead) = turn.ahead.clone().filter(|ahead| !ahead.outcome.is_known()) {
            // Others may go on with the transaction meanwhile, or end it.
            drop(turn);
            drop(ahead.outcome.wait());
            turn = self.turn.lock();
        }
        let is_same = |batch: &mut Batch| Arc::ptr_eq(&batch.outcome, outcome);
        let Some(batch) = turn.batch.take_if(is_same) else { return };
        let (view, ahead) = batch.close();
        turn.ahead = Some(Arc::clone(&ahead));
        drop(turn);
        ahead.end(shared, view);
        // A lane without callers keeps no changes in memory. One that has callers soon has other ones.
        if let Some(mut turn) = self.turn.try_lock() {
            turn.ahead.take_if(|last| Arc::ptr_eq(last, &ahead));
        }
    }

    // Returns `None` if others have had the turn up to `until`.
    fn wait_for_turn(&self, until: Option<Instant>) -> Option<MutexGuard<'_, LaneState>> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let turn = match until {
            Some(until) => self.turn.try_lock_until(until),
            None => Some(self.turn.lock()),
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        turn
    }

    fn has_next(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }
}

/// The turn of a caller. When it is dropped, also by a panic, the next caller goes on with the batch,
/// or it is committed.
struct LaneGuard<'l> {
    lane: &'l Lane,
    shared: &'l Arc<Shared>,
    turn: Option<MutexGuard<'l, LaneState>>,
}

impl LaneGuard<'_> {
    fn run(&mut self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<(), Stopped> {
        let Some(batch) = self.turn.as_mut().and_then(|turn| turn.batch.as_mut()) else {
            return Ok(());
        };
        batch.callers += 1;
        let ahead = batch.view.ahead().map(|ahead| &*ahead.changes);
        let under = iter::once(&batch.changes).chain(ahead).collect();
        let mut transaction = Overlay::new(under, || Ok(&batch.view)).in_era(batch.view.era());
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
        if decision.is_err() {
            // The error may rest on a stale read.
            batch.view.settle().map_err(Stopped::Server)?;
        }
        if decision.map_err(Stopped::Body)? == Decision::Commit {
            batch.bytes += own.iter().map(size).sum::<usize>();
            batch.changes.then(own);
        }
        Ok(())
    }
}

impl Drop for LaneGuard<'_> {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let Some(batch) = &turn.batch else { return };
        if batch.goes_on() && self.lane.has_next() {
            return;
        }
        let outcome = Arc::clone(&batch.outcome);
        self.lane.end(self.shared, turn, &outcome);
    }
}

impl Batch {
    fn begin(shared: &Arc<Shared>, lock: Lock, ahead: Option<Arc<Ahead>>) -> Result<Self, Failure> {
        let mut ahead = ahead.filter(|ahead| !ahead.outcome.is_known());
        let is_own = shared.cache.is_own(lock);
        if let Some(ahead) = ahead.take_if(|_| !is_own) {
            drop(ahead.outcome.wait());
        }
        let view = if is_own {
            View::guess(shared, Mode::Write(lock), ahead)
        } else {
            View::begin(shared, Mode::Write(lock))?
        };
        let (changes, outcome) = (Changes::default(), Arc::default());
        Ok(Self { view, changes, callers: 0, bytes: 0, is_alone: false, outcome })
    }

    /// Returns `true` if other callers may join.
    fn goes_on(&self) -> bool {
        let has_room = self.callers < MOST && self.bytes < BYTES && !self.is_alone;
        has_room && self.view.failure().is_none()
    }

    fn close(self) -> (View, Arc<Ahead>) {
        let Self { view, changes, outcome, callers, .. } = self;
        let counts = view.counts_behind(&changes);
        let changes = Arc::new(changes);
        (view, Arc::new(Ahead { counts, changes, outcome, callers }))
    }
}

impl Ahead {
    /// Ends the transaction, with the changes of all callers.
    fn end(&self, shared: &Arc<Shared>, view: View) {
        // Its connection is free when callers go on.
        let make = || match self.make(shared, view) {
            // It may be about the changes of one of them.
            Err(Unwritten::Undone(failure)) if self.callers > 1 && failure.is_refused() => {
                Err(Unwritten::BatchRefused)
            }
            made => made,
        };
        self.outcome.publish(make, || shared.unknown(Failure::no_answer()));
    }

    fn make(&self, shared: &Arc<Shared>, view: View) -> Result<(), Unwritten> {
        match view.failure() {
            Some(failure) => Err(Unwritten::Undone(failure)),
            None if self.changes.is_empty() => view.settle().map_err(Unwritten::Undone),
            None => commit(shared, view, &self.changes),
        }
    }
}

impl Outcome {
    fn is_known(&self) -> bool {
        self.known.lock().is_some()
    }

    /// Publishes what has become of a transaction, or `panicked` if `make` panics.
    fn publish(
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

fn size((_, key, value): Changed<'_>) -> usize {
    key.len() + value.map_or(0, <[u8]>::len)
}

fn commit(shared: &Arc<Shared>, view: View, changes: &Arc<Changes>) -> Result<(), Unwritten> {
    let id = CommitId::of(shared.id()).map_err(Unwritten::Undone)?;
    // All heads have the commit, or none has it.
    let Some(head) = heads_of(changes).pop_first() else { return Ok(()) };
    let number = view.next_commit(head).map_err(Unwritten::Undone)?;
    let Err(failure) = view.commit(changes, id) else { return Ok(()) };
    if !failure.is_lost() {
        return Err(Unwritten::Undone(failure));
    }
    // The question below needs a connection.
    drop(view);
    match is_committed(shared, (head, number), id) {
        Ok(Some(true)) => {
            shared.server.notify_peers();
            Ok(())
        }
        Ok(Some(false)) => Err(Unwritten::Undone(failure)),
        Ok(None) => Err(shared.unknown(failure)),
        Err(failure) => Err(shared.unknown(failure)),
    }
}

/// Asks the server what has become of a commit whose connection was lost. The lock waits for the end
/// of its transaction. The server may still have a commit before it that has no lock yet: an empty one
/// takes its number, so that it is never made. Returns `None` if the server does not know that any more.
fn is_committed(
    shared: &Arc<Shared>,
    (head, number): (Head, u64),
    id: CommitId,
) -> Result<Option<bool>, Failure> {
    Retry::within(shared.patience, || {
        let view = View::begin(shared, Mode::Write(Lock::of_one(head)))?;
        match view.id_of(head, number)? {
            Some(found) => Ok(Some(found == id.bytes())),
            None if number < view.next_commit(head)? => Ok(None),
            None => view.commit_nothing(head).map(|()| Some(false)),
        }
    })
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
