//! Content: translations, layouts, dates, and variables that are missing.

use serde_json::{Value, json};
use store::WriteRecords;
use tidings::content::MessageContent;
use tidings::ids::NotificationId;
use tidings::preview::Preview;
use tidings::translation::{Resource, Translation};
use tidings::{RecordingProvider, SendError};

use crate::layouts;
use crate::world::{
    Counts, World, changed, in_app, on_both, on_both_with, only, parsed, wire, with, workflow_of,
};

const KEYS: &str = "{{ t.hello }} {{ t('items', count=payload.n) }} {{ t.nothing }}";

fn reader(world: &World, id: &str, locale: Option<&str>) {
    let create = json!({
        "subscriberId": id, "firstName": "Ada", "email": "ada@example.org", "locale": locale,
        "timezone": "Europe/Berlin",
    });
    world.subscriber(create);
}

fn translate(world: &World, kind: &str, id: &str, locale: &str, content: &Value) {
    let upsert = json!({
        "resourceId": id, "resourceType": kind, "locale": locale, "content": content,
    });
    world.env.translations().upsert(&parsed(upsert)).unwrap();
}

// Puts texts that no call takes into the only translation, as an earlier version may have stored them.
fn store_texts(world: &World, content: &Value) {
    let before = only(world.records::<Translation>());
    let after = changed(before.clone(), |after| after.content = parsed(content.clone()));
    store::write(&world.opened(), |transaction| transaction.replace(&before, &after)).unwrap();
}

fn translated(id: &str, steps: &[Value]) -> Value {
    with(workflow_of(id, steps), json!({ "isTranslationEnabled": true }))
}

fn mail(body: &str) -> Value {
    json!({ "type": "email", "name": "mail", "template": { "subject": "S", "body": body } })
}

// What the log of the only job says, besides that it went well: the detail and the text.
fn warnings(world: &World, id: NotificationId) -> Vec<(String, String)> {
    let job = only(world.notification(id).jobs);
    let unusual = job
        .execution_details
        .iter()
        .filter(|entry| matches!(wire(entry.status).as_str(), Some("Warning" | "Failed")));
    unusual.map(|entry| (entry.detail.to_string(), entry.raw.clone().unwrap_or_default())).collect()
}

fn send(world: &World, trigger: Value) -> NotificationId {
    let id = only(world.trigger(trigger).notifications).notification_id;
    world.run_due();
    id
}

/// One row per reader: the text in the inbox.
#[test]
fn a_text_is_in_the_best_language_of_its_reader() {
    let english = |builder: tidings::Builder| builder.default_locale("en_US").unwrap();
    on_both_with(english, |world| {
        let step = json!({ "type": "in_app", "template": { "body": KEYS } });
        let create = with(translated("hi", &[step]), json!({ "defaultLocale": "fr" }));
        world.workflow(create);
        let items = |one: &str, other: &str| json!({ "one": one, "other": other });
        for (locale, content) in [
            ("de", json!({ "hello": "Hallo {{ subscriber.firstName }}," })),
            (
                "de_CH",
                json!({ "hello": "Grüezi,", "items": items("{{ count }} Sache", "{{ count }} Sachen") }),
            ),
            (
                "fr_FR",
                json!({ "hello": "Bonjour", "items": items("{{ count }} chose", "{{ count }} choses") }),
            ),
            ("en_US", json!({ "hello": "Hello", "only": "x" })),
        ] {
            translate(&world, "workflow", "hi", locale, &content);
        }
        for (number, (locale, n, expected)) in [
            (Some("de_CH"), 1, "Grüezi, 1 Sache nothing"),
            (Some("de_AT"), 2, "Hallo Ada, 2 Sachen nothing"),
            (Some("it"), 0, "Bonjour 0 chose nothing"),
            (None, 2, "Bonjour 2 choses nothing"),
        ]
        .into_iter()
        .enumerate()
        {
            let id = format!("reader-{number}");
            reader(&world, &id, locale);
            let sent = send(&world, json!({ "name": "hi", "to": id, "payload": { "n": n } }));
            assert_eq!(only(world.inbox(&id)).text(), Some(expected));
            let missing = ("translation_missing".into(), "nothing".into());
            assert_eq!(warnings(&world, sent), [missing]);
        }
    });
}

