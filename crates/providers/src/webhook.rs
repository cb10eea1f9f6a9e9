//! Webhooks, signed as the Standard Webhooks specification says.

mod signature;

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tidings::credentials::Credentials;
use tidings::error::{Invalid, Reason};
use tidings::integration::Integration;
use tidings::secret::Secret;
use tidings::vocabulary::Channel;
use tidings::{Address, Delivery, IntegrationTestResult, Provider, ProviderReceipt, SendError};

use crate::destination::refused;
use crate::http::{AddressScope, Client, Settings, UrlOf};

pub use signature::{SignedHeaders, Unverified, WebhookKeys};

/// Messages as webhooks: JSON that is posted to a URL, signed as the
/// [Standard Webhooks](https://www.standardwebhooks.com) specification says.
///
/// Credentials of the integration:
///
/// | credential | |
/// |---|---|
/// | `secretKey` | required: `whsec_` and 24 to 64 bytes in base64. Several, with spaces between them, all sign, so that one can replace another |
/// | `webhookUrl` | URL for all messages, required but for chat, whose subscribers have URLs of their own |
///
/// The body is `{ "type": <workflow>, "timestamp", "data": { "messageId", "channel", "to", "subject",
/// "title", "content", .. } }`. The header `webhook-id` is the same for every attempt. A receiver
/// checks the signature with [`WebhookKeys::verify`].
///
/// An attempt ends within the timeout, follows no redirect, uses no proxy of the environment, and
/// goes to public addresses over `https` only.
///
/// 502 and 504 are answers of a gateway that has lost that of the receiver, who may have the message: they are
/// [`Unknown`](SendError::Unknown), as a timeout is, and [`OnUnknown`](tidings::integration::OnUnknown) decides what
/// follows. The header `Retry-After` counts for 408, 409, 423, 425, 429 and other answers from 500 on.
///
/// A URL of the integration that redirects, answers 401, 403, 404, 405 or 410, is not valid, leads to a private
/// address or has a certificate that is not trusted is [`Misconfigured`](SendError::Misconfigured), since no message
/// gets through it. Such a URL of a subscriber is [`Permanent`](SendError::Permanent), or
/// [`RecipientGone`](SendError::RecipientGone) if it answers 410.
///
/// A URL is a secret, and no error shows one. The text of an answer is left out of the error if it has a word
/// of the path or the query in it that is longer than four bytes.
#[derive(Debug)]
pub struct Webhook {
    settings: Settings,
    client: Client,
}

impl Default for Webhook {
    /// 15 seconds for a request.
    fn default() -> Self {
        Self::with(Settings::default())
    }
}

impl Webhook {
    fn with(settings: Settings) -> Self {
        Self { client: Client::new(&settings), settings }
    }

    /// Sets how long a request may take, from the look-up of the name to the end of the answer: a day at
    /// most.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self::with(Settings { timeout, ..self.settings })
    }

    /// Allows addresses of private networks and of this machine, and `http`. Where subscribers
    /// choose URLs, they reach what the host application reaches.
    #[must_use]
    pub fn allow_private_addresses(self) -> Self {
        Self::with(Settings { scope: AddressScope::Private, ..self.settings })
    }

    /// Trusts these certificates, in DER, in place of those of the public authorities.
    #[must_use]
    pub fn trust(self, roots: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let roots = Some(roots.into_iter().collect());
        Self::with(Settings { roots, ..self.settings })
    }
}

impl Provider for Webhook {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let keys = keys(&delivery.integration.credentials).map_err(misconfigured)?;
        let (url, of) = url(delivery)?;
        let id = delivery.idempotency_key().to_string();
        let body = body(delivery).to_string();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let timestamp = now.as_secs();
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("webhook-id", id.clone()),
            ("webhook-timestamp", timestamp.to_string()),
            ("webhook-signature", keys.sign(&id, timestamp, body.as_bytes())),
        ];
        self.client.post((url.expose(), of), &headers, body.as_bytes())?.accepted()?;
        Ok(ProviderReceipt::with_id(id))
    }

    /// Asks for the head of the URL of the integration. Any answer will do.
    fn check(&self, integration: &Integration) -> IntegrationTestResult {
        let keys = keys(&integration.credentials).map_err(misconfigured);
        match (keys, &integration.credentials.webhook_url) {
            (Err(error), _) => IntegrationTestResult::Failed(error),
            (Ok(_), Some(url)) => self.client.reach(url.expose()).into(),
            (Ok(_), None) => IntegrationTestResult::NotSupported,
        }
    }

    fn accept(&self, channel: Channel, credentials: &Credentials) -> Result<(), Invalid> {
        keys(credentials)?;
        match (&credentials.webhook_url, channel) {
            (None, Channel::Chat) => Ok(()),
            (None, _) => Err(Invalid::new("credentials.webhookUrl", Reason::Missing)),
            (Some(url), _) if is_url(url.expose(), self.settings.scope) => Ok(()),
            (Some(_), _) => {
                let expected = "an `https` URL";
                Err(Invalid::new("credentials.webhookUrl", Reason::malformed(expected)))
            }
        }
    }
}

fn misconfigured(invalid: Invalid) -> SendError {
    SendError::misconfigured(invalid.to_string())
}

fn keys(credentials: &Credentials) -> Result<WebhookKeys, Invalid> {
    let named = |reason| Invalid::new("credentials.secretKey", reason);
    let secret = credentials.secret_key.as_ref().ok_or(named(Reason::Missing))?;
    let expected = "`whsec_` and 24 to 64 bytes in base64";
    WebhookKeys::new(secret.expose()).ok_or(named(Reason::malformed(expected)))
}

fn is_url(url: &str, scope: AddressScope) -> bool {
    let has_host = |rest: &str| !rest.is_empty() && !rest.starts_with('/');
    let plain = url.strip_prefix("http://").filter(|_| scope == AddressScope::Private);
    url.strip_prefix("https://").or(plain).is_some_and(has_host)
}

fn url(delivery: &Delivery) -> Result<(&Secret, UrlOf), SendError> {
    match (&delivery.address, &delivery.integration.credentials.webhook_url) {
        (Address::Webhook { url, .. }, _) => Ok((url, UrlOf::Recipient)),
        (_, Some(url)) => Ok((url, UrlOf::Integration)),
        (address, None) if delivery.message.channel == Channel::Chat => {
            Err(refused("the integration has no `webhookUrl`", address))
        }
        (_, None) => Err(SendError::misconfigured("`credentials.webhookUrl` is required")),
    }
}

fn body(delivery: &Delivery) -> Value {
    let message = &delivery.message;
    let to = match &delivery.address {
        Address::Email(email) => json!(email),
        Address::Phone(phone) => json!(phone),
        Address::Device(token) => json!(token),
        Address::Workspace { endpoint, .. } => json!(endpoint),
        // The URL of a webhook is its secret.
        Address::Webhook { .. } => Value::Null,
    };
    json!({
        "type": message.workflow_identifier,
        "timestamp": message.created_at,
        "data": {
            "messageId": message.id,
            "transactionId": message.transaction_id,
            "notificationId": message.notification_id,
            "subscriberId": delivery.subscriber.subscriber_id,
            "channel": message.channel,
            "to": to,
            "subject": message.subject,
            "title": message.title,
            "content": message.content,
            "payload": delivery.notification.payload,
            "overrides": delivery.overrides,
        },
    })
}
