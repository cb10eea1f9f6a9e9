//! The signal that work has come.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The signal that work has come. Clones of an engine share it.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    /// Wakes all waiting threads.
    pub(crate) fn ring(&self) {
        let mut rings = self.rings.lock();
        *rings = rings.wrapping_add(1);
        self.rung.notify_all();
    }

    /// Returns the number of rings so far.
    pub(crate) fn heard(&self) -> u64 {
        *self.rings.lock()
    }

    /// Waits for a ring after the first `heard` ones, at most for `span`.
    pub(crate) fn wait(&self, heard: u64, span: Duration) {
        let mut rings = self.rings.lock();
        self.rung.wait_while_for(&mut rings, |rings| *rings == heard, span);
    }
}