/// `en_US` is the default locale of an engine.
#[test]
fn a_reader_without_a_language_gets_american_english() {
    on_both(|world| {
        let step = json!({ "type": "in_app", "template": { "body": "{{ t.x }}" } });
        world.workflow(translated("hi", &[step]));
        for (locale, text) in [("en_US", "color"), ("en_GB", "colour"), ("de", "Farbe")] {
            translate(&world, "workflow", "hi", locale, &json!({ "x": text }));
        }
        for (reader, locale, expected) in
            [("ada", None, "color"), ("bob", Some("fr"), "color"), ("eve", Some("de"), "Farbe")]
        {
            self::reader(&world, reader, locale);
            send(&world, json!({ "name": "hi", "to": reader }));
            assert_eq!(only(world.inbox(reader)).text(), Some(expected));
        }
    });
}

/// A preview is what the first event of a tenant sends: nothing is there before it.
#[test]
fn a_preview_has_the_contexts_that_an_event_would_store() {
    on_both(|world| {
        let body = "{{ context.tenant.id }} {{ context.tenant.data.plan }}";
        world.workflow(workflow_of("hi", &[with(mail(body), json!({ "type": "in_app" }))]));
        world.bare_subscriber("ada");
        let tenant = |plan: Option<&str>| {
            let data = plan.map(|plan| json!({ "plan": plan }));
            json!({ "tenant": data.map_or(json!("acme"), |data| json!({ "id": "acme", "data": data })) })
        };
        for (plan, expected) in
            [(Some("pro"), "acme pro"), (None, "acme pro"), (Some("free"), "acme free")]
        {
            let event = json!({ "name": "hi", "to": "ada", "context": tenant(plan) });
            let preview = json!({ "step": "0", "subscriberId": "ada", "context": tenant(plan) });
            let shown = world.unchanged(|| {
                world.env.workflows().preview("hi", &parsed(preview.clone())).unwrap()
            });
            assert_eq!(shown.content.plain_text(), expected);
            world.tick();
            send(&world, event);
            assert_eq!(world.inbox("ada")[0].text(), Some(expected));
        }
    });
}

/// The language of the environment comes behind that of the workflow, and before that of the engine.
#[test]
fn a_text_is_in_the_language_of_the_environment() {
    let english = |builder: tidings::Builder| builder.default_locale("en").unwrap();
    on_both_with(english, |world| {
        let step = json!({ "type": "in_app", "template": { "body": "{{ t.x }}" } });
        world.workflow(translated("hi", &[step]));
        world.bare_subscriber("ada");
        for (locale, text) in [("en", "one"), ("de", "eins"), ("fr", "un")] {
            translate(&world, "workflow", "hi", locale, &json!({ "x": text }));
        }
        let read = || {
            world.tick();
            send(&world, json!({ "name": "hi", "to": "ada" }));
            world.inbox("ada").remove(0).text().unwrap().to_owned()
        };
        assert_eq!(read(), "one");
        let id = world.env.environment_id();
        let update = |update: Value| world.env.environments().update(id, &parsed(update));
        assert_eq!(
            update(json!({ "defaultLocale": "de" })).unwrap().default_locale,
            Some(parsed(json!("de")))
        );
        assert_eq!(read(), "eins");
        assert_eq!(update(json!({})).unwrap().default_locale, Some(parsed(json!("de"))));
        let french = json!({ "defaultLocale": "fr" });
        world.env.workflows().update("hi", &parsed(french)).unwrap();
        assert_eq!(read(), "un");
        world.env.workflows().update("hi", &parsed(json!({ "defaultLocale": null }))).unwrap();
        assert_eq!(update(json!({ "defaultLocale": null })).unwrap().default_locale, None);
        assert_eq!(read(), "one");
        let (elsewhere, production) = (world.elsewhere(), world.production());
        let gone = format!("404 environment `{id}` is not there");
        world.refuses(&gone, || elsewhere.environments().update(id, &parsed(json!({}))));
        world.refuses(&gone, || production.environments().update(id, &parsed(json!({}))));
        let host = world.organization.environments();
        assert_eq!(host.update(id, &parsed(json!({}))).unwrap().api_keys.len(), 1);
    });
}

