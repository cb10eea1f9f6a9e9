#![doc = include_str!("../README.md")]

#[cfg(feature = "http")]
mod destination;
#[cfg(feature = "http")]
mod http;
#[cfg(any(feature = "http", feature = "smtp"))]
mod look_up;
#[cfg(feature = "slack")]
mod slack;
#[cfg(feature = "smtp")]
mod smtp;
#[cfg(any(feature = "http", feature = "smtp"))]
mod tls;
#[cfg(feature = "web-push")]
mod web_push;
#[cfg(feature = "webhook")]
mod webhook;

#[cfg(feature = "slack")]
pub use slack::Slack;
#[cfg(feature = "smtp")]
pub use smtp::Smtp;
#[cfg(feature = "web-push")]
pub use web_push::WebPush;
#[cfg(feature = "webhook")]
pub use webhook::{SignedHeaders, Unverified, Webhook, WebhookKeys};
