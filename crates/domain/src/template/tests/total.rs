//! No value makes the engine panic, and an operation means the same for every value.

use serde_json::json;

use super::super::*;

fn render(template: &str, payload: serde_json::Value) -> Result<String, RenderError> {
    Template::new(template)
        .unwrap()
        .render(Format::Plain, &Variables::new(json!({ "payload": payload })))
}

#[test]
fn a_panic_of_the_engine_is_an_error() {
    let panicked = guarded(|| std::panic::resume_unwind(Box::new("stopped")));
    assert_eq!(panicked, Err(RenderError::Failed("the template engine panicked".into())));
    assert_eq!(guarded(|| Ok("text".into())), Ok("text".into()));
}

#[test]
fn zero_divides_nothing() {
    let template = "{{ payload.n is divisibleby payload.k }}";
    for (n, k, expected) in [
        (json!(4), json!(0), "False"),
        (json!(0), json!(0), "False"),
        (json!(4.0), json!(0), "False"),
        (json!(4), json!(2), "True"),
        (json!(4), json!(3), "False"),
        (json!(4.5), json!(1.5), "True"),
        (json!(i64::MIN), json!(-1), "True"),
        (json!(true), json!(1), "True"),
        (json!("4"), json!(2), "False"),
    ] {
        let said = render(template, json!({ "n": n, "k": k }));
        assert_eq!(said.as_deref(), Ok(expected), "{n} and {k}");
    }
}

#[test]
fn a_cycle_needs_values() {
    for call in ["loop.cycle()", "loop['cycle']()", "loop.changed(1)"] {
        let template = format!("{{% for i in payload.l %}}{{{{ {call} }}}}{{% endfor %}}");
        assert!(Template::new(template).is_err(), "{call}");
    }
}

#[test]
fn what_is_absent_joins_to_nothing() {
    let template = "({{ payload.a | join(', ') }})";
    assert_eq!(render(template, json!({})).as_deref(), Ok("()"));
    assert_eq!(render(template, json!({ "a": null })).as_deref(), Ok("()"));
    assert_eq!(render(template, json!({ "a": [1, 2] })).as_deref(), Ok("(1, 2)"));
    let error = render(template, json!({ "a": 1 })).unwrap_err().to_string();
    assert!(error.contains("number"), "{error}");
}

#[test]
fn sums_and_products_are_those_of_jinja() {
    let values = json!([
        true, false, 0, 1, -1, i64::MIN, i64::MAX, u64::MAX, 1.5, 0.0, 1e308, "", "ab", [], [1],
        null, {}, {"a": 1}
    ]);
    let jinja = minijinja::Environment::new();
    for (a, b) in values
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|a| values.as_array().unwrap().iter().map(move |b| (a, b)))
    {
        for operator in ["+", "*", "~"] {
            // Lists are not repeated, and a text is not repeated without bound.
            let repeats =
                operator == "*" && [a, b].iter().any(|value| value.is_array() || value.is_string());
            // `null` has no text, where Jinja has one.
            let joins_null = operator == "~" && (a.is_null() || b.is_null());
            if repeats || joins_null {
                continue;
            }
            let template = format!("{{{{ payload.a {operator} payload.b }}}}");
            let payload = json!({ "a": a, "b": b });
            let variables = Variables::new(json!({ "payload": payload }));
            let expected = jinja.render_str(&template, variables.known).ok();
            assert_eq!(render(&template, payload).ok(), expected, "{a} {operator} {b}");
        }
    }
}

