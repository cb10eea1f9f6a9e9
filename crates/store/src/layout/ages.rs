//! The ranges of keys that retention and deletions look up.

use std::ops;

use domain::digest::{DigestBucket, ThrottleSlot, WindowEvent};
use domain::ids::{DigestWindowId, EnvironmentId, InternalSubscriberId, StepId, WorkflowId};
use domain::message::{Message, MessagePlace};
use domain::notification::{Notification, Ordinal};

use super::{DIGEST_BUCKETS, DIGEST_EVENTS, MESSAGES, THROTTLE_SLOTS};
use crate::key::{Prefix, Range};

/// The messages of notifications with ordinals within `range`.
pub fn messages_of(environment: EnvironmentId, range: ops::Range<u64>) -> Range<Message> {
    let first = |ordinal| MessagePlace::new(Ordinal::new(ordinal), 0);
    MESSAGES.within(environment).between(first(range.start)..first(range.end))
}

/// The messages of the notification with this ordinal.
pub fn messages_of_one(environment: EnvironmentId, ordinal: Ordinal) -> Range<Message> {
    messages_of(environment, ordinal.get()..ordinal.get().saturating_add(1))
}

/// The place in the key of a message.
pub fn place_of_message(key: &[u8]) -> Option<MessagePlace> {
    let (_, (place, ())) = MESSAGES.read(key)?;
    Some(place)
}

/// The buckets of a step for the subscriber and the contexts of a notification. Returns `None` if the
/// notification has no workflow.
pub fn digest_keys(notification: &Notification, step: StepId) -> Option<Prefix<DigestBucket>> {
    let workflow =
        DIGEST_BUCKETS.within(notification.environment_id).then(notification.workflow_id?);
    let of_step = workflow.then(step).then(notification.subscriber_id);
    Some(of_step.then(&notification.context_keys).open())
}

/// The events of a window from a number on, oldest first.
pub fn digest_events_from(
    environment: EnvironmentId,
    window: DigestWindowId,
    number: u32,
) -> Range<WindowEvent> {
    DIGEST_EVENTS.within(environment).then(window).from(number)
}

/// The workflow and the step in the key of a bucket.
pub fn step_of_bucket(key: &[u8]) -> Option<(WorkflowId, StepId)> {
    let (_, (workflow, (step, _))) = DIGEST_BUCKETS.read(key)?;
    Some((workflow, step))
}

/// The workflow and the step in the key of a slot.
pub fn step_of_slot(key: &[u8]) -> Option<(WorkflowId, StepId)> {
    let (_, (workflow, (step, _))) = THROTTLE_SLOTS.read(key)?;
    Some((workflow, step))
}

/// The buckets of the steps behind a step, those of later workflows included.
pub fn buckets_behind(
    environment: EnvironmentId,
    &(workflow, step): &(WorkflowId, StepId),
) -> Range<DigestBucket> {
    DIGEST_BUCKETS.within(environment).behind_both(workflow, step)
}

/// The slots of the steps behind a step, those of later workflows included.
pub fn slots_behind(
    environment: EnvironmentId,
    &(workflow, step): &(WorkflowId, StepId),
) -> Range<ThrottleSlot> {
    THROTTLE_SLOTS.within(environment).behind_both(workflow, step)
}

/// The buckets of a step for a subscriber.
pub fn subscriber_buckets(
    (environment, workflow, step): (EnvironmentId, WorkflowId, StepId),
    subscriber: InternalSubscriberId,
) -> Prefix<DigestBucket> {
    DIGEST_BUCKETS.within(environment).then(workflow).then(step).then(subscriber).open()
}

/// The places of a subscriber in the windows of a throttle.
pub fn subscriber_slots(
    (environment, workflow, step): (EnvironmentId, WorkflowId, StepId),
    subscriber: InternalSubscriberId,
) -> Prefix<ThrottleSlot> {
    THROTTLE_SLOTS.within(environment).then(workflow).then(step).then(subscriber).open()
}

/// The bytes behind which the events of later windows are.
pub fn behind_window(environment: EnvironmentId, window: DigestWindowId) -> Vec<u8> {
    DIGEST_EVENTS.within(environment).then(window).then(u32::MAX).end().as_bytes().to_vec()
}
