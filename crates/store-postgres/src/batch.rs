//! Group commit: one transaction of the server takes the changes of several callers.
//!
//! The bodies of callers with the same lock run one after the other, each on its caller's thread. A caller
//! with others waiting behind it leaves the transaction open for the next one, and waits for its commit.
//! Callers with another lock have a transaction of their own: the lock of another process delays only the
//! callers that need it, and those that find no connection. One connection is left to commits without a lock
//! (`server.rs`). Such transactions may still share a commit of the server (`commits.rs`).
//!
//! While a transaction is committed, the bodies of the next one run over its changes. If the commit
//! fails, they run again.

use std::iter;
use std::sync::Arc;
use std::time::Instant;

use foldhash::HashMap;
use parking_lot::Mutex;
use store::overlay::{Changes, Overlay};
use store::{Decision, Error, Result, Scoped, WriteBody, WriteScope};

use crate::Shared;
use crate::commit::CommitId;
use crate::failure::Failure;
use crate::heads::{Changed, Counts, Head, Lock, heads_of};
use crate::outcome::{Outcome, Unwritten};
use crate::retry::Retry;
use crate::turns::{Turn, Turns};
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
    turns: Turns<Passed>,
}

/// What a writer passes on to the next one.
#[derive(Default)]
struct Passed {
    /// The transaction that the next caller goes on with. It is absent while a caller has its turn.
    batch: Option<Batch>,
    /// The transaction that is committed, or the last one that was.
    ahead: Option<Arc<Ahead>>,
}

/// What is next for a transaction that takes no further caller.
enum Next {
    /// It waits for the commit ahead of it. Others may go on with it meanwhile, or end it.
    Wait(Arc<Ahead>),
    /// It is committed.
    Commit(Box<View>, Arc<Ahead>),
    /// Another caller goes on with it, or has ended it.
    Left,
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
    /// Number of callers that wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().values().map(|lane| lane.turns.waiting()).sum()
    }

    /// Runs `body` once, in a transaction without others if it is alone. Waits for its turn up to
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
        let Some(mut turn) = lane.wait(shared, is_alone, until) else {
            return Ok(Err(Unwritten::Undone(Failure::held())));
        };
        let batch = match turn.batch.take() {
            Some(batch) => batch,
            None => match Batch::begin(shared, lock, lane.ahead()) {
                Ok(batch) => Batch { is_alone, ..batch },
                Err(failure) => return Ok(Err(Unwritten::Undone(failure))),
            },
        };
        let (outcome, is_first) = (Arc::clone(&batch.outcome), batch.changes.is_empty());
        let ran = turn.batch.insert(batch).run(scope, body);
        drop(turn);
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
    /// Waits for a turn with a transaction that the caller may join, or with none. Returns `None` if others
    /// have had the turn up to `until`.
    fn wait<'l>(
        &'l self,
        shared: &'l Arc<Shared>,
        is_alone: bool,
        until: Option<Instant>,
    ) -> Option<LaneTurn<'l>> {
        loop {
            let turn = self.turns.wait(until)?;
            let batch = self.turns.with(|passed| passed.batch.take());
            let mut turn = LaneTurn { lane: self, shared, turn: Some(turn), batch };
            if turn.batch.as_ref().is_none_or(|batch| batch.goes_on() && !is_alone) {
                return Some(turn);
            }
            turn.end(true);
        }
    }

    fn ahead(&self) -> Option<Arc<Ahead>> {
        self.turns.with(|passed| passed.ahead.clone())
    }

    /// Ends the transaction with this outcome, behind the one that is committed.
    fn end(&self, shared: &Arc<Shared>, outcome: &Arc<Outcome>, mut next: Next) {
        loop {
            match next {
                Next::Wait(ahead) => drop(ahead.outcome.wait()),
                Next::Commit(view, ahead) => {
                    ahead.end(shared, *view);
                    // No later transaction begins behind it, and its changes need no memory.
                    let is_same = |last: &mut Arc<Ahead>| Arc::ptr_eq(last, &ahead);
                    return drop(self.turns.with(|passed| passed.ahead.take_if(is_same)));
                }
                Next::Left => return,
            }
            next = self.turns.with(|passed| passed.next(outcome));
        }
    }
}

impl Passed {
    /// What is next for the transaction with this outcome, which takes no further caller.
    fn next(&mut self, outcome: &Arc<Outcome>) -> Next {
        if let Some(ahead) = self.ahead.as_ref().filter(|ahead| !ahead.outcome.is_known()) {
            return Next::Wait(Arc::clone(ahead));
        }
        let is_same = |batch: &mut Batch| Arc::ptr_eq(&batch.outcome, outcome);
        let Some(batch) = self.batch.take_if(is_same) else { return Next::Left };
        let (view, ahead) = batch.close();
        self.ahead = Some(Arc::clone(&ahead));
        Next::Commit(Box::new(view), ahead)
    }
}

/// The turn of a caller, with the transaction that it goes on with. When it is dropped, also by a panic, the
/// next caller goes on with it, or it is committed.
struct LaneTurn<'l> {
    lane: &'l Lane,
    shared: &'l Arc<Shared>,
    turn: Option<Turn<'l, Passed>>,
    batch: Option<Batch>,
}

impl LaneTurn<'_> {
    /// Ends the turn. The transaction ends as well if it is the last turn, or if no caller goes on with it.
    fn end(&mut self, is_last: bool) {
        let (Some(turn), Some(batch)) = (self.turn.take(), self.batch.take()) else { return };
        let (outcome, is_last) = (Arc::clone(&batch.outcome), is_last || !batch.goes_on());
        let next = turn.end(|passed, has_next| {
            passed.batch = Some(batch);
            if has_next && !is_last { Next::Left } else { passed.next(&outcome) }
        });
        self.lane.end(self.shared, &outcome, next);
    }
}

impl Drop for LaneTurn<'_> {
    fn drop(&mut self) {
        self.end(false);
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
            View::unopened(shared, Mode::Write(lock))?
        };
        let (changes, outcome) = (Changes::default(), Arc::default());
        Ok(Self { view, changes, callers: 0, bytes: 0, is_alone: false, outcome })
    }

    /// Runs a body, and takes its changes.
    fn run(&mut self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<(), Stopped> {
        self.callers += 1;
        let ahead = self.view.ahead().map(|ahead| &*ahead.changes);
        let under = iter::once(&self.changes).chain(ahead).collect();
        let mut transaction = Overlay::new(under, || Ok(&self.view)).in_era(self.view.era());
        let mut scoped = Scoped::new(&mut transaction, scope);
        let decision = body(&mut scoped);
        let has_left = scoped.has_left();
        let own = transaction.into_changes();
        if let Some(failure) = self.view.failure() {
            return Err(Stopped::Server(failure));
        }
        if has_left {
            return Err(Stopped::OutOfScope);
        }
        // The next callers wait for their turn, and not for the lock.
        self.view.open_if_unopened().map_err(Stopped::Server)?;
        if decision.is_err() {
            // The error may rest on a stale read.
            self.view.settle().map_err(Stopped::Server)?;
        }
        if decision.map_err(Stopped::Body)? == Decision::Commit {
            self.bytes += own.iter().map(size).sum::<usize>();
            self.changes.then(own);
        }
        Ok(())
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
