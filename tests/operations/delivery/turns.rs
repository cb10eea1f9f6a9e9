//! Environments whose tasks are due at once.

use serde_json::json;
use testkit::interposed::Interposed;
use tidings::Scope;

use super::ada;
use crate::world::{World, email, with, workflow_of};

const FLOOD: usize = 200;

/// A world in an environment beside one with many e-mails that are due.
fn flooded(store: Interposed) -> (World, Scope) {
    let mut world = World::with(store, |builder| builder);
    let (flooded, own) = (world.env.clone(), world.production());
    for env in [own.clone(), flooded.clone()] {
        world.env = env;
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.workflow(with(workflow_of("code", &[email()]), json!({ "severity": "high" })));
    }
    for _ in 0..FLOOD {
        world.notify("mail", "ada");
    }
    world.tick();
    world.env = own;
    (world, flooded)
}

fn stores() -> [Interposed; 2] {
    [Interposed::default(), Interposed::default().side_by_side()]
}

fn sent_for(world: &World, env: &Scope) -> Vec<String> {
    let sent = world.outbox.sent();
    let own = sent.iter().filter(|one| one.notification.environment_id == env.environment_id());
    own.map(|one| one.message.template_identifier.clone().unwrap().to_string()).collect()
}

#[test]
fn a_flood_of_one_environment_holds_up_no_other_one() {
    for store in stores() {
        let (world, flooded) = flooded(store);
        world.notify("mail", "ada");

        // Two claims.
        for _ in 0..2 {
            world.engine.delivery().run_due(32).unwrap();
        }

        assert_eq!(sent_for(&world, &world.env), ["mail"]);
        assert!(sent_for(&world, &flooded).len() >= 32);
        world.run_due();
        assert_eq!(sent_for(&world, &flooded).len(), FLOOD);
        assert_eq!(world.outbox.sent().len(), FLOOD + 1);
    }
}

#[test]
fn urgent_messages_of_an_environment_come_before_others_of_all() {
    for store in stores() {
        let (world, flooded) = flooded(store);
        for round in 1..=3 {
            world.notify("code", "ada");

            world.engine.delivery().run_due(1).unwrap();

            assert_eq!(sent_for(&world, &world.env).len(), round);
            assert!(sent_for(&world, &flooded).is_empty());
        }
    }
}

/// Claims that are as small as can be.
#[test]
fn environments_take_turns_task_by_task() {
    let (world, flooded) = flooded(Interposed::default().side_by_side());
    for _ in 0..5 {
        world.notify("mail", "ada");
    }
    for _ in 0..10 {
        world.engine.delivery().run_due(1).unwrap();
    }
    assert_eq!([&flooded, &world.env].map(|env| sent_for(&world, env).len()), [5, 5]);
}
