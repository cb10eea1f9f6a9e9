//! What is too large, or cannot be a name, is refused with the limit and the field.

mod listed;
mod literals;

use std::time::Duration;

use serde_json::{Value, json};
use testkit::interposed::Interposed;
use tidings::context::ContextKey;
use tidings::limits::Limits;
use tidings::message::{MarkAs, MessageQuery};
use tidings::receipt::{Receipt, ReceiptKind};
use tidings::time::Timestamp;
use tidings::unsubscribe::UnsubscribeLinks;

use crate::world::{World, in_app, on_both, on_both_with, parsed};

fn sized(bytes: usize) -> Value {
    json!({ "a": "x".repeat(bytes - r#"{"a":""}"#.len()) })
}

fn furnish(world: &World) {
    world.env.subscribers().create(&parsed(json!({ "subscriberId": "ada" }))).unwrap();
    world.in_app_workflow("news");
}

#[test]
fn what_is_too_large_is_refused_with_the_limit_and_the_size() {
    on_both(|world| {
        furnish(&world);
        let trigger = |rest: Value| {
            let mut trigger = json!({ "name": "news", "to": "ada" });
            trigger.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            world.env.events().trigger(&parsed(trigger)).map(drop)
        };
        let long = |field: &str, max: usize, unit: &str, size: usize| {
            format!("422 `{field}` must be at most {max} {unit} long, not {size}")
        };
        for (field, max) in [("payload", 256 * 1024), ("overrides", 64 * 1024)] {
            trigger(json!({ field: sized(max) })).unwrap();
            let refusal = long(field, max, "bytes", max + 1);
            world.refuses(&refusal, || trigger(json!({ field: sized(max + 1) })));
        }
        let refusal = long("to[1].data", 65_536, "bytes", 65_537);
        let bob = json!({ "subscriberId": "bob", "data": sized(65_537) });
        world.refuses(&refusal, || trigger(json!({ "to": ["ada", bob] })));

        let subscribers = world.env.subscribers();
        for (field, max) in
            [("firstName", 255), ("lastName", 255), ("phone", 255), ("avatar", 2_048)]
        {
            let refusal = long(field, max, "characters", max + 1);
            let bob = |size| parsed(json!({ "subscriberId": "bob", field: "\u{fc}".repeat(size) }));
            world.refuses(&refusal, || subscribers.create(&bob(max + 1)));
            world.refuses(&refusal, || subscribers.upsert(&bob(max + 1)));
            let ada = parsed(json!({ field: "\u{fc}".repeat(max + 1) }));
            world.refuses(&refusal, || subscribers.update("ada", &ada));
            subscribers.upsert(&bob(max)).unwrap();
        }
        let refusal = long("data", 65_536, "bytes", 65_537);
        let data = || parsed(json!({ "data": sized(65_537) }));
        world.refuses(&refusal, || subscribers.update("ada", &data()));
        let create = json!({ "workflowId": "w", "name": "W", "steps": [], "data": sized(65_537) });
        world.refuses(&refusal, || world.env.workflows().create(&parsed(create.clone())));
        let update = parsed(json!({ "data": sized(65_537) }));
        world.refuses(&refusal, || world.env.workflows().update("news", &update));
    });
}

#[test]
fn a_host_sets_the_limits() {
    let limits = Limits::default().payload(16).subscriber_text(3).data(10);
    on_both_with(
        |builder| builder.limits(limits),
        |world| {
            furnish(&world);
            let trigger = |size| {
                let trigger = json!({ "name": "news", "to": "ada", "payload": sized(size) });
                world.env.events().trigger(&parsed(trigger))
            };
            let preview = |size| {
                let preview = json!({ "step": "0", "subscriberId": "ada", "payload": sized(size) });
                world.env.workflows().preview("news", &parsed(preview))
            };
            trigger(16).unwrap();
            preview(16).unwrap();
            let refusal = "422 `payload` must be at most 16 bytes long, not 17";
            world.refuses(refusal, || trigger(17));
            world.refuses(refusal, || preview(17));
            let refusal = "422 `lastName` must be at most 3 characters long, not 4";
            let update = parsed(json!({ "lastName": "King" }));
            world.refuses(refusal, || world.env.subscribers().update("ada", &update));
            let refusal = "422 `data` must be at most 10 bytes long, not 11";
            let update = parsed(json!({ "data": sized(11) }));
            world.refuses(refusal, || world.env.subscribers().update("ada", &update));
        },
    );
}

/// Each notification has a payload of 200 bytes, and a message with the same and a text of 100.
#[test]
fn the_content_of_an_event_is_limited() {
    on_both_with(
        |builder| builder.limits(Limits::default().content(3_000)),
        |world| {
            let step = json!({ "type": "in_app", "template": { "body": "x".repeat(100) } });
            world.workflow(
                json!({ "workflowId": "w", "name": "W", "active": true, "steps": [step] }),
            );
            let names = |count: usize| (0..count).map(|at| format!("s{at}")).collect::<Vec<_>>();
            let event = |count| json!({ "name": "w", "to": names(count), "payload": sized(200) });
            let events = world.env.events();
            events.trigger(&parsed(event(6))).unwrap();
            let refusal = "422 `payload` leads to more than 3000 bytes of payloads, overrides and messages \
                           in one event";
            world.refuses(refusal, || events.trigger(&parsed(event(7))));
            let bulk =
                |counts: [usize; 2]| events.trigger_bulk(&counts.map(|it| parsed(event(it))));
            let receipts = bulk([6, 7]).unwrap();
            let error = receipts[1].as_ref().unwrap_err();
            assert!(receipts[0].is_ok());
            assert_eq!(format!("{} {error}", error.status()), refusal);
        },
    );
}

#[test]
fn an_event_has_8_mib_of_content_by_default() {
    on_both(|world| {
        world.in_app_workflow("hello");
        let event = |count: usize| {
            let names: Vec<_> = (0..count).map(|at| format!("s{at}")).collect();
            parsed(json!({ "name": "hello", "to": names, "payload": sized(128 * 1024) }))
        };
        world.env.events().trigger(&event(31)).unwrap();
        let refusal = "422 `payload` leads to more than 8388608 bytes of payloads, overrides and \
                       messages in one event";
        world.refuses(refusal, || world.env.events().trigger(&event(32)));
    });
}

/// Its subscribers and contexts are as they were for the events behind it.
#[test]
fn an_event_with_too_much_content_changes_nothing() {
    on_both_with(
        |builder| builder.limits(Limits::default().content(3_000)),
        |world| {
            let body = "{{ subscriber.firstName }} {{ context.tenant.data.plan }}";
            let step = json!({ "type": "in_app", "template": { "body": body } });
            world.workflow_of("w", &[step]);
            world.subscriber(json!({ "subscriberId": "ada", "firstName": "Ada" }));
            let crowd = |at: usize| json!({ "subscriberId": format!("s{at}") });
            let ada = json!({ "subscriberId": "ada", "firstName": "Other" });
            let to: Vec<_> = (0..9).map(crowd).chain([ada]).collect();
            let context = json!({ "tenant": { "id": "acme", "data": { "plan": "other" } } });
            let large = json!({
                "name": "w", "to": to, "payload": sized(200), "context": context,
            });
            let small = json!({ "name": "w", "to": "ada", "context": { "tenant": "acme" } });

            let receipts =
                world.env.events().trigger_bulk(&[parsed(large), parsed(small)]).unwrap();

            assert_eq!(receipts.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true]);
            assert_eq!(world.inbox("ada")[0].text(), Some("Ada "));
        },
    );
}

/// A rehearsal sends all mails of an event, each with a text of 100 bytes.
#[test]
fn the_content_of_a_rehearsal_is_limited() {
    on_both_with(
        |builder| builder.limits(Limits::default().content(3_000)),
        |world| {
            world.active_integration("email", "ses");
            let step =
                json!({ "type": "email", "template": { "subject": "S", "body": "x".repeat(100) } });
            let steps = vec![step; 10];
            world.workflow(
                json!({ "workflowId": "w", "name": "W", "active": true, "steps": steps }),
            );
            let to = |count: usize| {
                let one =
                    |at| json!({ "subscriberId": format!("s{at}"), "email": "s@example.com" });
                parsed(json!({ "name": "w", "to": (0..count).map(one).collect::<Vec<_>>() }))
            };
            let events = world.env.events();
            let explained = events.explain(&to(2), world.now()).unwrap();
            let sent = explained.recipients.iter().flat_map(|recipient| &recipient.steps);
            assert_eq!(sent.filter(|step| step.message.is_some()).count(), 20);
            let refusal = "422 `payload` leads to more than 3000 bytes of payloads, overrides and messages \
                           in one event";
            world.refuses(refusal, || events.explain(&to(3), world.now()));
            events.trigger(&to(3)).unwrap();

            // The payload counts once for the notification, and not in each of its turns.
            let second = json!({ "type": "delay", "metadata": { "type": "regular", "amount": 1, "unit": "seconds" } });
            let mut steps = vec![second; 4];
            steps.push(in_app());
            world.workflow_of("long", &steps);
            let event = json!({ "name": "long", "to": "ada", "payload": sized(1_000) });
            let explained = events.explain(&parsed(event), world.now()).unwrap();
            assert!(explained.recipients[0].steps[4].message.is_some());
        },
    );
}

/// One row per name: what refuses a line break in it.
#[test]
fn no_name_has_control_characters() {
    on_both(|world| {
        furnish(&world);
        let env = &world.env;
        let plain = |field: &str| format!("422 `{field}` must be text without control characters");
        for field in ["firstName", "lastName", "phone", "avatar"] {
            let bob = parsed(json!({ "subscriberId": "bob", field: "a\nb" }));
            world.refuses(&plain(field), || env.subscribers().create(&bob));
            world.refuses(&plain(field), || env.subscribers().upsert(&bob));
            let update = parsed(json!({ field: "a\u{7}" }));
            world.refuses(&plain(field), || env.subscribers().update("ada", &update));
            let to = json!({ "subscriberId": "bob", field: "a\nb" });
            let trigger = parsed(json!({ "name": "news", "to": to }));
            world.refuses(&plain(&format!("to.{field}")), || env.events().trigger(&trigger));
        }
        for (field, change) in [
            ("name", json!({ "name": "a\nb" })),
            ("tags[1]", json!({ "tags": ["a", "a\nb"] })),
            ("steps[0].name", json!({ "steps": [named(in_app(), "a\nb")] })),
        ] {
            let update = parsed(change.clone());
            world.refuses(&plain(field), || env.workflows().update("news", &update));
            let mut create = json!({ "workflowId": "w", "name": "W", "steps": [] });
            create.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            world.refuses(&plain(field), || env.workflows().create(&parsed(create.clone())));
        }
        let integration = |rest: Value| {
            let mut create = json!({ "providerId": "ses", "channel": "email" });
            create.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            env.integrations().create(&parsed(create))
        };
        let refused = plain("name");
        world.refuses(&refused, || integration(json!({ "name": "a\nb" })));
        let refused_provider = plain("providerId");
        world.refuses(&refused_provider, || integration(json!({ "providerId": "a\nb" })));
        world.refuses(&refused, || {
            env.topics().create(&parsed(json!({ "key": "k", "name": "\0" })))
        });
        let layout = parsed(json!({ "layoutId": "l", "name": "a\nb" }));
        world.refuses(&refused, || env.layouts().upsert(&layout));
        // What is not a name may have lines.
        let update = parsed(json!({ "description": "a\nb" }));
        assert_eq!(env.workflows().update("news", &update).unwrap().description, "a\nb");
    });
}

fn named(mut step: Value, name: &str) -> Value {
    step["name"] = json!(name);
    step
}

#[test]
fn nothing_is_changed_before_it_was_created() {
    on_both(|world| {
        world.pass(Duration::from_secs(60));
        furnish(&world);
        let env = &world.env;
        let key: ContextKey = "tenant:acme".parse().unwrap();
        env.contexts().create(&parsed(json!({ "type": "tenant", "id": "acme" }))).unwrap();
        env.topics().create(&parsed(json!({ "key": "prices" }))).unwrap();
        let layout = |name| parsed(json!({ "layoutId": "l", "name": name }));
        env.layouts().upsert(&layout("L")).unwrap();
        let texts = |text| {
            parsed(json!({
                "resourceType": "workflow", "resourceId": "news", "locale": "de_DE",
                "content": { "a": text },
            }))
        };
        env.translations().upsert(&texts("a")).unwrap();
        assert_eq!(
            env.topics()
                .subscribe("prices", &parsed(json!({ "subscriptions": ["ada"] })))
                .unwrap()
                .errors,
            []
        );

        world.clock.set(Timestamp::from_millis(0));

        let (name, data) = (json!({ "name": "New" }), json!({ "data": { "a": 1 } }));
        let subscriber = env.subscribers().update("ada", &parsed(data.clone())).unwrap();
        let workflow = env.workflows().update("news", &parsed(name.clone())).unwrap();
        let context = env.contexts().update(&key, &parsed(data)).unwrap();
        let topic = env.topics().update("prices", &parsed(name.clone())).unwrap();
        let layout = env.layouts().upsert(&layout("New")).unwrap();
        let translation = env.translations().upsert(&texts("b")).unwrap();
        let subscription =
            env.topics().update_subscription("prices", "tk_prices:si_ada", &parsed(name)).unwrap();
        assert_eq!(subscriber.updated_at, subscriber.created_at);
        assert_eq!(workflow.updated_at, workflow.created_at);
        assert_eq!(context.updated_at, context.created_at);
        assert_eq!(topic.updated_at, topic.created_at);
        assert_eq!(layout.updated_at, layout.created_at);
        assert_eq!(translation.updated_at, translation.created_at);
        assert_eq!(subscription.updated_at, subscription.created_at);
    });
}

#[test]
fn a_link_has_a_longest_page() {
    let page = "https://shop.example.org/";
    let of = |length: usize| {
        UnsubscribeLinks::new(format!("{page}{}", "x".repeat(length - page.len()))).map(drop)
    };
    assert_eq!(of(UnsubscribeLinks::MAX_URL), Ok(()));
    let refused = of(UnsubscribeLinks::MAX_URL + 1).unwrap_err().to_string();
    assert!(refused.starts_with("`unsubscribeUrl` must be"), "{refused}");
}

#[test]
fn the_text_of_a_receipt_is_cut() {
    for more in [0, 1] {
        let text = "ü".repeat(Receipt::MAX_TEXT + more);
        let receipt = Receipt::new("id", ReceiptKind::Bounced).unwrap().text(text);
        assert_eq!(receipt.shown().unwrap().chars().count(), Receipt::MAX_TEXT);
    }
}

/// A message counts with its texts and payload. What is refused leaves the store as it is.
#[test]
fn messages_that_are_changed_by_their_ids_have_a_largest_size() {
    const MIB: usize = 1024 * 1024;
    let world = World::with(Interposed::default(), |builder| {
        builder.limits(Limits::default().payload(2 * MIB))
    });
    furnish(&world);
    let inbox = world.env.inbox("ada").unwrap();
    let messages = world.env.messages();
    let receive = |size| {
        world.trigger(json!({ "name": "news", "to": "ada", "payload": sized(size) }));
        // A page of the others would be as large as these.
        inbox.list(&MessageQuery::default().limit(1)).unwrap().data.remove(0)
    };
    let small = receive(100);
    let rest = small.size() - 100;
    let mut ids: Vec<_> = (0..32).map(|_| receive(MIB - rest).id).collect();
    assert_eq!(inbox.archive(ids.clone()).unwrap().len(), 32);
    assert_eq!(inbox.unarchive(ids.clone()).unwrap().len(), 32);
    assert_eq!(messages.mark("ada", ids.clone(), MarkAs::Seen).unwrap().len(), 32);
    ids.push(small.id);
    let refusal = "422 `messageId` must be at most 33554432 bytes long";
    let refuses = |changed: tidings::Result<()>| {
        let error = changed.unwrap_err();
        assert_eq!(format!("{} {error}", error.status()), refusal);
    };
    // A look at all of the store takes a while.
    world.unchanged(|| {
        refuses(inbox.archive(ids.clone()).map(drop));
        refuses(inbox.mark_as(ids.clone(), MarkAs::Read).map(drop));
        refuses(inbox.delete(ids.clone()).map(drop));
        refuses(messages.mark("ada", ids.clone(), MarkAs::Read).map(drop));
    });
    // One that is named twice counts once.
    ids[32] = ids[0];
    assert_eq!(inbox.delete(ids).unwrap(), 32);
}
