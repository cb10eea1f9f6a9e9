//! Sample records for tests.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::context::ContextSet;
use crate::environment::Home;
use crate::event::Event;
use crate::integration::Integration;
use crate::json::Object;
use crate::notification::Notification;
use crate::subscriber::Subscriber;
use crate::time::Timestamp;
use crate::trigger::{SubscriberRecipient, Trigger};
use crate::vocabulary::Channel;
use crate::workflow::Workflow;

/// Returns the instant `millis` after the Unix epoch.
pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Returns the id made of `number`.
pub(crate) fn id<T: From<Uuid>>(number: u128) -> T {
    Uuid::from_u128(number).into()
}

/// Returns a source of the ids made of 1, 2, 3 and so on.
pub(crate) fn ids() -> impl FnMut() -> Uuid {
    let mut last = 0;
    move || {
        last += 1;
        Uuid::from_u128(last)
    }
}

/// Returns `json`, which must be an object.
pub(crate) fn object(json: Value) -> Object {
    json.try_into().unwrap()
}

pub(crate) fn home() -> Home {
    Home { organization_id: "acme".parse().unwrap(), environment_id: id(1) }
}

/// Returns the subscriber `ada` with this profile.
pub(crate) fn subscriber(mut profile: Value) -> Subscriber {
    profile["subscriberId"] = "ada".into();
    Subscriber::new(id(2), &home(), serde_json::from_value(profile).unwrap(), at(0))
}

/// Returns the active workflow `order-shipped` with these steps.
pub(crate) fn workflow(steps: Value) -> Workflow {
    let create = json!({
        "workflowId": "order-shipped", "name": "Order shipped", "active": true, "steps": steps,
    });
    let mut new_id = ids();
    let new_step = || (new_id().into(), new_id().into());
    Workflow::new(id(3), &home(), serde_json::from_value(create).unwrap(), new_step, at(0)).unwrap()
}

/// Returns the notification of `workflow` for `subscriber` with `payload`.
pub(crate) fn notification(
    workflow: &Workflow,
    subscriber: &Subscriber,
    payload: Value,
) -> Notification {
    let to = subscriber.subscriber_id.clone();
    let mut trigger = Trigger::new(workflow.identifier().clone(), to).unwrap();
    trigger.payload = object(payload);
    triggered(workflow, subscriber, &trigger)
}

/// Returns the notification of `trigger` and `workflow` for `subscriber`.
pub(crate) fn triggered(
    workflow: &Workflow,
    subscriber: &Subscriber,
    trigger: &Trigger,
) -> Notification {
    let event = Event {
        actor: None,
        home: &home(),
        trigger,
        transaction_id: &"txn".parse().unwrap(),
        workflow,
        contexts: &[],
        context_keys: &ContextSet::default(),
        now: at(0),
    };
    let recipient = SubscriberRecipient::Id(subscriber.subscriber_id.clone());
    let mut new_id = ids();
    Notification::new((id(4), event.now), &event, subscriber, &recipient, Vec::new(), || {
        new_id().into()
    })
}

/// Returns an inactive integration of `channel`.
pub(crate) fn integration(number: u128, identifier: &str, channel: Channel) -> Integration {
    let create = json!({ "providerId": "outbox", "channel": channel });
    let create = serde_json::from_value(create).unwrap();
    Integration::new(id(number), &home(), identifier.parse().unwrap(), create).unwrap()
}
