//! Limits of the calls of a provider.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use domain::task::Lane;
use domain::time::Timestamp;
use parking_lot::{Condvar, Mutex};

// The span of a rate.
const SECOND: Duration = Duration::from_secs(1);

// Time ahead to which messages are held back at most. Those of a longer queue are held back again. The
// messages that are held back may be canceled or deleted, and then the seconds behind them are free.
const AHEAD: Duration = Duration::from_secs(300);

// Time that a thread waits for the end of another call.
const PATIENCE: Duration = Duration::from_millis(100);

/// Limits of the calls of providers, by the id of the provider, and the calls under way.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    limits: HashMap<String, Limits>,
    calls: Mutex<HashMap<String, Calls>>,
    ended: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    concurrent: Option<usize>,
    per_second: Option<usize>,
}

// Calls of a provider.
#[derive(Debug, Default)]
struct Calls {
    running: usize,
    // Times of the calls of the last second, in their order. Kept only if there is a limit.
    recent: VecDeque<Timestamp>,
    // Messages of each lane that are held back. What is urgent and what is of another workflow does not wait
    // behind them.
    booked: HashMap<Lane, Booked>,
    // Time of the latest question.
    asked_at: Option<Timestamp>,
}

// Times to which messages of a lane are held back, each with the number of the messages.
#[derive(Debug)]
struct Booked {
    // The next time at which a call may be free. A message that comes some milliseconds before its call
    // is free waits for it here, and not behind all others.
    next: (Timestamp, usize),
    // The last second.
    last: (Timestamp, usize),
}

/// Whether a provider may be called.
#[derive(Debug)]
pub(super) enum Admission<'q> {
    /// Now, until the permit is dropped.
    Now(Permit<'q>),
    /// The message waits until this time.
    Later(Timestamp),
}

/// A call that is under way.
#[derive(Debug)]
pub(super) struct Permit<'q> {
    quotas: &'q Quotas,
    provider_id: &'q str,
}

impl Quotas {
    pub(crate) fn limit_concurrent(&mut self, provider_id: String, calls: usize) {
        self.limits.entry(provider_id).or_default().concurrent = Some(calls.max(1));
    }

    pub(crate) fn limit_rate(&mut self, provider_id: String, calls: usize) {
        self.limits.entry(provider_id).or_default().per_second = Some(calls.max(1));
    }

    /// Returns the same limits without calls.
    pub(crate) fn without_calls(&self) -> Self {
        Self { limits: self.limits.clone(), ..Self::default() }
    }

    /// Returns the number of the calls under way, by the id of the provider.
    pub(super) fn running(&self) -> BTreeMap<String, usize> {
        let calls = self.calls.lock();
        let running = calls.iter().filter(|(_, calls)| calls.running > 0);
        running.map(|(id, calls)| (id.clone(), calls.running)).collect()
    }

    /// Admits a call of a provider at `now` for a task of a lane. Waits a little if too many calls are
    /// under way.
    pub(super) fn admit<'q>(
        &'q self,
        provider_id: &'q str,
        lane: Lane,
        now: Timestamp,
    ) -> Admission<'q> {
        let limits = self.limits.get(provider_id).copied().unwrap_or_default();
        let mut all = self.calls.lock();
        if let Some(limit) = limits.concurrent {
            let is_full = |all: &mut HashMap<String, Calls>| {
                all.get(provider_id).is_some_and(|calls| calls.running >= limit)
            };
            self.ended.wait_while_for(&mut all, is_full, PATIENCE);
            if is_full(&mut all) {
                return Admission::Later(now.after(SECOND));
            }
        }
        let calls = all.entry(provider_id.to_owned()).or_default();
        if let Some(limit) = limits.per_second
            && let Err(later) = calls.count(lane, limit, now)
        {
            return Admission::Later(later);
        }
        calls.running += 1;
        Admission::Now(Permit { quotas: self, provider_id })
    }
}

impl Calls {
    // Counts a call at `now`, unless `limit` calls were made in the second before. Then the messages
    // of the lane that are held back are spread over the seconds to come.
    fn count(&mut self, lane: Lane, limit: usize, now: Timestamp) -> Result<(), Timestamp> {
        // The clock may have gone back. Threads ask within the same second in any order.
        if self.asked_at.replace(now).is_some_and(|before| before > now.after(SECOND)) {
            self.booked.clear();
        }
        self.recent.retain(|at| *at <= now.after(SECOND) && at.after(SECOND) > now);
        let Some(oldest) = self.recent.front().filter(|_| self.recent.len() >= limit) else {
            let place = self.recent.partition_point(|at| *at <= now);
            self.recent.insert(place, now);
            return Ok(());
        };
        let free_at = oldest.after(SECOND);
        self.booked.retain(|_, booked| booked.last.0 > now);
        let booked = self.booked.entry(lane).or_insert_with(|| Booked::from(free_at));
        Err(booked.book(limit, now, free_at))
    }
}

impl Booked {
    // Of a lane without messages that are held back. A call may be free from `free_at` on.
    fn from(free_at: Timestamp) -> Self {
        Self { next: (free_at, 0), last: (free_at, 0) }
    }

