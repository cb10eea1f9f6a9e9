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
use crate::tx::{Reading, Tx, View};

/// How far a deletion of old notifications is.
#[derive(Clone, Debug)]
pub(super) struct Deletion {
    pub(super) deleted: u64,
    pub(super) old: Old,
    /// The events that go with the next notifications.
    pub(super) events: Vec<WindowEvent>,
}

impl Deletion {
    /// Largest number of notifications that one transaction deletes.
    pub(super) const AT_A_TIME: usize = 250;

    /// Goes on behind deleted notifications.
    pub(super) const fn behind(deleted: u64, old: Old) -> Self {
        Self { deleted, old, events: Vec::new() }
    }

    /// Finds the events that the next transaction removes.
    pub(super) fn next(self, view: &Reading<'_>, time: Timestamp) -> Result<Self> {
        if !are_there(view)? {
            return Ok(self);
        }
        let (next, _) = self.old.first(view, view.environment_id(), time, Self::AT_A_TIME)?;
        Ok(Self { events: of(view, &next)?, ..self })
    }
}

/// Returns the events of notifications in the windows of their digests. It looks at the events of a window
/// up to the last one of these, outside of a transaction, because a window may have many.
pub(super) fn of(view: &Reading<'_>, notifications: &[Notification]) -> Result<Vec<WindowEvent>> {
    let mut windows: BTreeMap<DigestWindowId, BTreeSet<NotificationId>> = BTreeMap::new();
    for notification in notifications {
        for window in notification.windows() {
            windows.entry(window).or_default().insert(notification.id);
        }
    }
    let mut events = Vec::new();
    for (window, mut wanted) in windows {
        let all = layout::digest_events(view.environment_id(), window).range();
        view.each_readable(&all, Order::Ascending, |event: WindowEvent| {
            if wanted.remove(&event.notification_id) {
                events.push(event);
            }
            if wanted.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    Ok(events)
}

// Returns `true` if there is an event of a digest.
fn are_there(view: &Reading<'_>) -> Result<bool> {
    let (mut found, all) = (false, layout::all_digest_events(view.environment_id()).range());
    view.scan_bytes(&all, Order::Ascending, Some(1), &mut |_, _| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Removes those of the events whose notification is gone. No digest shows them.
pub(super) fn remove(tx: &mut Tx<'_>, events: &[WindowEvent]) -> Result<()> {
    for event in events {
        let is_there = tx.contains(&event.key())?;
        if is_there && !exists(tx, event.notification_id)? {
            tx.remove(event)?;
        }
    }
    Ok(())
}
