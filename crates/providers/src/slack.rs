//! Slack: chat messages through incoming webhooks.

use std::time::Duration;

use serde_json::{Value, json};
use tidings::credentials::Credentials;
use tidings::error::{Invalid, Reason};
use tidings::vocabulary::Channel;
use tidings::{Address, Delivery, Provider, ProviderReceipt, SendError};

use crate::destination::refused;
use crate::http::{AddressScope, Answer, Client, Settings, UrlOf};

// Answers of Slack that say that the channel, or its webhook, is no more.
const GONE: [&str; 5] =
    ["channel_is_archived", "channel_not_found", "no_service", "no_service_id", "no_team"];

/// Chat messages through the [incoming webhooks](https://docs.slack.dev/messaging) of Slack. The
/// URL is that of the subscriber for the integration, and the integration needs no credentials.
///
/// The content is the `text` of the message. Slack formats `*bold*`, `_italic_` and `` `code` `` in it, and
/// shows plain URLs as links. `&`, `<` and `>` are escaped, so that no value of a template mentions a
/// channel or hides a link behind a text.
///
/// Overrides of a trigger that it takes: `blocks` and `attachments`, lists in the form of Slack. They are
/// passed on as they are: mentions, and links with a text, belong in `blocks`.
#[derive(Debug)]
pub struct Slack {
    settings: Settings,
    client: Client,
}

impl Default for Slack {
    /// 15 seconds for a request.
    fn default() -> Self {
        Self::with(Settings::default())
    }
}

impl Slack {
    fn with(settings: Settings) -> Self {
        Self { client: Client::new(&settings), settings }
    }

    /// Sets how long a request may take, from the look-up of the name to the end of the answer: a day at
    /// most.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self::with(Settings { timeout, ..self.settings })
    }

    /// Allows addresses of private networks and of this machine, and `http`, such as those of a
    /// service that takes the same requests.
    #[must_use]
    pub fn allow_private_addresses(self) -> Self {
        Self::with(Settings { scope: AddressScope::Private, ..self.settings })
    }
}

impl Provider for Slack {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let Address::Webhook { url, .. } = &delivery.address else {
            return Err(refused("Slack posts to webhooks only", &delivery.address));
        };
        let headers = [("content-type", "application/json".to_owned())];
        let body = body(delivery).to_string();
        let url = (url.expose(), UrlOf::Recipient);
        outcome(self.client.post(url, &headers, body.as_bytes())?)
    }

    fn accept(&self, channel: Channel, _: &Credentials) -> Result<(), Invalid> {
        match channel {
            Channel::Chat => Ok(()),
            _ => Err(Invalid::new("channel", Reason::malformed("chat"))),
        }
    }
}

fn outcome(answer: Answer) -> Result<ProviderReceipt, SendError> {
    if answer.status >= 400 && GONE.contains(&answer.text.as_str()) {
        return Err(SendError::recipient_gone(answer.reason()));
    }
    answer.accepted().map(|_| ProviderReceipt::default())
}

// Escapes the characters of links and mentions, as Slack asks for. Values of a template may contain them,
// and the rendered text does not show which of its parts are values.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn body(delivery: &Delivery) -> Value {
    let text = json!(escaped(delivery.message.text().unwrap_or_default()));
    let lists = ["blocks", "attachments"].into_iter().filter_map(|name| {
        let list = delivery.overrides.get(name).filter(|list| list.is_array())?;
        Some((name.to_owned(), list.clone()))
    });
    std::iter::once(("text".to_owned(), text)).chain(lists).collect()
}
