//! Mistakes are found when a template is made.

use super::super::*;

#[track_caller]
fn refused(template: &str, problem: &str) {
    let error = Template::new(template).unwrap_err();
    assert_eq!(error.to_string(), format!("`template` is not a valid template: {problem}"));
}

#[test]
fn unknown_names_are_refused_with_what_was_meant() {
    for (template, problem) in [
        ("{{ paylod.a }}", "unknown variable `paylod` (did you mean `payload`?) in line 1"),
        ("\n{{ nothing }}", "unknown variable `nothing` in line 2"),
        (
            "{{ payload.größe }}",
            "unexpected 'ö': a name with other letters than A to Z is written as in \
             `payload[\"größe\"]` in line 1",
        ),
        (
            "{{ payload.order-id }}",
            "unknown variable `id`: a name with `-` is written as in `payload[\"order-id\"]` in line 1",
        ),
        (
            "{{ 1 + payload.a.first-order-date.x | upper }}",
            "unknown variable `order`: a name with `-` is written as in \
             `payload.a[\"first-order-date\"]` in line 1",
        ),
        ("{{ payload.a - id }}", "unknown variable `id` in line 1"),
        ("{{ 1-id }}", "unknown variable `id` in line 1"),
        ("{{ payload.a | length-id }}", "unknown variable `id` in line 1"),
        (
            "{{ subscriber.firstname }}",
            "`subscriber` has no field `firstname` (did you mean `firstName`?) in line 1",
        ),
        (
            "{{ actor['fristName'] }}",
            "`actor` has no field `fristName` (did you mean `firstName`?) in line 1",
        ),
        ("{{ workflow.nam }}", "`workflow` has no field `nam` (did you mean `name`?) in line 1"),
        (
            "{{ context.tenant.datas }}",
            "`context.tenant` has no field `datas` (did you mean `data`?) in line 1",
        ),
        (
            "{{ (subscriber).emial }}",
            "`subscriber` has no field `emial` (did you mean `email`?) in line 1",
        ),
        (
            "{{ ( ( subscriber ) )['emial'].x | upper }}",
            "`subscriber` has no field `emial` (did you mean `email`?) in line 1",
        ),
        (
            "{{ 1 + ((context).tenant).datas }}",
            "`context.tenant` has no field `datas` (did you mean `data`?) in line 1",
        ),
        (
            "{% for a in [1] %}{{ (loop).indx }}{% endfor %}",
            "unknown field of the loop `indx` (did you mean `index`?) in line 1",
        ),
        ("{{ payload.a | uper }}", "unknown filter `uper` (did you mean `upper`?) in line 1"),
        (
            "{% for a in [1] %}{{ loop.indx }}{% endfor %}",
            "unknown field of the loop `indx` (did you mean `index`?) in line 1",
        ),
        ("{{ rang(3) }}", "unknown function `rang` (did you mean `range`?) in line 1"),
        ("{% if 1 is od %}{% endif %}", "unknown test `od` (did you mean `odd`?) in line 1"),
        ("\n{% fore a in b %}", "unknown statement `fore` (did you mean `for`?) in line 2"),
        (
            "{% for a in [1] %}{{ loop.cicle(1) }}{% endfor %}",
            "unknown method `cicle` (did you mean `cycle`?) in line 1",
        ),
    ] {
        refused(template, problem);
    }
}

#[test]
fn no_filter_reads_fields_past_the_check_of_names() {
    let error = Template::new("{{ subscriber | attr('firstNam') }}").unwrap_err().to_string();
    assert!(error.contains("unknown filter `attr`"), "{error}");
}

#[test]
fn what_the_template_sets_itself_is_known() {
    for template in [
        "{% for item in payload.items if item.a %}{{ loop.index }}{{ item.b }}{% endfor %}",
        "{% for name, value in payload.items %}{{ name }}{{ value }}{% else %}-{% endfor %}",
        "{% set total = payload.a * 2 %}{{ total }}",
        "{% if payload.a %}{% set a = 1 %}{% else %}{% set a = 2 %}{% endif %}{{ a }}",
        "{% with a = 1, b = a %}{{ a + b }}{% endwith %}",
        "{% raw %}{{ nothing | nothing }}{% endraw %}{# {{ nothing }} #}",
        "{{ t.greeting }}{{ steps.first.seen }}{{ actor.data.x }}{{ context.tenant.data.x }}",
        "{{ subscriber.data.anything.at.all }}{{ payload['any thing'][0].b }}",
        "{{ (subscriber).email }}{{ (subscriber or payload).emial }}{{ (subscriber.data).emial }}",
        "{{ (subscriber,).emial }}{{ (payload.a[subscriber]).emial }}{{ (payload).emial }}",
        "{% for subscriber in payload.a %}{{ (subscriber).emial }}{% endfor %}",
    ] {
        assert!(Template::new(template).is_ok(), "{template}: {:?}", Template::new(template));
    }
    for (template, name) in [
        ("{% for item in item.a %}{% endfor %}", "item"),
        ("{% for item in [1] %}{% endfor %}{{ item }}", "item"),
        ("{% for item in [1] %}{% else %}{{ item }}{% endfor %}", "item"),
        ("{% for a in [1] if loop.first %}{% endfor %}", "loop"),
        ("{% with a = b, b = 1 %}{% endwith %}", "b"),
        ("{{ a }}{% set a = 1 %}", "a"),
    ] {
        let error = Template::new(template).unwrap_err().to_string();
        assert!(error.contains(&format!("unknown variable `{name}`")), "{error}");
    }
}

