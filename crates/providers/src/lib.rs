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

// Longest timeout. The sum of the present and a longer one may overflow, and ureq panics then.
#[cfg(any(feature = "http", feature = "smtp"))]
const LONGEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);
