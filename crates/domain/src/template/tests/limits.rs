//! No template ends the process. The scan refuses a template that is too deep or too long for the
//! stack, and a rendering has a budget.

use std::thread;

use serde_json::json;

use super::super::*;

/// A quarter of the smallest stack for rendering.
const STACK: usize = 512 * 1024 / 4;

type Chain = fn(usize) -> String;

/// Templates whose depth or length grows with `n`.
const CHAINS: &[(&str, Chain)] = &[
    ("sum", |n| print(&format!("1{}", "+1".repeat(n)))),
    ("difference", |n| print(&format!("1{}", "-1".repeat(n)))),
    ("mixed sum", |n| print(&format!("1{}", "-1+1".repeat(n)))),
    ("product", |n| print(&format!("1{}", "*1".repeat(n)))),
    ("quotient", |n| print(&format!("1{}", "/1".repeat(n)))),
    ("power", |n| print(&format!("1{}", "**1".repeat(n)))),
    ("concatenation", |n| print(&format!("1{}", "~1".repeat(n)))),
    ("all arithmetic", |n| print(&format!("1{}", "~1*1+1".repeat(n)))),
    ("attributes", |n| print(&format!("payload{}", ".a".repeat(n)))),
    ("items", |n| print(&format!("payload{}", "[0]".repeat(n)))),
    ("places", |n| print(&format!("payload{}", ".0".repeat(n)))),
    ("slices", |n| print(&format!("payload.list{}", "[:]".repeat(n)))),
    ("calls", |n| print(&format!("range{}", "()".repeat(n)))),
    ("filters", |n| print(&format!("payload.a{}", "|d".repeat(n)))),
    ("list filters", |n| print(&format!("payload.list{}", "|batch(2)".repeat(n)))),
    ("reversals", |n| print(&format!("payload.list{}", "|reverse".repeat(n)))),
    ("tests", |n| print(&format!("1{}", " is odd".repeat(n)))),
    ("negated tests", |n| print(&format!("1{}", " is not odd".repeat(n)))),
    ("conjunction", |n| print(&format!("1{}", " and 1".repeat(n)))),
    ("disjunction", |n| print(&format!("0{}", " or 0".repeat(n)))),
    ("negation", |n| print(&format!("{}1", "not ".repeat(n)))),
    ("minus", |n| print(&format!("{}1", "-".repeat(n)))),
    ("spaced minus", |n| print(&format!("{}1", "- ".repeat(n)))),
    ("comparison", |n| print(&format!("1{}", " < 1".repeat(n)))),
    ("membership", |n| print(&format!("1{}", " in [1]".repeat(n)))),
    ("no membership", |n| print(&format!("1{}", " not in [1]".repeat(n)))),
    ("choice", |n| print(&format!("1{}", " if 1 else 1".repeat(n)))),
    ("choice without else", |n| print(&format!("1{}", " if 1".repeat(n)))),
    ("brackets", |n| print(&format!("{}1{}", "(".repeat(n), ")".repeat(n)))),
    ("negated brackets", |n| print(&format!("{}1{}", "-(".repeat(n), ")".repeat(n)))),
    ("lists", |n| print(&format!("{}1{}", "[".repeat(n), "]".repeat(n)))),
    ("tuples", |n| print(&format!("{}1{}", "(".repeat(n), ",)".repeat(n)))),
    ("maps", |n| print(&format!("{}1{}", "{1:".repeat(n), "}".repeat(n)))),
    ("keys", |n| print(&format!("{}1{}", "{".repeat(n), ":1}".repeat(n)))),
    ("subscripts", |n| print(&format!("{}1{}", "payload[".repeat(n), "]".repeat(n)))),
    ("arguments", |n| print(&format!("{}1{}", "1|d(".repeat(n), ")".repeat(n)))),
    ("named arguments", |n| print(&format!("{}1{}", "[]|join(d=".repeat(n), ")".repeat(n)))),
    ("called arguments", |n| print(&format!("{}1{}", "range(".repeat(n), ")".repeat(n)))),
    ("tested arguments", |n| print(&format!("{}1{}", "1 is eq(".repeat(n), ")".repeat(n)))),
    ("sums of brackets", |n| print(&format!("{}1{}", "1+(".repeat(n), ")".repeat(n)))),
    ("compared brackets", |n| print(&format!("{}1{}", "1==(".repeat(n), ")".repeat(n)))),
    ("brackets compared", |n| print(&format!("{}1{}", "(".repeat(n), "==1)".repeat(n)))),
    ("brackets added", |n| print(&format!("{}1{}", "(".repeat(n), "+1)".repeat(n)))),
    ("computed items", |n| print(&format!("payload{}", "[1+1]".repeat(n)))),
    ("everything", |n| print(&format!("{}1{}", "not -1~-[1+(".repeat(n), ")]".repeat(n)))),
    ("ifs", |n| format!("{}x{}", "{% if 1 %}".repeat(n), "{% endif %}".repeat(n))),
    ("elses", |n| {
        let (start, end) = ("{% if 0 %}{% else %}".repeat(n), "{% endif %}".repeat(n));
        format!("{start}x{end}")
    }),
    ("elifs", |n| format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(n))),
    ("loops", |n| {
        let (start, end) = ("{% for a in [1] %}".repeat(n), "{% endfor %}".repeat(n));
        format!("{start}{{{{ a }}}}{end}")
    }),
    ("withs", |n| format!("{}x{}", "{% with a = 1 %}".repeat(n), "{% endwith %}".repeat(n))),
    ("escapes", |n| {
        let (start, end) = ("{% autoescape true %}".repeat(n), "{% endautoescape %}".repeat(n));
        format!("{start}x{end}")
    }),
    ("blocks", |n| format!("{}x{}", "{% block a %}".repeat(n), "{% endblock %}".repeat(n))),
    ("filter blocks", |n| {
        format!("{}x{}", "{% filter upper %}".repeat(n), "{% endfilter %}".repeat(n))
    }),
    ("macros", |n| format!("{}x{}", "{% macro a() %}".repeat(n), "{% endmacro %}".repeat(n))),
    ("assigned lists", |n| format!("{}{{{{ a }}}}", "{% set a = [a] %}".repeat(n))),
    ("assigned maps", |n| format!("{}{{{{ a }}}}", "{% set a = {1: a} %}".repeat(n))),
    ("assigned keys", |n| format!("{}{{{{ a }}}}", "{% set a = {a: 1} %}".repeat(n))),
    ("assigned slices", |n| {
        format!("{{% set a = [1] %}}{}{{{{ a }}}}", "{% set a = a[:] %}".repeat(n))
    }),
    ("maps of maps", |n| print(&format!("payload.deep|map({}'upper')", "'map',".repeat(n)))),
];