#[test]
fn a_changed_text_is_in_the_next_message() {
    on_both(|world| {
        reader(&world, "ada", Some("de"));
        world.workflow(translated(
            "hi",
            &[json!({ "type": "in_app", "template": { "body": "{{ t.x }}" } })],
        ));
        let read = |world: &World| {
            send(world, json!({ "name": "hi", "to": "ada" }));
            world.inbox("ada").remove(0).text().unwrap().to_owned()
        };
        assert_eq!(read(&world), "x");
        translate(&world, "workflow", "hi", "de", &json!({ "x": "eins" }));
        assert_eq!(read(&world), "eins");
        translate(&world, "workflow", "hi", "de", &json!({ "x": "zwei" }));
        assert_eq!(read(&world), "zwei");
        let resource = tidings::translation::Resource::workflow("hi");
        world.env.translations().delete_group(&resource).unwrap();
        assert_eq!(read(&world), "x", "a workflow that is not translated any more has its keys");
    });
}

#[test]
fn texts_of_translations_need_translations() {
    on_both(|world| {
        let step = json!({ "type": "in_app", "template": { "body": "{{ t.x }}" } });
        let create = |enabled: bool| {
            let create = with(
                workflow_of("hi", std::slice::from_ref(&step)),
                json!({ "isTranslationEnabled": enabled }),
            );
            world.env.workflows().create(&parsed(create))
        };
        let expected = "`steps[0].template.body` is not a valid template: \
                        `t` needs `isTranslationEnabled` in line 1";
        assert_eq!(create(false).unwrap_err().to_string(), expected);
        create(true).unwrap();
        let off = parsed(json!({ "isTranslationEnabled": false }));
        let error = world.env.workflows().update("hi", &off).unwrap_err();
        assert_eq!(error.to_string(), expected);
        let frame = json!({ "layoutId": "f", "name": "F", "body": "{{ content }}{{ t.x }}" });
        let error = world.env.layouts().upsert(&parsed(frame)).unwrap_err().to_string();
        assert!(error.contains("`t` needs `isTranslationEnabled`"), "{error}");
    });
}

// The content of the mail that `trigger` sends.
fn framed(world: &World, trigger: Value) -> String {
    send(world, with(trigger, json!({ "name": "mail", "to": "ada" })));
    world.messages("ada").remove(0).text().unwrap_or_default().to_owned()
}

