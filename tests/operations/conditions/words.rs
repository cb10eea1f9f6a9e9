//! Saying, showing, clearing and refusing conditions.

use serde_json::{Value, json};
use tidings::Error;
use tidings::preference::{GlobalPreferenceUpdate, PreferencesQuery, WorkflowPreferenceUpdate};
use tidings::workflow::{WorkflowCreate, WorkflowUpdate};

use super::{no, say, say_for, say_globally, yes};
use crate::world::{World, id, in_app, on_both, parsed, unreadable, wire, with, workflow_of};

#[test]
fn conditions_are_shown_as_they_were_said() {
    on_both(|world| {
        world.bare_subscriber("ada");
        for name in ["hi", "other"] {
            world.in_app_workflow(name);
        }
        let rule = json!({ "and": [{ "<": [{ "var": "payload.price" }, 10] }, true] });

        let updated = say(
            &world,
            json!({
                "workflowId": "hi", "channels": { "email": false }, "condition": rule,
            }),
        );
        let general = say_globally(&world, json!({ "condition": no() }));

        assert_eq!(wire(&updated)["condition"], rule);
        assert_eq!((&wire(&general)["condition"], general.enabled), (&no(), true));
        let shown = shown(&world, json!([]));
        assert_eq!(shown["global"]["condition"], no());
        assert_eq!(shown["workflows"][0]["condition"], rule);
        // What is said about all is not shown as said about one.
        assert_eq!(shown["workflows"][1].get("condition"), None);
        // A condition is taken to hold where there is no event to ask about.
        let channels = |at: &str| shown.pointer(at).unwrap().clone();
        let on = json!({ "email": true, "sms": true, "in_app": true, "chat": true, "push": true });
        assert_eq!(channels("/global/channels"), on);
        assert_eq!(channels("/workflows/1/channels"), on);
        assert_eq!(channels("/workflows/0/channels"), with(on, json!({ "email": false })));
        // And it is the layer that decides.
        let layer = |at: usize, channel: usize| {
            shown.pointer(&format!("/workflows/{at}/overrides/{channel}/layer")).unwrap().clone()
        };
        assert_eq!(
            (layer(0, 0), layer(1, 0)),
            (json!("subscriber_workflow"), json!("subscriber_global"),)
        );
    });
}

#[test]
fn a_condition_stays_until_it_is_replaced_or_cleared() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let word = |fields: Value| with(json!({ "workflowId": "hi", "channels": {} }), fields);
        let specific = |fields: Value| wire(say(&world, word(fields))).get("condition").cloned();
        let general = |fields: Value| wire(say_globally(&world, fields)).get("condition").cloned();
        let says: [&dyn Fn(Value) -> Option<Value>; 2] = [&specific, &general];

        for (at, say) in says.into_iter().enumerate() {
            let shown = || {
                let shown = shown(&world, json!([]));
                let place = ["/workflows/0/condition", "/global/condition"][at];
                shown.pointer(place).cloned()
            };
            assert_eq!(say(json!({ "condition": yes() })), Some(yes()));
            world.tick();
            // The same again changes nothing, and neither does a word about something else.
            world.unchanged(|| say(json!({ "condition": yes() })));
            world.unchanged(|| say(json!({})));
            assert_eq!(say(json!({ "channels": { "sms": true } })), Some(yes()));
            assert_eq!(shown(), Some(yes()));
            assert_eq!(say(json!({ "condition": no() })), Some(no()));
            assert_eq!(shown(), Some(no()));
            assert_eq!(say(json!({ "condition": null })), None);
            assert_eq!(shown(), None);
            world.unchanged(|| say(json!({ "condition": null })));
        }
    });
}

#[test]
fn a_condition_is_shown_for_its_contexts_alone() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let word = |rule: Value| json!({ "workflowId": "hi", "channels": {}, "condition": rule });
        say_for(&world, word(no()), json!({ "tenant": "acme" }));
        say_globally(&world, json!({ "condition": yes(), "context": { "app": "shop" } }));

        for (keys, global, specific) in [
            (json!([]), None, None),
            (json!(["tenant:acme"]), None, Some(no())),
            (json!(["app:shop"]), Some(yes()), None),
            (json!(["app:shop", "tenant:acme"]), None, None),
        ] {
            let shown = shown(&world, keys.clone());
            assert_eq!(shown["global"].get("condition").cloned(), global, "{keys}");
            assert_eq!(shown["workflows"][0].get("condition").cloned(), specific, "{keys}");
        }
    });
}

#[test]
fn the_conditions_of_a_workflow_are_kept_with_it() {
    on_both(|world| {
        let ruled = json!({ "preferenceSettings": { "email": false, "condition": yes() } });
        let created = world.workflow(with(workflow_of("hi", &[in_app()]), ruled));
        let defined = json!({ "email": false, "condition": yes() });
        assert_eq!(wire(&created)["preferenceSettings"], defined);

        let update = |fields: Value| {
            let update = parsed(json!({ "preferences": fields }));
            wire(world.env.workflows().update("hi", &update).unwrap())
        };
        let operator = json!({ "condition": no() });
        let updated = update(operator.clone());
        assert_eq!(updated["preferences"], operator);
        assert_eq!(updated["preferenceSettings"], defined);
        assert_eq!(wire(world.env.workflows().get("hi").unwrap()), updated);
        assert_eq!(update(Value::Null).get("preferences"), None);
    });
}

