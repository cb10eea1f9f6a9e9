//! Pauses of commits while the disk is full, and their end.
//!
//! The memtables have all that was acknowledged and that the file does not have. So a log that has
//! failed gets no more records: the memtables are applied to the file, and the next commit makes
//! another log.

use std::time::{Duration, Instant};

use super::super::failure::Failure;
use super::super::meta::{Note, NoteState};
use super::{Shared, Writer};

/// The first pause. Each failure in a row doubles it.
const SHORTEST: Duration = Duration::from_millis(10);

/// The longest pause, if a try is quick.
const LONGEST: Duration = Duration::from_secs(2);

/// The longest pause behind a try that is not quick. A try reads the whole file, and takes seconds if that
/// is large.
const LONGEST_REST: Duration = Duration::from_secs(10);

/// Why there are no commits.
#[derive(Clone)]
pub(super) enum Stop {
    /// The disk is full. The first commit at this time or later tries again.
    Pause { failure: Failure, until: Instant, pause: Duration },
    /// There are none until the file is opened again.
    End(Failure),
}

impl Stop {
    fn new(failure: Failure, before: Option<&Stop>, start: Instant) -> Self {
        match failure {
            Failure::Full { .. } => {}
            Failure::Stopped(failure) => return Stop::End(*failure),
            failure => return Stop::End(failure),
        }
        let pause = match before {
            Some(Stop::Pause { pause, .. }) => pause.saturating_mul(2).min(LONGEST),
            Some(Stop::End(_)) | None => SHORTEST,
        };
        let until = Instant::now() + pause_behind(start.elapsed(), pause);
        Stop::Pause { failure, until, pause }
    }

    /// What a caller is told.
    fn failure(&self) -> Failure {
        match self {
            Stop::Pause { failure, .. } => failure.clone(),
            Stop::End(failure) => Failure::Stopped(Box::new(failure.clone())),
        }
    }
}

/// The pause behind a try that took so long, if it would otherwise be that `pause`. Callers are then told
/// at once that the disk is full, and do not wait for a try.
fn pause_behind(tried: Duration, pause: Duration) -> Duration {
    pause.max(tried.min(LONGEST_REST))
}

impl Shared {
    /// Returns an error while there are no commits.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.state.lock().stopped.as_ref().map_or(Ok(()), |stop| Err(stop.failure()))
    }

    /// Ends commits, or begins a pause if the disk is full. Returns what the caller is told.
    pub(super) fn stop(&self, failure: Failure) -> Failure {
        self.stop_since(failure, Instant::now())
    }

    fn stop_since(&self, failure: Failure, start: Instant) -> Failure {
        // The next commit goes on with the file that was opened again.
        if matches!(failure, Failure::Interrupted(_)) {
            return failure;
        }
        // So that reads go on.
        let is_pause = matches!(failure, Failure::Full { .. });
        let reopened = if is_pause { self.changing(|| self.file.reopen()) } else { Ok(()) };
        let failure = reopened.err().unwrap_or(failure);
        let mut state = self.state.lock();
        if let Some(stop @ Stop::End(_)) = &state.stopped {
            return stop.failure();
        }
        let stop = Stop::new(failure, state.stopped.as_ref(), start);
        let told = stop.failure();
        state.stopped = Some(stop);
        self.changed.notify_all();
        told
    }

    /// Returns `Ok` if commits go on, or go on again.
    pub(super) fn resume(&self, writer: &mut Writer) -> Result<(), Failure> {
        let stopped = self.state.lock().stopped.clone();
        let start = Instant::now();
        match stopped {
            None => return Ok(()),
            Some(Stop::Pause { until, .. }) if until <= start => {}
            Some(stop) => return Err(stop.failure()),
        }
        // The log that is removed would be that of the file which is there now.
        self.check_place()?;
        self.take_in(writer).map_err(|failure| self.stop_since(failure, start))?;
        // It takes room, and the next log takes its place otherwise.
        drop(self.logging().map(|logging| logging.place.remove()));
        self.state.lock().stopped = None;
        self.changed.notify_all();
        Ok(())
    }

    /// Ends a pause early, for the last try.
    pub(super) fn hurry(&self) {
        if let Some(Stop::Pause { until, .. }) = &mut self.state.lock().stopped {
            *until = Instant::now();
        }
    }

    /// Applies both memtables to the file, which then needs no log. The log is not read.
    pub(super) fn take_in(&self, writer: &mut Writer) -> Result<(), Failure> {
        self.changing(|| self.file.reopen())?;
        self.drain_all()?;
        let Some(log) = &mut writer.log else { return Ok(()) };
        self.turn(log);
        self.drain_all()?;
        let note = Note { state: NoteState::Closed, id: log.id(), applied: log.last() };
        // From here on the log is not needed, and may remain. If the commit fails, the file may still
        // name it, and the log must not get any more records.
        self.file.commit([], Some(&note))?.shown()?;
        *writer = Writer { log: None, note };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use redb::backends::InMemoryBackend;

    use super::super::super::medium::Outdated;
    use super::super::super::{RedbOptions, open};
    use super::super::{Keeping, Logged};
    use super::*;

    /// The guide states these pauses.
    #[test]
    fn a_pause_is_short_whatever_the_size_of_the_file() {
        let seconds = Duration::from_secs;
        assert_eq!(pause_behind(Duration::from_millis(1), SHORTEST), SHORTEST);
        assert_eq!(pause_behind(seconds(1), LONGEST), seconds(2));
        assert_eq!(pause_behind(seconds(5), SHORTEST), seconds(5));
        assert_eq!(pause_behind(seconds(60), LONGEST), seconds(10));
    }

    #[test]
    fn a_commit_that_was_interrupted_ends_nothing() {
        let storage = Box::new(InMemoryBackend::new());
        let options = RedbOptions::default();
        let (file, note) = open::open(storage, Path::new("shop"), &options, None).unwrap();
        let shared = &Logged::new(file, note, Keeping::Directly(None)).shared;
        let told = shared.stop(Failure::Interrupted(Arc::new(Outdated)));
        assert!(matches!(told, Failure::Interrupted(_)));
        assert!(shared.check().is_ok());
    }
}
