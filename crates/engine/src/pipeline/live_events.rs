//! Events that are left: those that were neither canceled nor have expired. The jobs behind a digest
//! belong to all of its events, so they go on as long as one of these is left.

use std::cell::Cell;
use std::ops::ControlFlow;

use domain::digest::WindowEvent;
use domain::ids::{DigestWindowId, NotificationId, StepId};
use domain::job::JobDigest;
use domain::notification::Notification;
use domain::time::Timestamp;
use store::{Order, Range, ReadRecords, layout};

use crate::Result;
use crate::damage::if_readable;
use crate::pipeline::facts::is_canceled;
use crate::resources::notifications;
use crate::tx::View;

// Events of digests that a transaction looks at.
const AT_A_TIME: usize = 256;

/// Finds out which events of a digest are left at a time.
#[derive(Debug)]
pub(crate) struct LiveEvents {
    now: Timestamp,
    // Number of events that may still be looked at.
    room: Cell<usize>,
}

impl LiveEvents {
    /// Looks at all events. For snapshots.
    pub(crate) fn unbounded(now: Timestamp) -> Self {
        Self { now, room: Cell::new(usize::MAX) }
    }

    /// A look in a transaction, which holds the writer. Behind 256 events that are not left, the others
    /// count as left: the next turn or attempt looks at all, and decides.
    pub(crate) fn bounded(now: Timestamp) -> Self {
        Self { now, room: Cell::new(AT_A_TIME) }
    }

    /// The time of the look.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns `true` if the job of that number is canceled with the event of its notification.
    pub(crate) fn is_canceled(
        &self,
        view: &dyn View,
        notification: &Notification,
        job: usize,
    ) -> Result<bool> {
        Ok(is_canceled(view, &notification.transaction_id)?
            && !self.has_others(view, notification, job)?)
    }

    /// Returns `true` if an event of another notification is left that a digest before the job of that
    /// number has collected.
    pub(crate) fn has_others(
        &self,
        view: &dyn View,
        notification: &Notification,
        job: usize,
    ) -> Result<bool> {
        for (number, job) in notification.jobs.iter().enumerate().take(job) {
            let window = job.digest.as_ref().and_then(JobDigest::closed_window);
            let Some(window) = window else { continue };
            let events = layout::digest_events(view.environment_id(), window).range();
            let is_other_left = |event: &WindowEvent| {
                Ok(event.notification_id != notification.id
                    && self.is_left(view, event, (job.step.id, number))?)
            };
            if self.is_any(view, &events, is_other_left)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the notification of the first event in a window of that step that is left. Returns `None`
    /// if there is none among those that it looks at.
    pub(crate) fn first(
        &self,
        view: &dyn View,
        window: DigestWindowId,
        step: StepId,
    ) -> Result<Option<NotificationId>> {
        let events = layout::digest_events(view.environment_id(), window).range();
        let first = Cell::new(None);
        self.is_any(view, &events, |event| {
            let is_left = self.is_left(view, event, (step, usize::MAX))?;
            first.set(Some(event.notification_id).filter(|_| is_left));
            Ok(is_left)
        })?;
        Ok(first.get())
    }

    // Returns `true` if `is_it` of an event. The first two are nearly always enough: the one is that of
    // the notification itself, and the other is left.
    fn is_any(
        &self,
        view: &dyn View,
        events: &Range<WindowEvent>,
        is_it: impl Fn(&WindowEvent) -> Result<bool>,
    ) -> Result<bool> {
        for event in view.first::<WindowEvent>(events, Order::Ascending, 2)? {
            if is_it(&event)? {
                return Ok(true);
            }
        }
        let mut found = Ok(false);
        view.each::<WindowEvent>(events, Order::Ascending, |event| {
            found = if self.room.get() == 0 { Ok(true) } else { is_it(&event) };
            self.room.set(self.room.get().saturating_sub(1));
            if matches!(found, Ok(false)) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        found
    }

    /// Returns `true` if an event in a window of that step is left. Its own digests count only among the
    /// first `most` jobs, so that no event stands for itself.
    pub(crate) fn is_left(
        &self,
        view: &dyn View,
        event: &WindowEvent,
        (step, most): (StepId, usize),
    ) -> Result<bool> {
        if !notifications::exists(view, event.notification_id)? {
            return Ok(false);
        }
        if !is_canceled(view, &event.transaction_id)? && !event.has_expired(self.now) {
            return Ok(true);
        }
        // The event may stand for those of an earlier digest.
        let notification = if_readable(notifications::find(view, event.notification_id))?.flatten();
        let Some(notification) = notification else { return Ok(false) };
        let digest = notification.jobs.iter().position(|job| job.step.id == step);
        self.has_others(view, &notification, digest.unwrap_or_default().min(most))
    }
}
