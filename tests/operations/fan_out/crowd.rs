//! Events with more than 100 recipients, which tasks tell, and broadcasts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tidings::notification::Notification;
use tidings::trigger::{Broadcast, EventProgress, TriggerReceipt};

use super::{created, topic};
use crate::subscriptions::subscribe_all;
use crate::topics::key;
use crate::world::{
    World, email, id, in_app, names, on_both, only, parsed, wire, with, workflow_of,
};

// 130 subscribers: those from 0 on are in `news`, and those from 50 on in `other`.
fn crowd(world: &World) -> Vec<String> {
    world.workflow(workflow_of("hi", &[in_app()]));
    let everybody: Vec<String> = (0..130).map(|number| format!("s{number:03}")).collect();
    for who in &everybody {
        world.bare_subscriber(who);
    }
    for (topic, some) in [("news", &everybody[..100]), ("other", &everybody[50..])] {
        subscribe_all(world, topic, json!({ "subscriptions": some }));
    }
    everybody
}

fn to_crowd() -> Value {
    json!({
        "name": "hi", "to": [topic("other"), topic("news")], "transactionId": "t1",
        "payload": { "name": "you" },
    })
}

fn progress(world: &World) -> EventProgress {
    world.env.events().progress("t1").unwrap()
}

fn shown(world: &World) -> (String, u64, u64) {
    let progress = progress(world);
    (progress.status.to_string(), progress.created, progress.filtered)
}

fn broadcast(world: &World, more: Value) -> TriggerReceipt {
    let broadcast: Broadcast = parsed(with(json!({ "name": "hi", "transactionId": "t1" }), more));
    world.env.events().broadcast(&broadcast).unwrap()
}

// The number of notifications of each subscriber.
fn told(world: &World, receipt: &TriggerReceipt) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for notification in created(world, receipt) {
        *told.entry(name(&notification)).or_default() += 1;
    }
    told
}

fn name(notification: &Notification) -> String {
    notification.subscriber.as_ref().unwrap().subscriber_id.to_string()
}

fn once_each(everybody: &[String]) -> BTreeMap<String, usize> {
    everybody.iter().map(|who| (who.clone(), 1)).collect()
}

