//! Conditions of preferences: rules in JSON Logic that say when a layer says yes.

mod words;

use std::thread;

use serde_json::{Value, json};
use tidings::condition::{Rule, var};
use tidings::ids::NotificationId;
use tidings::preference::{GlobalPreferenceUpdate, UpdatedPreference, WorkflowPreferenceUpdates};

use crate::world::{
    World, email, id, in_app, names, on_both, only, parsed, payload_is, with, workflow_of,
};

/// One row per set of layers: whether an in-app message is written, or which layer was against it.
/// `yes` and `no` are conditions that hold and do not.
#[test]
fn the_most_specific_layer_with_a_condition_decides_at_the_trigger() {
    let (workflow, global, specific) = (
        "filtered_by_workflow_preference",
        "filtered_by_subscriber_global_preference",
        "filtered_by_subscriber_workflow_preference",
    );
    let none = json!({});
    let (yes, no) = (json!({ "condition": yes() }), json!({ "condition": no() }));
    let (on, off) = (json!({ "in_app": true }), json!({ "in_app": false }));
    let (all_on, all_off) = (json!({ "enabled": true }), json!({ "enabled": false }));
    let both = |left: &Value, right: &Value| with(left.clone(), right.clone());
    let rows = [
        // Definition, operator, subscriber for all, subscriber for this one.
        ([&yes, &none, &none, &none], ""),
        ([&no, &none, &none, &none], workflow),
        ([&no, &yes, &none, &none], ""),
        ([&yes, &no, &none, &none], workflow),
        ([&no, &no, &yes, &none], ""),
        ([&yes, &yes, &no, &none], global),
        ([&no, &no, &no, &yes], ""),
        ([&yes, &yes, &yes, &no], specific),
        ([&none, &none, &none, &no], specific),
        // A condition that does not hold is a no, whatever the layer says besides.
        ([&none, &none, &none, &both(&no, &on)], specific),
        ([&none, &none, &both(&no, &on), &none], global),
        ([&none, &both(&no, &all_on), &none, &none], workflow),
        // One that holds leaves a no to the channel as it is, and is a yes to all others.
        ([&none, &none, &none, &both(&yes, &off)], specific),
        ([&none, &none, &both(&yes, &off), &none], global),
        ([&none, &none, &both(&yes, &all_off), &none], ""),
        ([&none, &both(&yes, &all_off), &none, &none], ""),
        // A word without a condition hides the conditions below it.
        ([&no, &no, &no, &on], ""),
        ([&no, &no, &all_on, &none], ""),
        ([&yes, &yes, &yes, &off], specific),
        // A word about another channel says nothing.
        ([&no, &none, &json!({ "email": true }), &none], workflow),
    ];
    on_both(|world| {
        world.bare_subscriber("ada");
        for (layers, expected) in &rows {
            let [definition, operator, all, one] = *layers;
            let defined = json!({ "preferenceSettings": definition });
            world.workflow(with(workflow_of("hi", &[in_app()]), defined));
            let operator = json!({ "preferences": operator });
            world.env.workflows().update("hi", &parsed(operator)).unwrap();
            say_globally(&world, spread(all, json!({ "enabled": null, "condition": null })));
            if *one != none {
                say(&world, spread(one, json!({ "workflowId": "hi" })));
            }

            let refused = in_app_refusal(&world, world.notify("hi", "ada"));

            assert_eq!(refused, *expected, "{layers:?}");
            // What was said for all is taken back, what was said for this one goes with it.
            world.env.workflows().delete("hi").unwrap();
            world.env.subscribers().delete(id("ada")).unwrap();
            world.bare_subscriber("ada");
        }
    });
}

#[test]
fn a_critical_workflow_does_not_ask_its_subscribers_conditions() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let critical = json!({ "critical": true });
        world.workflow(with(workflow_of("alarm", &[in_app()]), critical.clone()));
        let rule = json!({ "preferenceSettings": { "condition": no() } });
        let create = with(workflow_of("ruled", &[in_app()]), with(critical, rule));
        world.workflow(create);
        say_globally(&world, json!({ "condition": no() }));

        assert_eq!(in_app_refusal(&world, world.notify("alarm", "ada")), "");
        // Its own it asks.
        let refused = in_app_refusal(&world, world.notify("ruled", "ada"));
        assert_eq!(refused, "filtered_by_workflow_preference");
    });
}

/// One row per rule: whether the message is sent.
#[test]
fn a_condition_knows_the_subscriber_the_payload_the_contexts_and_the_workflow() {
    let is = |path: &str, value: Value| json!({ "===": [{ "var": path }, value] });
    let rows = [
        (is("subscriber.firstName", json!("Ada")), true),
        (is("subscriber.data.plan", json!("pro")), true),
        (is("payload.total", json!(42)), true),
        (is("payload.total", json!(41)), false),
        (is("context.tenant.data.plan", json!("gold")), true),
        (is("workflow.name", json!("hi")), true),
        (json!({ "and": [is("payload.total", json!(42)), { "<": [1, 2] }] }), true),
        (json!({ "missing": "payload.total" }), false),
        // Another value than `true` is a no.
        (json!({ "var": "payload.total" }), false),
        (json!({ "+": [1] }), false),
        (json!({ "!!": { "var": "payload.total" } }), true),
    ];
    on_both(|world| {
        world.in_app_workflow("hi");
        world.subscriber(json!({
            "subscriberId": "ada", "firstName": "Ada", "data": { "plan": "pro" },
        }));
        let context = json!({ "tenant": { "id": "acme", "data": { "plan": "gold" } } });
        for (rule, expected) in &rows {
            let word = json!({ "workflowId": "hi", "channels": {}, "condition": rule });
            say_for(&world, word, context.clone());

            let before = world.inbox("ada").len();
            world.trigger(json!({
                "name": "hi", "to": "ada", "payload": { "total": 42 }, "context": context,
            }));

            let sent = world.inbox("ada").len() - before;
            assert_eq!(sent, usize::from(*expected), "{rule}");
        }
    });
}

