//! Events of digests, which go with their notifications.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use activity::Old;
use domain::digest::WindowEvent;
use domain::ids::{DigestWindowId, NotificationId};
use domain::notification::Notification;
use domain::time::Timestamp;
use store::{Order, ReadRecords, Record, WriteRecords, layout};

use super::exists;
use crate::Result;
use crate::resources::removal_guard::RemovalGuard;
use crate::tx::{Reading, Tx, View};

/// How far a deletion of old notifications is.
#[derive(Clone, Debug)]
pub(super) struct Deletion {
    pub(super) deleted: u64,
    pub(super) old: Old,
    /// The events that go with the next notifications.
    pub(super) events: Events,
    /// The runs of triggers that were removed last.
    pub(super) guard: RemovalGuard,
    /// `true` if a notification had events that were not looked for.
    has_missed: bool,
}

/// Events of notifications in the windows of their digests.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    /// The windows that were looked through for each notification.
    looked_for: BTreeSet<(NotificationId, DigestWindowId)>,
    found: Vec<WindowEvent>,
}

impl Deletion {
    /// Largest number of notifications that one transaction deletes.
    const AT_A_TIME: usize = 250;

    /// Starts to delete `old`.
    pub(super) fn of(old: Old) -> Self {
        let (events, guard) = (Events::default(), RemovalGuard::default());
        Self { deleted: 0, old, events, guard, has_missed: false }
    }

    /// Finds the events that the next transaction removes.
    pub(super) fn next(self, view: &Reading<'_>, time: Timestamp) -> Result<Self> {
        let all = layout::all_digest_events(view.environment_id()).range();
        if !self.has_missed && !view.has_any(&all)? {
            return Ok(self);
        }
        let (next, _) = self.old.first(view, view.environment_id(), time, Self::AT_A_TIME)?;
        Ok(Self { events: Events::of(view, &next)?, ..self })
    }

    /// The state behind a transaction that has removed runs, and no notifications yet.
    pub(super) fn again(&self, guard: RemovalGuard) -> Self {
        Self { guard, ..self.clone() }
    }

    /// The notifications that the transaction deletes, and the state behind it. One whose events were
    /// not all looked for comes next.
    pub(super) fn first(&self, tx: &Tx<'_>, time: Timestamp) -> Result<(Vec<Notification>, Self)> {
        let environment = tx.environment_id();
        let (mut found, mut old) = self.old.first(tx, environment, time, Self::AT_A_TIME)?;
        let missed = found.iter().position(|one| !self.events.are_all_of(one));
        if let Some((at, missed)) = missed.and_then(|at| Some((at, found.get(at)?))) {
            old = self.old.from(missed.id.ordinal());
            found.truncate(at);
        }
        let deleted = self.deleted + found.len() as u64;
        let has_missed = self.has_missed || missed.is_some();
        Ok((found, Self { deleted, has_missed, ..Self::of(old) }))
    }
}

impl Events {
    /// Returns the events of notifications. It looks at the events of a window up to the last one of these,
    /// outside of a transaction, because a window may have many.
    pub(super) fn of(view: &Reading<'_>, notifications: &[Notification]) -> Result<Self> {
        let mut windows: BTreeMap<DigestWindowId, BTreeSet<NotificationId>> = BTreeMap::new();
        let mut events = Self::default();
        for notification in notifications {
            for window in notification.windows() {
                windows.entry(window).or_default().insert(notification.id);
                events.looked_for.insert((notification.id, window));
            }
        }
        for (window, mut wanted) in windows {
            let all = layout::digest_events(view.environment_id(), window).range();
            view.each_readable(&all, Order::Ascending, |event: WindowEvent| {
                if wanted.remove(&event.notification_id) {
                    events.found.push(event);
                }
                if wanted.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        }
        Ok(events)
    }

    /// Returns `true` if all events of a notification were looked for. It may have joined a window since.
    pub(super) fn are_all_of(&self, notification: &Notification) -> bool {
        let mut windows = notification.windows();
        windows.all(|window| self.looked_for.contains(&(notification.id, window)))
    }

    /// Removes those of the events whose notification is gone. No digest shows them.
    pub(super) fn remove(&self, tx: &mut Tx<'_>) -> Result<()> {
        for event in &self.found {
            let is_there = tx.contains(&event.key())?;
            if is_there && !exists(tx, event.notification_id)? {
                tx.remove(event)?;
            }
        }
        Ok(())
    }
}