/// One row per setting of the step and of the trigger: the frame around the mail.
#[test]
fn a_mail_has_the_layout_that_is_named_next_to_it() {
    on_both(|world| {
        reader(&world, "ada", None);
        world.active_integration("email", "smtp");
        for (id, is_default) in [("basic", true), ("festive", false), ("late", true)] {
            layouts::upsert(
                &world,
                json!({
                    "layoutId": id, "name": id, "body": format!("[{id} {{{{ payload.x }}}} {{{{ content }}}}]"),
                    "isDefault": is_default,
                }),
            );
        }
        assert!(!world.env.layouts().get("basic").unwrap().is_default);
        let late = world.env.layouts().get("late").unwrap();
        assert!(late.is_default);
        let workflow = world.workflow_of("mail", &[mail("<p>{{ payload.x }}</p>")]);
        let body = "<p>&lt;i&gt;</p>";
        let within = |id: &str| format!("[{id} &lt;i&gt; {body}]");
        let set = |layout: Value| {
            let mut step = mail("<p>{{ payload.x }}</p>");
            step["_id"] = json!(workflow.steps[0].id);
            step["template"]["layoutId"] = layout;
            if step["template"]["layoutId"] == "absent" {
                step["template"].as_object_mut().unwrap().remove("layoutId");
            }
            let update = parsed(json!({ "steps": [step] }));
            world.env.workflows().update("mail", &update).unwrap();
        };
        let of_step = json!({ "steps": { "mail": { "layoutId": "festive" } } });
        let rows = [
            (json!("absent"), json!({}), within("late")),
            (json!("festive"), json!({}), within("festive")),
            (json!(null), json!({}), body.to_owned()),
            (json!("absent"), of_step.clone(), within("festive")),
            (json!(null), of_step, within("festive")),
            (
                json!("festive"),
                json!({ "channels": { "email": { "layoutId": null } } }),
                body.into(),
            ),
            (
                json!("festive"),
                json!({ "email": { "layoutIdentifier": "basic" } }),
                within("basic"),
            ),
            (json!("festive"), json!({ "layoutIdentifier": "basic" }), within("basic")),
            (json!("festive"), json!({ "layoutId": "basic" }), within("basic")),
            (
                json!(null),
                json!({
                    "channels": { "email": { "layoutId": "festive" } },
                    "steps": { "mail": { "layoutIdentifier": "basic" } },
                }),
                within("basic"),
            ),
            (
                json!(null),
                json!({ "email": { "layoutId": "festive", "layoutIdentifier": "basic" } }),
                within("festive"),
            ),
            (
                json!(null),
                json!({ "channels": { "email": { "layoutId": late.id } } }),
                within("late"),
            ),
        ];
        for (layout, overrides, expected) in rows {
            set(layout.clone());
            let trigger = json!({ "payload": { "x": "<i>" }, "overrides": overrides });
            assert_eq!(framed(&world, trigger), expected, "{layout} {overrides}");
        }
        set(json!("absent"));
        world.env.layouts().delete("late").unwrap();
        assert_eq!(framed(&world, json!({ "payload": { "x": "<i>" } })), body);
        let own = json!({ "email": { "body": "<b>own</b>", "layoutId": "basic" } });
        let own = json!({ "payload": { "x": "y" }, "overrides": own });
        assert_eq!(framed(&world, own), "[basic y <b>own</b>]", "the body is that of the trigger");
        let refused =
            json!({ "name": "mail", "to": "ada", "overrides": { "email": { "layoutId": 7 } } });
        let error = world.env.events().trigger(&parsed(refused)).unwrap_err().to_string();
        assert_eq!(error, "`overrides.email.layoutId` must be a text");
    });
}

#[test]
fn the_default_layout_takes_the_place_of_one_that_was_deleted() {
    on_both(|world| {
        reader(&world, "ada", None);
        world.active_integration("email", "smtp");
        let mut step = mail("<p>Hi</p>");
        step["template"]["layoutId"] = json!("gone");
        world.workflow_of("mail", &[step]);
        let id = send(&world, json!({ "name": "mail", "to": "ada" }));
        assert_eq!(only(world.messages("ada")).text(), Some("<p>Hi</p>"));
        assert_eq!(warnings(&world, id), [("layout_missing".into(), "gone".into())]);

        let layout = json!({
            "layoutId": "legal", "name": "Legal", "body": "[{{ content }}]", "isDefault": true,
        });
        world.env.layouts().upsert(&parsed(layout)).unwrap();
        let id = send(&world, json!({ "name": "mail", "to": "ada" }));
        let texts: Vec<_> =
            world.messages("ada").into_iter().map(|one| one.text().map(str::to_owned)).collect();
        assert_eq!(texts[0].as_deref(), Some("[<p>Hi</p>]"));
        assert_eq!(warnings(&world, id), [("layout_missing".into(), "gone".into())]);
    });
}

