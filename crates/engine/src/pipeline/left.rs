//! Events that are left: those that were neither canceled nor have expired. The jobs behind a digest
//! belong to all of its events, so they go on as long as one of these is left.

use std::ops::ControlFlow;

use domain::digest::WindowEvent;
use domain::ids::StepId;
use domain::job::JobDigest;
use domain::notification::Notification;
use domain::time::Timestamp;
use store::{Order, Range, ReadRecords, layout};

use crate::Result;
use crate::pipeline::facts::is_canceled;
use crate::resources::notifications;
use crate::tx::View;

/// Returns `true` if the job of that number is canceled with the event of its notification.
pub(crate) fn is_job_canceled(
    view: &dyn View,
    notification: &Notification,
    job: usize,
    now: Timestamp,
) -> Result<bool> {
    Ok(is_canceled(view, &notification.transaction_id)?
        && !has_others(view, notification, job, now)?)
}

/// Returns `true` if an event of another notification is left that a digest before the job of that
/// number has collected.
pub(crate) fn has_others(
    view: &dyn View,
    notification: &Notification,
    job: usize,
    now: Timestamp,
) -> Result<bool> {
    for (number, job) in notification.jobs.iter().enumerate().take(job) {
        let window = job.digest.as_ref().and_then(JobDigest::closed_window);
        let Some(window) = window else { continue };
        let events = layout::digest_events(view.environment_id(), window).range();
        let is_other_left = |event: &WindowEvent| {
            Ok(event.notification_id != notification.id
                && is_left(view, event, (job.step.id, number), now)?)
        };
        if is_any(view, &events, is_other_left)? {
            return Ok(true);
        }
    }
    Ok(false)
}

// Returns `true` if `is_it` of an event. The first two are nearly always enough: the one is that of
// the notification itself, and the other is left.
fn is_any(
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
        found = is_it(&event);
        if matches!(found, Ok(false)) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    found
}

/// Returns `true` if an event in a window of that step is left. Its own digests count only among the
/// first `most` jobs, so that no event stands for itself.
pub(crate) fn is_left(
    view: &dyn View,
    event: &WindowEvent,
    (step, most): (StepId, usize),
    now: Timestamp,
) -> Result<bool> {
    if !notifications::exists(view, event.notification_id)? {
        return Ok(false);
    }
    if !is_canceled(view, &event.transaction_id)? && !event.has_expired(now) {
        return Ok(true);
    }
    // The event may stand for those of an earlier digest.
    let Some(notification) = notifications::find(view, event.notification_id)? else {
        return Ok(false);
    };
    let digest = notification.jobs.iter().position(|job| job.step.id == step);
    has_others(view, &notification, digest.unwrap_or_default().min(most), now)
}
