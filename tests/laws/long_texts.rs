//! No error repeats more than a part of a long text of its caller.

use serde_json::{Map, Value, json};
use testkit::requests::{self, Answer, Refusal};
use testkit::seeded;

const LONG: usize = 1024 * 1024;

/// Longest text of an error, in bytes.
const TEXT: usize = 4 * 1024;

/// Every text of every request in turn, and a member of every object.
#[test]
fn no_refusal_repeats_a_megabyte() {
    let mut world = seeded::copy();
    for sound in requests::sound() {
        let mut places = Vec::new();
        collect(sound, &mut Vec::new(), &mut places);
        for place in places {
            for change in [long_text, long_member, long_list] {
                let mut request = sound.clone();
                if !change(at(&mut request, &place)) {
                    continue;
                }
                let answer = requests::call(&world.engine, &world.env, &request);
                if answer.is_ok() {
                    world = seeded::copy();
                }
                check(&answer, &format!("{sound} at {place:?}"));
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Part {
    Index(usize),
    Name(String),
}

fn collect(value: &Value, place: &mut Vec<Part>, places: &mut Vec<Vec<Part>>) {
    places.push(place.clone());
    let inside: Vec<_> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| (Part::Index(i), v)).collect(),
        Value::Object(map) => map.iter().map(|(n, v)| (Part::Name(n.clone()), v)).collect(),
        _ => Vec::new(),
    };
    for (part, value) in inside {
        place.push(part);
        collect(value, place, places);
        place.pop();
    }
}

fn at<'v>(value: &'v mut Value, place: &[Part]) -> &'v mut Value {
    place.iter().fold(value, |value, part| match part {
        Part::Index(index) => &mut value[*index],
        Part::Name(name) => &mut value[name.as_str()],
    })
}

fn long_text(value: &mut Value) -> bool {
    if !value.is_string() {
        return false;
    }
    *value = json!("x".repeat(LONG));
    true
}

fn long_member(value: &mut Value) -> bool {
    value.as_object_mut().is_some_and(|map: &mut Map<_, _>| {
        map.insert("x".repeat(LONG), json!({ "y": 1 }));
        true
    })
}

// A thousand long names.
fn long_list(value: &mut Value) -> bool {
    let Some(items) = value.as_array_mut() else { return false };
    let [Value::String(_), ..] = items.as_slice() else { return false };
    *items = (0..1_000).map(|n| json!(format!("{n}{}", "x".repeat(LONG / 1_000)))).collect();
    true
}

fn check(answer: &Answer, request: &str) {
    let (text, debug) = match answer {
        // The text of an unreadable request is that of `serde_json`.
        Ok(_) | Err(Refusal::Unreadable(_)) => return,
        Err(Refusal::By(error)) => (error.to_string(), format!("{error:?}")),
    };
    let start: String = text.chars().take(200).collect();
    assert!(text.len() <= TEXT, "{request}: {} bytes: {start}", text.len());
    assert!(debug.len() <= 64 * TEXT, "{request}: {} bytes of debug text: {start}", debug.len());
}
