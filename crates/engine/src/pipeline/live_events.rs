//! Events that are left: those that were neither canceled nor have expired. The jobs behind a digest
//! belong to all of its events, so they go on as long as one of these is left.

use std::cell::Cell;
use std::ops::ControlFlow;

use domain::digest::WindowEvent;
use domain::ids::{NotificationId, StepId};
use domain::job::JobDigest;
use domain::notification::Notification;
use domain::task::Work;
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
                    && self.is_left(view, event, job.step.id, number)?)
            };
            if self.first_of(view, &events, is_other_left)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the notification whose jobs go on with `work`. For the end of a window, that is the one of the
    /// first event that is left, if there is any.
    pub(crate) fn notification_of(
        &self,
        view: &dyn View,
        work: &Work,
    ) -> Result<Option<NotificationId>> {
        if let Work::Close { window_id, step_id, .. } = work {
            let events = layout::digest_events(view.environment_id(), *window_id).range();
            let is_left = |event: &WindowEvent| self.is_left(view, event, *step_id, usize::MAX);
            // One that counts as left, because too many others were looked at, may be gone.
            if let Some(first) = self.first_of(view, &events, is_left)?
                && notifications::exists(view, first)?
            {
                return Ok(Some(first));
            }
        }
        Ok(work.notification_id())
    }

    // Returns the notification of the first event for which `is_it` holds, or which counts as left. The first
    // two are nearly always enough: the one is that of the notification itself, and the other is left.
    fn first_of(
        &self,
        view: &dyn View,
        events: &Range<WindowEvent>,
        is_it: impl Fn(&WindowEvent) -> Result<bool>,
    ) -> Result<Option<NotificationId>> {
        for event in view.first::<WindowEvent>(events, Order::Ascending, 2)? {
            if is_it(&event)? {
                return Ok(Some(event.notification_id));
            }
        }
        let mut found = Ok(None);
        view.each::<WindowEvent>(events, Order::Ascending, |event| {
            let counts = if self.room.get() == 0 { Ok(true) } else { is_it(&event) };
            self.room.set(self.room.get().saturating_sub(1));
            found = counts.map(|counts| counts.then_some(event.notification_id));
            if matches!(found, Ok(None)) {
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
        step: StepId,
        most: usize,
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
