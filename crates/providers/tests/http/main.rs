//! Providers over HTTP, with a server on the loopback interface.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test fails by panicking, and its modules have no users"
)]

#[path = "../common/mod.rs"]
mod common;
mod destinations;
mod failures;
mod integrations;
mod server;
mod slack;
mod web_push;
mod webhook;

use serde_json::{Value, json};
use tidings::Delivery;
use tidings::credentials::Credentials;
use tidings::integration::IntegrationCreate;
use tidings::step::Step;
use tidings::subscriber::SubscriberCreate;
use tidings::vocabulary::Channel;

use crate::common::kind;

/// A delivery to a subscriber with these credentials for the integration.
fn delivery(
    step: &Step,
    channel: Channel,
    of_channel: Value,
    credentials: Credentials,
) -> Delivery {
    let ada: SubscriberCreate = serde_json::from_value(json!({
        "subscriberId": "ada", "email": "ada@example.org", "phone": "+491234",
        "channels": [{ "providerId": "slack", "credentials": of_channel, "_integrationId": ID }],
    }))
    .unwrap();
    let integration = IntegrationCreate::new("slack", channel).unwrap().credentials(credentials);
    Delivery::sample(step, &ada, &integration).unwrap()
}

const ID: &str = "0198a000-0000-7000-8000-000000000001";

fn chat(url: &str, credentials: Credentials) -> Delivery {
    let step = Step::chat("Order *A-1* is on its way").unwrap();
    delivery(&step, Channel::Chat, json!({ "webhookUrl": url }), credentials)
}