#[test]
fn a_layout_has_texts_of_its_own_and_blocks_become_html() {
    on_both(|world| {
        reader(&world, "ada", Some("fr_FR"));
        world.active_integration("email", "smtp");
        layouts::upsert(
            &world,
            json!({
                "layoutId": "frame", "name": "Frame", "isTranslationEnabled": true, "isDefault": true,
                "body": "{{ content }}<hr>{{ t.footer }}",
            }),
        );
        translate(
            &world,
            "layout",
            "frame",
            "fr",
            &json!({ "footer": "Fin, {{ subscriber.firstName }}" }),
        );
        let blocks = json!([
            { "type": "text", "content": "{{ t.hi }} {{ payload.x }}", "styles": { "textAlign": "center" } },
            { "type": "button", "content": "Open", "url": "https://shop.example/?a={{ payload.x }}" },
        ]);
        let mut step = mail("");
        step["template"]["body"] = blocks;
        world.workflow(translated("mail", &[step]));
        translate(&world, "workflow", "mail", "fr", &json!({ "hi": "Salut", "footer": "wrong" }));
        let html = framed(&world, json!({ "payload": { "x": "<\"" } }));
        let expected = "<p style=\"text-align: center\">Salut &lt;&quot;</p>\
                        <p><a href=\"https://shop.example/?a=&lt;&quot;\">Open</a></p>\
                        <hr>Fin, Ada";
        assert_eq!(html, expected);
        let text = only(world.messages("ada")).plain_text();
        let expected = "Salut <\"\n\nOpen (https://shop.example/?a=<\")\n\n---\nFin, Ada";
        assert_eq!(text.as_deref(), Some(expected));
    });
}

#[test]
fn a_retry_has_the_content_of_the_first_attempt() {
    let recorder = RecordingProvider::default();
    let provider = recorder.clone();
    on_both_with(
        move |builder| builder.default_provider(provider.clone()),
        |world| {
            reader(&world, "ada", Some("de"));
            world.active_integration("email", "smtp");
            layouts::upsert(
                &world,
                json!({
                    "layoutId": "f", "name": "F", "isDefault": true, "body": "[{{ content }}]",
                }),
            );
            world.workflow(translated("mail", &[mail("{{ t.x }}")]));
            translate(&world, "workflow", "mail", "de", &json!({ "x": "eins" }));
            recorder.refuse_next(SendError::retryable("421"));
            let id = send(&world, json!({ "name": "mail", "to": "ada" }));
            translate(&world, "workflow", "mail", "de", &json!({ "x": "zwei" }));
            world.env.layouts().delete("f").unwrap();
            world.pass(std::time::Duration::from_secs(3_600));
            assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
            assert_eq!(only(world.messages("ada")).text(), Some("[eins]"));
            assert_eq!(warnings(&world, id), []);
            let sent = recorder.sent().pop().unwrap();
            assert_eq!(sent.message.text(), Some("[eins]"));
            assert_eq!(sent.message.plain_text().as_deref(), Some("[eins]"));
        },
    );
}

/// One row per policy: the text in the inbox, and what the log of the job says.
#[test]
fn a_missing_variable_is_empty_marked_or_a_failure() {
    on_both(|world| {
        reader(&world, "ada", None);
        let missing = || ("variable_missing".to_owned(), "payload.name".to_owned());
        for (policy, expected, log) in [
            ("empty", Some("Hello "), vec![]),
            ("marker", Some("Hello [missing: payload.name]"), vec![]),
            ("error", None, vec![missing()]),
        ] {
            let create = json!({ "missingVariables": policy });
            world.workflow(with(workflow_of(policy, &[in_app()]), create));
            let before = world.inbox("ada").len();
            let id = send(&world, json!({ "name": policy, "to": "ada" }));
            let inbox = world.inbox("ada");
            let text = inbox.first().filter(|_| inbox.len() > before).and_then(|one| one.text());
            assert_eq!(text, expected, "{policy}");
            assert_eq!(warnings(&world, id), log, "{policy}");
        }
    });
}

