//! The clock of the server, which all processes have in common.
//!
//! The store asks for the time once a second, while operations need it. In between, the time goes by the
//! steady clock of this process. So the calendar of this process does not matter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

/// Age of a reading from which on another one is due.
const AGE: Duration = Duration::from_secs(1);

/// The clock of the server.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    known: Mutex<Option<Known>>,
    is_asked: AtomicBool,
}

/// A question for the time that is under way. Dropping it allows another one.
#[derive(Debug)]
pub(crate) struct ClockQuestion(Arc<ServerClock>);

#[derive(Clone, Copy, Debug)]
struct Known {
    /// A time of the server, and when this process saw it.
    server: SystemTime,
    at: Instant,
    /// When the server has confirmed it.
    confirmed: Instant,
}

/// An answer of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) server: SystemTime,
    pub(crate) asked: Instant,
    pub(crate) answered: Instant,
}

impl ServerClock {
    /// The time of the server. Returns `None` if it was never asked.
    pub(crate) fn now(&self) -> Option<SystemTime> {
        let known = *self.known.lock();
        known?.at(Instant::now())
    }

    /// Returns `true` if the server should be asked.
    pub(crate) fn is_due(&self) -> bool {
        self.known.lock().is_none_or(|known| known.confirmed.elapsed() >= AGE)
    }

    /// The right to ask the server. Returns `None` if it need not be asked, or is being asked: a server that
    /// does not answer gets one question at a time.
    pub(crate) fn question(self: &Arc<Self>) -> Option<ClockQuestion> {
        let may_ask = self.is_due() && !self.is_asked.swap(true, Ordering::AcqRel);
        may_ask.then(|| ClockQuestion(Arc::clone(self)))
    }

    /// Follows the server. What is as near as an answer can tell stays as it is, so that the time does
    /// not go back with each answer that took longer.
    pub(crate) fn learn(&self, reading: Reading) {
        let Reading { server, asked, answered } = reading;
        let half = answered.saturating_duration_since(asked) / 2;
        let at = asked + half;
        let mut known = self.known.lock();
        let before = known.and_then(|known| known.at(at));
        let is_near = before.is_some_and(|before| distance(before, server) <= half);
        match &mut *known {
            Some(known) if is_near => known.confirmed = answered,
            known => *known = Some(Known { server, at, confirmed: answered }),
        }
    }
}

impl ClockQuestion {
    /// Follows the server.
    pub(crate) fn answer(self, reading: Reading) {
        self.0.learn(reading);
    }
}

impl Drop for ClockQuestion {
    fn drop(&mut self) {
        self.0.is_asked.store(false, Ordering::Release);
    }
}

impl Known {
    fn at(self, instant: Instant) -> Option<SystemTime> {
        match instant.checked_duration_since(self.at) {
            Some(since) => self.server.checked_add(since),
            None => self.server.checked_sub(self.at.saturating_duration_since(instant)),
        }
    }
}

fn distance(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).unwrap_or_else(|error| error.duration())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn read(clock: &ServerClock, server: SystemTime, took: Duration) -> Duration {
        let answered = Instant::now();
        clock.learn(Reading { server, asked: answered.checked_sub(took).unwrap(), answered });
        clock.now().unwrap().duration_since(server).unwrap()
    }

    #[test]
    fn the_time_is_that_of_the_server() {
        let clock = ServerClock::default();
        assert!(clock.now().is_none() && clock.is_due());
        let server = SystemTime::UNIX_EPOCH + 1_000 * SECOND;
        // The server has looked at its clock half way.
        let start = Instant::now();
        let ahead = read(&clock, server, 2 * SECOND);
        assert!((SECOND..=SECOND + start.elapsed()).contains(&ahead), "{ahead:?}");
        assert!(!clock.is_due());
    }

    #[test]
    fn a_server_is_asked_once_at_a_time() {
        let clock = Arc::new(ServerClock::default());
        let question = clock.question().unwrap();
        assert!(clock.question().is_none());
        // Without an answer, it is asked again.
        drop(question);
        let (question, at) = (clock.question().unwrap(), Instant::now());
        question.answer(Reading { server: SystemTime::UNIX_EPOCH, asked: at, answered: at });
        assert!(clock.question().is_none() && clock.now().is_some());
    }

    #[test]
    fn an_answer_that_tells_no_more_changes_nothing() {
        let clock = ServerClock::default();
        let server = SystemTime::UNIX_EPOCH + 1_000 * SECOND;
        read(&clock, server, Duration::ZERO);
        let before = clock.now().unwrap();
        read(&clock, server - 3 * SECOND, 4 * SECOND);
        assert!(clock.now().unwrap() >= before);
        // The clock of the server was set back.
        read(&clock, server - 10 * SECOND, Duration::ZERO);
        assert!(clock.now().unwrap() < before);
    }
}
