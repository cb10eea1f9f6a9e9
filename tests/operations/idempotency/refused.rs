//! Calls that are refused, and made again when nothing would stand against them any more.

use serde_json::{Value, json};
use tidings::{Error, Result, Scope};

use super::{A_DAY, once, stored};
use crate::subscriptions::subscribe_all;
use crate::topics::key;
use crate::world::{World, id, in_app, on_both, parsed, with, workflow_of};

// A call that is refused, why, and what removes the reason.
type Refused = (fn(&Scope) -> Result<()>, &'static str, fn(&World));

const REFUSED: &[Refused] = &[
    (
        |scope| {
            scope.subscribers().update(id("eve"), &parsed(json!({ "firstName": "Eve" }))).map(drop)
        },
        "404 subscriber `eve` is not there",
        |world| drop(world.bare_subscriber("eve")),
    ),
    (
        |scope| {
            let word = |name: &str| json!({ "workflowId": name, "channels": {} });
            let update = json!({ "preferences": [word("one"), word("two")] });
            scope.preferences(id("ada")).unwrap().update_bulk(&parsed(update)).map(drop)
        },
        "404 workflows `one`, `two` are not there",
        |world| ["one", "two"].into_iter().for_each(|name| drop(world.in_app_workflow(name))),
    ),
    (
        |scope| scope.topics().create(&parsed(json!({ "key": "news" }))).map(drop),
        "409 topic `news` is there already",
        |world| world.env.topics().delete(key("news")).unwrap(),
    ),
    (
        |scope| {
            let request = json!({ "subscriptions": ["eve", "zoe"], "context": { "app": "x" } });
            scope.topics().subscribe(key("fresh"), &parsed(request)).map(drop)
        },
        "400 each subscription was refused: subscriber `eve` is not there; subscriber `zoe` is not there",
        |world| drop(world.bare_subscriber("eve")),
    ),
    (
        |scope| {
            let word = json!({ "workflowId": "alarm", "channels": {} });
            let update = json!({ "preferences": [word] });
            scope.preferences(id("ada")).unwrap().update_bulk(&parsed(update)).map(drop)
        },
        "400 critical workflows take no preferences: alarm",
        |world| {
            let update = parsed(json!({ "critical": false }));
            world.env.workflows().update("alarm", &update).unwrap();
        },
    ),
    (
        |scope| {
            let create = json!({ "providerId": "host", "channel": "in_app" });
            scope.integrations().create(&parsed(create)).map(drop)
        },
        "400 an environment has at most one in_app integration",
        |world| {
            let inbox = world.env.integrations().list().unwrap().remove(0).id;
            world.env.integrations().delete(inbox, &parsed(json!({}))).unwrap();
        },
    ),
    (
        |scope| scope.translations().delete_group(&crate::translations::resource("workflow", "hi")),
        "404 translation group `workflow/hi` is not there",
        |world| drop(crate::translations::upsert(world, "workflow", "hi", "de", json!({}))),
    ),
];

#[test]
fn a_refusal_is_repeated_when_there_is_no_reason_for_it_any_more() {
    for (call, refusal, remove_reason) in REFUSED {
        on_both(|world| {
            furnish(&world);
            let scope = once(&world, "k");
            let before = world.dump();

            let error = call(&scope).unwrap_err();

            assert_eq!(format!("{} {error}", error.status()), *refusal);
            // Nothing but the refusal is kept.
            let mut after = world.dump();
            after.retain(|(table, _), _| !table.ends_with("answers"));
            assert!(after == before && stored(&world) == (1, 1), "{refusal}");
            remove_reason(&world);
            world.refuses(refusal, || call(&scope));
            // A day later the call is made.
            world.pass(A_DAY);
            call(&scope).unwrap();
        });
    }
}

/// The arguments of such a call have no JSON, so that it is equal to no other one.
#[test]
fn filters_that_are_nested_too_deep_are_refused_with_a_key() {
    on_both(|world| {
        let group = |inner: Value| json!({ "isNegated": false, "type": "GROUP", "value": "AND", "children": [inner] });
        let part = json!({ "on": "payload", "field": "a", "value": "1", "operator": "EQUAL" });
        let filter = (0..18).fold(part, |inner, _| group(inner));
        let create = parsed(workflow_of("new", &[with(in_app(), json!({ "filters": [filter] }))]));
        let too_deep = "filters` must be nested at most 16 levels deep";
        for scope in [world.env.clone(), once(&world, "k")] {
            let refused = world.unchanged(|| scope.workflows().create(&create)).unwrap_err();
            assert!(matches!(refused, Error::Invalid(_)), "{refused:?}");
            assert!(refused.to_string().contains(too_deep), "{refused}");
        }
    });
}

/// One row per call that no rule allows, which is refused however often it is made.
#[test]
fn what_no_rule_allows_is_refused_the_same_way_with_a_key() {
    let calls: [fn(&Scope) -> Result<()>; 6] = [
        |scope| scope.topics().create(&parsed(json!({ "key": "x", "name": "" }))).map(drop),
        |scope| {
            let update = json!({ "preferences": [] });
            scope.preferences(id("ada")).unwrap().update_bulk(&parsed(update)).map(drop)
        },
        |scope| {
            let create = json!({ "name": "Production", "color": "#fff" });
            scope.environments().create(&parsed(create)).map(drop)
        },
        |scope| {
            let inbox = scope.integrations().list()?.remove(0).id;
            scope.integrations().set_primary(inbox).map(drop)
        },
        |scope| {
            let step = json!({ "type": "in_app", "template": { "body": "{{ open" } });
            scope.workflows().create(&parsed(workflow_of("new", &[step]))).map(drop)
        },
        |scope| {
            let upsert = json!({
                "resourceType": "workflow", "resourceId": "hi", "locale": "de",
                "content": { "a": { "b": 1 } },
            });
            scope.translations().upsert(&parsed(upsert)).map(drop)
        },
    ];
    on_both(|world| {
        furnish(&world);
        for (at, call) in calls.iter().enumerate() {
            let scope = once(&world, &format!("k{at}"));
            let shown = |error: Error| (error.status(), error.to_string(), format!("{error:?}"));
            let refused = shown(call(&world.env).unwrap_err());
            assert_eq!(shown(call(&scope).unwrap_err()), refused);
            let again = world.unchanged(|| shown(call(&scope).unwrap_err()));
            assert_eq!(again, refused);
        }
    });
}

// What the calls above are refused for.
fn furnish(world: &World) {
    world.bare_subscriber("ada");
    world.in_app_workflow("hi");
    world.workflow(with(workflow_of("alarm", &[in_app()]), json!({ "critical": true })));
    world.integration(json!({ "providerId": "host", "channel": "in_app" }));
    subscribe_all(world, "news", json!({ "subscriptions": ["ada"] }));
}
