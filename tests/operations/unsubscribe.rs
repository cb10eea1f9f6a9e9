//! Unsubscribe links: what is in a message, what a token means, and what it switches off.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::tables;
use tidings::Scope;
use tidings::context::{ContextKey, ContextPayload};
use tidings::ids::TopicKey;
use tidings::preview::Preview;
use tidings::store::Table;
use tidings::unsubscribe::{UnsubscribeLinks, UnsubscribeRequest};
use tidings::vocabulary::Channel;

use crate::subscriptions::subscribe_all;
use crate::world::{
    World, email, id, in_app, on_both, on_both_with, only, parsed, sms, wire, with, workflow_of,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

// A mail that shows its link, in a layout that does too.
fn linked() -> Value {
    let body = "<a href=\"{{ unsubscribeUrl }}\">No more</a>";
    json!({ "type": "email", "template": { "subject": "Hello", "body": body } })
}

// A subscriber with an address, and integrations for e-mails and text messages.
fn ready(world: &World) {
    let ada = json!({ "subscriberId": "ada", "email": "ada@example.org", "phone": "+1" });
    world.subscriber(ada);
    world.active_integration("email", "sendgrid");
    world.active_integration("sms", "twilio");
}

// The token in the link of the only message that was sent.
fn sent_token(world: &World) -> String {
    world.run_due();
    let link = only(world.recorder.sent()).unsubscribe_url.expect("it has a link");
    token_in(&link)
}

fn token_in(link: &str) -> String {
    link.strip_prefix("https://shop.example.org/unsubscribe?token=").unwrap().to_owned()
}

fn token_of(env: &Scope, request: &UnsubscribeRequest) -> String {
    token_in(&env.unsubscribe_url(request).unwrap())
}

fn of_workflow(workflow: &str) -> UnsubscribeRequest {
    UnsubscribeRequest::workflow("ada", workflow, Channel::Email).unwrap()
}

/// No message goes out without its link if the key of the links is lost. Links of the lost key are invalid.
#[test]
fn a_message_of_an_environment_without_a_key_has_a_link_of_a_new_one() {
    on_both(|world| {
        ready(&world);
        world.workflow_of("news", &[linked(), sms()]);
        world.notify("news", "ada");
        let lost = token_of(&world.env, &of_workflow("news"));
        let rows = tables::dump(&world.store);
        for (table, key, _) in rows.iter().filter(|(table, ..)| *table == Table::LinkKeys) {
            tables::put(&world.store, *table, key, None);
        }

        world.run_due();

        let sent = world.recorder.sent();
        assert_eq!(sent.len(), 2);
        for sent in sent {
            let token = token_in(sent.unsubscribe_url.as_ref().expect("it has a link"));
            assert!(world.env.read_unsubscribe(&token).unwrap().subscribed);
        }
        assert_eq!(world.env.read_unsubscribe(&lost).unwrap_err().status(), 400);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

#[test]
fn a_link_is_in_the_message_and_beside_it() {
    on_both(|world| {
        ready(&world);
        let frame = "{{ content }}<i>{{ unsubscribeUrl }}</i>";
        let layout =
            json!({ "layoutId": "frame", "name": "Frame", "body": frame, "isDefault": true });
        world.env.layouts().upsert(&parsed(layout)).unwrap();
        world.workflow_of("news", &[linked(), sms()]);
        world.notify("news", "ada");
        world.run_due();

        for sent in world.recorder.sent() {
            let link = sent.unsubscribe_url.clone().unwrap();
            let meaning = world.env.read_unsubscribe(&token_in(&link)).unwrap();
            assert_eq!(wire(meaning)["from"]["channel"], sent.integration.channel.as_str());
            if sent.integration.channel == Channel::Email {
                let content = wire(sent.message.content);
                let text = content.as_str().unwrap();
                // HTML has other letters for the slashes of the URL.
                assert_eq!(text.matches(&token_in(&link)).count(), 2, "{text}");
            }
        }
        let preview = Preview::new("0", "ada").unwrap();
        let shown = wire(world.env.workflows().preview("news", &preview).unwrap().content);
        assert!(shown.as_str().unwrap().contains("?token="), "{shown}");
    });
}

/// Retries are the same message, also if much time passes between them.
#[test]
fn every_attempt_has_the_same_link() {
    on_both(|world| {
        ready(&world);
        world.workflow_of("news", &[linked()]);
        world.notify("news", "ada");
        world.recorder.refuse_next(tidings::SendError::retryable("busy"));
        world.run_due();
        let notification = only(world.notifications(json!({})));
        world.pass(DAY / 24);
        let sent = sent_token(&world);
        let meaning = world.env.read_unsubscribe(&sent).unwrap();
        assert_eq!(meaning.expires_at, notification.created_at.after(DAY * 365));
        let message = world.messages("ada").remove(0);
        assert!(wire(message.content).as_str().unwrap().contains(&sent));
    });
}

/// One row per message without a link.
#[test]
fn some_messages_have_no_link() {
    on_both(|world| {
        ready(&world);
        let shown = "{% if unsubscribeUrl %}a link{% else %}none{% endif %}";
        let inbox = json!({ "type": "in_app", "template": { "body": shown } });
        let mail = json!({ "type": "email", "template": { "subject": "!", "body": shown } });
        world.workflow_of("inbox", &[inbox]);
        let critical = json!({ "critical": true });
        world.workflow(with(workflow_of("critical", std::slice::from_ref(&mail)), critical));
        world.notify("inbox", "ada");
        world.notify("critical", "ada");
        world.run_due();
        assert_eq!(only(world.recorder.sent()).unsubscribe_url, None);
        for message in world.messages("ada") {
            assert_eq!(wire(message.content), "none");
        }
        let refused = "400 critical workflows take no preferences: critical";
        world.refuses(refused, || world.env.unsubscribe_url(&of_workflow("critical")));
    });
}

#[test]
fn an_engine_without_a_page_has_no_links() {
    let engine = tidings::Engine::in_memory();
    let env = engine.organization("acme").unwrap().development().unwrap();
    env.subscribers().create(&parsed(json!({ "subscriberId": "ada" }))).unwrap();
    env.workflows().create(&parsed(workflow_of("news", &[email()]))).unwrap();
    let refusal = env.unsubscribe_url(&of_workflow("news")).unwrap_err();
    assert_eq!(refusal.status(), 400);
    assert!(refusal.to_string().starts_with("the engine has no URL"), "{refusal}");
}

#[test]
fn a_token_switches_off_one_channel_of_one_workflow() {
    on_both(|world| {
        ready(&world);
        world.workflow_of("news", &[linked()]);
        world.workflow_of("texts", &[sms()]);
        world.workflow_of("both", &[linked(), sms()]);
        world.notify("both", "ada");
        world.run_due();
        let links = world.recorder.sent();
        let mail = links.iter().find(|sent| sent.integration.channel == Channel::Email).unwrap();
        let token = token_in(mail.unsubscribe_url.as_ref().unwrap());

        let meaning = world.unchanged(|| world.env.read_unsubscribe(&token).unwrap());
        assert!(meaning.subscribed);
        assert_eq!(meaning.subscriber_id, id("ada"));
        assert_eq!(wire(&meaning)["from"]["workflow"]["identifier"], "both");
        let done = world.env.unsubscribe(&token).unwrap();
        assert!(!done.subscribed);
        assert_eq!(world.unchanged(|| world.env.read_unsubscribe(&token).unwrap()), done);
        // A second click changes nothing.
        assert_eq!(world.unchanged(|| world.env.unsubscribe(&token).unwrap()), done);

        let id = world.notify("both", "ada");
        world.notify("news", "ada");
        world.run_due();
        let channels: Vec<_> =
            world.recorder.sent()[2..].iter().map(|sent| sent.integration.channel).collect();
        assert_eq!(channels.len(), 2, "{channels:?}");
        let log = wire(&world.notification(id).jobs[0].execution_details);
        let last = log.as_array().unwrap().last().unwrap();
        assert_eq!(last["detail"], "filtered_by_subscriber_workflow_preference");
    });
}

/// One row per preference of the subscriber, for the workflow or in general: whether its channel is on.
#[test]
fn a_link_shows_whether_its_channel_is_on() {
    on_both(|world| {
        ready(&world);
        world.workflow_of("news", &[linked()]);
        let token = token_of(&world.env, &of_workflow("news"));
        let preferences = world.env.preferences("ada").unwrap();
        for (workflow, preference, subscribed) in [
            (true, json!({ "enabled": false }), false),
            (true, json!({ "channels": { "email": true } }), true),
            (true, json!({ "enabled": true, "channels": { "email": null } }), true),
            (true, json!({ "enabled": null }), true),
            (false, json!({ "enabled": false }), false),
            (false, json!({ "channels": { "email": true } }), true),
            (false, json!({ "channels": { "email": false } }), false),
            (true, json!({ "channels": { "email": true } }), true),
        ] {
            if workflow {
                let one = with(json!({ "workflowId": "news", "channels": {} }), preference.clone());
                preferences.update_bulk(&parsed(json!({ "preferences": [one] }))).unwrap();
            } else {
                preferences.update_global(&parsed(preference.clone())).unwrap();
            }
            let shown = world.env.read_unsubscribe(&token).unwrap();
            assert_eq!(shown.subscribed, subscribed, "{workflow} {preference}");
        }
        assert!(!world.env.unsubscribe(&token).unwrap().subscribed);
    });
}

/// The preference of a link is that of the contexts of its message.
#[test]
fn a_token_is_about_the_contexts_of_its_message() {
    on_both(|world| {
        ready(&world);
        world.workflow_of("news", &[linked()]);
        let of = |tenant: &str| json!({ "name": "news", "to": "ada", "context": { "tenant": tenant, "app": "web" } });
        world.trigger(of("acme"));
        let token = sent_token(&world);
        world.env.unsubscribe(&token).unwrap();
        world.trigger(of("acme"));
        world.run_due();
        assert_eq!(world.recorder.sent().len(), 1);
        world.trigger(of("umbrella"));
        world.notify("news", "ada");
        world.run_due();
        assert_eq!(world.recorder.sent().len(), 3);
    });
}

#[test]
fn a_token_of_a_topic_ends_the_subscriptions_of_its_contexts() {
    on_both(|world| {
        ready(&world);
        world.bare_subscriber("bob");
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada", "bob"], "name": "News" }));
        let context = json!({ "tenant": "acme" });
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada"], "context": context }));
        let token = token_of(&world.env, &UnsubscribeRequest::topic("ada", "news").unwrap());

        let meaning = wire(world.env.read_unsubscribe(&token).unwrap());
        let topic = json!({ "type": "topic", "topicKey": "news", "name": "News" });
        assert_eq!((&meaning["from"], &meaning["subscribed"]), (&topic, &json!(true)));
        assert!(!world.env.unsubscribe(&token).unwrap().subscribed);

        let all = world.env.topics().subscriptions("news", &parsed(json!({}))).unwrap().data;
        let mut left: Vec<_> = all
            .iter()
            .map(|one| (one.subscriber_id.to_string(), one.context_keys.is_empty()))
            .collect();
        left.sort();
        assert_eq!(left, [("ada".to_owned(), false), ("bob".to_owned(), true)]);
        assert!(!world.unchanged(|| world.env.unsubscribe(&token).unwrap()).subscribed);
    });
}

/// One row per token that is refused, by the page and by its `POST`.
#[test]
fn other_tokens_are_refused_with_their_reason() {
    let links = UnsubscribeLinks::new("https://shop.example.org/unsubscribe").unwrap();
    let links = links.valid_for_days(2);
    on_both_with(
        |builder| builder.unsubscribe_links(links.clone()),
        |world| {
            ready(&world);
            world.workflow_of("news", &[linked()]);
            let token = token_of(&world.env, &of_workflow("news"));
            let refused = |env: &Scope, token: &str, reason: &str| {
                let refusal = format!("400 the unsubscribe link cannot be used: {reason}");
                world.refuses(&refusal, || env.read_unsubscribe(token));
                world.refuses(&refusal, || env.unsubscribe(token));
            };
            let (mut start, end) = (token.clone(), token.split_at(30).1);
            start.truncate(30);
            start.pop();
            for (text, reason) in [
                ("", "it is not whole"),
                ("no token", "it is not whole"),
                (&token[..20], "it is not whole"),
                (&format!("{start}_{end}"), "its signature is wrong"),
            ] {
                refused(&world.env, text, reason);
            }
            refused(&world.production(), &token, "it belongs to another environment");
            world.pass(DAY);
            assert!(world.env.read_unsubscribe(&token).is_ok());
            world.pass(DAY);
            refused(&world.env, &token, "it has expired");

            let token = token_of(&world.env, &of_workflow("news"));
            world.env.subscribers().delete("ada").unwrap();
            refused(&world.env, &token, "its subscriber was deleted");
            // Another subscriber of that id is not meant.
            world.bare_subscriber("ada");
            refused(&world.env, &token, "its subscriber was deleted");
        },
    );
}

#[test]
fn a_token_outlives_neither_its_workflow_nor_its_topic() {
    on_both(|world| {
        ready(&world);
        let news = world.workflow_of("news", &[linked()]);
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada"] }));
        let tokens = [of_workflow("news"), UnsubscribeRequest::topic("ada", "news").unwrap()];
        let [of_workflow, of_topic] = tokens.map(|request| token_of(&world.env, &request));
        world.env.workflows().delete("news").unwrap();
        world.env.topics().delete("news").unwrap();
        let missing = format!("404 workflow `{}` is not there", news.id);
        world.refuses(&missing, || world.env.unsubscribe(&of_workflow));
        world.refuses("404 topic `news` is not there", || world.env.unsubscribe(&of_topic));
    });
}

/// A workflow that has become critical keeps its preferences.
#[test]
fn a_critical_workflow_is_not_switched_off() {
    on_both(|world| {
        ready(&world);
        world.workflow_of("news", &[linked(), in_app()]);
        let token = token_of(&world.env, &of_workflow("news"));
        let critical = parsed(json!({ "critical": true }));
        world.env.workflows().update("news", &critical).unwrap();
        let refusal = "400 critical workflows take no preferences: news";
        world.refuses(refusal, || world.env.unsubscribe(&token));
    });
}

/// Links of all contexts that an event may have can be used.
#[test]
fn a_link_has_as_many_contexts_as_an_event() {
    on_both(|world| {
        ready(&world);
        let topic = "x".repeat(TopicKey::MAX_LEN);
        subscribe_all(&world, &topic, json!({ "subscriptions": ["ada"] }));
        let request = |count: usize| {
            let key = |number| ContextKey::new(format!("{number:0>100}"), "x".repeat(100)).unwrap();
            let contexts = (0..count).map(key).collect();
            UnsubscribeRequest::topic("ada", &topic).unwrap().contexts(contexts)
        };
        let token = token_of(&world.env, &request(ContextPayload::MAX));
        let meaning = world.env.read_unsubscribe(&token).unwrap();
        assert_eq!(meaning.context_keys.keys().count(), ContextPayload::MAX);
        let refused = "422 `contextKeys` must have at most 5 items";
        let one_more = request(ContextPayload::MAX + 1);
        world.refuses(refused, || world.env.unsubscribe_url(&one_more));
    });
}

#[test]
fn a_link_names_records_that_are_there() {
    on_both(|world| {
        ready(&world);
        world.workflow_of("news", &[linked()]);
        let nobody = UnsubscribeRequest::workflow("eve", "news", Channel::Email).unwrap();
        world.refuses("404 subscriber `eve` is not there", || world.env.unsubscribe_url(&nobody));
        let gone = of_workflow("gone");
        world.refuses("404 workflow `gone` is not there", || world.env.unsubscribe_url(&gone));
        let topic = UnsubscribeRequest::topic("ada", "gone").unwrap();
        world.refuses("404 topic `gone` is not there", || world.env.unsubscribe_url(&topic));
    });
}
