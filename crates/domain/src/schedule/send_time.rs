//! Send times of messages: at once, at the next opening of a schedule, or not at all.

use serde::Serialize;

use super::{Outside, Schedule};
use crate::contact::TimeZone;
use crate::time::Timestamp;
use crate::vocabulary::Channel;

/// When a message is sent, by the schedule of its subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "send", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SendTime {
    /// At once.
    Now,
    /// At the next opening.
    #[non_exhaustive]
    AtOpening {
        /// Time of the opening.
        at: Timestamp,
    },
    /// Not at all, since the schedule is closed and the subscriber wants no late messages.
    Dropped,
    /// Not at all, since the schedule never opens.
    Never,
}

impl Schedule {
    /// Returns when a message that is ready at `now` is sent on `channel`. `zone` is the time zone of
    /// the subscriber. Messages in the inbox and critical ones are never held back.
    #[doc(hidden)]
    pub fn send_time(
        &self,
        channel: Channel,
        critical: bool,
        now: Timestamp,
        zone: TimeZone,
    ) -> SendTime {
        if critical || channel == Channel::InApp || self.is_open(now, zone) {
            return SendTime::Now;
        }
        match (self.outside(channel), self.next_opening(now, zone)) {
            (Outside::Deliver, _) => SendTime::Now,
            (Outside::Drop, _) => SendTime::Dropped,
            (Outside::Defer, Some(opening)) => SendTime::AtOpening { at: opening },
            (Outside::Defer, None) => SendTime::Never,
        }
    }

    /// Returns `false` if messages on `channel` are sent at once at any time.
    pub(crate) fn may_hold_back(&self, channel: Channel, critical: bool) -> bool {
        let is_disturbing = !critical && channel != Channel::InApp;
        is_disturbing && self.outside(channel) != Outside::Deliver && !self.is_always_open()
    }

    /// Returns what happens to messages outside the open hours.
    pub fn outside(&self, channel: Channel) -> Outside {
        let set = self.outside.as_ref().and_then(|outside| outside.get(&channel));
        set.copied().unwrap_or(Outside::Defer)
    }

    /// Returns the schedule after `self` is set in place of `before`. Settings outside the open
    /// hours are kept if `self` has none.
    #[doc(hidden)]
    #[must_use]
    pub fn in_place_of(self, before: Option<&Self>) -> Self {
        let kept = || before.and_then(|before| before.outside.clone());
        Self { outside: self.outside.clone().or_else(kept), ..self }
    }
}

#[cfg(test)]
mod tests;