/// Statements around the deepest expressions.
const AROUND: &[(&str, &str)] = &[
    ("{% if 1 %}", "{% endif %}"),
    ("{% for a in [1] %}", "{% endfor %}"),
    ("{% with a = 1 %}", "{% endwith %}"),
    ("{% if 0 %}{% else %}", "{% endif %}"),
];

fn print(expression: &str) -> String {
    format!("{{{{ {expression} }}}}")
}

fn variables() -> Variables {
    let deep = (0..60).fold(json!("x"), |inner, _| json!([inner]));
    let payload =
        json!({ "a": "text", "list": [1, 2, 3], "deep": deep, "big": "x".repeat(100_000) });
    Variables::new(json!({ "payload": payload }))
}

// Runs every operation of a template on a small stack. Returns `true` if the template is accepted.
fn survives(template: String) -> bool {
    // Making variables recurses along the values, whatever the template does.
    let variables = variables();
    let work = move || {
        let accepted = Template::new(template.clone()).is_ok();
        let stored = Template::unchecked(template);
        for format in [Format::Plain, Format::Html] {
            let _ = stored.render(format, &variables);
            let watched = variables.clone().missing(MissingVariables::Marker);
            let _ = stored.render(format, &watched);
        }
        let _ = stored.variables();
        (accepted, variables)
    };
    thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap().0
}

// Returns the longest chain that the scan accepts.
fn longest(chain: Chain) -> usize {
    (1..200).take_while(|n| Scan::of(&chain(*n)).is_ok()).last().unwrap_or(0)
}

