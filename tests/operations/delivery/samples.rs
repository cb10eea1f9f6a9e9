//! Deliveries for the unit tests of a provider.

use serde_json::json;
use tidings::error::Invalid;
use tidings::integration::IntegrationCreate;
use tidings::step::Step;
use tidings::subscriber::SubscriberCreate;
use tidings::vocabulary::Channel;
use tidings::{Delivery, Result};

use crate::world::parsed;

fn ada(provider: &str) -> SubscriberCreate {
    parsed(json!({
        "subscriberId": "ada",
        "firstName": "Ada",
        "email": "ada@example.org",
        "phone": "+4912345",
        "channels": [{
            "_integrationId": "01990000-0000-7000-8000-000000000001",
            "providerId": provider,
            "credentials": { "deviceTokens": ["t1"], "webhookUrl": "https://hooks.example/1" },
        }],
    }))
}

fn sample(step: std::result::Result<Step, Invalid>, channel: Channel) -> Result<Delivery> {
    let provider = match channel {
        Channel::Push => "fcm",
        Channel::Chat => "slack",
        Channel::InApp | Channel::Email | Channel::Sms => "apns",
    };
    Delivery::sample(&step?, &ada(provider), &IntegrationCreate::new(provider, channel)?)
}

/// One row per channel that providers serve: the message, and where it goes.
#[test]
fn a_sample_is_rendered_and_addressed() {
    let body = "Dear {{ subscriber.firstName }}";
    for (step, channel, address) in [
        (Step::email("Hi", body), Channel::Email, r#"Email(Email("ada@example.org"))"#),
        (Step::sms(body), Channel::Sms, r#"Phone("+4912345")"#),
        (Step::push("Hi", body), Channel::Push, r#"Device("t1")"#),
        (Step::chat(body), Channel::Chat, "Webhook {"),
    ] {
        let delivery = sample(step, channel).unwrap();
        assert_eq!(delivery.message.text(), Some("Dear Ada"), "{channel}");
        assert_eq!(delivery.message.channel, channel);
        let shown = format!("{:?}", delivery.address);
        assert!(shown.starts_with(address), "{shown}");
        assert_eq!(delivery.integration.channel, channel);
        assert_eq!((delivery.subscriber.subscriber_id.as_str(), delivery.attempt()), ("ada", 1));
    }
}

#[test]
fn the_same_arguments_make_the_same_sample() {
    let text = || sample(Step::sms("Hi"), Channel::Sms).unwrap();
    assert_eq!(text().message, text().message);
    assert_eq!(text().idempotency_key(), text().idempotency_key());
}

#[test]
fn what_is_never_sent_is_no_sample() {
    let refusal = "`sample` must be for one channel, with a step, an address and an integration";
    for (step, channel) in [
        (Step::sms("Hi"), Channel::Email),
        (Step::in_app("Hi"), Channel::InApp),
        (Step::sms("Hi").map(|step| step.active(false)), Channel::Sms),
    ] {
        assert_eq!(sample(step, channel).unwrap_err().to_string(), refusal);
    }
}
