//! What keeps old records: live jobs, open windows, and what is left of a trigger.

use std::collections::hash_map::Entry;
use std::iter;
use std::ops::ControlFlow;
use std::sync::Arc;

use domain::digest::WindowEvent;
use domain::ids::{DigestWindowId, NotificationId, TransactionId};
use domain::notification::Notification;
use domain::time::Timestamp;
use domain::trigger::AcceptedTrigger;
use foldhash::{HashMap, HashSet};
use store::{Order, ReadRecords, layout};

use crate::Result;
use crate::resources::notifications;
use crate::tx::{Reading, View};

/// Notifications whose jobs go on behind digests, as a step has found them. A digest may have collected many
/// events, whose notifications are looked at one after the other.
#[derive(Debug, Default)]
pub(super) struct Carriers(HashMap<DigestWindowId, Carried>);

/// The first notification of a window whose jobs go on, and those before it, whose events were not left when
/// the window closed.
#[derive(Debug, Default)]
struct Carried {
    by: Option<Arc<Notification>>,
    not_left: HashSet<NotificationId>,
}

/// Returns `true` if all is done that a notification is a part of, for so long.
pub(super) fn is_over(
    view: &Reading<'_>,
    carriers: &mut Carriers,
    notification: &Notification,
    before: Timestamp,
) -> Result<bool> {
    let mut carrier: Option<Arc<Notification>> = None;
    // The digest of a notification may be a part of that of a later step.
    for _ in 0..=notification.jobs.len() {
        let part = carrier.as_deref().unwrap_or(notification);
        let is_old = part.ended_at().is_some_and(|ended| ended < before);
        if !is_old || is_collected(view, part)? {
            return Ok(false);
        }
        let next = carriers.of(view, part)?;
        if next.is_none() {
            return Ok(true);
        }
        carrier = next;
    }
    Ok(true)
}

impl Carriers {
    // The notification whose jobs go on behind a digest that has collected the event of `part`: the one that
    // has opened the window, or another one if that was canceled, has expired or is gone. Returns `None` if
    // no jobs go on.
    fn of(&mut self, view: &Reading<'_>, part: &Notification) -> Result<Option<Arc<Notification>>> {
        let Some(opener) = part.digested_notification_id else { return Ok(None) };
        let opener = notifications::find(view, opener)?;
        if let Some(opener) = opener.filter(|opener| opener.carries_one_of(part.windows())) {
            return Ok(Some(Arc::new(opener)));
        }
        for window in part.windows() {
            let carried = match self.0.entry(window) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(Carried::of(view, window)?),
            };
            let by = carried.by.as_ref().filter(|by| by.id != part.id);
            if let Some(by) = by.filter(|_| !carried.not_left.contains(&part.id)) {
                return Ok(Some(Arc::clone(by)));
            }
        }
        Ok(None)
    }
}

impl Carried {
    fn of(view: &Reading<'_>, window: DigestWindowId) -> Result<Self> {
        let (mut carried, mut failed) = (Self::default(), None);
        let events = layout::digest_events(view.environment_id(), window).range();
        // The first event of a digest that was left carries it.
        view.each::<WindowEvent>(&events, Order::Ascending, |event| {
            match notifications::find(view, event.notification_id) {
                Ok(Some(other)) if other.carries_one_of(iter::once(window)) => {
                    carried.by = Some(Arc::new(other));
                    return ControlFlow::Break(());
                }
                Ok(_) => {
                    carried.not_left.insert(event.notification_id);
                    return ControlFlow::Continue(());
                }
                Err(error) => failed = Some(error),
            }
            ControlFlow::Break(())
        })?;
        failed.map_or(Ok(carried), Err)
    }
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
    let task = layout::task(view.environment_id(), window.into());
    Ok(view.contains(&task)?)
}

/// Returns the runs of an event, the first one first.
pub(super) fn runs_of(view: &dyn View, id: &TransactionId) -> Result<Vec<AcceptedTrigger>> {
    Ok(view.all(&layout::transaction(view.environment_id(), id))?)
}

/// Returns `true` if an event with these runs has a notification or a message, or recipients that tasks
/// notify.
pub(crate) fn has_something_left(
    view: &dyn View,
    id: &TransactionId,
    runs: &[AcceptedTrigger],
) -> Result<bool> {
    let environment = view.environment_id();
    if view.contains(&layout::fan_out(environment, id))? {
        return Ok(true);
    }
    for run in runs {
        let notifications = layout::notifications_between(environment, run.ordinals.clone());
        if view.has_any(&notifications)?
            || view.has_any(&layout::messages_of(environment, run.ordinals.clone()))?
        {
            return Ok(true);
        }
    }
    Ok(false)
}