#[test]
fn a_preview_shows_what_is_sent() {
    on_both(|world| {
        reader(&world, "ada", Some("de_DE"));
        world.active_integration("email", "smtp");
        layouts::upsert(
            &world,
            json!({
                "layoutId": "f", "name": "F", "isDefault": true, "isTranslationEnabled": true,
                "body": "[{{ content }}|{{ t.foot }}]",
            }),
        );
        let body = "{{ t.x }} {{ payload.at | date('%d.%m.%Y %H:%M') }} {{ t.lost }}";
        world.workflow(translated("mail", &[mail(body)]));
        translate(&world, "workflow", "mail", "de", &json!({ "x": "<b>{{ payload.y }}</b>" }));
        translate(&world, "layout", "f", "de", &json!({ "foot": "Ende" }));
        let payload = json!({ "y": "&", "at": "2026-07-05T22:30:00Z" });

        let preview = Preview::new("mail", "ada").unwrap().payload(payload.clone()).unwrap();
        let shown = world.env.workflows().preview("mail", &preview).unwrap();
        let expected = "[<b>&amp;</b> 06.07.2026 00:30 lost|Ende]";
        assert_eq!(shown.content, MessageContent::Text(expected.into()));
        let warned: Vec<_> = shown.warnings.iter().map(|one| one.subject.as_str()).collect();
        assert_eq!(warned, ["lost"]);

        let id = send(&world, json!({ "name": "mail", "to": "ada", "payload": payload }));
        assert_eq!(only(world.messages("ada")).text(), Some(expected));
        assert_eq!(warnings(&world, id), [("translation_missing".into(), "lost".into())]);
    });
}

/// An import stores any text, and so did earlier versions.
#[test]
fn a_stored_text_with_a_mistake_is_read_and_passed_over() {
    on_both(|world| {
        reader(&world, "ada", Some("de"));
        let step = json!({ "type": "in_app", "template": { "body": "{{ t.x }} {{ t.y }}" } });
        world.workflow(translated("hi", &[step]));
        translate(&world, "workflow", "hi", "de", &json!({ "x": "X", "y": "Y" }));
        store_texts(&world, &json!({ "x": "{{ subscriber.fristName }}", "y": "Y" }));

        let hi = Resource::workflow("hi");
        let german = world.env.translations().get(&hi, "de").unwrap();
        assert_eq!(german.content["x"], "{{ subscriber.fristName }}");
        world.notify("hi", "ada");
        assert_eq!(world.inbox("ada")[0].content, Some(MessageContent::Text("x Y".into())));
    });
}

/// What a hostile translation holds costs one job at most.
#[test]
fn a_hostile_translation_fails_its_own_message() {
    on_both(|world| {
        reader(&world, "ada", Some("de"));
        let body = format!("{}done", "{% set a = t.x %}".repeat(100));
        let step = json!({ "type": "in_app", "template": { "body": body } });
        world.workflow(translated("hi", &[step, in_app()]));
        for text in ["{{ payload.l }}".repeat(4_000), "{{".repeat(400_000)] {
            translate(&world, "workflow", "hi", "de", &json!({ "x": "x" }));
            store_texts(&world, &json!({ "x": text }));
            let payload = json!({ "l": "l".repeat(100) });
            let receipt = world.trigger(json!({ "name": "hi", "to": "ada", "payload": payload }));
            let found = world.notification(only(receipt.notifications).notification_id);
            let [first, second] = &found.jobs[..] else { panic!("{found:?}") };
            assert_eq!(second.status.as_str(), "completed");
            if text.len() < 100_000 {
                assert_eq!(first.status.as_str(), "failed");
            }
        }
    });
}