#[test]
fn what_a_notification_does_not_need_is_refused() {
    for (template, problem) in [
        ("{% set a %}b{% endset %}", "`set` needs `=` and a value in line 1"),
        ("{% set a.b = 1 %}", "`set` needs `=` and a value in line 1"),
        ("{% include 'a' %}", "unknown statement `include` in line 1"),
        ("{% for a in [1] recursive %}{% endfor %}", "unexpected `recursive` in line 1"),
        ("{{ payload.a.b() }}", "unexpected `(` in line 1"),
        ("{{ namespace(a=1) }}", "unknown function `namespace` in line 1"),
        ("{{ __keep(1) }}", "unexpected `__keep` in line 1"),
        ("{% set __a = 1 %}", "unexpected `__a` in line 1"),
        ("{{ t('k', __watch=1) }}", "unexpected `__watch` in line 1"),
        ("{{ 'k' | t(__t=1) }}", "unexpected `__t` in line 1"),
        ("{{ range(*payload.a) }}", "unexpected `*` in line 1"),
        ("{{ payload.a", "a tag is not closed in line 1"),
        ("{{ 'a }}", "a text is not closed in line 1"),
        ("{% raw %}", "a tag is not closed in line 1"),
        ("{# {{ 1 }}", "a tag is not closed in line 1"),
        ("{% if 1 %}\n", "a statement has no end in line 1"),
        ("{% endif %}", "`endif` has nothing that it belongs to in line 1"),
        (
            "{% if 1 %}{% else %}{% elif 1 %}{% endif %}",
            "`elif` has nothing that it belongs to in line 1",
        ),
        ("{% for a in [1] %}{% endif %}", "`endif` has nothing that it belongs to in line 1"),
        ("{{ }}", "a tag ends too early in line 1"),
        ("{{ 1 2 }}", "unexpected `2` in line 1"),
        ("{{ (1] }}", "unexpected `]` in line 1"),
        ("{{ 1a }}", "a number is followed by letters in line 1"),
        ("{{ 1 ? 2 }}", "unexpected '?' in line 1"),
    ] {
        refused(template, problem);
    }
}

#[test]
fn the_fields_of_a_declared_payload_are_known() {
    let schema = crate::sample::object(serde_json::json!({
        "type": "object",
        "properties": {
            "order": { "properties": { "id": { "type": "string" } } },
            "open": { "properties": { "a": {} }, "additionalProperties": true },
            "other": { "$ref": "#/elsewhere", "properties": { "a": {} } },
            "items": { "type": "array" },
            "ship-date": { "type": "string" },
        },
        "additionalProperties": false,
    }));
    let check = |template: &str| {
        Template::unchecked(template.into()).check_as(Role::Message(Some(&schema)))
    };
    for template in [
        "{{ payload }}{{ payload.order }}{{ payload.order.id }}{{ payload['order']['id'] }}",
        "{{ payload.open.b.c }}{{ payload.other.b }}{{ payload.items[0].a }}{{ payload.items.x }}",
        "{{ payload[workflow.name] }}{{ payload.order.id.length }}",
    ] {
        assert_eq!(check(template), Ok(()), "{template}");
    }
    for (template, problem) in [
        ("{{ payload.oder }}", "`payload` has no field `oder` (did you mean `order`?) in line 1"),
        ("{{ payload.order.ident }}", "`payload.order` has no field `ident` in line 1"),
        (
            "{{ payload.ship-date }}",
            "`payload` has no field `ship`: a name with `-` is written as in \
             `payload[\"ship-date\"]` in line 1",
        ),
        ("{{ payload.ship - date }}", "`payload` has no field `ship` in line 1"),
        ("{{ payload.ship }}{{ payload.order.date-x }}", "`payload` has no field `ship` in line 1"),
        ("{{ subscriber.x-date }}", "`subscriber` has no field `x` in line 1"),
    ] {
        let reason = Reason::Template { problem: problem.into() };
        assert_eq!(check(template).unwrap_err().reason, reason);
    }
}