#[test]
fn a_condition_holds_for_its_contexts_alone() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let word = |rule: Value| json!({ "workflowId": "hi", "channels": {}, "condition": rule });
        let acme = json!({ "tenant": "acme" });
        say_for(&world, word(no()), acme.clone());
        let is_sent = |context: &Value| {
            let event = json!({ "name": "hi", "to": "ada", "context": context });
            let created = only(world.trigger(event).notifications);
            in_app_refusal(&world, created.notification_id).is_empty()
        };

        assert!(!is_sent(&acme));
        assert!(is_sent(&Value::Null));
        assert!(is_sent(&json!({ "tenant": "globex" })));
        assert!(is_sent(&json!({ "tenant": "acme", "app": "shop" })));
        say(&world, word(no()));
        say_for(&world, word(yes()), acme.clone());
        assert!(is_sent(&acme));
        assert!(!is_sent(&Value::Null));
    });
}

#[test]
fn an_email_is_decided_in_its_turn_and_again_when_it_is_sent() {
    let total_is = |total: u32| json!({ "==": [{ "var": "payload.total" }, total] });
    let is_gold = json!({ "==": [{ "var": "subscriber.data.plan" }, "gold"] });
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        let notify = || {
            let event = json!({ "name": "mail", "to": "ada", "payload": { "total": 42 } });
            only(world.trigger(event).notifications).notification_id
        };
        let word = |rule: &Value| {
            say(&world, json!({ "workflowId": "mail", "channels": {}, "condition": rule }));
        };
        let last = |id: NotificationId| {
            let details = only(world.notification(id).jobs).execution_details;
            names(&details, |entry| entry.detail).pop().unwrap()
        };
        let filtered = "filtered_by_subscriber_workflow_preference";

        word(&total_is(41));
        assert_eq!(last(notify()), filtered);

        word(&total_is(42));
        let taken_back = notify();
        word(&total_is(41));
        world.run_due();
        assert_eq!(last(taken_back), filtered);

        // The data of the condition are those of that time, too.
        let plan = |plan: &str| {
            let update = parsed(json!({ "data": { "plan": plan } }));
            world.env.subscribers().update(id("ada"), &update).unwrap();
        };
        plan("gold");
        word(&is_gold);
        let [first, second] = [notify(), notify()];
        world.engine.delivery().run_due(1).unwrap();
        plan("free");
        world.run_due();
        assert_eq!([last(first), last(second)], ["message_sent", filtered]);
        assert_eq!(world.recorder.sent().len(), 1);
    });
}

#[test]
fn the_conditions_of_a_step_come_before_those_of_preferences() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let step = with(in_app(), json!({ "filters": [payload_is("on", "true")] }));
        world.workflow_of("hi", &[step]);
        say(&world, json!({ "workflowId": "hi", "channels": {}, "condition": no() }));

        for (on, expected) in [
            (false, "filtered_by_step_conditions"),
            (true, "filtered_by_subscriber_workflow_preference"),
        ] {
            let event = json!({ "name": "hi", "to": "ada", "payload": { "on": on } });
            let created = only(world.trigger(event).notifications);
            assert_eq!(in_app_refusal(&world, created.notification_id), expected);
        }
    });
}

// A rule that holds.
fn yes() -> Value {
    json!({ "==": [1, 1] })
}

// A rule that does not.
fn no() -> Value {
    json!({ "==": [1, 2] })
}

// Says something about one workflow.
fn say(world: &World, said: Value) -> UpdatedPreference {
    say_for(world, said, Value::Null)
}

fn say_for(world: &World, said: Value, context: Value) -> UpdatedPreference {
    let fields = [("preferences", Value::from(vec![said])), ("context", context)];
    let update: WorkflowPreferenceUpdates = parsed(Value::from_iter(fields));
    only(world.env.preferences(id("ada")).unwrap().update_bulk(&update).unwrap())
}

fn say_globally(world: &World, fields: Value) -> UpdatedPreference {
    let update: GlobalPreferenceUpdate = parsed(fields);
    world.env.preferences(id("ada")).unwrap().update_global(&update).unwrap()
}

// A layer as an update has it: its channels are in an object of their own.
fn spread(layer: &Value, besides: Value) -> Value {
    let mut fields = with(besides, json!({ "channels": {} }));
    for (name, value) in layer.as_object().unwrap() {
        match name.as_str() {
            "enabled" | "condition" => fields[name] = value.clone(),
            channel => fields["channels"][channel] = value.clone(),
        }
    }
    fields
}

// Why the only message of a notification was not written; nothing, if it was.
fn in_app_refusal(world: &World, id: NotificationId) -> String {
    let written = world.inbox("ada").iter().any(|message| message.notification_id == id);
    let details = only(world.notification(id).jobs).execution_details;
    let last = names(&details, |entry| entry.detail).pop().unwrap();
    assert_eq!(written, last == "message_created", "{last}");
    if written { String::new() } else { last }
}

/// A condition may be composed of as many parts as a caller has, on a thread with a small stack.
#[test]
fn a_condition_that_is_composed_too_deep_is_refused() {
    let compose = || {
        let nested = (0..20_000).fold(var("payload.x").equals(1), |inner, _| inner.negated());
        Rule::try_from(nested).unwrap_err().to_string()
    };
    let thread = thread::Builder::new().stack_size(512 << 10).spawn(compose).unwrap();
    assert_eq!(thread.join().unwrap(), "`condition` must be nested at most 64 levels deep");
}
