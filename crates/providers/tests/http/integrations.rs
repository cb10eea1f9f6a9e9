//! URLs of integrations: what their answers mean to the engine.

use tidings::circuit::{Circuit, CircuitPolicy};
use tidings::credentials::Credentials;
use tidings::dead_letter::{DeadLetterQuery, DeadLetterReason};
use tidings::integration::{IntegrationCreate, OnUnknown};
use tidings::step::Step;
use tidings::store::memory::MemoryStore;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::Trigger;
use tidings::vocabulary::Channel;
use tidings::workflow::WorkflowCreate;
use tidings::{Engine, Scope};
use tidings_providers::Webhook;

use crate::server::{Server, answer};

/// An engine whose text messages are webhooks.
fn engine() -> (Engine, Scope) {
    let webhook = Webhook::default().allow_private_addresses();
    let engine = Engine::builder().provider("gateway", webhook).build(MemoryStore::default());
    let env = engine.organization("shop").unwrap().production().unwrap();
    let text = Step::sms("Hello").unwrap();
    env.workflows().create(&WorkflowCreate::new("hello", "Hello").unwrap().step(text)).unwrap();
    (engine, env)
}

fn integration(identifier: &str, server: &Server) -> IntegrationCreate {
    let credentials = Credentials::default().secret_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let integration = IntegrationCreate::new("gateway", Channel::Sms).unwrap();
    let integration = integration.credentials(credentials.webhook_url(server.url("http")));
    integration.identifier(identifier).unwrap()
}

fn trigger(env: &Scope) {
    let ada = SubscriberCreate::new("ada").unwrap().phone("+491234");
    env.events().trigger(&Trigger::new("hello", ada).unwrap()).unwrap();
}

#[test]
fn a_fallback_takes_over_from_a_url_that_is_not_found() {
    let moved = Server::start(|_| answer(404, "", "no such path"));
    let there = Server::start(|_| answer(200, "", ""));
    let (engine, env) = engine();
    env.integrations().create(&integration("moved", &moved)).unwrap();
    env.integrations().create(&integration("there", &there).fallback(1)).unwrap();
    trigger(&env);

    assert_eq!(engine.delivery().run_due(100).unwrap().sent, 1);

    assert_eq!((moved.requests().len(), there.requests().len()), (1, 1));
}

#[test]
fn a_url_that_is_not_found_opens_the_circuit_of_its_integration() {
    let moved = Server::start(|_| answer(404, "", "no such path"));
    let (engine, env) = engine();
    env.integrations().create(&integration("moved", &moved)).unwrap();
    for _ in 0..CircuitPolicy::default().failures {
        trigger(&env);
        engine.delivery().run_due(100).unwrap();
    }
    let circuit = env.integrations().health().unwrap()[0].circuit;
    assert!(matches!(circuit, Circuit::Open { .. }), "{circuit:?}");
}

/// One row per answer of a gateway: the receiver may have the message.
#[test]
fn a_message_that_is_sent_once_at_most_is_given_up_behind_a_gateway() {
    for status in [502, 504] {
        let gateway = Server::start(move |_| answer(status, "", "no answer"));
        let (engine, env) = engine();
        let once = integration("once", &gateway).on_unknown(OnUnknown::GiveUp);
        env.integrations().create(&once).unwrap();
        trigger(&env);

        assert_eq!(engine.delivery().run_due(100).unwrap().failed, 1, "{status}");

        let letters = env.dead_letters().list(&DeadLetterQuery::default()).unwrap().data;
        assert_eq!(letters[0].reason, DeadLetterReason::AnswerLost, "{status}");
    }
}
