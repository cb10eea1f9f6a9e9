//! E-mail through a server on the loopback interface.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test fails by panicking, and its modules have no users"
)]

#[path = "../common/mod.rs"]
mod common;
mod content;
mod dialogue;
mod failures;
mod kill;
mod lines;
mod load;
mod server;

use serde_json::{Value, json};
use tidings::credentials::Credentials;
use tidings::integration::IntegrationCreate;
use tidings::step::Step;
use tidings::subscriber::SubscriberCreate;
use tidings::vocabulary::Channel;
use tidings::{Delivery, Provider};
use tidings_providers::Smtp;

use crate::common::kind;
use crate::server::Server;

/// Account at a server, without encryption.
fn account(server: &Server) -> Credentials {
    Credentials::default()
        .host(server.address.ip().to_string())
        .port(server.address.port())
        .from("shop@example.com")
        .sender_name("The Shop")
}

fn delivery(credentials: Credentials) -> Delivery {
    let ada = SubscriberCreate::new("ada").unwrap().first_name("Ada");
    let step = Step::email("On its way", "<p>Dear <b>Ada</b></p>").unwrap();
    let integration = IntegrationCreate::new("smtp", Channel::Email).unwrap();
    let ada = ada.email("ada@example.org").unwrap();
    Delivery::sample(&step, &ada, &integration.credentials(credentials)).unwrap()
}

fn overridden(mut delivery: Delivery, overrides: Value) -> Delivery {
    delivery.overrides = overrides.try_into().unwrap();
    delivery
}

/// What comes of an e-mail, shortened to the kind of error.
fn outcome(smtp: &Smtp, delivery: &Delivery) -> (&'static str, String) {
    match smtp.send(delivery) {
        Ok(_) => ("sent", String::new()),
        Err(error) => (kind(&error), error.to_string()),
    }
}

fn json_of(credentials: Value) -> Credentials {
    serde_json::from_value(credentials).unwrap()
}

fn tls(pem: &str) -> Value {
    json!({ "ca": pem })
}