#[test]
fn chains_are_bounded_and_the_longest_are_rendered_on_a_small_stack() {
    for (name, chain) in CHAINS {
        let longest = longest(*chain);
        // These grow by statements, which the budget bounds.
        assert!(longest < 199 || name.starts_with("assigned") || *name == "maps of maps", "{name}");
        for n in [longest, longest + 1, 90, 300, 5000] {
            survives(chain(n));
        }
    }
}

#[test]
fn the_longest_chains_in_the_deepest_statements_are_rendered_on_a_small_stack() {
    let chains = CHAINS.iter().map(|(_, chain)| chain);
    for chain in chains.filter(|chain| chain(1).starts_with("{{")) {
        for (start, end) in AROUND {
            for n in (1..=Template::MAX_BLOCKS).rev().step_by(3) {
                let around = |inside: &str| format!("{}{inside}{}", start.repeat(n), end.repeat(n));
                let inside = (1..200).take_while(|m| Scan::of(&around(&chain(*m))).is_ok()).last();
                let Some(inside) = inside else { continue };
                survives(around(&chain(inside)));
            }
        }
    }
}

#[test]
fn an_expression_and_its_statements_share_a_depth() {
    let nested = |blocks: usize, brackets: usize| {
        let (open, close) = ("(".repeat(brackets), ")".repeat(brackets));
        let (start, end) = ("{% if 1 %}".repeat(blocks), "{% endif %}".repeat(blocks));
        Template::new(format!("{start}{{{{ {open}1{close} }}}}{end}"))
    };
    for (blocks, brackets) in [(0, 5), (2, 4), (3, 3), (5, 2), (7, 1), (9, 0)] {
        assert!(nested(blocks, brackets).is_ok(), "{blocks} and {brackets}");
        assert!(nested(blocks, brackets + 1).is_err(), "{blocks} and {brackets}");
        assert!(nested(blocks + 2, brackets).is_err(), "{blocks} and {brackets}");
    }
}

/// The engine counts the columns of a line in 16 bits.
#[test]
fn a_number_that_is_too_large_is_refused_wherever_it_is() {
    for before in [0, 65_535, 70_000] {
        for number in ["9".repeat(40), "1".repeat(65_535)] {
            let text = format!("{}{{{{ {number} }}}}", "x".repeat(before));
            let error = Template::new(text).unwrap_err().to_string();
            assert!(error.contains("a number is too large"), "{error}");
        }
        let text = format!("{}{{{{ {} }}}}", "x".repeat(before), u128::MAX);
        assert!(Template::new(text).is_ok());
    }
}

#[test]
fn a_rendering_is_bounded() {
    let render = |template: &str, payload: serde_json::Value| {
        let variables = Variables::new(json!({ "payload": payload }));
        Template::unchecked(template.to_owned()).rendered(Format::Plain, &variables)
    };
    let nested = |levels| (0..levels).fold(json!([]), |inner, _| json!([inner]));
    let deepest = nested(Template::MAX_VALUE_DEPTH - 1);
    assert_eq!(render("{{ payload | list }}", deepest.clone()), Ok(deepest.to_string()));
    let error = render("{{ payload | list }}", nested(Template::MAX_VALUE_DEPTH)).unwrap_err();
    assert!(error.to_string().contains("more than 72 levels deep"), "{error}");

    let counted = |numbers| render(&format!("{{{{ range({numbers}) | length }}}}"), json!(0));
    assert_eq!(counted(Template::MAX_RANGE), Ok(Template::MAX_RANGE.to_string()));
    let error = counted(Template::MAX_RANGE + 1).unwrap_err();
    assert!(error.to_string().contains("more than 100000 numbers"), "{error}");

    // A number of a loop takes some steps.
    let looped =
        |numbers| render(&format!("{{% for a in range({numbers}) %}}{{% endfor %}}"), json!(0));
    assert_eq!(looped(Template::MAX_WORK / 10), Ok(String::new()));
    assert!(looped(Template::MAX_WORK).unwrap_err().to_string().contains("fuel"));

    // A value has a weight beside that of its text.
    let joined =
        |half: usize| render("{% if payload ~ payload %}{% endif %}", json!("x".repeat(half)));
    assert_eq!(joined(Template::MAX_WEIGHT / 4), Ok(String::new()));
    let error = joined(Template::MAX_WEIGHT).unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
}
