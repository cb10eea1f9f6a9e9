use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::sample;
use crate::workflow::Workflow;

// Step as in `e`, `e:name`, `e#uuid` or `e:name#uuid`. `@2` is the third stored step.
fn step(text: &str, before: &[WorkflowStep]) -> Value {
    let (text, uuid) = text.split_once('#').map_or((text, None), |(text, uuid)| (text, Some(uuid)));
    let (text, name) = text.split_once(':').map_or((text, None), |(text, name)| (text, Some(name)));
    let (kind, id) = text.split_once('@').map_or((text, None), |(kind, id)| (kind, Some(id)));
    let mut step = match kind {
        "i" => json!({ "type": "in_app", "template": { "body": "" } }),
        "e" => json!({ "type": "email", "template": { "subject": "", "body": "" } }),
        kind => json!({ "type": "sms", "template": { "body": kind } }),
    };
    for (field, value) in [("name", name), ("uuid", uuid)] {
        if let Some(value) = value {
            step[field] = json!(value);
        }
    }
    if let Some(id) = id {
        step["_id"] = json!(before[id.parse::<usize>().unwrap()].id);
    }
    step
}

fn steps(text: &str, before: &[WorkflowStep]) -> Value {
    text.split_whitespace().map(|text| step(text, before)).collect()
}

// Workflow as it may be stored: two steps may have the same name, or the same `uuid`.
fn workflow(text: &str) -> Workflow {
    let mut steps = steps(text, &[]);
    let mut taken = |field: &str| -> Vec<Option<String>> {
        let steps = steps.as_array_mut().unwrap().iter_mut();
        let values = steps.map(|step| step.as_object_mut().unwrap().remove(field));
        values.map(|value| Some(value?.as_str().unwrap().to_owned())).collect()
    };
    let (names, uuids) = (taken("name"), taken("uuid"));
    let mut workflow = sample::workflow(steps);
    for (step, (name, uuid)) in workflow.steps.iter_mut().zip(names.into_iter().zip(uuids)) {
        (step.definition.name, step.definition.uuid) = (name, uuid);
    }
    workflow
}

// Indexes of the steps of `before` that `after` keeps, and `-` for a new step.
fn matched(before: &str, after: &str) -> String {
    let before = workflow(before).steps;
    let after: Vec<Step> = serde_json::from_value(steps(after, &before)).unwrap();
    let place =
        |old: &WorkflowStep| before.iter().position(|step| step.id == old.id).unwrap().to_string();
    let kept = kept(&before, &after);
    kept.iter().map(|old| old.map_or("-".into(), place)).collect::<Vec<_>>().join(" ")
}

/// One row per rule: the stored steps, the new steps, and the kept ones.
#[test]
fn a_step_is_kept_by_its_id_its_uuid_its_name_or_its_place() {
    for (before, after, expected) in [
        // By id, before anything else.
        ("i e:a", "e@1:b i", "1 -"),
        ("i:a i:b", "i@1:a i@0:b", "1 0"),
        // By uuid, before the name.
        ("e#1 e#2", "e#2 e#1", "1 0"),
        ("e:a#1 e:b#2", "e:b#1 e:a#2", "0 1"),
        ("i#1 e#2", "s e#2", "- 1"),
        // By name.
        ("i:a e:b s:c", "s:c i:a e:b", "2 0 1"),
        ("i:a e:b", "e:new i:a e:b s", "- 0 1 -"),
        ("i:a e:b", "e:b", "1"),
        // A uuid that is not known does not hide a name.
        ("e:a#1 i", "i e:a#9", "- 0"),
        // A step of another type is a new one.
        ("i:a e:b", "s:a e:b", "- 1"),
        ("i#1", "e#1", "-"),
        // Of two with one name, the first keeps the first.
        ("e:a e:a i", "i e:a e:a e:a", "- 0 1 -"),
        // By position, if the list of types is unchanged.
        ("i e s", "i e s", "0 1 2"),
        ("i e:old", "i e:new", "0 1"),
        ("e:a e:b", "e:b e:c", "1 -"),
        ("e:a e:b", "e:c e:a", "- 0"),
        ("i e", "i e s", "- - -"),
        ("i e", "e i", "- -"),
        ("i e", "i", "-"),
        // A caller that sends an id sends each of them.
        ("i i i", "i@2 i i@0", "2 - 0"),
        // An id is kept once.
        ("i i", "i@0 i@0", "0 -"),
        ("", "i", "-"),
        ("i", "", ""),
    ] {
        assert_eq!(matched(before, after), expected, "{before} -> {after}");
    }
}

fn some_steps() -> impl Strategy<Value = String> {
    prop::collection::vec("[ies](:[ab])?(#[12])?", 0..7).prop_map(|steps| steps.join(" "))
}

fn in_order(steps: &str) -> String {
    let places = 0..steps.split_whitespace().count();
    places.map(|place| place.to_string()).collect::<Vec<_>>().join(" ")
}

proptest! {
    #[test]
    fn the_same_steps_are_kept(steps in some_steps()) {
        prop_assert_eq!(matched(&steps, &steps), in_order(&steps));
    }

    #[test]
    fn a_step_is_kept_once_and_with_its_type(before in some_steps(), after in some_steps()) {
        let kept = matched(&before, &after);
        let kind = |steps: &str, place: usize| {
            steps.split_whitespace().nth(place).unwrap().chars().next().unwrap()
        };
        let mut known = Vec::new();
        for (place, old) in kept.split_whitespace().enumerate().filter(|(_, old)| *old != "-") {
            prop_assert_eq!(kind(&before, old.parse().unwrap()), kind(&after, place));
            prop_assert!(!known.contains(&old), "{}", kept);
            known.push(old);
        }
    }

    #[test]
    fn named_steps_are_kept_in_any_order(
        order in Just(vec!["i:a", "e:b", "s:c", "e#d", "i:e#e"]).prop_shuffle(),
        left_out in 0_usize..3,
    ) {
        let before = ["i:a", "e:b", "s:c", "e#d", "i:e#e"];
        let after = &order[left_out..];
        let place = |step| before.iter().position(|old| *old == step).unwrap().to_string();
        let expected = after.iter().map(|step| place(*step)).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(matched(&before.join(" "), &after.join(" ")), expected);
    }
}
