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
        let Some(carrier) = carrier(view, &part)? else { return Ok(true) };
        part = Cow::Owned(carrier);
    }
    Ok(true)
}

// The notification whose jobs go on behind a digest that has collected the event of `part`: the one that
// has opened the window, or another one if that was canceled, has expired or is gone. Returns `None` if no
// jobs go on.
fn carrier(view: &Reading<'_>, part: &Notification) -> Result<Option<Notification>> {
    let Some(opener) = part.digested_notification_id else { return Ok(None) };
    let carries = |other: &Notification| other.carries_one_of(part.windows());
    let opener = notifications::find(view, opener)?;
    if opener.as_ref().is_some_and(carries) {
        return Ok(opener);
    }
    for window in part.windows() {
        let mut found = Ok(None);
        let events = layout::digest_events(view.environment_id(), window).range();
        // The first event of a digest carries it. So it is this one or an earlier one, unless this one was
        // not left when the window closed.
        view.each::<WindowEvent>(&events, Order::Ascending, |event| {
            if event.notification_id == part.id {
                return ControlFlow::Break(());
            }
            found =
                notifications::find(view, event.notification_id).map(|other| other.filter(carries));
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
