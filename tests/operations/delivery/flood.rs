//! A flood of one workflow holds up no other one, and nothing urgent.

use domain::ids::{NotificationId, WorkflowId};
use domain::task::{Task, TaskClass, TaskState, Work};
use serde_json::json;
use store::{WriteRecords, lanes};

use super::ada;
use crate::world::{World, email, names, on_both, parsed, with, workflow_of};

#[test]
fn a_code_and_a_message_of_another_workflow_pass_a_flood() {
    check(&World::in_memory(), 100_000);
    on_both(|world| check(&world, 10_000));
}

#[track_caller]
fn check(world: &World, size: u32) {
    ada(world);
    world.active_integration("email", "sendgrid");
    let flood = world.workflow_of("flood", &[email()]);
    add_flood(world, size, flood.id);
    world.workflow_of("other", &[email()]);
    world.workflow(with(workflow_of("code", &[email()]), json!({ "severity": "high" })));
    world.notify("other", "ada");
    world.notify("code", "ada");

    // The first claim.
    let report = world.engine.delivery().run_due(32).unwrap();

    assert_eq!((report.sent, report.superseded), (2, 30));
    let sent = names(&world.outbox.sent(), |delivery| {
        delivery.message.template_identifier.clone().unwrap()
    });
    assert_eq!(sent, ["code", "other"]);
}

// Tasks that have been due for longer than any other one. Their notifications are gone.
fn add_flood(world: &World, size: u32, workflow_id: WorkflowId) {
    let home = |n: u32| Task {
        id: parsed(json!(format!("00000000-0000-7000-8000-{n:012x}"))),
        environment_id: world.env.environment_id(),
        organization_id: parsed(json!("acme")),
        workflow_id: Some(workflow_id),
        class: TaskClass::Normal,
        state: TaskState::Waiting { due_at: world.now(), attempts: 0 },
        work: Work::Turn { notification_id: nobody() },
    };
    let lane = home(0).lane();
    for start in (0..size).step_by(10_000) {
        let added = store::write(&world.opened(), |transaction| {
            (start..start + 10_000).try_for_each(|n| transaction.insert(&home(n)))?;
            lanes::move_lane(transaction, &lane)
        });
        added.unwrap();
    }
    world.tick();
}

fn nobody() -> NotificationId {
    parsed(json!("01999999-0000-7000-8000-000000000000"))
}
