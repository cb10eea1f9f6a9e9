//! Preferences: reading them (operation 10), and the word for every workflow.

mod bulk;
mod taken_back;

use serde_json::{Value, json};
use tidings::preference::{
    Criticality, GlobalPreferenceUpdate, Preferences, PreferencesQuery, UpdatedPreference,
};
use tidings::schedule::Schedule;

use crate::world::{
    World, email, id, in_app, names, on_both, parsed, sms, unreadable, wire, with, workflow_of,
};

#[test]
fn where_nobody_says_anything_everything_is_on() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let workflow = world.in_app_workflow("hi");

        // 10.1, 10.13, and P18: all five channels are there, also those without a step.
        let preferences = wire(get(&world, json!({})));

        let by_default =
            |channel| json!({ "channel": channel, "source": "template", "layer": "default" });
        assert_eq!(
            preferences,
            json!({
                "global": { "enabled": true, "channels": all(true) },
                "workflows": [{
                    "enabled": true,
                    "channels": all(true),
                    "overrides": CHANNELS.map(by_default),
                    "workflow": {
                        "slug": workflow.slug(),
                        "identifier": "hi",
                        "name": "hi",
                        "updatedAt": workflow.updated_at,
                    },
                }],
            })
        );
    });
}

#[test]
fn active_workflows_are_shown_oldest_first() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let named = |query: Value| {
            names(&get(&world, query).workflows, |shown| shown.workflow.identifier.clone())
        };
        assert_eq!(named(json!({})), Vec::<String>::new());

        // 10.3, 10.7, 10.8
        let critical = json!({ "critical": true });
        for create in [
            workflow_of("z", &[in_app()]),
            with(workflow_of("security", &[in_app()]), critical.clone()),
            with(workflow_of("off", &[in_app()]), json!({ "active": false })),
            workflow_of("empty", &[]),
            workflow_of("a", &[email(), sms()]),
        ] {
            world.workflow(create);
        }
        let there = parsed(workflow_of("there", &[in_app()]));
        world.production().workflows().create(&there).unwrap();

        assert_eq!(named(json!({})), ["z", "empty", "a"]);
        assert_eq!(named(json!({ "criticality": "nonCritical" })), ["z", "empty", "a"]);
        assert_eq!(named(json!({ "criticality": "critical" })), ["security"]);
        assert_eq!(named(json!({ "criticality": "all" })), ["z", "security", "empty", "a"]);

        world.env.workflows().delete("z").unwrap();
        assert_eq!(named(json!({})), ["empty", "a"]);
    });
    assert_eq!(
        unreadable::<Criticality>(json!("some")),
        "`criticality` must be one of critical, nonCritical, all"
    );
}

/// One row per set of layers: what comes of e-mail, and who decided.
#[test]
fn the_most_specific_layer_that_says_something_decides() {
    let (on, off) = (json!({ "email": true }), json!({ "email": false }));
    let (all_on, all_off) = (json!({ "enabled": true }), json!({ "enabled": false }));
    let none = json!({});
    let rows = [
        (&none, &none, &none, &none, (true, "template", "default")),
        (&off, &none, &none, &none, (false, "template", "definition")),
        (&off, &on, &none, &none, (true, "template", "dashboard")),
        (&on, &on, &off, &none, (false, "subscriber", "subscriber_global")),
        (&off, &off, &on, &none, (true, "subscriber", "subscriber_global")),
        (&on, &on, &on, &off, (false, "subscriber", "subscriber_workflow")),
        (&off, &off, &off, &on, (true, "subscriber", "subscriber_workflow")),
        // A layer without a word about the channel has one for all, or none.
        (&all_off, &none, &none, &none, (false, "template", "definition")),
        (&none, &all_off, &none, &none, (false, "template", "dashboard")),
        (&none, &none, &all_off, &none, (false, "subscriber", "subscriber_global")),
        (&off, &json!({ "sms": true }), &all_on, &none, (true, "subscriber", "subscriber_global")),
        (&off, &json!({ "sms": true }), &none, &none, (false, "template", "definition")),
        (&none, &none, &off, &json!({ "sms": true }), (false, "subscriber", "subscriber_global")),
    ];
    on_both(|world| {
        world.bare_subscriber("ada");
        for (definition, operator, global, specific, expected) in &rows {
            let defined = json!({ "preferenceSettings": definition });
            world.workflow(with(workflow_of("hi", &[email()]), defined));
            let set = json!({ "preferences": operator });
            world.env.workflows().update("hi", &parsed(set)).unwrap();
            update_global(&world, spread(global));
            if *specific != &none {
                bulk::update(&world, json!([{ "workflowId": "hi", "channels": specific }]));
            }

            let shown = wire(&get(&world, json!({})).workflows[0]);

            let (enabled, source, layer) = expected;
            let layers = format!("{definition} {operator} {global} {specific}");
            assert_eq!(shown["channels"]["email"], *enabled, "{layers}");
            let email = json!({ "channel": "email", "source": source, "layer": layer });
            assert_eq!(shown["overrides"][1], email, "{layers}");
            world.env.workflows().delete("hi").unwrap();
            world.env.subscribers().delete(id("ada")).unwrap();
            world.bare_subscriber("ada");
        }
    });
}

