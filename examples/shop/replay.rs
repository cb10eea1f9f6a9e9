//! The week, event by event: triggers in bulks, and deliveries as they fall due.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tidings::ids::{NotificationId, SubscriberId};
use tidings::time::Timestamp;
use tidings::trigger::Trigger;
use tidings::{Engine, ManualClock, Result, Scope};

use crate::data::Event;

/// The events of this span are triggered together.
const SLICE: Duration = Duration::from_secs(30 * 60);

/// What came of the events.
#[derive(Debug, Default)]
pub struct Replay {
    /// How many there were.
    pub events: usize,
    /// How many of them had been triggered before, and so did nothing.
    pub repeated: usize,
    /// The notifications that were created, and whom they are for.
    pub notifications: BTreeMap<NotificationId, SubscriberId>,
    /// How often a provider was called.
    pub deliveries: usize,
    /// How long the triggers took.
    pub triggering: Duration,
    /// How long the deliveries took.
    pub delivering: Duration,
}

/// Replays `events` at the times at which they happened, and goes on until nothing is to be tried
/// again. Tells `progress` how many events are done.
pub fn replay(
    (engine, env, clock): (&Engine, &Scope, &ManualClock),
    events: &[Event],
    progress: impl Fn(usize),
) -> Result<Replay> {
    let mut replay = Replay::default();
    for slice in slices(events) {
        if let Some(last) = slice.last() {
            clock.set(last.at);
        }
        replay.trigger(env, slice)?;
        replay.deliver(engine)?;
        progress(replay.events);
    }
    while let Some(due) = engine.delivery().next_due()? {
        clock.set(due);
        replay.deliver(engine)?;
    }
    Ok(replay)
}

fn slices(events: &[Event]) -> impl Iterator<Item = &[Event]> {
    let slice = |at: Timestamp| u128::from(at.as_millis().unsigned_abs()) / SLICE.as_millis();
    events
        .chunk_by(move |left, right| slice(left.at) == slice(right.at))
        .flat_map(|slice| slice.chunks(Trigger::MAX_BULK))
}

impl Replay {
    fn trigger(&mut self, env: &Scope, events: &[Event]) -> Result<()> {
        let triggers: Vec<Trigger> = events.iter().map(|event| event.trigger.clone()).collect();
        let started = Instant::now();
        let receipts = env.events().trigger_bulk(&triggers)?;
        self.triggering += started.elapsed();
        for receipt in receipts {
            let known = self.notifications.len();
            let created = receipt?.notifications.into_iter();
            self.notifications
                .extend(created.map(|created| (created.notification_id, created.subscriber_id)));
            self.repeated += usize::from(self.notifications.len() == known);
        }
        self.events += events.len();
        Ok(())
    }

    fn deliver(&mut self, engine: &Engine) -> Result<()> {
        let started = Instant::now();
        let report = engine.delivery().run_due(usize::MAX)?;
        self.delivering += started.elapsed();
        self.deliveries += report.sent + report.retried + report.failed;
        Ok(())
    }

    /// Who got the most notifications.
    pub fn busiest(&self) -> Option<&SubscriberId> {
        let mut counts: BTreeMap<&SubscriberId, usize> = BTreeMap::new();
        for subscriber in self.notifications.values() {
            *counts.entry(subscriber).or_default() += 1;
        }
        let (busiest, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        Some(busiest)
    }
}
