//! Taking frozen changes into the database.

use std::time::Duration;

use super::super::failure::{Failure, caught};
use super::{Shared, State};

/// A memtable is applied in so many steps, or a few more. Small steps leave the disk to the syncs of
/// the log.
const STEPS: usize = 32;

/// Number of steps while no caller can write before everything is applied. Each step costs a sync.
const URGENT_STEPS: usize = 4;

/// What the active memtable has is applied when nothing was written for so long. Reads then find it
/// in the file, and step over no removals in memory.
const IDLE: Duration = Duration::from_secs(1);

/// What the thread does next.
enum Work {
    /// A step of what is frozen.
    Step,
    /// To freeze what the active memtable has.
    Freeze,
    /// To end.
    Closing,
}

impl Shared {
    /// Applies whatever is frozen, until the database is closed. The body of the thread.
    pub(super) fn apply_all(&self) {
        loop {
            // After a failure, the next commit returns it.
            match self.wait_for_work() {
                Work::Step => drop(self.step(STEPS)),
                Work::Freeze => self.freeze_idle(),
                Work::Closing => return,
            }
        }
    }

    /// Applies as much as a caller who has written so many bytes owes.
    pub(super) fn apply_for(&self, written: usize) {
        let bytes = self.step_bytes(STEPS);
        for _ in 0..=written / bytes {
            // The caller's own changes are durable, whatever becomes of the step.
            if !matches!(self.step(STEPS), Ok(true)) {
                break;
            }
        }
    }

    /// Waits until nothing is frozen, or applies it.
    pub(super) fn drain_frozen(&self) -> Result<(), Failure> {
        let mut state = self.state.lock();
        while state.has_thread && state.frozen.is_some() && state.stopped.is_none() {
            state.is_waited_for = true;
            self.changed.wait(&mut state);
        }
        state.is_waited_for = false;
        drop(state);
        self.drain()
    }

    /// Applies everything that is frozen.
    pub(super) fn drain(&self) -> Result<(), Failure> {
        while self.step(URGENT_STEPS)? {}
        Ok(())
    }

    /// Applies everything that is frozen, at a time without commits.
    pub(super) fn drain_all(&self) -> Result<(), Failure> {
        while self.caught_step(URGENT_STEPS)? {}
        Ok(())
    }

    /// Waits until something is frozen, or until nothing was written for as long as [`IDLE`].
    fn wait_for_work(&self) -> Work {
        let mut state = self.state.lock();
        loop {
            let written = state.active.payloads();
            match &*state {
                State { is_closing: true, .. } => return Work::Closing,
                State { stopped: None, frozen: Some(_), .. } => return Work::Step,
                State { stopped: None, .. } if written > 0 => {
                    let is_over = self.changed.wait_for(&mut state, IDLE).timed_out();
                    if is_over && state.active.payloads() == written {
                        return Work::Freeze;
                    }
                }
                _ => self.changed.wait(&mut state),
            }
        }
    }

    /// Freezes what the active memtable has, unless a caller writes at this moment, or has frozen
    /// something since the thread decided. The thread cannot wait for that: it is the one that applies.
    fn freeze_idle(&self) {
        let Some(mut writer) = self.writer.try_lock() else { return };
        let is_free = matches!(&*self.state.lock(), State { stopped: None, frozen: None, .. });
        if let Some(log) = writer.log.as_mut().filter(|_| is_free) {
            self.turn(log);
        }
    }

    /// Applies one of so many parts of what is frozen, or a larger one if a caller waits. Returns
    /// `true` if more is left.
    fn step(&self, steps: usize) -> Result<bool, Failure> {
        self.check()?;
        self.caught_step(steps).map_err(|failure| self.stop(failure))
    }

    fn caught_step(&self, steps: usize) -> Result<bool, Failure> {
        caught(|| self.try_step(steps)).and_then(|step| step)
    }

    fn try_step(&self, steps: usize) -> Result<bool, Failure> {
        let mut position = self.applying.lock();
        let state = self.state.lock();
        let steps = if state.is_waited_for { URGENT_STEPS } else { steps };
        let Some(frozen) = state.frozen.clone() else { return Ok(false) };
        drop(state);
        *position = self.file.step(&frozen, position.as_ref(), self.step_bytes(steps))?;
        if position.is_none() {
            self.state.lock().frozen = None;
            self.changed.notify_all();
        }
        Ok(position.is_some())
    }

    fn step_bytes(&self, steps: usize) -> usize {
        let bytes = self.logging().map_or(0, |logging| logging.options.memtable_bytes);
        (bytes / steps).max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::super::sample;
    use super::*;
    use crate::group_commit::Base;
    use crate::overlay::Changes;
    use crate::{Snapshot, Table};

    /// Far longer than a freeze takes.
    const LONG: Duration = Duration::from_secs(20);

    /// A commit freezes between the decision of the thread and its freeze.
    #[test]
    fn a_thread_does_not_wait_for_itself() {
        let (_folder, logged) = sample::logged();
        let shared = &logged.shared;
        shared.commit(&change("ada")).unwrap();
        shared.freeze(shared.writer.lock().log.as_mut().unwrap()).unwrap();
        shared.commit(&change("bob")).unwrap();
        shared.state.lock().has_thread = true;

        let (end, ended) = channel();
        let thread = {
            let shared = Arc::clone(shared);
            thread::spawn(move || {
                shared.freeze_idle();
                end.send(()).unwrap();
            })
        };
        let ended = ended.recv_timeout(LONG);
        shared.state.lock().has_thread = false;
        shared.changed.notify_all();
        thread.join().unwrap();

        assert!(ended.is_ok(), "the thread waits for itself");
        assert!(shared.state.lock().frozen.is_some());
        shared.drain().unwrap();
        shared.freeze_idle();
        shared.drain().unwrap();
        assert!(shared.state.lock().active.is_empty());
        let snapshot = logged.snapshot().unwrap();
        for key in ["ada", "bob"] {
            assert!(snapshot.get(Table::ALL[0], key.as_bytes(), &mut |_| ()).unwrap(), "{key}");
        }
    }

    fn change(key: &str) -> Changes {
        let mut changes = Changes::default();
        changes.set(Table::ALL[0], key.as_bytes(), Some(b""));
        changes
    }
}
