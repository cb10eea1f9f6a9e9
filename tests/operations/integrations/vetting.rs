//! What a provider says of its integrations: whether it accepts them when they are saved, and what
//! comes of a test.

use std::sync::Arc;

use serde_json::{Value, json};
use testkit::interposed::Point;
use tidings::credentials::Credentials;
use tidings::error::{Invalid, Reason};
use tidings::integration::{Integration, IntegrationCreate, IntegrationUpdate};
use tidings::vocabulary::Channel;
use tidings::{Delivery, Error, IntegrationTestResult, Provider, ProviderReceipt, SendError};

use crate::world::{World, on_both_with, parsed};

/// A provider for e-mail that needs a host, and reaches `up` only.
#[derive(Debug)]
struct Relay;

impl Provider for Relay {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        Ok(ProviderReceipt::default())
    }

    fn accept(&self, channel: Channel, credentials: &Credentials) -> Result<(), Invalid> {
        if channel != Channel::Email {
            return Err(Invalid::new("channel", Reason::malformed("email")));
        }
        let host = credentials.host.as_ref();
        assert_ne!(host.map(String::as_str), Some("nowhere"), "on purpose");
        host.map(drop).ok_or(Invalid::new("credentials.host", Reason::Missing))
    }

    fn check(&self, integration: &Integration) -> IntegrationTestResult {
        match integration.credentials.host.as_deref() {
            Some("up") => Ok(()),
            Some("panics") => panic!("on purpose"),
            _ => Err(SendError::retryable("nobody answers")),
        }
        .into()
    }
}

// A host may choose a provider at run time.
fn with_relay(scenario: impl Fn(World)) {
    let chosen = || -> Box<dyn Provider> { Box::new(Relay) };
    let shared = || -> Arc<dyn Provider> { Arc::new(Relay) };
    let builder = testkit::sealed::builder;
    on_both_with(|_| builder().provider("relay", chosen()), &scenario);
    on_both_with(|_| builder().provider("relay", shared()), &scenario);
}

fn relay(channel: &str, credentials: &Value) -> IntegrationCreate {
    parsed(json!({
        "identifier": "mail", "providerId": "relay", "channel": channel, "credentials": credentials,
    }))
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    let error = answer.unwrap_err();
    assert_eq!(error.status(), 422);
    error.to_string()
}

#[test]
fn an_integration_that_lacks_a_credential_is_not_saved() {
    with_relay(|world| {
        let integrations = world.env.integrations();
        let lacking = relay("email", &json!({ "from": "us@example.org" }));
        let host = "`credentials.host` is required";
        assert_eq!(refusal(integrations.create(&lacking)), host);
        assert_eq!(refusal(integrations.upsert(&lacking)), host);
        let sms = relay("sms", &json!({ "host": "up" }));
        assert_eq!(refusal(integrations.create(&sms)), "`channel` must be email");
        let broken = relay("email", &json!({ "host": "nowhere" }));
        let panicked = "`credentials` must be credentials at which the provider does not panic";
        assert_eq!(refusal(integrations.create(&broken)), panicked);
        assert_eq!(integrations.list().unwrap(), []);

        let saved = integrations.create(&relay("email", &json!({ "host": "up" }))).unwrap();

        let cleared = IntegrationUpdate::default().credentials(Credentials::default());
        assert_eq!(refusal(integrations.update(saved.id, &cleared)), host);
        assert_eq!(refusal(integrations.upsert(&lacking)), host);
        assert_eq!(integrations.get(saved.id).unwrap(), saved);
        // The credentials stay as they are, and are not asked for again.
        let renamed = IntegrationUpdate::default().name("Our mail");
        assert_eq!(integrations.update(saved.id, &renamed).unwrap().name, "Our mail");
        let moved = IntegrationUpdate::default().credentials(Credentials::default().host("down"));
        assert!(integrations.update(saved.id, &moved).is_ok());
    });
}

/// One row per integration that has the name at first, if any: another call gives the name to one of the
/// provider, before the transaction of the update.
#[test]
fn an_integration_that_gets_the_name_meanwhile_is_vetted() {
    for is_there in [true, false] {
        with_relay(|world| {
            let integrations = world.env.integrations();
            if is_there {
                let ses = IntegrationCreate::new("ses", Channel::Email).unwrap();
                integrations.create(&ses.identifier("mail").unwrap()).unwrap();
            }
            let env = world.env.clone();
            world.store.pause(Point::Write, 0, move || {
                if is_there {
                    let renamed = parsed(json!({ "identifier": "old" }));
                    env.integrations().update("mail", &renamed).unwrap();
                }
                env.integrations().create(&relay("email", &json!({ "host": "up" }))).unwrap();
            });
            let once = world.env.idempotent("k").unwrap();
            let cleared = IntegrationUpdate::default().credentials(Credentials::default());
            for _ in 0..2 {
                let answer = once.integrations().update("mail", &cleared);
                assert_eq!(refusal(answer), "`credentials.host` is required");
            }
            let saved = integrations.get("mail").unwrap();
            assert_eq!(saved.credentials.host.as_deref(), Some("up"));
            let moved =
                IntegrationUpdate::default().credentials(Credentials::default().host("down"));
            assert!(integrations.update("mail", &moved).is_ok());
        });
    }
}

#[test]
fn a_refusal_of_a_provider_is_an_answer_that_is_kept() {
    with_relay(|world| {
        let once = world.env.idempotent("k").unwrap();
        let lacking = relay("email", &json!({}));
        let first = refusal(once.integrations().create(&lacking));
        assert_eq!(refusal(once.integrations().create(&lacking)), first);
    });
}

/// One row per integration: what comes of a test.
#[test]
fn a_test_says_whether_the_provider_reaches_its_service() {
    with_relay(|world| {
        let integrations = world.env.integrations();
        let tested = |create: IntegrationCreate| {
            let create = create.identifier(format!("i{}", world.tick().as_millis())).unwrap();
            integrations.test(integrations.create(&create).unwrap().id).unwrap()
        };
        let of_relay = |host| tested(relay("email", &json!({ "host": host })));
        let failed = |reason| IntegrationTestResult::Failed(SendError::retryable(reason));

        assert_eq!(of_relay("up"), IntegrationTestResult::Passed);
        assert_eq!(of_relay("down"), failed("nobody answers"));
        assert_eq!(of_relay("panics"), failed("the provider panicked"));
        let other = IntegrationCreate::new("ses", Channel::Email).unwrap();
        assert_eq!(tested(other), IntegrationTestResult::NoProvider);
        let nobody = integrations.test("0198a000-0000-7000-8000-000000000001").unwrap_err();
        assert_eq!(nobody.status(), 404);
    });
    let world = World::in_memory();
    let ses = world.active_integration("email", "ses");
    let tested = world.env.integrations().test(ses.id).unwrap();
    assert_eq!(tested, IntegrationTestResult::NotSupported);
}