    // Holds a message back at `now`. A call is free from `free_at` on.
    fn book(&mut self, limit: usize, now: Timestamp, free_at: Timestamp) -> Timestamp {
        if self.next.0 <= now {
            self.next = (free_at, 0);
        }
        let (next, behind) = (self.next.0, self.next.0.after(SECOND));
        if self.next.1 < limit {
            self.next.1 += 1;
            return next;
        }
        self.last = match self.last {
            (second, _) if second <= next => (behind, 1),
            (second, count) if count < limit => (second, count + 1),
            (second, _) if second < now.after(AHEAD) => (second.after(SECOND), 1),
            _ => {
                self.next.1 = 1;
                self.next
            }
        };
        self.last.0
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(calls) = self.quotas.calls.lock().get_mut(self.provider_id) {
            calls.running -= 1;
        }
        self.quotas.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use domain::task::TaskClass;
    use uuid::Uuid;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn lane(class: TaskClass) -> Lane {
        Lane { class, environment_id: Uuid::nil().into(), workflow_id: None }
    }

    // The time to which a call at `now` is held back.
    fn later(quotas: &Quotas, now: i64) -> Option<i64> {
        later_of(quotas, TaskClass::Normal, now)
    }

    fn later_of(quotas: &Quotas, class: TaskClass, now: i64) -> Option<i64> {
        match quotas.admit("smtp", lane(class), at(now)) {
            Admission::Now(_) => None,
            Admission::Later(time) => Some(time.as_millis()),
        }
    }

    #[test]
    fn a_rate_counts_the_second_before() {
        let mut quotas = Quotas::default();
        quotas.limit_rate("smtp".into(), 2);
        let held: Vec<_> =
            [0, 400, 500, 600, 700, 999].map(|now| later(&quotas, now)).into_iter().collect();
        let spread = [1_000, 1_000, 2_000, 2_000].map(Some);
        assert_eq!(held, [&[None, None], &spread[..]].concat());
        assert_eq!(
            [1_000, 1_399, 1_400].map(|now| later(&quotas, now).is_some()),
            [false, true, false]
        );
        // The clock goes back.
        assert_eq!(later(&quotas, 10), None);
    }

    #[test]
    fn a_lane_does_not_wait_behind_another_one() {
        let mut quotas = Quotas::default();
        quotas.limit_rate("smtp".into(), 1);
        let flood: Vec<_> = (0..4).map(|now| later(&quotas, now)).collect();
        assert_eq!(flood, [None, Some(1_000), Some(2_000), Some(3_000)]);
        assert_eq!(later_of(&quotas, TaskClass::Urgent, 4), Some(1_000));
        assert_eq!(later_of(&quotas, TaskClass::Urgent, 1_000), None);
    }

    /// Most of a flood may be canceled, and nobody says so.
    #[test]
    fn messages_are_held_back_for_five_minutes_at_most() {
        let mut quotas = Quotas::default();
        quotas.limit_rate("smtp".into(), 2);
        let flood: Vec<_> = (0..2_000).filter_map(|_| later(&quotas, 0)).collect();
        let longest = flood.iter().max();
        assert_eq!((longest, flood[599], flood[600]), (Some(&300_000), 300_000, 1_000));
    }

    /// A message comes some milliseconds behind the time to which it was held back, some of them before
    /// their calls are free.
    #[test]
    fn a_flood_has_all_calls_that_there_are() {
        const MESSAGES: usize = 1_000;
        for limit in [1, 3, 20, 100] {
            let mut quotas = Quotas::default();
            quotas.limit_rate("smtp".into(), limit);
            let mut due: BTreeSet<_> = (0..MESSAGES).map(|message| (0, message)).collect();
            let (mut calls, mut questions, mut now) = (Vec::new(), 0, 0);
            while let Some((time, message)) = due.pop_first() {
                questions += 1;
                let late = i64::try_from(questions * 7 % 13).unwrap();
                now = now.max(time + late);
                match later(&quotas, now) {
                    None => calls.push(now),
                    Some(time) => drop(due.insert((time, message))),
                }
            }
            assert!(calls.windows(limit + 1).all(|few| few[limit] - few[0] >= 1_000), "{limit}");
            let seconds = i64::try_from(MESSAGES / limit).unwrap();
            let span = calls.last().unwrap() - calls[0];
            assert!(span <= 1_000 * seconds + 20 * seconds, "{limit}: {span}");
            assert!(questions <= 6 * MESSAGES, "{limit}: {questions}");
        }
    }

    /// A thread reads the clock before it waits for the calls of others.
    #[test]
    fn calls_that_ask_late_are_counted() {
        let mut quotas = Quotas::default();
        quotas.limit_rate("smtp".into(), 3);
        let held: Vec<_> = [0, 5, 0, 6].map(|now| later(&quotas, now)).into();
        assert_eq!(held, [None, None, None, Some(1_000)]);
    }

    #[test]
    fn a_clock_that_was_ahead_holds_no_call_back() {
        const YEAR: i64 = 365 * 24 * 3_600_000;
        let mut quotas = Quotas::default();
        quotas.limit_rate("smtp".into(), 1);
        let held: Vec<_> = [YEAR, YEAR, 0, 1, 2].map(|now| later(&quotas, now)).into();
        assert_eq!(held, [None, Some(YEAR + 1_000), None, Some(1_000), Some(2_000)]);
    }

    #[test]
    fn other_providers_have_no_limit() {
        let mut quotas = Quotas::default();
        quotas.limit_rate("smtp".into(), 1);
        for _ in 0..3 {
            assert!(matches!(
                quotas.admit("ses", lane(TaskClass::Normal), at(0)),
                Admission::Now(_)
            ));
        }
    }

    #[test]
    fn calls_under_way_are_limited() {
        let mut quotas = Quotas::default();
        quotas.limit_concurrent("smtp".into(), 2);
        let admit = || quotas.admit("smtp", lane(TaskClass::Normal), at(0));
        let permits = [admit(), admit()];
        assert_eq!(quotas.running(), BTreeMap::from([("smtp".into(), 2)]));
        assert_eq!(later(&quotas, 0), Some(1_000));
        drop(permits);
        assert_eq!(later(&quotas, 0), None);
        assert_eq!(quotas.running(), BTreeMap::new());
    }
}
