//! Statistics of the delivery queue.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use store::Table;
use tidings::integration::IntegrationDelete;
use tidings::{Delivery, ProviderReceipt, QueueDepth, SendError, TaskClass};

use super::{Told, ada, queued_email, retryable};
use crate::world::{Counts, email, on_both, on_both_with, sms, with, workflow_of};

#[test]
fn an_empty_queue_has_no_lanes() {
    on_both(|world| {
        let stats = world.engine.delivery().stats().unwrap();
        assert_eq!(stats.lanes, []);
        assert_eq!(stats.total(), QueueDepth::default());
        assert!(stats.is_complete);
    });
}

#[test]
fn every_lane_has_a_depth() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.active_integration("sms", "twilio");
        let both = world.workflow_of("both", &[email(), sms()]);
        world.workflow(with(workflow_of("code", &[sms()]), json!({ "severity": "high" })));
        let start = world.now();
        world.notify("both", "ada");
        world.tick();
        world.notify("code", "ada");

        let stats = world.engine.delivery().stats().unwrap();

        let depth = |lane: &tidings::LaneStats| (lane.class, lane.depth.waiting, lane.depth.leased);
        let lanes: Vec<_> = stats.lanes.iter().map(depth).collect();
        assert_eq!(lanes, [(TaskClass::Urgent, 1, 0), (TaskClass::Normal, 2, 0)]);
        assert_eq!(stats.lanes[1].workflow_id, Some(both.id));
        assert_eq!(stats.total().oldest_due, Some(start));
        assert_eq!(stats.class(TaskClass::Urgent).oldest_due, Some(world.now()));
        assert_eq!(stats.class(TaskClass::Background), QueueDepth::default());
        assert_eq!(stats.environment(world.env.environment_id()), stats.total());
        let elsewhere = stats.environment(world.elsewhere().environment_id());
        assert_eq!(elsewhere, QueueDepth::default());
    });
}

#[test]
fn a_leased_task_does_not_wait() {
    on_both(|world| {
        queued_email(&world);
        world.mortal_engine(|builder| builder, |_| {}).delivery().run_due(1).unwrap_err();

        let total = world.engine.delivery().stats().unwrap().total();

        assert_eq!((total.waiting, total.leased, total.oldest_due), (0, 1, None));
    });
}

/// A provider pauses the workflow of the message that it has.
#[test]
fn a_task_is_leased_also_while_its_workflow_is_paused() {
    on_both(|world| {
        queued_email(&world);
        let (env, other) = (world.env.clone(), world.another_engine());
        let seen = Arc::new(Mutex::new(None));
        let measured = Arc::clone(&seen);
        let provider = Told(move |_: &Delivery| {
            env.workflows().pause("mail").unwrap();
            *measured.lock().unwrap() = Some(other.delivery().stats().unwrap().total());
            Ok(ProviderReceipt::default())
        });
        let engine = world.engine_with(|builder| builder.default_provider(provider));

        engine.delivery().run_due(1).unwrap();

        let total = seen.lock().unwrap().unwrap();
        assert_eq!((total.waiting, total.leased, total.held), (0, 1, 0));
    });
}

#[test]
fn a_message_that_is_tried_again_waits() {
    on_both(|world| {
        queued_email(&world);
        world.recorder.refuse_next(retryable("not now"));
        assert_eq!(world.run_due(), Counts { retried: 1, ..Counts::default() });

        let total = world.engine.delivery().stats().unwrap().total();

        assert_eq!((total.waiting, total.leased), (1, 0));
        assert_eq!(total.oldest_due, world.engine.delivery().next_due().unwrap());
    });
}

#[test]
fn a_rate_spreads_messages_over_seconds() {
    on_both_with(
        |builder| builder.per_second("sendgrid", 3),
        |world| {
            queued_email(&world);
            for _ in 0..7 {
                world.notify("mail", "ada");
            }
            for (sent, held) in [(3, 5), (3, 0), (2, 0), (0, 0)] {
                let report = world.engine.delivery().run_due(100).unwrap();
                assert_eq!((report.sent, report.postponed), (sent, held));
                world.pass(Duration::from_secs(1));
            }
            // What is held back is no attempt.
            assert!(world.recorder.sent().iter().all(|delivery| delivery.attempt() == 1));
        },
    );
}

#[test]
fn the_error_of_the_upkeep_is_seen() {
    on_both_with(
        |builder| builder.activity_segments(16),
        |world| {
            world.in_app_workflow("inbox");
            for _ in 0..15 {
                world.notify("inbox", "ada");
            }
            // The trigger is committed, and the upkeep is not.
            world.interrupted(1, || world.notify("inbox", "ada"));
            let error = world.engine.delivery().stats().unwrap().upkeep_error;
            assert!(error.is_some());
            assert_eq!(sealed(&world), 0);

            world.notify("inbox", "ada");
            assert_eq!(world.engine.delivery().stats().unwrap().upkeep_error, None);
            assert!(sealed(&world) > 0);
        },
    );
}

// The number of the parts of sealed segments.
fn sealed(world: &crate::world::World) -> usize {
    world.rows(Table::ActivitySegments)
}

/// The messages of each integration that was called, or that holds some.
#[test]
fn every_integration_has_counts() {
    on_both(|world| {
        let first = queued_email(&world);
        world.recorder.refuse_next(SendError::permanent("no"));
        world.notify("mail", "ada");
        world.run_due();
        let integrations = || world.engine.delivery().stats().unwrap().integrations;
        let id = world.env.integrations().list_active().unwrap()[0].id;
        let counts = integrations()[&id];
        assert_eq!((counts.accepted, counts.failed, counts.held), (1, 1, 0));
        world.env.integrations().pause(id).unwrap();
        world.notify("mail", "ada");
        world.run_due();
        assert_eq!(integrations()[&id].held, 1);
        assert_eq!(integrations().len(), 1);
        world.env.integrations().delete(id, &IntegrationDelete::default()).unwrap();
        world.run_due();
        assert_eq!(integrations().len(), 0);
        assert!(!world.notification(first).jobs.is_empty());
    });
}
