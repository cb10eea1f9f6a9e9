//! What keeps old records: live jobs, open windows, and what is left of a trigger.

use std::borrow::Cow;
use std::ops::ControlFlow;

use domain::digest::WindowEvent;
use domain::ids::{DigestWindowId, TransactionId};
use domain::notification::Notification;
use domain::time::Timestamp;
use domain::trigger::AcceptedTrigger;
use store::{Order, ReadRecords, layout};
use uuid::Uuid;

use crate::Result;
use crate::resources::notifications;
use crate::tx::{Reading, View};

/// Returns `true` if all is done that a notification is a part of, for so long.
pub(super) fn is_over(
    view: &Reading<'_>,
    notification: &Notification,
    before: Timestamp,
) -> Result<bool> {
    let mut part = Cow::Borrowed(notification);
    // The digest of a notification may be a part of that of a later step.
    for _ in 0..=notification.jobs.len() {
        let is_old = part.ended_at().is_some_and(|ended| ended < before);
        if !is_old || is_collected(view, &part)? {
            return Ok(false);
        }
        let Some(digesting) = digesting(view, &part)? else { return Ok(true) };
        part = Cow::Owned(digesting);
    }
    Ok(true)
}

// The notification whose jobs go on with the event of another one behind a digest: that which has opened
// the window, or another one if that was canceled, has expired or is gone. Returns `None` if there is
// none.
fn digesting(view: &Reading<'_>, part: &Notification) -> Result<Option<Notification>> {
    let Some(opener) = part.digested_notification_id else { return Ok(None) };
    let goes_on_with = |other: &Notification| {
        let mut closed = other.jobs.iter().filter_map(|job| job.digest.as_ref()?.closed_window());
        closed.any(|closed| part.windows().any(|window| window == closed))
    };
    let opener = notifications::find(view, opener)?;
    if opener.as_ref().is_some_and(goes_on_with) {
        return Ok(opener);
    }
    for window in part.windows() {
        let mut found = Ok(None);
        let events = layout::digest_events(view.environment_id(), window).range();
        // If the event is one of the digest, the first one that is goes on with it.
        view.each::<WindowEvent>(&events, Order::Ascending, |event| {
            if event.notification_id == part.id {
                return ControlFlow::Break(());
            }
            found = notifications::find(view, event.notification_id)
                .map(|other| other.filter(goes_on_with));
            if matches!(found, Ok(None)) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        if let Some(found) = found? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

// Returns `true` if an open window has the event of a notification, which has opened or joined it. Its opener
// may be gone, and its bucket may have a later window.
fn is_collected(view: &Reading<'_>, notification: &Notification) -> Result<bool> {
    for window in notification.windows() {
        if is_open(view, window)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A window is open as long as there is the task that closes it.
pub(super) fn is_open(view: &Reading<'_>, window: DigestWindowId) -> Result<bool> {
    let task = layout::task(view.environment_id(), Uuid::from(window).into());
    Ok(view.contains(&task)?)
}

/// Returns `true` if a trigger has a notification or a message, or recipients that tasks tell.
pub(crate) fn has_something_left(view: &dyn View, id: &TransactionId) -> Result<bool> {
    let environment = view.environment_id();
    if view.contains(&layout::fan_out(environment, id))? {
        return Ok(true);
    }
    for run in view.all::<AcceptedTrigger>(&layout::transaction(environment, id))? {
        let mut found = false;
        let of = layout::notifications_between(environment, run.ordinals.clone());
        view.scan_bytes(&of, Order::Ascending, Some(1), &mut |_, _| {
            found = true;
            ControlFlow::Break(())
        })?;
        let of = layout::messages_of(environment, run.ordinals);
        view.scan_bytes(&of, Order::Ascending, Some(1), &mut |_, _| {
            found = true;
            ControlFlow::Break(())
        })?;
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}