#[test]
fn what_is_read_often_is_bounded_too() {
    let text = "x".repeat(1_000_000);
    let list = vec![1; 10_000];
    let payload = json!({ "t": text, "u": text, "l": list, "m": list });
    for read in [
        "payload.t is lower",
        "payload.t is startingwith payload.u",
        "payload.t is eq payload.u",
        "'zx' in payload.t",
        "'zx' not in payload.t",
        "payload.t == payload.u",
        "payload.u + '' < payload.t",
        "1 and payload.t >= payload.u or 1",
        "payload.l != payload.m",
        "2 in payload.l",
        "(payload.t == payload.u) == true",
        "payload.t | length",
        "payload.l | join",
        "[payload.l] | select('in', [payload.m])",
        "payload.t[-1]",
        "payload.t[900000]",
        "payload.t[i * 10000]",
        "range(100000)[i * 1000]",
        "range(100000) | last",
    ] {
        let template =
            format!("{{% for i in range(60) %}}{{% if {read} %}}{{% endif %}}{{% endfor %}}");
        let error = render(&template, payload.clone()).expect_err(read).to_string();
        assert!(
            error.contains("the values that it makes or reads are too large"),
            "{read}: {error}"
        );
    }
    let small = "{% for i in range(1000) %}{% if i == payload.l[i] or 'a' in 'ab' %}{% endif %}\
        {% if payload.l | length > i %}{% endif %}{% endfor %}";
    assert_eq!(render(small, payload).as_deref(), Ok(""));
}

/// A filter that took what these need would not come to an end, or end the process.
#[test]
fn no_filter_makes_much_of_a_little() {
    let text = "x".repeat(1_000_000);
    let lists = vec![vec![0; 100]; 100];
    let payload = json!({ "t": text, "u": format!("{}x", "y".repeat(500_000)), "words": vec!["word"; 15_000],
        "lists": lists, "n": 1 });
    for made in [
        "('%(t)s' * 100) | format(payload)",
        "('%(n)999d' * 10000) | format(payload)",
        "payload.t | trim(payload.u)",
        "payload.words | sum(start='')",
        "payload.words | sum(none, '')",
    ] {
        let error = render(&format!("{{{{ {made} }}}}"), payload.clone()).expect_err(made);
        assert!(error.to_string().contains("are too large"), "{made}: {error}");
    }
    for (made, expected) in [
        ("('%(t)s' * 2) | format(payload) | length", "2000000"),
        ("'%s and %s' | format(payload.t, payload.t) | length", "2000005"),
        ("'xyabyx' | trim('xy')", "ab"),
        ("payload.lists | sum(start=[]) | length", "10000"),
        ("['a', 'b'] | sum(start='')", "ab"),
        ("range(10000) | sum(start=1)", "49995001"),
    ] {
        let made = format!("{{{{ {made} }}}}");
        assert_eq!(render(&made, payload.clone()).as_deref(), Ok(expected), "{made}");
    }
}

/// The path of an attribute is walked for each item, and `sort` keeps a value for each of its keys.
#[test]
fn an_attribute_has_a_price_for_each_item() {
    let rows = vec![json!({ "a": "x".repeat(50), "b": [1] }); 3_000];
    let payload = json!({ "rows": rows, "texts": vec!["a"; 3_000], "text": "a".repeat(100_000),
        "keys": "a,".repeat(200), "path": "b.0.".repeat(50), "zeros": "0".repeat(100_000) });
    for made in [
        "payload.rows | sort(attribute=payload.keys)",
        "[payload.rows] | map('sort', attribute=payload.keys)",
        "payload.text | sort(attribute=payload.keys)",
        "payload.rows | min(attribute=payload.path)",
        "payload.rows | max(attribute=payload.path)",
        "payload.rows | unique(attribute=payload.path)",
        "payload.rows | groupby(payload.path)",
        "payload.rows | groupby(attribute=payload.path)",
        "payload.rows | selectattr(payload.path)",
        "payload.rows | rejectattr(payload.path, 'odd')",
        "payload.rows | map(attribute=payload.path)",
        "payload.rows | sum(payload.path)",
        "payload.rows | sum(attribute=payload.path)",
        "payload.rows | join(',', payload.path)",
        "payload.rows | join(',', attribute=payload.path)",
        "payload.texts | map(attribute=payload.zeros)",
    ] {
        let error = render(&format!("{{{{ {made} | length }}}}"), payload.clone()).expect_err(made);
        assert!(error.to_string().contains("are too large"), "{made}: {error}");
    }
    for (made, expected) in [
        ("payload.rows | sort(attribute='a, b.0') | length", "3000"),
        ("payload.rows | groupby('b.0') | length", "1"),
        ("payload.rows | map(attribute='a') | first | length", "50"),
        ("payload.rows | sum(attribute='b.0')", "3000"),
        ("payload.rows[:2] | join('-', 'b.0')", "1-1"),
    ] {
        let made = format!("{{{{ {made} }}}}");
        assert_eq!(render(&made, payload.clone()).as_deref(), Ok(expected), "{made}");
    }
}