#[test]
fn a_crowd_is_told_by_tasks_each_once_with_all_topics() {
    on_both(|world| {
        let everybody = crowd(&world);

        let receipt = world.trigger(to_crowd());

        let expected = json!({
            "acknowledged": true, "status": "processed", "transactionId": "t1",
            "notifications": [], "continues": true,
        });
        assert_eq!(wire(&receipt), expected);
        assert_eq!(shown(&world), ("running".into(), 0, 0));
        let report = world.engine.delivery().run_due(usize::MAX).unwrap();
        assert_eq!((report.created, report.superseded), (130, 0));
        assert_eq!(shown(&world), ("completed".into(), 130, 0));
        assert_eq!(told(&world, &receipt), once_each(&everybody));
        for (number, notification) in created(&world, &receipt).iter().enumerate() {
            let topics = names(&notification.topics, |topic| topic.topic_key.clone()).join(" ");
            let expected = match number {
                0..50 => "news",
                50..100 => "other news",
                _ => "other",
            };
            assert_eq!(
                (name(notification), topics.as_str()),
                (everybody[number].clone(), expected)
            );
        }
        assert_eq!(only(world.inbox("s129")).text(), Some("Hello you"));
        // The receipt is fixed, and nothing happens twice.
        assert_eq!(world.unchanged(|| world.trigger(to_crowd())), receipt);
        assert_eq!(world.engine.delivery().next_due().unwrap(), None);
        assert_eq!(world.env.notifications().check_index().unwrap().disagreements, []);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

#[test]
fn who_is_named_is_told_at_once_and_not_again() {
    on_both(|world| {
        let everybody = crowd(&world);

        let receipt = world.trigger(with(
            to_crowd(),
            json!({
                "to": ["s060", topic("other"), with(topic("news"), json!({ "exclude": ["s061"] }))],
            }),
        ));

        assert_eq!(shown(&world), ("running".into(), 1, 0));
        world.run_due();
        let expected: Vec<_> = everybody.into_iter().filter(|who| who != "s061").collect();
        assert_eq!(told(&world, &receipt), once_each(&expected));
        assert_eq!(name(&created(&world, &receipt)[0]), "s060");
        assert_eq!(shown(&world), ("completed".into(), 129, 0));
    });
}

#[test]
fn who_subscribes_later_is_not_told_and_neither_is_who_has_left() {
    on_both(|world| {
        let everybody = crowd(&world);
        world.bare_subscriber("late");
        let receipt = world.trigger(to_crowd());

        subscribe_all(&world, "news", json!({ "subscriptions": ["late", "s120"] }));
        let left = parsed(json!({ "subscriptions": ["s010"] }));
        assert_eq!(world.env.topics().unsubscribe(key("news"), &left).unwrap().errors, []);
        world.env.subscribers().delete(id("s020")).unwrap();
        world.run_due();

        let expected: Vec<_> =
            everybody.into_iter().filter(|who| !["s010", "s020"].contains(&who.as_str())).collect();
        assert_eq!(told(&world, &receipt), once_each(&expected));
        let last = created(&world, &receipt).into_iter().find(|one| name(one) == "s120").unwrap();
        assert_eq!(names(&last.topics, |topic| topic.topic_key.clone()), ["other"]);
    });
}

/// P11 and P13 in a crowd.
#[test]
fn who_is_filtered_in_a_crowd_is_counted_once() {
    on_both(|world| {
        let everybody = crowd(&world);
        let words = json!([{ "workflowId": "hi", "enabled": false }]);
        for (topic, some) in [("quiet", &everybody[..60]), ("silent", &everybody[20..100])] {
            let request = json!({ "subscriptions": some, "preferences": words });
            subscribe_all(&world, topic, request);
        }
        let quiet = json!([topic("quiet"), topic("silent"), topic("other")]);

        let receipt = world.trigger(with(to_crowd(), json!({ "to": quiet })));
        world.run_due();

        assert_eq!(told(&world, &receipt), once_each(&everybody[50..]));
        assert_eq!(shown(&world), ("completed".into(), 80, 50));
    });
}

#[test]
fn a_broadcast_reaches_everybody_once_but_its_actor() {
    on_both(|world| {
        let everybody = crowd(&world);

        let receipt = broadcast(&world, json!({ "actor": "s007" }));
        world.bare_subscriber("late");

        assert!(receipt.continues);
        world.run_due();
        let expected: Vec<_> = everybody.into_iter().filter(|who| who != "s007").collect();
        assert_eq!(told(&world, &receipt), once_each(&expected));
        assert_eq!(shown(&world), ("completed".into(), 129, 0));
        let again = world.unchanged(|| broadcast(&world, json!({ "actor": "s007" })));
        assert_eq!(again, receipt);
    });
}

#[test]
fn a_small_environment_is_told_at_once() {
    on_both(|world| {
        world.in_app_workflow("hi");
        for who in ["ada", "bob"] {
            world.bare_subscriber(who);
        }
        let receipt = broadcast(&world, json!({}));
        assert_eq!((receipt.continues, receipt.topics.created), (false, 2));
        assert_eq!(world.inbox("bob").len(), 1);
        assert_eq!(shown(&world), ("completed".into(), 2, 0));
        let unknown: Broadcast = parsed(json!({ "name": "unknown" }));
        let refusal = "404 workflow `unknown` is not there";
        world.refuses(refusal, || world.env.events().broadcast(&unknown));
        world.refuses("404 event `t2` is not there", || world.env.events().progress("t2"));
    });
}

#[test]
fn a_broadcast_under_an_idempotency_key_happens_once() {
    on_both(|world| {
        crowd(&world);
        let env = world.env.idempotent("k").unwrap();
        let hi: Broadcast = parsed(json!({ "name": "hi" }));

        let receipt = env.events().broadcast(&hi).unwrap();
        world.run_due();

        assert_eq!(world.unchanged(|| env.events().broadcast(&hi).unwrap()), receipt);
        assert_eq!(told(&world, &receipt).len(), 130);
    });
}

#[test]
fn a_canceled_crowd_is_not_told() {
    on_both(|world| {
        crowd(&world);
        let receipt = world.trigger(to_crowd());
        assert_eq!(world.engine.delivery().run_due(1).unwrap().created, 31);

        let canceled = world.env.events().cancel("t1").unwrap();

        assert_eq!((canceled.canceled, canceled.running, canceled.remaining), (0, 0, 0));
        assert_eq!(shown(&world), ("canceled".into(), 31, 0));
        assert_eq!(world.engine.delivery().run_due(usize::MAX).unwrap().created, 0);
        assert_eq!(told(&world, &receipt).len(), 31);
        assert_eq!(shown(&world), ("canceled".into(), 31, 0));
        assert_eq!(world.engine.delivery().next_due().unwrap(), None);
    });
}

/// Notifications are deleted while tasks still tell the others of a canceled event.
#[test]
fn a_canceled_crowd_that_is_deleted_frees_its_id() {
    on_both(|world| {
        crowd(&world);
        world.trigger(to_crowd());
        assert_eq!(world.engine.delivery().run_due(1).unwrap().created, 31);
        world.env.events().cancel("t1").unwrap();
        for notification in world.records::<Notification>() {
            world.env.notifications().delete(notification.id).unwrap();
        }
        assert_eq!(world.engine.delivery().run_due(usize::MAX).unwrap().created, 0);

        world.trigger(to_crowd());

        assert_eq!(shown(&world).0, "running");
        assert!(world.engine.delivery().run_due(usize::MAX).unwrap().created > 31);
        assert_eq!(shown(&world).0, "completed");
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// The jobs of each chunk end, wherever the runs of ordinals lie.
#[test]
fn a_canceled_crowd_is_gone_through_chunk_by_chunk() {
    on_both(|world| {
        crowd(&world);
        let day = json!({ "type": "regular", "amount": 1, "unit": "days" });
        let delay = json!({ "type": "delay", "metadata": day });
        world.workflow(workflow_of("late", &[delay, in_app()]));
        let receipt = world.trigger(with(to_crowd(), json!({ "name": "late" })));
        while shown(&world).0 == "running" {
            world.engine.delivery().run_due(1).unwrap();
            world.notify("hi", "s000");
        }

        let canceled = world.env.events().cancel("t1").unwrap();
        assert_eq!((canceled.canceled, canceled.running, canceled.remaining), (200, 0, 30));
        world.run_due();

        let all = created(&world, &receipt);
        let jobs = || all.iter().flat_map(|one| &one.jobs);
        assert_eq!(jobs().count(), 260);
        assert!(jobs().all(|job| job.status.as_str() == "canceled"));
    });
}

#[test]
fn a_deleted_workflow_reaches_nobody_else() {
    on_both(|world| {
        crowd(&world);
        world.trigger(to_crowd());
        world.engine.delivery().run_due(1).unwrap();
        world.env.workflows().delete("hi").unwrap();
        world.run_due();
        assert_eq!(shown(&world), ("canceled".into(), 31, 0));
    });
}

#[test]
fn a_crowd_whose_event_has_expired_has_notifications_that_say_so() {
    on_both(|world| {
        crowd(&world);
        let expires_at = world.now().after(std::time::Duration::from_secs(1));
        let receipt = world.trigger(with(to_crowd(), json!({ "expiresAt": expires_at })));
        world.tick();
        world.run_due();
        let all = created(&world, &receipt);
        assert_eq!((all.len(), world.inbox("s000")), (130, vec![]));
        assert!(all.iter().all(|one| one.jobs[0].status.as_str() == "skipped"));
    });
}

#[test]
fn a_code_overtakes_a_broadcast() {
    on_both(|world| {
        crowd(&world);
        world.active_integration("email", "ses");
        let code = with(workflow_of("code", &[email()]), json!({ "critical": true }));
        world.workflow(code);
        broadcast(&world, json!({}));
        let grace = json!({ "subscriberId": "grace", "email": "grace@example.org" });
        world.trigger(json!({ "name": "code", "to": grace }));

        let report = world.engine.delivery().run_due(1).unwrap();

        assert_eq!((report.sent, report.created), (1, 0));
    });
}

#[test]
fn an_actor_is_known_and_left_out() {
    on_both(|world| {
        let body = "{{ actor.firstName }} follows {{ subscriber.subscriberId }}";
        let step = json!({ "type": "in_app", "template": { "body": body } });
        world.workflow(workflow_of("hi", &[step]));
        for who in ["ada", "bob"] {
            world.bare_subscriber(who);
        }
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada", "bob"] }));
        let actor = json!({ "subscriberId": "ada", "firstName": "Ada" });

        let receipt = world.trigger(json!({ "name": "hi", "to": topic("news"), "actor": actor }));

        let notification = only(created(&world, &receipt));
        let ada = world.env.subscribers().get("ada").unwrap();
        assert_eq!((name(&notification), notification.actor_id), ("bob".into(), Some(ada.id)));
        assert_eq!(only(world.inbox("bob")).text(), Some("Ada follows bob"));
        // Who is named directly is told.
        world.trigger(json!({ "name": "hi", "to": ["ada", topic("news")], "actor": "ada" }));
        assert_eq!(only(world.inbox("ada")).text(), Some("Ada follows ada"));
        // An actor who is not there is created.
        world.trigger(json!({ "name": "hi", "to": "bob", "actor": { "subscriberId": "eve" } }));
        assert!(world.env.subscribers().get("eve").is_ok());
        let long = json!({ "subscriberId": "eve", "firstName": "x".repeat(256) });
        let trigger = parsed(json!({ "name": "hi", "to": "bob", "actor": long }));
        let refusal = "422 `actor.firstName` must be at most 255 characters long, not 256";
        world.refuses(refusal, || world.env.events().trigger(&trigger));
    });
}

/// The ids of the members are later than that of the event.
#[test]
fn a_crowd_is_told_if_the_clock_went_back_before_a_start() {
    on_both(|mut world| {
        let everybody = crowd(&world);
        world.clock.set(world.now().before(Duration::from_secs(3_600)));
        world.restart_with(|builder| builder);

        world.trigger(to_crowd());
        broadcast(&world, json!({ "transactionId": "t2" }));
        world.run_due();

        assert!(everybody.iter().all(|who| world.inbox(who).len() == 2));
    });
}
