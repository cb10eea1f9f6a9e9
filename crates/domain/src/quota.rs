//! Quotas: the rate of a provider, from its calls of the last second and the messages that wait for the next
//! ones.

mod rounds;
mod waiting;

use std::collections::VecDeque;
use std::time::Duration;

use crate::task::{Lane, TaskClass};
use crate::time::Timestamp;

use self::waiting::Waiting;

/// Span of a rate.
pub const SECOND: Duration = Duration::from_secs(1);

// Time ahead to which messages are held back at most. Those of a longer queue are held back again. The
// messages that are held back may be canceled or deleted, and then the seconds behind them are free.
const AHEAD: Duration = Duration::from_secs(300);

/// Message that asks for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Lane of its task.
    pub lane: Lane,
    /// Time since which it is due.
    pub due_at: Timestamp,
}

/// Calls of a provider with a rate.
#[derive(Debug, Default)]
pub struct Rate {
    // Times of the last calls, in their order: all of the last second, and as many as the limit. A clock that
    // goes back may bring older ones back.
    recent: VecDeque<Timestamp>,
    // Number of calls that were admitted, and have not begun.
    starting: usize,
    waiting: Waiting,
    // Times to which messages wait that have come before their calls were free, by class.
    early: Vec<(TaskClass, Timestamp)>,
    // Number of messages that were held back for a place beyond the time ahead.
    beyond: usize,
    // Latest time of a question or of a call.
    seen: Option<Timestamp>,
}

impl Rate {
    /// Admits a call for a message at `now`, unless `limit` calls were made in the second before, or those
    /// that are free are for messages of other lanes.
    ///
    /// # Errors
    ///
    /// The time to which the message is held back.
    pub fn ask(&mut self, caller: Caller, limit: usize, now: Timestamp) -> Result<(), Timestamp> {
        let has_waited = self.come(caller, now);
        self.forget(limit, now);
        let lane = caller.lane;
        let ahead = self.waiting.ahead(lane, !has_waited, limit);
        if ahead < self.free(limit, now) {
            self.starting += 1;
            self.waiting.called(lane);
            return Ok(());
        }
        let near = has_waited.then(|| self.near(lane, ahead, limit, now)).flatten();
        self.early.extend(near.map(|time| (lane.class, time)));
        let time = near.or_else(|| self.unused(ahead, limit, now)).unwrap_or_else(|| {
            let time_of = |place: usize| self.free_at(place.max(ahead), limit, now);
            time_of(self.waiting.place(lane, time_of))
        });
        if time <= now.after(AHEAD) {
            self.waiting.wait(lane, time);
            return Err(time);
        }
        Err(self.beyond(limit, now))
    }

    /// Returns `true` if a question or a call was more than a second behind `now`. Threads ask within the same
    /// second in any order.
    pub fn is_ahead_of(&self, now: Timestamp) -> bool {
        self.seen.is_some_and(|seen| seen > now.after(SECOND))
    }

    /// Holds a message back that has no call at `now` for another reason than the rate.
    pub fn hold_back(&mut self, caller: Caller, now: Timestamp, until: Timestamp) {
        self.come(caller, now);
        self.waiting.wait(caller.lane, until);
    }

    /// Notes that a call which was admitted is made at `now`.
    pub fn begin(&mut self, now: Timestamp) {
        self.give_up();
        self.seen = self.seen.max(Some(now));
        let place = self.recent.partition_point(|at| *at <= now);
        self.recent.insert(place, now);
    }

    /// Notes that a call which was admitted is not made.
    pub fn give_up(&mut self) {
        self.starting = self.starting.saturating_sub(1);
    }

    // A message has come at `now`. Returns `true` if it has waited for that.
    fn come(&mut self, caller: Caller, now: Timestamp) -> bool {
        if self.is_ahead_of(now) {
            // The clock has gone back. Calls at later times count as calls at `now`.
            (self.waiting, self.early, self.seen) = (Waiting::default(), Vec::new(), None);
            self.recent.iter_mut().for_each(|at| *at = now.min(*at));
        }
        self.seen = self.seen.max(Some(now));
        self.early.retain(|(_, at)| *at > now);
        self.waiting.pass(now);
        self.waiting.come(caller)
    }

    // Forgets calls before the last second, beyond the limit.
    fn forget(&mut self, limit: usize, now: Timestamp) {
        let beyond = self.recent.len().saturating_sub(limit);
        self.recent.drain(..beyond.min(self.before(now)));
    }

    // Number of calls before the last second.
    fn before(&self, now: Timestamp) -> usize {
        self.recent.partition_point(|at| at.after(SECOND) <= now)
    }

    // Number of calls that are free.
    fn free(&self, limit: usize, now: Timestamp) -> usize {
        limit.saturating_sub(self.recent.len() - self.before(now) + self.starting)
    }

    // The time at which a call is free for a message that has come before that, because others have come late.
    // It waits behind those that do so, and not behind all messages of its lane. Returns `None` if the call
    // is not free within a second, or if other lanes have their turns before.
    fn near(&self, lane: Lane, ahead: usize, limit: usize, now: Timestamp) -> Option<Timestamp> {
        let early = self.early.iter().filter(|(class, _)| *class <= lane.class).count().max(ahead);
        let is_near = early + self.waiting.before(lane) < limit;
        is_near.then(|| self.free_at(early, limit, now))
    }

    // The time of a call of the next second for which no message comes.
    fn unused(&self, ahead: usize, limit: usize, now: Timestamp) -> Option<Timestamp> {
        let end = self.free_at(limit - 1, limit, now);
        let known = self.waiting.known_until(end, limit).max(ahead);
        (known < limit).then(|| self.free_at(known, limit, now))
    }

    // The time at which a call is free for the message behind `place` others.
    fn free_at(&self, place: usize, limit: usize, now: Timestamp) -> Timestamp {
        let (seconds, place) = (place / limit, place % limit);
        let first = match place.checked_sub(self.free(limit, now)) {
            // A call that has not begun may begin at any moment.
            Some(call) => {
                self.recent.get(self.before(now) + call).map_or(now, |at| *at).after(SECOND)
            }
            None => now,
        };
        first.after(SECOND.saturating_mul(u32::try_from(seconds).unwrap_or(u32::MAX)))
    }

    // The time for a message whose place is beyond the time ahead. All of them are spread over that time,
    // because those in places before may be canceled.
    fn beyond(&mut self, limit: usize, now: Timestamp) -> Timestamp {
        let seconds = usize::try_from(AHEAD.as_secs()).unwrap_or(usize::MAX);
        let place = (self.beyond % limit.saturating_mul(seconds)).max(self.free(limit, now));
        self.beyond = place + 1;
        self.free_at(place, limit, now)
    }
}

#[cfg(test)]
mod tests;