/// The size of a result is bounded by what it has at most, and not by far more.
#[test]
fn ordinary_texts_are_replaced_and_joined() {
    let lines = "One line of a text, as long as most.\n".repeat(2_500);
    let list = vec!["word"; 5_000];
    let payload = json!({ "text": lines, "list": list, "big": "x".repeat(100_000), "count": 5,
        "rows": vec![json!({ "name": "a" }); 1_900], "keys": ["a__b", "c__d"] });
    let variables = Variables::new(json!({ "payload": payload }));
    for format in [Format::Plain, Format::Html] {
        for (made, expected) in [
            (r#"payload.text | replace("\n", "<br>") | length"#, lines.len() + 3 * 2_500),
            (r#"payload.text | replace("\n", "<br>" | safe) | length"#, lines.len() + 3 * 2_500),
            (r#"payload.text | replace("", "-") | length"#, lines.len() * 2 + 1),
            (r#"payload.text | replace("no", payload.big) | length"#, lines.len()),
            (r#"payload.list | join(", ") | length"#, 5_000 * 6 - 2),
            (r#"payload.list | join(d="</li>" | safe) | length"#, 5_000 * 9 - 5),
            ("[1, 2] | join(3)", 132),
            ("[1, 2] | replace([1, 2], 3)", 3),
            ("range(2000) | join | length", 6_890),
            ("range(2000) | join(none) | length", 6_890),
            (r#"payload.rows | join(attribute="name") | length"#, 1_900),
            (r#"payload.keys | map("replace", "__", " ") | join("|") | length"#, 7),
            (r#"[payload.none] | map("default", "map") | join | length"#, 3),
            (r#"('<b>a</b>' * 70) | replace("%n%", payload.count) | length"#, 560),
            (r#"("'" * 30000) | replace("x", "yyyy") | length"#, 30_000),
            (r#"(payload.big * 7) | replace("y", "z") | length"#, 700_000),
            (r#"(payload.big * 7) | safe | replace("y", "z") | length"#, 700_000),
        ] {
            let template = Template::new(format!("{{{{ {made} }}}}")).unwrap();
            let rendered = template.render(format, &variables);
            assert_eq!(rendered, Ok(expected.to_string()), "{made}");
        }
        for made in [
            r#"payload.text | replace("t", payload.big)"#,
            r#"payload.text | replace("", payload.big)"#,
            r#"payload.list | replace("w", payload.big)"#,
            "payload.list | join(payload.big)",
            "payload.list | join(d=payload.big)",
            "payload.text | join(payload.big)",
        ] {
            let template = Template::new(format!("{{{{ {made} | length }}}}")).unwrap();
            let error = template.render(format, &variables).expect_err(made);
            assert!(error.to_string().contains("are too large"), "{made}: {error}");
        }
    }
    // Beside markup, each `;` of an escaped character is replaced.
    let escaped = r#"{{ ("'" * 1000) | replace(";", payload.big | safe) | length }}"#;
    let rendered = |format| Template::new(escaped).unwrap().render(format, &variables);
    assert_eq!(rendered(Format::Plain).as_deref(), Ok("1000"));
    assert!(rendered(Format::Html).unwrap_err().to_string().contains("are too large"));
}

#[test]
fn the_engines_own_tests_are_out_of_reach() {
    for call in ["select(payload.t, 'a')", "reject(payload.t, 'a')", "selectattr('a', payload.t)"] {
        let template = format!("{{{{ ['a'] | {call} }}}}");
        let error = render(&template, json!({ "t": "__in" })).unwrap_err().to_string();
        assert!(error.contains("such a test"), "{call}: {error}");
    }
}
