//! Destinations: one that a provider cannot send to says nothing of the integration.

use serde_json::json;
use tidings::circuit::{Circuit, CircuitPolicy};
use tidings::credentials::Credentials;
use tidings::dead_letter::{DeadLetterQuery, DeadLetterReason};
use tidings::integration::IntegrationCreate;
use tidings::json::read_value;
use tidings::step::Step;
use tidings::store::memory::MemoryStore;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::Trigger;
use tidings::vocabulary::Channel;
use tidings::workflow::WorkflowCreate;
use tidings::{Engine, Provider};
use tidings_providers::{Slack, WebPush, Webhook};

use crate::web_push::application;

// Number of messages: as many failures open a circuit.
fn messages() -> usize {
    CircuitPolicy::default().failures.try_into().unwrap()
}

#[track_caller]
fn check(provider: impl Provider, (channel, step): (Channel, Step), credentials: Credentials) {
    let engine = Engine::builder().provider("chat", provider).build(MemoryStore::default());
    let env = engine.organization("shop").unwrap().production().unwrap();
    let integration = IntegrationCreate::new("chat", channel).unwrap().credentials(credentials);
    env.integrations().create(&integration.identifier("chat").unwrap()).unwrap();
    env.workflows().create(&WorkflowCreate::new("hello", "Hello").unwrap().step(step)).unwrap();
    for (kind, place) in [
        ("slack_channel", json!({ "channelId": "C0123" })),
        ("phone", json!({ "phoneNumber": "+491234" })),
    ] {
        for number in 0..messages() {
            let subscriber = format!("{kind}-{number}");
            env.subscribers().create(&SubscriberCreate::new(&*subscriber).unwrap()).unwrap();
            let endpoint = json!({
                "subscriberId": subscriber, "integrationIdentifier": "chat", "type": kind,
                "endpoint": place,
            });
            env.channel_endpoints().create(&read_value(&endpoint).unwrap()).unwrap();
            env.events().trigger(&Trigger::new("hello", &*subscriber).unwrap()).unwrap();
            engine.delivery().run_due(100).unwrap();
        }
        let health = env.integrations().health().unwrap();
        assert_eq!(health[0].circuit, Circuit::default(), "{kind}");
    }
    let letters = env.dead_letters().list(&DeadLetterQuery::default().limit(100)).unwrap().data;
    assert_eq!(letters.len(), messages() * 2);
    assert!(letters.iter().all(|letter| letter.reason == DeadLetterReason::Refused));
}

#[test]
fn a_destination_that_slack_does_not_have_opens_no_circuit() {
    let chat = (Channel::Chat, Step::chat("Hello").unwrap());
    check(Slack::default(), chat, Credentials::default());
}

#[test]
fn a_destination_without_a_url_opens_no_circuit() {
    let chat = (Channel::Chat, Step::chat("Hello").unwrap());
    let credentials = Credentials::default().secret_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    check(Webhook::default(), chat, credentials);
}

#[test]
fn a_destination_that_is_no_browser_opens_no_circuit() {
    let push = (Channel::Push, Step::push("Hello", "Hello").unwrap());
    check(WebPush::default(), push, application());
}