#[test]
fn a_critical_workflow_takes_no_subscribers_word() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let create = workflow_of("security", &[email()]);
        let defined = json!({ "preferenceSettings": { "sms": false } });
        world.workflow(with(create, defined));
        let words = json!({ "email": false, "sms": true });
        bulk::update(&world, json!([{ "workflowId": "security", "channels": words }]));
        update_global(&world, json!({ "enabled": false, "channels": { "push": false } }));

        // 10.7
        let critical = json!({ "critical": true });
        world.env.workflows().update("security", &parsed(critical)).unwrap();

        let preferences = get(&world, json!({ "criticality": "critical" }));
        let shown = wire(&preferences.workflows[0]);
        assert_eq!(shown["channels"], with(all(true), json!({ "sms": false })));
        assert_eq!(
            wire(&preferences.workflows[0].overrides),
            json!(CHANNELS.map(|channel| {
                let layer = if channel == "sms" { "definition" } else { "default" };
                json!({ "channel": channel, "source": "template", "layer": layer })
            }))
        );
    });
}

#[test]
fn a_word_for_every_workflow_leaves_words_for_one_alone() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.workflow_of("old", &[email()]);
        bulk::update(&world, json!([{ "workflowId": "old", "channels": { "email": true } }]));

        let updated = update_global(&world, json!({ "channels": { "email": false } }));
        world.workflow_of("new", &[email()]);

        assert_eq!(
            wire(updated),
            json!({
                "level": "global",
                "enabled": true,
                "channels": with(all(true), json!({ "email": false })),
            })
        );
        // 10.4; 10.5 is decided otherwise: the specific word stays.
        let shown = get(&world, json!({})).workflows;
        assert_eq!(names(&shown, |shown| shown.channels.get(EMAIL).unwrap()), ["true", "false"]);
        // 10.6
        bulk::update(&world, json!([{ "workflowId": "new", "channels": { "email": true } }]));
        let shown = get(&world, json!({})).workflows;
        assert_eq!(names(&shown, |shown| shown.channels.get(EMAIL).unwrap()), ["true", "true"]);
    });
}

#[test]
fn an_update_of_the_global_word_changes_what_it_names() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let schedule = json!({
            "isEnabled": true,
            "weeklySchedule": { "monday": {
                "isEnabled": true, "hours": [{ "start": "09:00 AM", "end": "05:30 PM" }],
            } },
        });
        let check = |update: Value, expected: Value| {
            let updated = update_global(&world, update);
            let shown = wire(get(&world, json!({})).global);
            assert_eq!(shown, expected);
            assert_eq!(wire(updated)["channels"], shown["channels"]);
        };

        check(
            json!({ "channels": { "email": false }, "schedule": schedule }),
            json!({
                "enabled": true,
                "channels": with(all(true), json!({ "email": false })),
                "schedule": schedule,
            }),
        );
        check(
            json!({ "enabled": false, "channels": { "sms": true } }),
            json!({
                "enabled": false,
                "channels": with(all(false), json!({ "sms": true })),
                "schedule": schedule,
            }),
        );
        check(
            json!({ "enabled": null, "schedule": null }),
            json!({ "enabled": true, "channels": with(all(true), json!({ "email": false })) }),
        );
    });
}

#[test]
fn contexts_do_not_hear_of_one_another() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.workflow_of("hi", &[email()]);
        let say = |context: Value, enabled: bool| {
            let channels = json!({ "email": enabled });
            let update = with(context, json!({ "channels": channels }));
            update_global(&world, update);
        };
        let heard = |keys: Value| {
            let preferences = get(&world, json!({ "contextKeys": keys }));
            let shown = preferences.workflows[0].channels.get(EMAIL);
            assert_eq!(preferences.global.channels.get(EMAIL), shown);
            shown.unwrap()
        };

        say(json!({}), false);
        say(json!({ "context": { "tenant": "globex" } }), true);
        say(json!({ "context": { "b": "2", "a": "1" } }), false);

        // 10.10
        assert!(!heard(json!([])));
        assert!(heard(json!(["tenant:globex"])));
        assert!(heard(json!(["tenant:acme"])));
        // 10.11
        assert!(!heard(json!(["a:1", "b:2"])));
        assert!(!heard(json!(["b:2", "a:1", "b:2"])));
        // Neither a part of a set nor more than a set is that set.
        assert!(heard(json!(["a:1"])));
        assert!(heard(json!(["a:1", "b:2", "tenant:globex"])));
        // What is named is there from now on.
        let tenant = world.env.contexts().get("tenant:globex").unwrap();
        assert_eq!(wire(tenant)["data"], json!({}));
    });
    let keys = |key: &str| unreadable::<PreferencesQuery>(json!({ "contextKeys": [key] }));
    assert_eq!(keys("tenant"), "`contextKeys` must be `type:id`");
    let plain = "`contextKeys` must be 1 to 100 letters, digits, `_` and `-`";
    assert_eq!(keys("tenant:a.b"), plain);
}

