//! Marks of messages for providers: what is sent later leaves them.

use std::time::Duration;

use serde_json::json;
use tidings::SendError;
use tidings::dead_letter::DeadLetterQuery;
use tidings::message::{MarkAs, Message};

use super::refusing::push;
use super::{queued_email, retryable};
use crate::world::{World, on_both, only};

// Marks the only message of `ada` read, and returns it.
fn read(world: &World) -> Message {
    let message = only(world.messages("ada"));
    let marked = world.env.messages().mark("ada", [message.id], MarkAs::Read).unwrap();
    assert!(only(marked).stage.is_read());
    only(world.messages("ada"))
}

// The message of `ada` has the marks of `before`, and the times of delivery of both attempts.
fn has_kept(world: &World, before: &Message, deliveries: usize) {
    let after = only(world.messages("ada"));
    assert_eq!((after.id, after.stage), (before.id, before.stage));
    assert_eq!(after.delivered_at.len(), deliveries);
    assert_eq!(world.engine.check().unwrap().findings, []);
}

#[test]
fn a_message_stays_read_while_another_device_gets_it() {
    on_both(|world| {
        let fcm = world.active_integration("push", "fcm");
        let devices = json!({ "deviceTokens": ["phone", "tablet"] });
        world.subscriber(json!({ "subscriberId": "ada", "channels": [
            { "providerId": "fcm", "_integrationId": fcm.id, "credentials": devices },
        ] }));
        world.workflow_of("push", &[push()]);
        world.notify("push", "ada");
        world.recorder.refuse_next(retryable("busy"));
        assert_eq!(world.run_due().sent, 1);
        let before = read(&world);

        world.pass(Duration::from_secs(60));
        assert_eq!(world.run_due().sent, 1);

        has_kept(&world, &before, 2);
    });
}

#[test]
fn a_dead_letter_that_is_redriven_stays_read() {
    on_both(|world| {
        queued_email(&world);
        world.recorder.refuse_next(SendError::permanent("no"));
        assert_eq!(world.run_due().failed, 1);
        world.env.dead_letters().redrive_matching(&DeadLetterQuery::default()).unwrap();
        let before = read(&world);

        assert_eq!(world.run_due().sent, 1);

        has_kept(&world, &before, 1);
    });
}

/// A message in the inbox is unseen again. One for a provider is the same message, delivered twice.
#[test]
fn an_email_that_is_sent_again_stays_read() {
    on_both(|world| {
        let id = queued_email(&world);
        assert_eq!(world.run_due().sent, 1);
        let before = read(&world);
        let step = only(world.notification(id).jobs).step.id;

        world.env.notifications().resend(id, step).unwrap();
        assert_eq!(world.run_due().sent, 1);

        has_kept(&world, &before, 2);
    });
}
