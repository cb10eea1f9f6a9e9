//! Whether a history of concurrent calls is that of an object whose calls happen one by one.
//!
//! The search is that of Wing and Gong, with the memory of Lowe: an order of the calls is looked for
//! in which each comes behind those that had returned before it began, and in which a model gives
//! the same answers.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// An object whose calls happen one by one.
pub trait Model {
    /// State of the object.
    type State: Clone + Debug + Eq + Hash;
    /// A call with its arguments.
    type Call: Debug;
    /// An answer.
    type Answer: Debug + PartialEq;

    /// Returns the answer to a call, and changes the state.
    fn answer(state: &mut Self::State, call: &Self::Call) -> Self::Answer;
}

/// A call that has returned.
#[derive(Debug)]
pub struct Returned<M: Model> {
    /// The call.
    pub call: M::Call,
    /// Its answer.
    pub answer: M::Answer,
    begun: u64,
    ended: u64,
}

/// The calls of several threads. At most 64 of them are compared.
#[derive(Debug)]
pub struct History<M: Model> {
    clock: AtomicU64,
    returned: Mutex<Vec<Returned<M>>>,
}

impl<M: Model> Default for History<M> {
    fn default() -> Self {
        Self { clock: AtomicU64::new(0), returned: Mutex::default() }
    }
}

impl<M: Model> History<M> {
    /// Makes a call, and notes when it began and ended.
    pub fn note(&self, call: M::Call, make: impl FnOnce(&M::Call) -> M::Answer) {
        let begun = self.clock.fetch_add(1, SeqCst);
        let answer = make(&call);
        let ended = self.clock.fetch_add(1, SeqCst);
        let returned = Returned { call, answer, begun, ended };
        self.returned.lock().expect("no thread panics with the lock in hand").push(returned);
    }

    /// Returns the calls, if no order of them explains their answers.
    pub fn contradiction(self, start: M::State) -> Option<Vec<Returned<M>>> {
        let mut calls = self.returned.into_inner().expect("no thread panics with the lock in hand");
        assert!(calls.len() <= 64, "a set of calls is the bits of a number");
        calls.sort_by_key(|call| call.begun);
        let mut search = Search { calls: &calls, dead_ends: HashSet::new() };
        let is_explained = search.goes_on(0, &start);
        (!is_explained).then_some(calls)
    }
}

struct Search<'h, M: Model> {
    calls: &'h [Returned<M>],
    /// Sets of calls that were put in order, with the state behind them.
    dead_ends: HashSet<(u64, M::State)>,
}

impl<M: Model> Search<'_, M> {
    // Returns `true` if the calls that are not in `done` can be put in order behind those.
    fn goes_on(&mut self, done: u64, state: &M::State) -> bool {
        let open = |number: &usize| done >> number & 1 == 0;
        let all = 0..self.calls.len();
        // No call comes before one that had returned when it began.
        let Some(first_end) = all.clone().filter(open).map(|n| self.calls[n].ended).min() else {
            return true;
        };
        for number in all.filter(open).take_while(|n| self.calls[*n].begun < first_end) {
            let mut after = state.clone();
            let next = done | 1 << number;
            let is_so =
                M::answer(&mut after, &self.calls[number].call) == self.calls[number].answer;
            if is_so && !self.dead_ends.contains(&(next, after.clone())) {
                if self.goes_on(next, &after) {
                    return true;
                }
                self.dead_ends.insert((next, after));
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that is written and read.
    #[derive(Debug)]
    struct Register;

    impl Model for Register {
        type State = u8;
        type Call = Option<u8>;
        type Answer = u8;

        fn answer(state: &mut u8, call: &Option<u8>) -> u8 {
            *state = call.unwrap_or(*state);
            *state
        }
    }

    fn history(calls: &[(Option<u8>, u8, u64, u64)]) -> History<Register> {
        let returned = calls.iter().map(|(call, answer, begun, ended)| Returned {
            call: *call,
            answer: *answer,
            begun: *begun,
            ended: *ended,
        });
        History { clock: AtomicU64::new(0), returned: Mutex::new(returned.collect()) }
    }

    #[test]
    fn a_history_is_explained_by_an_order_that_keeps_to_the_clock() {
        for (calls, is_explained) in [
            // One after the other.
            (vec![(Some(1), 1, 0, 1), (None, 1, 2, 3)], true),
            (vec![(Some(1), 1, 0, 1), (None, 0, 2, 3)], false),
            // At the same time, a read sees either.
            (vec![(Some(1), 1, 0, 3), (None, 0, 1, 2)], true),
            (vec![(Some(1), 1, 0, 3), (None, 1, 1, 2)], true),
            // What one read has seen, a later one sees too.
            (vec![(Some(1), 1, 0, 9), (None, 1, 1, 2), (None, 0, 3, 4)], false),
            (vec![(Some(1), 1, 0, 9), (None, 0, 1, 2), (None, 1, 3, 4)], true),
            (vec![(Some(1), 1, 0, 9), (Some(2), 2, 0, 9), (None, 1, 2, 3), (None, 2, 4, 5)], true),
        ] {
            let text = format!("{calls:?}");
            assert_eq!(history(&calls).contradiction(0).is_none(), is_explained, "{text}");
        }
    }
}