#[test]
fn a_preference_is_for_one_subscriber_in_one_environment() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.bare_subscriber("bob");
        let production = world.production();
        production.subscribers().create(&parsed(json!({ "subscriberId": "ada" }))).unwrap();
        let (ada, bob) = (id("ada"), id("bob"));
        let query = PreferencesQuery::default();
        let there = production.preferences(&ada).unwrap().get(&query).unwrap();
        let his = world.env.preferences(&bob).unwrap().get(&query).unwrap();

        update_global(&world, json!({ "enabled": false }));

        assert!(!get(&world, json!({})).global.enabled);
        assert_eq!(production.preferences(&ada).unwrap().get(&query).unwrap(), there);
        assert_eq!(world.env.preferences(&bob).unwrap().get(&query).unwrap(), his);
        // Whoever comes after her under her name starts afresh.
        world.env.subscribers().delete(&ada).unwrap();
        world.bare_subscriber("ada");
        assert!(get(&world, json!({})).global.enabled);
    });
}

#[test]
fn what_cannot_be_said_is_refused() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let check = |who: &str, update: Value, refusal: &str| {
            let update: GlobalPreferenceUpdate = parsed(update);
            world.refuses(refusal, || {
                world.env.preferences(id(who)).unwrap().update_global(&update)
            });
        };

        // 10.2
        let refusal = "404 subscriber `eve` is not there";
        world
            .refuses(refusal, || world.env.preferences(id("eve")).unwrap().get(&parsed(json!({}))));
        check("eve", json!({ "context": { "tenant": "acme" } }), refusal);
        check("ada", json!({ "context": {} }), "422 `context` must not be empty");
        let plain = "must be 1 to 100 letters, digits, `_` and `-`";
        let bad = json!({ "context": { "tenant": "" } });
        check("ada", bad, &format!("422 `context.tenant` {plain}"));
        let no_day = json!({ "schedule": { "isEnabled": true, "weeklySchedule": {} } });
        check("ada", no_day, "422 `schedule.weeklySchedule` must not be empty");
        let nine = json!({ "start": "09:00 AM", "end": "9:00 am" });
        let day = json!({ "isEnabled": true, "hours": [nine] });
        let no_span = json!({ "isEnabled": true, "weeklySchedule": { "friday": day } });
        check(
            "ada",
            json!({ "schedule": no_span }),
            "422 `schedule.weeklySchedule.friday.hours` must be spans whose start and end differ",
        );
    });
    let day = |hours: Value| json!({ "isEnabled": true, "hours": [hours] });
    let week = |day: Value| json!({ "isEnabled": true, "weeklySchedule": day });
    let hours = json!({ "start": "13:00 PM", "end": "02:00 PM" });
    assert_eq!(
        unreadable::<Schedule>(week(json!({ "monday": day(hours) }))),
        "`hours` must be a time such as `09:30 AM`"
    );
    let someday = unreadable::<Schedule>(week(json!({ "someday": { "isEnabled": true } })));
    assert!(someday.starts_with("`weekDays` must be one of monday, tuesday, "), "{someday}");
}

const CHANNELS: [&str; 5] = ["in_app", "email", "sms", "chat", "push"];
const EMAIL: tidings::vocabulary::Channel = tidings::vocabulary::Channel::Email;

// Every channel with the same word.
fn all(enabled: bool) -> Value {
    CHANNELS.iter().map(|channel| ((*channel).to_owned(), json!(enabled))).collect()
}

// A layer as an update of the global word has it.
fn spread(layer: &Value) -> Value {
    match layer.get("enabled") {
        Some(enabled) => json!({ "enabled": enabled }),
        None => json!({ "channels": layer }),
    }
}

fn get(world: &World, query: Value) -> Preferences {
    world.env.preferences(id("ada")).unwrap().get(&parsed(query)).unwrap()
}

fn update_global(world: &World, update: Value) -> UpdatedPreference {
    world.env.preferences(id("ada")).unwrap().update_global(&parsed(update)).unwrap()
}

/// Workflows are decoded once, and what was decoded is not shown when it is not there any more.
#[test]
fn a_workflow_is_shown_as_it_is_now() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        world.in_app_workflow("bye");
        let shown = || {
            let preferences = wire(get(&world, json!({})));
            let workflows = preferences["workflows"].as_array().unwrap().clone();
            workflows.iter().map(|one| one["workflow"]["name"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(shown(), ["hi", "bye"]);

        world.tick();
        world.env.workflows().update("hi", &parsed(json!({ "name": "Good day" }))).unwrap();
        assert_eq!(shown(), ["Good day", "bye"]);
        world.env.workflows().delete("bye").unwrap();
        assert_eq!(shown(), ["Good day"]);
    });
}
