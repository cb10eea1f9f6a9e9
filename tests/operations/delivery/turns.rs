//! Environments and workflows whose tasks are due at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use testkit::interposed::Interposed;
use tidings::{Delivery, DeliveryReport, ProviderReceipt, Scope};

use super::{Told, ada};
use crate::world::{World, email, in_app, on_both, parsed, with, workflow_of};

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
    let sent = world.recorder.sent();
    let own = sent.iter().filter(|one| one.notification.environment_id == env.environment_id());
    own.map(|one| one.message.workflow_identifier.clone().unwrap().to_string()).collect()
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
        assert_eq!(world.recorder.sent().len(), FLOOD + 1);
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

/// Each turn of an urgent message is that of an environment among the urgent ones only.
#[test]
fn urgent_messages_take_no_turns_of_others() {
    let (world, _) = flooded(Interposed::default().side_by_side());
    world.notify("mail", "ada");
    for _ in 0..3 {
        world.notify("code", "ada");
        for _ in 0..2 {
            world.engine.delivery().run_due(1).unwrap();
        }
    }
    let own = sent_for(&world, &world.env);
    assert!(own.contains(&"mail".to_owned()), "{own:?}");
}

/// A broadcast settles itself, and the messages of another environment are settled in that one alone.
#[test]
fn no_transaction_of_delivery_holds_up_all_environments() {
    let (world, flooded) = flooded(Interposed::default().side_by_side());
    for number in 0..300 {
        let subscriber = json!({ "subscriberId": format!("s{number}") });
        world.env.subscribers().create(&parsed(subscriber)).unwrap();
    }
    world.in_app_workflow("news");
    world.env.events().broadcast(&parsed(json!({ "name": "news" }))).unwrap();
    let before = world.store.writes_of_all();

    // One claim in 16 takes a part of the broadcast along.
    while world.engine.delivery().run_due(4).unwrap() != DeliveryReport::default() {}

    assert_eq!(world.store.writes_of_all(), before);
    assert_eq!(sent_for(&world, &flooded).len(), FLOOD);
    assert_eq!(world.env.inbox("s7").unwrap().counts().unwrap().unread, 1);
}

/// The attempt of a message has no outcome, and other workflows are busy.
#[test]
fn a_message_without_an_outcome_has_the_next_turn() {
    on_both(|mut world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        for workflow in ["busy", "lost"] {
            world.workflow_of(workflow, &[email()]);
        }
        world.notify("lost", "ada");
        let died = world.interrupted(1, || world.engine.delivery().run_due(1));
        assert!(died.is_err(), "{died:?}");
        let lost = world.recorder.sent().remove(0).idempotency_key();
        world.restart_with(|builder| builder);
        for _ in 0..FLOOD {
            world.notify("busy", "ada");
        }
        world.pass(Duration::from_secs(300));
        for _ in 0..FLOOD {
            world.notify("lost", "ada");
        }
        let before = world.recorder.sent().len();

        for _ in 0..2 {
            world.engine.delivery().run_due(32).unwrap();
        }

        let sent = world.recorder.sent().split_off(before);
        let keys: Vec<_> = sent.iter().map(Delivery::idempotency_key).collect();
        assert!(keys.contains(&lost), "{}", keys.len());
    });
}

#[test]
fn a_workflow_gets_its_turn_among_many_others() {
    for store in stores() {
        let world = World::with(store, |builder| builder);
        ada(&world);
        world.active_integration("email", "sendgrid");
        for number in 0..100 {
            let name = format!("flood-{number}");
            world.workflow_of(&name, &[email()]);
            for _ in 0..12 {
                world.notify(&name, "ada");
            }
        }
        // A turn is eight tasks.
        world.engine.delivery().run_due(900).unwrap();
        world.tick();
        world.workflow_of("code", &[email()]);
        world.notify("code", "ada");

        world.engine.delivery().run_due(100).unwrap();

        assert!(sent_for(&world, &world.env).contains(&"code".to_owned()));
    }
}

