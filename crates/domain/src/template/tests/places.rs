//! Slices and ranges are those of Python, for every bound.

use serde_json::json;

use super::super::places::Bounds;
use super::super::*;

const EDGES: [i64; 13] = [i64::MIN, i64::MIN + 1, -100, -4, -3, -2, -1, 0, 1, 2, 3, 100, i64::MAX];

// The places that a loop from `start` by `step` visits before it leaves the list.
fn naive(start: Option<i64>, end: Option<i64>, step: i64, len: i128) -> Vec<usize> {
    let from_end = |bound: i64| i128::from(bound) + if bound < 0 { len } else { 0 };
    let (start, end) = (start.map(from_end), end.map(from_end));
    let mut places = Vec::new();
    let mut visit = |place: i128| {
        let skipped = if step > 0 {
            start.is_some_and(|start| place < start)
        } else {
            start.is_some_and(|start| place > start)
        };
        let ended = if step > 0 {
            end.is_some_and(|end| place >= end)
        } else {
            end.is_some_and(|end| place <= end)
        };
        if !skipped && !ended {
            places.push(usize::try_from(place).unwrap());
        }
    };
    if step > 0 {
        (0..len).for_each(&mut visit);
    } else {
        (0..len).rev().for_each(&mut visit);
    }
    let stride = usize::try_from(step.unsigned_abs()).unwrap();
    places.into_iter().step_by(stride).collect()
}

#[test]
fn a_slice_visits_the_places_between_its_bounds() {
    let bounds: Vec<Option<i64>> = EDGES.iter().copied().map(Some).chain([None]).collect();
    for len in 0_usize..5 {
        for (start, end) in bounds.iter().flat_map(|a| bounds.iter().map(move |b| (*a, *b))) {
            for step in EDGES.into_iter().filter(|step| *step != 0) {
                let expected = naive(start, end, step, len.try_into().unwrap());
                let bounds = Bounds { start, end, step };
                let places: Vec<usize> = bounds.places(len).collect();
                assert_eq!(places, expected, "{bounds:?} of {len}");
            }
        }
    }
}

fn says(expression: &str) -> Result<String, RenderError> {
    let payload = json!({ "text": "h\u{e9}llo", "list": [1, 2, 3], "min": i64::MIN, "none": null });
    let variables = Variables::new(json!({ "payload": payload }));
    let template = Template::new(format!("{{{{ {expression} }}}}")).unwrap();
    template.rendered(Format::Plain, &variables)
}

#[test]
fn slices_are_those_of_python() {
    for (expression, expected) in [
        ("payload.text[1:3]", "\u{e9}l"),
        ("payload.text[:]", "h\u{e9}llo"),
        ("payload.text[::-1]", "oll\u{e9}h"),
        ("payload.text[3:0:-1]", "ll\u{e9}"),
        ("payload.text[-2:]", "lo"),
        ("payload.text[:payload.min]", ""),
        ("payload.text[::payload.min]", "o"),
        ("payload.text[5::-2]", "olh"),
        ("payload.text[9:1:-1]", "oll"),
        ("payload.text[2:1]", ""),
        ("payload.text[none:2:none]", "h\u{e9}"),
        ("payload.list[1:][0] ~ payload.list[:1]", "2[1]"),
        ("payload.list[1 + 1 - 1 :: 2 - 1]", "[2, 3]"),
        ("payload.list[payload.list[:1][0]:]", "[2, 3]"),
        ("(payload.list)[:2] | join('-')", "1-2"),
        ("[1, 2, 3][::-1] ~ range(9)[2:8:3]", "[3, 2, 1][2, 5]"),
        ("payload.absent[1:] ~ payload.none[:1]", "[][]"),
        ("range(3, 0, -2) | list", "[3, 1]"),
        ("range(payload.min, payload.min + 2) | length", "2"),
        ("range(1, payload.min) | length", "0"),
    ] {
        assert_eq!(says(expression).as_deref(), Ok(expected), "{expression}");
    }
    for (expression, problem) in [
        ("payload.text[::0]", "a slice has a step of 0"),
        ("payload.text['a':]", "the bounds of a slice are whole numbers"),
        ("payload.text[payload.absent:]", "the bounds of a slice are whole numbers"),
        ("payload[1:]", "a value of type map has no slices"),
        ("1[1:]", "a value of type number has no slices"),
        ("range(9, payload.min, -1)", "a range has more than 100000 numbers"),
        ("range(1, 2, 0)", "a range has a step of 0"),
    ] {
        let error = says(expression).expect_err(expression).to_string();
        assert!(error.contains(problem), "{expression}: {error}");
    }
}

#[test]
fn a_slice_costs_what_it_reads() {
    let text = "x".repeat(1_000_000);
    let variables = Variables::new(json!({ "payload": { "text": text, "list": vec![1; 9] } }));
    let looped = |body: &str| {
        let template = format!("{{% for i in range(60) %}}{body}{{% endfor %}}");
        Template::new(template).unwrap().rendered(Format::Plain, &variables)
    };
    let error = looped("{{ payload.text[999999:] }}").unwrap_err().to_string();
    assert!(error.contains("makes or reads are too large"), "{error}");
    assert_eq!(looped("{{ payload.list[:1] }}").map(|text| text.len()), Ok(180));
}
