//! Look-ups of notifications, and what is filled in for those that are shown.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use domain::ids::NotificationId;
use domain::notification::{Notification, NotificationSubscriber, Ordinal};
use domain::task::Work;
use store::{Kept, ReadKept, ReadRecords, layout};

use crate::Result;
use crate::pipeline::leases;
use crate::tx::View;

/// The notification of that id. Returns `None` if there is none.
pub(crate) fn find(view: &dyn View, id: NotificationId) -> Result<Option<Notification>> {
    let key = layout::notification(view.environment_id(), id.ordinal());
    let found = view.find::<Notification>(&key)?;
    Ok(found.filter(|notification| notification.id == id))
}

/// The notification of that id with its bytes. Returns `None` if there is none.
pub(crate) fn find_kept(view: &dyn View, id: NotificationId) -> Result<Option<Kept<Notification>>> {
    let found = view.find_kept(layout::notification(view.environment_id(), id.ordinal()))?;
    Ok(found.filter(|notification| notification.id == id))
}

/// The notification of that id, which was read before. Returns `None` if there is none.
pub(crate) fn find_again(
    view: &dyn View,
    id: NotificationId,
    read: Option<&Kept<Notification>>,
) -> Result<Option<Arc<Notification>>> {
    let key = layout::notification(view.environment_id(), id.ordinal());
    let found = view.find_again(&key, read)?;
    Ok(found.filter(|notification| notification.id == id))
}

/// The notification of a task. Returns `None` if the task is about many, or if it is gone.
pub(crate) fn of_work(view: &dyn View, work: &Work) -> Result<Option<Notification>> {
    work.notification_id().map_or(Ok(None), |id| find(view, id))
}

/// Returns `true` if there is a notification in the place of that id.
pub(crate) fn exists(view: &dyn View, id: NotificationId) -> Result<bool> {
    Ok(view.contains(&layout::notification(view.environment_id(), id.ordinal()))?)
}

/// The notifications of `ordinals`, which the index has found, without those that cannot be read.
pub(super) fn read(view: &dyn View, ordinals: &[Ordinal]) -> Result<Vec<Notification>> {
    let key = |ordinal: &Ordinal| layout::notification(view.environment_id(), *ordinal);
    let keys: Vec<_> = ordinals.iter().map(key).collect();
    let found = view.engine().parts.decoded.notifications.find_readable(view, &keys)?;
    Ok(found.into_iter().flatten().map(Arc::unwrap_or_clone).collect())
}

/// Fills in the subscribers and the workflows of `notifications`, those that still exist and can be
/// read.
pub(super) fn fill_in(view: &dyn View, notifications: &mut [Notification]) -> Result<()> {
    if notifications.is_empty() {
        return Ok(());
    }
    let environment = view.environment_id();
    let ids: BTreeSet<_> = notifications.iter().map(|one| one.subscriber_id).collect();
    let keys: Vec<_> = ids.iter().map(|id| layout::subscriber_id(environment, *id)).collect();
    let found = view.find_readable_excerpts::<NotificationSubscriber>(environment, &keys)?;
    let subscribers: HashMap<_, _> = ids.into_iter().zip(found).collect();
    let ids: BTreeSet<_> = notifications.iter().filter_map(|one| one.workflow_id).collect();
    let keys: Vec<_> = ids.iter().map(|id| layout::workflow(environment, *id)).collect();
    let found = view.engine().parts.decoded.prepared.find_readable(view, &keys)?;
    let workflows: HashMap<_, _> = ids.into_iter().zip(found).collect();
    for notification in notifications.iter_mut() {
        notification.subscriber = subscribers.get(&notification.subscriber_id).cloned().flatten();
        let workflow = notification.workflow_id.and_then(|id| workflows.get(&id)?.as_deref());
        notification.workflow = workflow.map(Into::into);
    }
    leases::fill_in(view, notifications)
}
