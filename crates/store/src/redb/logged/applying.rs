//! Taking frozen changes into the database.

use super::super::failure::{Failure, caught};
use super::Shared;

/// A memtable is applied in so many steps, or a few more.
const STEPS: usize = 32;

impl Shared {
    /// Applies whatever is frozen, until the database is closed. The body of the thread.
    pub(super) fn apply_all(&self) {
        while self.wait_for_work() {
            drop(self.step());
        }
    }

    /// Applies as much as a caller who has written so many bytes owes.
    pub(super) fn apply_for(&self, written: usize) {
        let bytes = self.step_bytes();
        for _ in 0..=written / bytes {
            // The caller's own changes are durable, whatever becomes of the step.
            if !matches!(self.step(), Ok(true)) {
                break;
            }
        }
    }

    /// Waits until nothing is frozen, or applies it.
    pub(super) fn drain_frozen(&self) -> Result<(), Failure> {
        let mut state = self.state.lock();
        while state.has_thread && state.frozen.is_some() && state.stopped.is_none() {
            self.changed.wait(&mut state);
        }
        drop(state);
        self.drain()
    }

    /// Applies everything that is frozen.
    pub(super) fn drain(&self) -> Result<(), Failure> {
        while self.step()? {}
        Ok(())
    }

    fn wait_for_work(&self) -> bool {
        let mut state = self.state.lock();
        while !state.is_closing && (state.frozen.is_none() || state.stopped.is_some()) {
            self.changed.wait(&mut state);
        }
        !state.is_closing
    }

    /// Applies a part of what is frozen. Returns `true` if more is left.
    fn step(&self) -> Result<bool, Failure> {
        self.check()?;
        let step = caught(|| self.try_step()).and_then(|step| step);
        step.inspect_err(|failure| self.stop(failure))
    }

    fn try_step(&self) -> Result<bool, Failure> {
        let mut position = self.applying.lock();
        let Some(frozen) = self.state.lock().frozen.clone() else { return Ok(false) };
        *position = self.file.step(&frozen, position.as_ref(), self.step_bytes())?;
        if position.is_none() {
            self.state.lock().frozen = None;
            self.changed.notify_all();
        }
        Ok(position.is_some())
    }

    fn step_bytes(&self) -> usize {
        let bytes = self.logging.as_ref().map_or(0, |logging| logging.options.memtable_bytes);
        (bytes / STEPS).max(1)
    }
}
