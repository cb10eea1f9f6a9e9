//! The signal that work has come.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The signal that work has come. Clones of an engine share it.
#[derive(Debug, Default)]
pub(crate) struct WorkSignal {
    sequence: Mutex<u64>,
    changed: Condvar,
}

impl WorkSignal {
    /// Wakes all waiting threads.
    pub(crate) fn notify(&self) {
        let mut sequence = self.sequence.lock();
        *sequence = sequence.wrapping_add(1);
        self.changed.notify_all();
    }

    /// Returns the number of signals so far.
    pub(crate) fn sequence(&self) -> u64 {
        *self.sequence.lock()
    }

    /// Waits for a signal after the first `seen` ones, at most for `span`.
    pub(crate) fn wait(&self, seen: u64, span: Duration) {
        let mut sequence = self.sequence.lock();
        self.changed.wait_while_for(&mut sequence, |sequence| *sequence == seen, span);
    }
}