/// Messages in the inbox of a crowd, behind e-mails that are due.
#[test]
fn a_crowd_is_told_of_what_is_critical_before_others() {
    for critical in [false, true] {
        on_both(|world| {
            ada(&world);
            world.active_integration("email", "sendgrid");
            world.workflow_of("mail", &[email()]);
            let alarm = with(workflow_of("alarm", &[in_app()]), json!({ "critical": critical }));
            world.workflow(alarm);
            for number in 0..150 {
                let subscriber = json!({ "subscriberId": format!("s{number}") });
                world.env.subscribers().create(&parsed(subscriber)).unwrap();
            }
            for _ in 0..FLOOD {
                world.notify("mail", "ada");
            }
            let alarm = json!({ "name": "alarm", "transactionId": "t1" });
            world.env.events().broadcast(&parsed(alarm)).unwrap();

            for _ in 0..8 {
                world.engine.delivery().run_due(1).unwrap();
            }

            let told = world.env.events().progress("t1").unwrap();
            assert_eq!(told.created, if critical { 151 } else { 0 });
        });
    }
}

/// Sends ten e-mails that are due at once, by a provider that takes `span` for each. Returns the number of leased
/// tasks at each call.
fn leased_at_calls(world: &World, span: Duration) -> Vec<usize> {
    let (clock, other) = (world.clock.clone(), world.another_engine());
    let leased = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&leased);
    let provider = Told(move |_: &Delivery| {
        seen.lock().unwrap().push(other.delivery().stats().unwrap().total().leased);
        clock.advance(span);
        Ok(ProviderReceipt::default())
    });
    let engine = world.engine_with(|builder| builder.default_provider(provider));
    ada(world);
    world.active_integration("email", "sendgrid");
    world.workflow_of("mail", &[email()]);
    for _ in 0..10 {
        world.notify("mail", "ada");
    }
    assert_eq!(engine.delivery().run_due(usize::MAX).unwrap().sent, 10);
    let leased = leased.lock().unwrap();
    leased.clone()
}

/// A provider takes two seconds for a message. What was claimed behind it is given back.
#[test]
fn a_slow_provider_keeps_no_batch() {
    on_both(|world| {
        let leased = leased_at_calls(&world, Duration::from_secs(2));
        assert_eq!((leased[0], leased[1..].iter().max()), (10, Some(&2)));
    });
}

/// A process that ends during a call sends the messages again whose results are not stored.
#[test]
fn the_results_of_quick_calls_wait_for_few_calls_behind_them() {
    on_both(|world| {
        let leased = leased_at_calls(&world, Duration::from_millis(3));
        // Two calls take six milliseconds.
        assert_eq!(leased, [10, 10, 8, 8, 6, 6, 4, 4, 2, 2]);
    });
}

/// A call may take as long as its provider likes. What was done before it in the same batch does not wait.
#[test]
fn a_message_of_the_inbox_waits_for_no_call_behind_it() {
    let delay = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
    let delay = json!({ "type": "delay", "metadata": delay });
    for severity in ["high", "none"] {
        on_both(|world| {
            ada(&world);
            world.active_integration("email", "sendgrid");
            let late = workflow_of("late", &[delay.clone(), in_app()]);
            world.workflow(with(late, json!({ "severity": severity })));
            world.workflow_of("mail", &[email()]);
            world.notify("late", "ada");
            world.notify("mail", "ada");
            world.pass(Duration::from_secs(60));
            let (env, unread) = (world.env.clone(), Arc::new(Mutex::new(Vec::new())));
            let seen = Arc::clone(&unread);
            let engine = world.engine_with(|builder| {
                builder.default_provider(Told(move |_: &Delivery| {
                    let counts = env.inbox("ada").unwrap().counts().unwrap();
                    seen.lock().unwrap().push(counts.unread);
                    Ok(ProviderReceipt::default())
                }))
            });

            // One claim has both.
            engine.delivery().run_due(2).unwrap();

            assert_eq!(*unread.lock().unwrap(), [1], "{severity}");
        });
    }
}

/// A batch ends after a second. What is left of it is still older than the others.
#[test]
fn messages_that_are_given_back_keep_their_place() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        let ids: Vec<_> = (0..40)
            .map(|_| {
                world.pass(Duration::from_secs(1));
                world.notify("mail", "ada")
            })
            .collect();
        world.tick();
        let (clock, sent) = (world.clock.clone(), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&sent);
        let engine = world.engine_with(|builder| {
            builder.default_provider(Told(move |delivery: &Delivery| {
                let mut seen = seen.lock().unwrap();
                seen.push(delivery.notification.id);
                if seen.len() == 2 {
                    clock.advance(Duration::from_secs(2));
                }
                Ok(ProviderReceipt::default())
            }))
        });

        engine.delivery().run_due(usize::MAX).unwrap();

        assert_eq!(*sent.lock().unwrap(), ids);
    });
}
