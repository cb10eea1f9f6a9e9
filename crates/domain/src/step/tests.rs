use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::template::Variables;

fn kind(json: Value) -> StepKind {
    serde_json::from_value(json).unwrap()
}

fn variables() -> Variables {
    Variables::new(json!({ "payload": { "n": 3, "note": "<b>&</b>" } }))
}

// Parts of a rendered content that are not empty.
fn rendered(step: Value) -> Value {
    let Rendered { subject, title, content, cta, .. } =
        kind(step).render(&variables()).unwrap().unwrap();
    let mut json = json!({ "content": content });
    for (name, part) in [("subject", json!(subject)), ("title", json!(title)), ("cta", json!(cta))]
    {
        if part != json!(null) && part != json!({}) {
            json[name] = part;
        }
    }
    json
}

#[track_caller]
fn check(step: Value, expected: Value) {
    assert_eq!(rendered(step), expected);
}

#[test]
fn a_message_in_the_inbox_may_lead_somewhere_and_be_answered() {
    check(
        json!({ "type": "in_app", "template": { "body": "{{ payload.n }} {{ payload.note }}" } }),
        json!({ "content": "3 <b>&</b>" }),
    );
    let buttons = json!([
        {
            "type": "primary", "content": "Yes ({{ payload.n }})",
            "resultContent": "You said yes to {{ payload.n }}",
        },
        { "type": "secondary", "content": "No" },
    ]);
    check(
        json!({ "type": "in_app", "template": {
            "subject": "S {{ payload.n }}", "body": "B", "url": "/{{ payload.n }}",
            "buttons": buttons,
        } }),
        json!({ "subject": "S 3", "content": "B", "cta": {
            "type": "redirect",
            "data": { "url": "/3" },
            "action": { "status": "pending", "buttons": [
                {
                    "type": "primary", "content": "Yes (3)", "resultContent": "You said yes to 3",
                },
                { "type": "secondary", "content": "No" },
            ] },
        } }),
    );
    check(
        json!({ "type": "in_app", "template": {
            "body": "", "buttons": [{ "type": "primary", "content": "Yes" }],
        } }),
        json!({ "content": "", "cta": { "action": {
            "status": "pending", "buttons": [{ "type": "primary", "content": "Yes" }],
        } } }),
    );
}

/// Only the body of an e-mail is HTML.
#[test]
fn an_email_is_html_or_blocks() {
    let subject = "{{ payload.note }}";
    check(
        json!({ "type": "email", "template": {
            "subject": subject, "body": "<p>{{ payload.note }}</p>",
        } }),
        json!({ "subject": "<b>&</b>", "content": "<p>&lt;b&gt;&amp;&lt;&#x2f;b&gt;</p>" }),
    );
    check(
        json!({ "type": "email", "template": { "subject": subject, "body": [
            { "type": "text", "content": "{{ payload.note }}", "styles": { "textAlign": "left" } },
            { "type": "button", "content": "Go", "url": "https://example.com/{{ payload.n }}" },
        ] } }),
        json!({ "subject": "<b>&</b>", "content": [
            {
                "type": "text", "content": "&lt;b&gt;&amp;&lt;&#x2f;b&gt;",
                "styles": { "textAlign": "left" },
            },
            { "type": "button", "content": "Go", "url": "https://example.com/3" },
        ] }),
    );
    check(
        json!({ "type": "email", "template": { "subject": "", "body": [] } }),
        json!({ "subject": "", "content": [] }),
    );
}

/// One row per setting: the same e-mail, and the same blocks.
#[test]
fn an_email_without_sanitization_has_values_as_they_are() {
    for (is_disabled, value) in [(false, "&lt;b&gt;&amp;&lt;&#x2f;b&gt;"), (true, "<b>&</b>")] {
        let template = |body: Value| {
            json!({ "type": "email", "template": {
                "subject": "{{ payload.note }}", "body": body,
                "disableOutputSanitization": is_disabled,
            } })
        };
        check(
            template(json!("<p>{{ payload.note }}</p>")),
            json!({ "subject": "<b>&</b>", "content": format!("<p>{value}</p>") }),
        );
        check(
            template(json!([{ "type": "text", "content": "{{ payload.note }}" }])),
            json!({ "subject": "<b>&</b>", "content": [{ "type": "text", "content": value }] }),
        );
    }
}

/// One row per block: many of them fail the message, though each is within the budget of a rendering.
#[test]
fn the_templates_of_a_message_share_a_budget() {
    let email = |block: &str, count: usize| {
        let body = vec![json!({ "type": "text", "content": block }); count];
        json!({ "type": "email", "template": { "subject": "", "body": body } })
    };
    let inbox = |button: &str, count: usize| {
        let button = json!({ "type": "primary", "content": "", "resultContent": button });
        json!({ "type": "in_app", "template": { "body": "", "buttons": vec![button; count] } })
    };
    for part in [
        "{{ 'x' * 1000000 }}",
        "{% for a in range(4000) %}{% endfor %}",
        "{% if 'x' * 4000000 %}{% endif %}",
    ] {
        for step in [email, inbox] {
            let render = |count| kind(step(part, count)).render(&variables()).unwrap();
            assert!(render(2).is_ok(), "{part}");
            let error = render(40).unwrap_err().to_string();
            assert_eq!(error, "the templates of the message make or read too much", "{part}");
        }
    }
}

#[test]
fn anything_else_is_plain_text() {
    for channel in ["sms", "chat"] {
        check(
            json!({ "type": channel, "template": { "body": "{{ payload.note }}" } }),
            json!({ "content": "<b>&</b>" }),
        );
    }
    check(
        json!({ "type": "push", "template": { "title": "{{ payload.n }}", "body": "<{{ payload.n }}>" } }),
        json!({ "title": "3", "content": "<3>" }),
    );
}

