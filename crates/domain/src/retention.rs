//! Retention: the ages at which a sweep removes records.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::idempotency::StoredAnswer;
use crate::message::Message;
use crate::notification::Notification;
use crate::time::Timestamp;
use crate::vocabulary::Channel;

/// Ages at which records are removed. A record without an age is kept. With any age, suppressions that
/// have expired are removed, too.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::retention::Retention;
/// use tidings::vocabulary::Channel;
///
/// let retention = Retention::default()
///     .activity_days(30)
///     .messages_days(Channel::Email, 30)
///     .messages_days(Channel::InApp, 365)
///     .receipts_days(7)
///     .idempotency_hours(48);
/// assert_ne!(retention, Retention::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    activity: Option<Duration>,
    messages: BTreeMap<Channel, Duration>,
    receipts: Option<Duration>,
    idempotency: Option<Duration>,
}

/// Part of a sweep: the records that it looks at.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepPart {
    #[default]
    Notifications,
    Messages,
    Receipts,
    Answers,
    Suppressions,
    DigestEvents,
    DigestBuckets,
    ThrottleSlots,
}

/// Times of the last steps of a sweep. A long gap between two steps may be that of a clock that is ahead.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SweepPace {
    /// Time of the last step. `None` before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stepped_at: Option<Timestamp>,
    /// Time at which a step came so late that it was put off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubted_at: Option<Timestamp>,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl SweepPace {
    /// Time since the last step after which a step is late. The clock may be ahead then, as at the first step.
    const LATE: Duration = Duration::from_secs(2 * 24 * 60 * 60);
    /// Time for which a late step and the first one are put off. If the clock is set right within it, nothing is
    /// removed.
    const CONFIRMATION: Duration = Duration::from_secs(60 * 60);
    /// Longest time between putting a step off and doing it. After a longer one, the step is put off again, because
    /// the clock may have jumped since.
    const MEMORY: Duration = Duration::from_secs(100 * 24 * 60 * 60);

    /// Returns the pace of a sweep whose step at `now` is put off, and the time until when. Returns `None`
    /// if the step may be done at `now`.
    pub fn put_off(self, now: Timestamp) -> Option<(Self, Timestamp)> {
        if self.stepped_at.is_some_and(|last| now.since(last) <= Self::LATE) {
            return None;
        }
        let counts = |since: &Timestamp| *since <= now && now.since(*since) <= Self::MEMORY;
        let since = self.doubted_at.filter(counts).unwrap_or(now);
        let until = since.after(Self::CONFIRMATION);
        (now < until).then_some((Self { doubted_at: Some(since), ..self }, until))
    }

    /// Returns the pace behind a step at `now`. A clock that is behind does not set the time of the last step
    /// back.
    #[must_use]
    pub fn stepped(self, now: Timestamp) -> Self {
        Self { stepped_at: self.stepped_at.max(Some(now)), doubted_at: None }
    }
}

impl Retention {
    /// Time from one sweep to the next.
    #[doc(hidden)]
    pub const INTERVAL: Duration = DAY;

    /// Keeps notifications for `days` after the end of their last job, with their events in digests. Notifications
    /// with a waiting job, or in a digest that has not ended, stay. With 0 days, the next sweep removes them. A policy
    /// without this age keeps them. With any age, places of throttles and keys of digests on which no later event
    /// depends are removed a day after their end.
    #[must_use]
    pub fn activity_days(self, days: u32) -> Self {
        Self { activity: Some(DAY.saturating_mul(days)), ..self }
    }

    /// Keeps the messages of a channel for `days` after their last delivery and the end of the last
    /// job of their notification. Messages that are snoozed stay. With 0 days, the next sweep removes them. A policy
    /// without an age for the channel keeps them.
    #[must_use]
    pub fn messages_days(mut self, channel: Channel, days: u32) -> Self {
        self.messages.insert(channel, DAY.saturating_mul(days));
        self
    }

    /// Keeps receipts for `days` after the trigger, also if no notification and no message of the
    /// trigger is left. A repeated transaction id returns the receipt until then. Without this age, the receipt is
    /// removed with the last notification or message of its trigger. A call that deletes the last notification
    /// removes the receipt as well, unless tasks still notify recipients of the event.
    #[must_use]
    pub fn receipts_days(self, days: u32) -> Self {
        Self { receipts: Some(DAY.saturating_mul(days)), ..self }
    }

    /// Removes the stored answers of calls with an idempotency key `hours` after the call. An answer counts for 24
    /// hours, so fewer hours have the effect of 24. Without this age, a policy removes answers after 24 hours.
    #[must_use]
    pub fn idempotency_hours(self, hours: u32) -> Self {
        let age = Duration::from_secs(60 * 60).saturating_mul(hours);
        Self { idempotency: Some(age.max(StoredAnswer::LIFETIME)), ..self }
    }

