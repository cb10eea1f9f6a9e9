//! What another call changes between the plan of an event and its transaction.

use serde_json::{Value, json};
use testkit::interposed::Point;
use tidings::Scope;
use tidings::trigger::{Trigger, TriggerReceipt};

use crate::world::{World, on_both, parsed, time};

const TEXT: &str = "{{ subscriber.firstName }}, {{ context.tenant.data.name }}";

type Act = fn(&Scope);

/// What happens meanwhile, the text for Ada afterwards, and whether she is in her topic still.
const ACTS: [(Act, &str, bool); 7] = [
    (|_| {}, "Ada, Acme", true),
    (erase, ", Acme", false),
    (delete, ", Acme", false),
    (create_again, "Agnes, Acme", false),
    (rename, "Agnes, Acme", true),
    (delete_context, "Ada, ", true),
    (rename_context, "Ada, Ajax", true),
];

fn erase(env: &Scope) {
    assert!(env.subscribers().erase("ada").unwrap().is_finished);
}

fn delete(env: &Scope) {
    env.subscribers().delete("ada").unwrap();
}

fn create_again(env: &Scope) {
    delete(env);
    let agnes = json!({ "subscriberId": "ada", "firstName": "Agnes" });
    env.subscribers().create(&parsed(agnes)).unwrap();
}

fn rename(env: &Scope) {
    env.subscribers().update("ada", &parsed(json!({ "firstName": "Agnes" }))).unwrap();
}

fn delete_context(env: &Scope) {
    env.contexts().delete("tenant:acme").unwrap();
}

fn rename_context(env: &Scope) {
    env.contexts().update("tenant:acme", &parsed(json!({ "data": { "name": "Ajax" } }))).unwrap();
}

fn prepared(world: &World) {
    world.workflow_of("hi", &[json!({ "type": "in_app", "template": { "body": TEXT } })]);
    world.subscriber(json!({ "subscriberId": "ada", "firstName": "Ada" }));
    let acme = json!({ "type": "tenant", "id": "acme", "data": { "name": "Acme" } });
    world.env.contexts().create(&parsed(acme)).unwrap();
    let member = json!({ "subscriptions": ["ada"], "context": { "tenant": "acme" } });
    assert_eq!(world.env.topics().subscribe("all", &parsed(member)).unwrap().errors, []);
}

fn event(to: &Value) -> Trigger {
    parsed(json!({ "name": "hi", "to": to, "context": { "tenant": "acme" } }))
}

/// The texts of the inbox of Ada. Nobody has one if she is not there.
fn texts(world: &World) -> Vec<String> {
    let is_there = world.env.subscribers().find("ada").unwrap().is_some();
    let inbox = if is_there { world.inbox("ada") } else { Vec::new() };
    inbox.iter().map(|message| message.text().unwrap().to_owned()).collect()
}

/// Triggers events, while `act` comes between their plan and their transaction.
fn trigger(world: &World, act: Act, events: &[Trigger]) -> Vec<TriggerReceipt> {
    let env = world.env.clone();
    world.store.pause(Point::Write, 0, move || act(&env));
    match events {
        [event] => vec![world.env.events().trigger(event).unwrap()],
        events => world.env.events().trigger_bulk(events).unwrap().all().unwrap(),
    }
}

/// The event happens behind the other call, and shows what that has left.
#[test]
fn an_event_shows_what_is_there_in_its_transaction() {
    for (act, text, _) in ACTS {
        on_both(|world| {
            prepared(&world);
            trigger(&world, act, &[event(&json!("ada"))]);
            assert_eq!(texts(&world), [text]);
        });
    }
}

/// A topic has only those who are in it then.
#[test]
fn an_event_for_a_topic_shows_what_is_there_in_its_transaction() {
    for (act, text, is_member) in ACTS {
        on_both(|world| {
            prepared(&world);
            let topic = json!({ "type": "Topic", "topicKey": "all" });
            let receipts = trigger(&world, act, &[event(&topic)]);
            let expected: &[&str] = if is_member { &[text] } else { &[] };
            assert_eq!(texts(&world), expected);
            assert_eq!(receipts[0].topics.created, expected.len());
        });
    }
}

/// In a bulk, each event sees what those before it have left as well.
#[test]
fn the_events_of_a_bulk_show_what_is_there_in_their_transaction() {
    for (act, text, _) in ACTS {
        on_both(|world| {
            prepared(&world);
            let renamed = json!({ "subscriberId": "ada", "firstName": "Amy" });
            let events = [json!("ada"), renamed, json!("ada")].map(|to| event(&to));
            trigger(&world, act, &events);
            let last = text.split(", ").nth(1).unwrap();
            let amy = format!("Amy, {last}");
            assert_eq!(texts(&world), [amy.as_str(), &amy, text]);
        });
    }
}

/// The person who has caused the event is renamed.
#[test]
fn an_event_shows_its_actor_as_of_its_transaction() {
    on_both(|world| {
        prepared(&world);
        let body = json!({ "body": "by {{ actor.firstName }}" });
        world.workflow_of("by", &[json!({ "type": "in_app", "template": body })]);
        let by: Trigger = parsed(json!({ "name": "by", "to": "bob", "actor": "ada" }));
        trigger(&world, rename, &[by]);
        assert_eq!(world.inbox("bob")[0].text(), Some("by Agnes"));
    });
}

/// The event is known under its transaction id until the other call removes it.
#[test]
fn an_event_that_was_accepted_before_happens_again_if_it_was_removed() {
    for to in [json!("ada"), json!({ "type": "Topic", "topicKey": "all" })] {
        on_both(|world| {
            prepared(&world);
            let known = event(&to).transaction_id("t1").unwrap();
            world.env.events().trigger(&known).unwrap();
            let remove: Act = |env| {
                let end = time("2100-01-01T00:00:00.000Z");
                env.notifications().delete_before(end).unwrap();
            };
            trigger(&world, remove, &[known]);
            assert_eq!(world.notifications(json!({})).len(), 1);
        });
    }
}