/// One row per rule: what is said about it wherever it is read.
#[test]
fn a_bad_rule_is_refused_with_the_way_to_it() {
    let deep = (0..64).fold(json!(1), |inner, _| json!({ "!": inner }));
    let rows = [
        (json!({ "equals": [1, 2] }), "`condition` has no operator `equals`"),
        (json!({ "and": [true, { "log": 1 }] }), "`condition.and[1]` has no operator `log`"),
        (
            json!({ "if": [true, { "!": [{ "x": 1 }] }] }),
            "`condition.if[1].![0]` has no operator `x`",
        ),
        (json!({}), "`condition` must be a JSON object with one operator"),
        (
            json!({ "==": [1, 1], "!=": [1, 2] }),
            "`condition` must be a JSON object with one operator",
        ),
        (json!([]), "`condition` must be a JSON object with one operator"),
        (json!("true"), "`condition` must be a JSON object with one operator"),
        (json!(true), "`condition` must be a JSON object with one operator"),
        (json!({ "!": deep }), "`condition` must be nested at most 64 levels deep"),
        (json!({ "and": vec![1; 4096] }), "`condition` must have at most 4096 items"),
    ];
    for (rule, text) in rows {
        let ruled = json!({ "condition": rule });
        let word = with(json!({ "workflowId": "hi", "channels": {} }), ruled.clone());
        assert_eq!(unreadable::<WorkflowPreferenceUpdate>(word), text);
        assert_eq!(unreadable::<GlobalPreferenceUpdate>(ruled.clone()), text);
        let create = with(workflow_of("hi", &[]), json!({ "preferenceSettings": ruled }));
        assert_eq!(unreadable::<WorkflowCreate>(create), text);
        let update = json!({ "preferences": ruled });
        assert_eq!(unreadable::<WorkflowUpdate>(update), text);
    }
    let error = unreadable::<WorkflowPreferenceUpdate>(json!({
        "workflowId": "hi", "channels": {}, "condition": { "<": [1] },
    }));
    assert!(error.starts_with("`condition.<` must have "), "{error}");
    // It may be as deep as it says.
    let deepest = (0..64).fold(json!(1), |inner, _| json!({ "!": inner }));
    parsed::<GlobalPreferenceUpdate>(json!({ "condition": deepest }));
}

// What is read for those contexts.
fn shown(world: &World, keys: Value) -> Value {
    let query: PreferencesQuery = parsed(Value::from_iter([("contextKeys", keys)]));
    wire(world.env.preferences(id("ada")).unwrap().get(&query).unwrap())
}

#[test]
fn a_condition_names_what_its_data_has() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let rule = json!({ "==": [{ "var": "subscriber.emial" }, "x"] });
        let fault = "condition.==[0].var` has no variable `subscriber.emial`; did you mean \
                     `subscriber.email`?";
        let refused = |error: Error, place: &str| {
            assert_eq!(error.to_string(), format!("`{place}{fault}"));
        };

        let preferences = world.env.preferences("ada").unwrap();
        let word = json!({ "workflowId": "hi", "channels": {}, "condition": rule });
        let update = parsed(json!({ "preferences": [word] }));
        refused(preferences.update_bulk(&update).unwrap_err(), "preferences[0].");
        let update: GlobalPreferenceUpdate = parsed(json!({ "channels": {}, "condition": rule }));
        refused(preferences.update_global(&update).unwrap_err(), "");

        let word = json!({ "workflowId": "hi", "condition": rule });
        let subscribe = parsed(json!({ "subscriptions": ["ada"], "preferences": [word] }));
        refused(world.env.topics().subscribe("t", &subscribe).unwrap_err(), "preferences[0].");

        let fields = json!({ "preferenceSettings": { "condition": rule } });
        let create: WorkflowCreate = parsed(with(workflow_of("new", &[in_app()]), fields.clone()));
        refused(world.env.workflows().create(&create).unwrap_err(), "preferenceSettings.");
        let update: WorkflowUpdate = parsed(fields);
        refused(world.env.workflows().update("hi", &update).unwrap_err(), "preferenceSettings.");
        let update: WorkflowUpdate = parsed(json!({ "preferences": { "condition": rule } }));
        refused(world.env.workflows().update("hi", &update).unwrap_err(), "preferences.");
    });
}

#[test]
fn a_step_filter_names_a_field_of_a_subscriber() {
    on_both(|world| {
        for (field, problem) in [
            ("emial", "has no variable `subscriber.emial`; did you mean `subscriber.email`?"),
            ("", "must not be empty"),
        ] {
            let part =
                json!({ "field": field, "value": "x", "operator": "EQUAL", "on": "subscriber" });
            let filter = json!({ "type": "GROUP", "value": "AND", "children": [part] });
            let step = with(in_app(), json!({ "filters": [filter] }));
            let refused = world.env.workflows().create(&parsed(workflow_of("new", &[step])));
            assert_eq!(
                refused.unwrap_err().to_string(),
                format!("`steps[0].filters[0].children[0].field` {problem}")
            );
        }
    });
}
