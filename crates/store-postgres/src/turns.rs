//! Callers that take turns, and pass something on to the next one.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// Turns of callers, one after the other, and what they pass on.
#[derive(Default)]
pub(crate) struct Turns<T> {
    state: Mutex<State<T>>,
    freed: Condvar,
}

#[derive(Default)]
struct State<T> {
    is_taken: bool,
    /// Number of callers that wait for their turn.
    waiting: usize,
    passed: T,
}

/// The turn of a caller. It ends when this is dropped.
pub(crate) struct Turn<'t, T> {
    turns: &'t Turns<T>,
    is_over: bool,
}

impl<T> Turns<T> {
    /// Waits for a turn. Returns `None` if others have had it up to `until`.
    ///
    /// A caller that ends its turn may leave work to the callers that wait. So a caller that is counted takes
    /// a free turn, even if its time is over.
    pub(crate) fn wait(&self, until: Option<Instant>) -> Option<Turn<'_, T>> {
        let mut state = self.state.lock();
        state.waiting += 1;
        while state.is_taken {
            match until {
                None => self.freed.wait(&mut state),
                Some(until) if self.freed.wait_until(&mut state, until).timed_out() => break,
                Some(_) => {}
            }
        }
        state.waiting -= 1;
        if state.is_taken {
            return None;
        }
        state.is_taken = true;
        Some(Turn { turns: self, is_over: false })
    }

    /// Number of callers that wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiting
    }

    /// Changes what is passed on, at any time. `change` returns at once.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.state.lock().passed)
    }
}

impl<T> Turn<'_, T> {
    /// Ends the turn, with a last change of what is passed on. `change` is told whether a caller waits: one of
    /// them takes the next turn, unless another caller is faster.
    pub(crate) fn end<R>(mut self, change: impl FnOnce(&mut T, bool) -> R) -> R {
        let mut state = self.turns.state.lock();
        let has_next = state.waiting > 0;
        let changed = change(&mut state.passed, has_next);
        state.is_taken = false;
        drop(state);
        self.is_over = true;
        self.turns.freed.notify_one();
        changed
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        if !self.is_over {
            self.turns.state.lock().is_taken = false;
            self.turns.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The time of the only caller that waits ends together with the turn before, in this order: the caller is
    /// still counted, its time is over, the turn ends.
    #[test]
    fn a_caller_whose_time_is_over_takes_what_is_left_to_it() {
        const TIME: Duration = Duration::from_millis(100);
        let turns = Turns::<Vec<u32>>::default();
        let first = turns.wait(None).unwrap();
        let taken = thread::scope(|scope| {
            let next = scope.spawn(|| {
                let turn = turns.wait(Instant::now().checked_add(TIME))?;
                Some(turn.end(|passed, _| passed.pop()))
            });
            while turns.waiting() == 0 {
                thread::yield_now();
            }
            first.end(|passed, has_next| {
                assert!(has_next);
                thread::sleep(TIME * 3);
                passed.push(1);
            });
            next.join().unwrap()
        });
        assert_eq!(taken, Some(Some(1)));
    }

    #[test]
    fn a_panic_ends_a_turn() {
        let turns = Turns::<()>::default();
        let panicked = thread::scope(|scope| {
            let turn = scope.spawn(|| {
                let _turn = turns.wait(None);
                panic!("on purpose");
            });
            turn.join()
        });
        assert!(panicked.is_err());
        assert!(turns.wait(Some(Instant::now())).is_some());
    }

    /// Callers whose turn does not come give up together, not one behind the other: the first one keeps its
    /// turn for good.
    #[test]
    fn callers_wait_side_by_side_for_a_turn_that_does_not_come() {
        let turns = Turns::<()>::default();
        let _held = turns.wait(None);
        let until = Instant::now().checked_add(Duration::from_millis(50));
        thread::scope(|scope| {
            let callers: Vec<_> =
                (0..16).map(|_| scope.spawn(|| turns.wait(until).is_none())).collect();
            assert!(callers.into_iter().all(|caller| caller.join().unwrap()));
        });
        assert_eq!(turns.waiting(), 0);
    }

    #[test]
    fn a_caller_waits_up_to_its_time() {
        let turns = Turns::<()>::default();
        let _turn = turns.wait(None);
        assert!(turns.wait(Some(Instant::now())).is_none());
        assert_eq!(turns.waiting(), 0);
    }
}