#[test]
fn what_sends_nothing_says_nothing() {
    for step in silent() {
        assert!(kind(step.clone()).render(&variables()).is_none(), "{step}");
        assert_eq!(kind(step).channel(), None);
    }
}

fn silent() -> [Value; 7] {
    [
        json!({ "type": "digest", "metadata": { "type": "regular", "amount": 5, "unit": "minutes" } }),
        json!({ "type": "digest", "metadata": {
            "type": "backoff", "backoff": true, "backoffAmount": 1, "backoffUnit": "hours",
        } }),
        json!({ "type": "digest", "metadata": { "type": "timed", "timed": { "atTime": "09:00" } } }),
        json!({ "type": "delay", "metadata": { "type": "regular", "amount": 5, "unit": "weeks" } }),
        json!({ "type": "delay", "metadata": { "type": "scheduled", "delayPath": "at" } }),
        json!({ "type": "throttle", "metadata": { "amount": 1, "unit": "hours", "threshold": 2 } }),
        json!({ "type": "custom", "metadata": { "handler": "charge" } }),
    ]
}

/// One row per place of a template: a failure there fails the whole.
#[test]
fn one_failing_template_fails_the_whole() {
    let bad = "{{ 'x' * 1000000000000 }}";
    for step in [
        json!({ "type": "in_app", "template": { "body": bad } }),
        json!({ "type": "in_app", "template": { "body": "", "subject": bad } }),
        json!({ "type": "in_app", "template": { "body": "", "url": bad } }),
        json!({ "type": "in_app", "template": {
            "body": "", "buttons": [{ "type": "primary", "content": bad }],
        } }),
        json!({ "type": "in_app", "template": {
            "body": "", "buttons": [{ "type": "primary", "content": "", "resultContent": bad }],
        } }),
        json!({ "type": "email", "template": { "subject": bad, "body": "" } }),
        json!({ "type": "email", "template": { "subject": "", "body": bad } }),
        json!({ "type": "email", "template": {
            "subject": "", "body": [{ "type": "text", "content": bad }],
        } }),
        json!({ "type": "email", "template": {
            "subject": "", "body": [{ "type": "text", "content": "", "url": bad }],
        } }),
        json!({ "type": "sms", "template": { "body": bad } }),
        json!({ "type": "chat", "template": { "body": bad } }),
        json!({ "type": "push", "template": { "title": bad, "body": "" } }),
        json!({ "type": "push", "template": { "title": "", "body": bad } }),
    ] {
        assert!(kind(step.clone()).render(&variables()).unwrap().is_err(), "{step}");
    }
}

#[test]
fn what_is_no_step_is_refused() {
    for step in [
        json!({ "type": "fax", "template": { "body": "" } }),
        json!({ "type": "in_app" }),
        json!({ "type": "in_app", "template": {} }),
        json!({ "type": "email", "template": { "body": "" } }),
        json!({ "type": "email", "template": { "subject": "", "body": [{ "content": "" }] } }),
        json!({ "type": "push", "template": { "body": "" } }),
        json!({ "type": "trigger" }),
        json!({ "type": "delay", "metadata": { "type": "scheduled" } }),
        json!({ "type": "digest", "metadata": { "type": "weekly" } }),
    ] {
        assert!(serde_json::from_value::<StepDefinition>(step.clone()).is_err(), "{step}");
    }
}

#[test]
fn a_step_is_active_unless_it_says_otherwise() {
    let step = json!({ "type": "in_app", "template": { "body": "" } });
    let step: StepDefinition = serde_json::from_value(step).unwrap();
    assert!(step.active && !step.should_stop_on_fail);
    assert_eq!((step.filters, step.variants), (vec![], vec![]));
}

#[test]
fn every_kind_is_written_as_it_is_read() {
    let loud = [
        json!({ "type": "in_app", "template": { "body": "b" } }),
        json!({ "type": "email", "template": { "subject": "s", "body": "b" } }),
        json!({ "type": "sms", "template": { "body": "b" } }),
        json!({ "type": "chat", "template": { "body": "b" } }),
        json!({ "type": "push", "template": { "title": "t", "body": "b" } }),
    ];
    for step in loud.into_iter().chain(silent()) {
        let kind = kind(step.clone());
        assert_eq!(kind.step_type().as_str(), step["type"]);
        assert_eq!(serde_json::to_value(kind).unwrap(), step);
    }
}

proptest! {
    #[test]
    fn any_text_between_the_placeholders_stays(text in "[^{}]{0,40}", note in "\\PC{0,20}") {
        let body = format!("{text}{{{{ payload.note }}}}.");
        let step = kind(json!({ "type": "sms", "template": { "body": body } }));
        let variables = Variables::new(json!({ "payload": { "note": note } }));
        let Rendered { content, .. } = step.render(&variables).unwrap().unwrap();
        prop_assert_eq!(content, MessageContent::Text(format!("{text}{note}.")));
    }
}

// A line break of a value could begin another header of an e-mail.
#[test]
fn a_subject_and_a_title_are_one_line() {
    let variables = Variables::new(json!({ "payload": { "n": "x\r\nBcc: a\u{2028}\u{0}b" } }));
    let greeting = "Hi {{ payload.n }}";
    for (channel, field) in [("in_app", "subject"), ("email", "subject"), ("push", "title")] {
        let step = kind(json!({
            "type": channel, "template": { field: greeting, "body": greeting },
        }));
        let Rendered { subject, title, content, .. } = step.render(&variables).unwrap().unwrap();
        assert_eq!(subject.or(title).as_deref(), Some("Hi x  Bcc: a  b"), "{channel}");
        assert!(json!(content).as_str().unwrap().contains("\r\n"), "{channel}");
    }
}