    /// Returns `true` if everything is kept.
    #[doc(hidden)]
    pub fn keeps_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the time before which a notification must have ended, at `now`, to be removed.
    #[doc(hidden)]
    pub fn activity_before(&self, now: Timestamp) -> Option<Timestamp> {
        self.activity.map(|age| now.before(age))
    }

    /// Returns the time before which some message must have been delivered to be removed.
    #[doc(hidden)]
    pub fn messages_before(&self, now: Timestamp) -> Option<Timestamp> {
        self.messages.values().min().map(|age| now.before(*age))
    }

    /// Returns the time before which a trigger without notifications and messages must have been
    /// accepted to be removed. Returns `None` if none is ever removed.
    #[doc(hidden)]
    pub fn receipts_before(&self, now: Timestamp) -> Option<Timestamp> {
        let last = [self.activity].into_iter().chain(self.messages.values().copied().map(Some));
        let age = self.receipts.or_else(|| last.flatten().min())?;
        Some(now.before(age))
    }

    /// Returns the time before which a stored answer must have expired to be removed.
    #[doc(hidden)]
    pub fn answers_before(&self, now: Timestamp) -> Timestamp {
        let age = self.idempotency.unwrap_or(StoredAnswer::LIFETIME);
        now.before(age.saturating_sub(StoredAnswer::LIFETIME))
    }

    /// Returns `true` if a message is old at `now`, whose notification is `of`.
    #[doc(hidden)]
    pub fn ends(&self, message: &Message, of: Option<&Notification>, now: Timestamp) -> bool {
        let Some(age) = self.messages.get(&message.channel) else { return false };
        let before = now.before(*age);
        let delivered = message.delivered_at.last().copied().unwrap_or(message.created_at);
        let is_over = of.is_none_or(|of| of.ended_at().is_some_and(|ended| ended < before));
        let is_snoozed = message.snoozed_until.is_some_and(|until| until >= before);
        delivered < before && is_over && !is_snoozed
    }
}

impl SweepPart {
    /// Returns the part that follows. Returns `None` for the last one.
    pub const fn next(self) -> Option<Self> {
        match self {
            SweepPart::Notifications => Some(SweepPart::Messages),
            SweepPart::Messages => Some(SweepPart::Receipts),
            SweepPart::Receipts => Some(SweepPart::Answers),
            SweepPart::Answers => Some(SweepPart::Suppressions),
            SweepPart::Suppressions => Some(SweepPart::DigestEvents),
            SweepPart::DigestEvents => Some(SweepPart::DigestBuckets),
            SweepPart::DigestBuckets => Some(SweepPart::ThrottleSlots),
            SweepPart::ThrottleSlots => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_has_each_part_once() {
        let parts: Vec<_> =
            std::iter::successors(Some(SweepPart::default()), |part| part.next()).collect();
        assert_eq!(parts.len(), 8);
    }

    #[test]
    fn a_step_that_is_the_first_or_comes_late_is_put_off_for_an_hour() {
        let at = |hours: i64| Timestamp::from_millis(hours * 3_600_000);
        let recent = SweepPace::default().stepped(at(0));
        assert_eq!(recent.put_off(at(48)), None);
        for (pace, first) in [(SweepPace::default(), at(7)), (recent, at(49))] {
            let (doubted, until) = pace.put_off(first).unwrap();
            assert_eq!(until, first.after(SweepPace::CONFIRMATION));
            assert_eq!(doubted.put_off(until), None);
            assert_eq!(doubted.stepped(until).put_off(until), None);
            let years_ahead = until.after(3_650 * DAY);
            assert!(doubted.put_off(years_ahead).is_some());
        }
    }

    #[test]
    fn each_age_has_its_own_limit() {
        let now = Timestamp::from_millis(100 * 86_400_000);
        let day = |day: i64| Some(Timestamp::from_millis(day * 86_400_000));
        let none = Retention::default();
        assert!(none.keeps_everything());
        assert_eq!(none.receipts_before(now), None);
        let all = none
            .activity_days(30)
            .messages_days(Channel::Email, 20)
            .messages_days(Channel::Sms, 40);
        assert_eq!(all.activity_before(now), day(70));
        assert_eq!(all.messages_before(now), day(80));
        assert_eq!(all.receipts_before(now), day(80));
        assert_eq!(all.clone().receipts_days(90).receipts_before(now), day(10));
        assert_eq!(all.answers_before(now), now);
        // Answers count for a day, whatever the policy says.
        assert_eq!(all.clone().idempotency_hours(1).answers_before(now), now);
        assert_eq!(Some(all.idempotency_hours(48).answers_before(now)), day(99));
    }
}
