//! Notifications of an accepted event: those of its recipients, and the tasks for a crowd.

use std::sync::Arc;

use activity::{Appender, Facets};
use domain::event::Event;
use domain::ids::SubscriberId;
use domain::notification::Notification;
use domain::subscriber::Subscriber;
use domain::trigger::{
    AcceptedTrigger, CreatedNotification, Crowd, EventProgress, FanOut, FanOutState,
    SubscriberRecipient, Trigger, TriggerReceipt,
};
use store::{Kept, ReadKept, WriteRecords, layout};

use crate::Result;
use crate::pipeline::crowd::CrowdSource;
use crate::pipeline::current::NamedRecords;
use crate::pipeline::fan_out;
use crate::pipeline::notification_tx::NotificationTx;
use crate::pipeline::planned::{FirstTurn, Others, PlannedRecipient, PlannedTrigger};
use crate::resources::{contexts, subscribers};
use crate::tx::{Tx, View};

/// Creates the notifications of an event. The receipt names those of direct recipients, and counts the others.
pub(crate) fn notify_all(
    tx: &mut Tx<'_>,
    trigger: &Trigger,
    planned: &PlannedTrigger,
    named: &NamedRecords,
) -> Result<TriggerReceipt> {
    let contexts = contexts::store_named(tx, &planned.contexts, |key| named.has_context(key))?;
    let actor = planned.actor.as_ref();
    let actor = actor.map(|(actor, _)| subscribers::upsert(tx, &actor.to_create()));
    let actor = actor.transpose()?;
    let event = Event {
        home: tx.home,
        trigger,
        transaction_id: &planned.receipt.transaction_id,
        workflow: &planned.workflow,
        contexts: &contexts,
        actor: actor.as_ref(),
        context_keys: &planned.context_keys,
        now: tx.now(),
    };
    let mut receipt = planned.receipt.clone();
    let mut activity = tx.engine().activity().append(tx, tx.environment_id())?;
    let is_changed = |id: &SubscriberId| {
        named.has(id) || event.actor.is_some_and(|actor| actor.subscriber_id == *id)
    };
    for (direct, read) in &planned.direct {
        let subscriber = upsert_recipient(tx, &direct.recipient, read.as_deref(), is_changed)?;
        receipt.notifications.push(notify(tx, &mut activity, &event, &subscriber, direct)?);
    }
    match &planned.others {
        Others::Planned(members) => {
            notify_members(tx, &mut activity, &event, members, is_changed)?;
        }
        Others::Crowd(crowd) => begin_fan_out(tx, &event, crowd, &receipt)?,
    }
    let workflow = Some(planned.workflow.identifier().clone());
    let accepted = AcceptedTrigger::new(tx.environment_id(), tx.now(), workflow, receipt);
    activity.finish(tx, accepted.clone())?;
    Ok(accepted.receipt)
}

// Creates or updates the subscriber of a recipient: as it was read, or as the call has changed it.
fn upsert_recipient(
    tx: &mut Tx<'_>,
    recipient: &SubscriberRecipient,
    read: Option<&Kept<Subscriber>>,
    is_changed: impl Fn(&SubscriberId) -> bool,
) -> Result<Arc<Subscriber>> {
    let create = recipient.to_create();
    let before = if is_changed(&create.subscriber_id) {
        let key = layout::subscriber(tx.environment_id(), &create.subscriber_id);
        tx.find_again(&key, read)?
    } else {
        read.map(|read| Arc::clone(read.record()))
    };
    subscribers::upsert_known(tx, &create, before)
}

// Creates the notifications of a small crowd.
fn notify_members(
    tx: &mut Tx<'_>,
    activity: &mut Appender,
    event: &Event<'_>,
    members: &[(Subscriber, PlannedRecipient)],
    is_changed: impl Fn(&SubscriberId) -> bool,
) -> Result<()> {
    for (member, planned) in members {
        let id = &member.subscriber_id;
        let changed = if is_changed(id) { Some(subscribers::get(tx, id)?) } else { None };
        notify(tx, activity, event, changed.as_ref().unwrap_or(member), planned)?;
    }
    Ok(())
}

// Leaves a crowd to tasks.
fn begin_fan_out(
    tx: &mut Tx<'_>,
    event: &Event<'_>,
    crowd: &Crowd,
    receipt: &TriggerReceipt,
) -> Result<()> {
    let progress = EventProgress::of(receipt, tx.now());
    let fan_out = FanOut {
        environment_id: tx.environment_id(),
        transaction_id: receipt.transaction_id.clone(),
        workflow_id: event.workflow.id,
        trigger: event.trigger.clone(),
        crowd: crowd.clone(),
        before: CrowdSource::of(tx, crowd)?.behind_all(tx, tx.id())?,
        context_keys: event.context_keys.clone(),
        actor_id: event.actor.map(|actor| actor.id),
    };
    let state = FanOutState::new(tx.environment_id(), progress);
    fan_out::begin(tx, &fan_out, event.workflow, &state)
}

/// Creates the notification of an event for a subscriber, whom the transaction has found.
pub(crate) fn notify(
    tx: &mut Tx<'_>,
    activity: &mut Appender,
    event: &Event<'_>,
    subscriber: &Subscriber,
    planned: &PlannedRecipient,
) -> Result<CreatedNotification> {
    let PlannedRecipient { recipient, topics, first } = planned;
    let created_at = tx.now();
    let id = activity.next_id(created_at, tx.random());
    let created = (id, created_at);
    let notification =
        Notification::new(created, event, subscriber, recipient, topics.clone(), || tx.id());
    activity.add(Facets::from(&notification));
    let notification_tx = NotificationTx::of(tx, notification, Some(event.workflow));
    let mut notification_tx = notification_tx.with_subscriber(subscriber);
    match first {
        FirstTurn::Planned(actions) => notification_tx.perform(actions)?,
        FirstTurn::Later => notification_tx.begin_later()?,
    }
    let notification = notification_tx.notification;
    tx.insert(&notification)?;
    Ok(CreatedNotification::new(subscriber.subscriber_id.clone(), id))
}
