//! Request coalescing: several callers share one question to the server.
//!
//! Callers that come while others ask share the next question. One of them asks for all, on its own thread.

use std::mem;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// Callers that ask, and those that wait to ask. Those that share a question gather a `G`, and each has the outcome `O`.
pub(crate) struct Coalescer<G, O> {
    state: Mutex<State<G, O>>,
    /// Number of questions under way at most.
    most: usize,
}

struct State<G, O> {
    under_way: usize,
    next: Gathering<G, O>,
}

/// The callers that ask together next.
struct Gathering<G, O> {
    waiters: Arc<Waiters<O>>,
    gathered: G,
    waiting: usize,
    /// `true` if one of the waiting callers was woken to ask for all.
    has_leader: bool,
}

/// Where the callers of a question wait.
struct Waiters<O> {
    signal: Mutex<Option<Signal<O>>>,
    changed: Condvar,
}

enum Signal<O> {
    /// One of the callers asks for all of them. It ends the wait of one caller.
    Lead,
    Over(O),
}

impl<G: Default, O: Clone> Coalescer<G, O> {
    pub(crate) fn new(most: usize) -> Self {
        let state = State { under_way: 0, next: Gathering::default() };
        Self { state: Mutex::new(state), most }
    }

    /// Calls `ask` with what all who wait have gathered, or waits for the outcome of another caller, which
    /// is `failed` if that one panics. Returns `None`, and asks nothing, if `join` returns `false`.
    pub(crate) fn ask(
        &self,
        join: impl FnOnce(&mut G) -> bool,
        ask: impl FnOnce(G) -> O,
        failed: O,
    ) -> Option<O> {
        let mut state = self.state.lock();
        if !join(&mut state.next.gathered) {
            return None;
        }
        // A caller that comes while others wait leaves the question to the one of them that is woken to ask.
        if state.under_way < self.most && state.next.waiting == 0 {
            state.under_way += 1;
        } else {
            state.next.waiting += 1;
            let waiters = Arc::clone(&state.next.waiters);
            drop(state);
            if let Some(outcome) = waiters.wait() {
                return Some(outcome);
            }
            state = self.state.lock();
        }
        let Gathering { waiters, gathered, .. } = mem::take(&mut state.next);
        drop(state);
        let mut leader = Leader { all: self, waiters, outcome: failed };
        leader.outcome = ask(gathered);
        Some(leader.outcome.clone())
    }

    /// Number of callers that wait for a question under way before theirs is asked.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().next.waiting
    }

    #[cfg(test)]
    pub(crate) fn under_way(&self) -> usize {
        self.state.lock().under_way
    }
}

impl<G: Default, O> Default for Gathering<G, O> {
    fn default() -> Self {
        let waiters = Waiters { signal: Mutex::new(None), changed: Condvar::new() };
        Self { waiters: Arc::new(waiters), gathered: G::default(), waiting: 0, has_leader: false }
    }
}

/// A question under way. When it is dropped, also by a panic, those who wait have their outcome, and the next
/// question may be asked.
struct Leader<'t, G: Default, O: Clone> {
    all: &'t Coalescer<G, O>,
    waiters: Arc<Waiters<O>>,
    outcome: O,
}

impl<G: Default, O: Clone> Drop for Leader<'_, G, O> {
    fn drop(&mut self) {
        let mut state = self.all.state.lock();
        let next = &mut state.next;
        if next.waiting > 0 && !next.has_leader {
            next.has_leader = true;
            next.waiters.notify(Signal::Lead);
        } else {
            state.under_way -= 1;
        }
        drop(state);
        self.waiters.notify(Signal::Over(self.outcome.clone()));
    }
}

impl<O: Clone> Waiters<O> {
    /// Waits for the outcome. Returns `None` if the caller has to ask.
    fn wait(&self) -> Option<O> {
        let mut signal = self.signal.lock();
        loop {
            match &*signal {
                Some(Signal::Over(outcome)) => return Some(outcome.clone()),
                Some(Signal::Lead) => {
                    *signal = None;
                    return None;
                }
                None => self.changed.wait(&mut signal),
            }
        }
    }

    fn notify(&self, signal: Signal<O>) {
        let is_for_one = matches!(signal, Signal::Lead);
        *self.signal.lock() = Some(signal);
        if is_for_one {
            self.changed.notify_one();
        } else {
            self.changed.notify_all();
        }
    }
}
