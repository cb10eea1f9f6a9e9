//! Web push: messages for browsers.

mod encryption;
mod vapid;

use std::time::{Duration, SystemTime};

use base64ct::{Base64UrlUnpadded, Encoding};
use p256::PublicKey;
use serde::Deserialize;
use serde_json::{Value, json};
use tidings::credentials::Credentials;
use tidings::error::{Invalid, Reason};
use tidings::vocabulary::{Channel, Severity};
use tidings::{Address, Delivery, Provider, ProviderReceipt, SendError};

use self::encryption::{Draw, Receiver};
use self::vapid::Vapid;
use crate::destination::refused;
use crate::http::{AddressScope, Answer, Client, Settings, UrlOf, origin};

// Time for which a push service keeps a message, and the longest that some of them take, in seconds: four
// weeks.
const TIME_TO_LIVE: u64 = 28 * 24 * 60 * 60;

// Messages are padded to a multiple of this, so that their length says little.
const BLOCK: usize = 128;

/// Push messages for browsers: encrypted for the browser (RFC 8291), and posted to its push service
/// (RFC 8030) with a token of the application (VAPID, RFC 8292).
///
/// A device token is the subscription of a browser as JSON, as `JSON.stringify(subscription)` writes
/// it. Credentials of the integration:
///
/// | credential | |
/// |---|---|
/// | `secretKey` | required: private key of P-256, 32 bytes in base64url |
/// | `from` | required: e-mail address or `https` URL for the push service |
///
/// The service worker gets `{ "title", "body", "url", "data" }`: title, content and target of the
/// message, and the payload of the trigger. Overrides of a trigger that it takes: `ttl` (seconds, four
/// weeks at most), `urgency` (`very-low`, `low`, `normal`, `high`), `topic` (a later message with the same one
/// replaces a message that waits), and `data` in place of the payload.
#[derive(Debug)]
pub struct WebPush {
    settings: Settings,
    client: Client,
}

/// Subscription of a browser.
#[derive(Deserialize)]
struct Subscription {
    endpoint: String,
    keys: Keys,
}

#[derive(Deserialize)]
struct Keys {
    p256dh: String,
    auth: String,
}

impl Default for WebPush {
    /// 15 seconds for a request.
    fn default() -> Self {
        Self::with(Settings::default())
    }
}

impl WebPush {
    /// Longest `topic` in the overrides, in bytes.
    pub const MAX_TOPIC: usize = 32;
    /// Largest message, in bytes: a record of 4,096 without its header, tag and delimiter.
    pub const MAX_MESSAGE: usize = 4096 - 86 - 16 - 1;

    fn with(settings: Settings) -> Self {
        Self { client: Client::new(&settings), settings }
    }

    /// Sets how long a request may take, from the look-up of the name to the end of the answer: a day at
    /// most.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self::with(Settings { timeout, ..self.settings })
    }

    /// Allows push services with addresses of private networks and of this machine, and `http`.
    #[must_use]
    pub fn allow_private_addresses(self) -> Self {
        Self::with(Settings { scope: AddressScope::Private, ..self.settings })
    }

    /// Returns the public key of an integration, the `applicationServerKey` of the subscriptions.
    ///
    /// # Errors
    ///
    /// [`Invalid`], if the credentials lack a key or a contact.
    pub fn application_server_key(credentials: &Credentials) -> Result<String, Invalid> {
        Vapid::of(credentials).map(|vapid| vapid.public_key())
    }

    fn push(
        &self,
        token: &str,
        vapid: &Vapid,
        (headers, message): (&[(&'static str, String)], &[u8]),
    ) -> Result<ProviderReceipt, SendError> {
        let (endpoint, receiver) = read(token)?;
        let origin = origin(&endpoint).ok_or_else(no_subscription)?;
        let draw = Draw::new().ok_or(SendError::retryable("the system has no randomness"))?;
        let padding = message
            .len()
            .next_multiple_of(BLOCK)
            .min(Self::MAX_MESSAGE)
            .saturating_sub(message.len());
        let too_long = || {
            SendError::permanent(format!("the message is longer than {} bytes", Self::MAX_MESSAGE))
        };
        let body = encryption::encrypt(message, padding, &receiver, &draw).ok_or_else(too_long)?;
        let mut headers = headers.to_vec();
        headers.push(("authorization", vapid.authorization(&origin, SystemTime::now())));
        outcome(self.client.post((&endpoint, UrlOf::Recipient), &headers, &body)?)
    }
}

impl Provider for WebPush {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let Address::Device(token) = &delivery.address else {
            return Err(refused("web push sends to browsers only", &delivery.address));
        };
        let vapid = Vapid::of(&delivery.integration.credentials)
            .map_err(|invalid| SendError::misconfigured(invalid.to_string()))?;
        let (headers, message) = (headers(delivery)?, message(delivery).to_string());
        self.push(token, &vapid, (headers.as_slice(), message.as_bytes()))
    }

    fn accept(&self, channel: Channel, credentials: &Credentials) -> Result<(), Invalid> {
        if channel != Channel::Push {
            return Err(Invalid::new("channel", Reason::malformed("push")));
        }
        Vapid::of(credentials).map(drop)
    }
}

fn read(token: &str) -> Result<(String, Receiver), SendError> {
    let subscription: Subscription = serde_json::from_str(token).map_err(|_| no_subscription())?;
    // Browsers give bytes, and applications have written them in both alphabets.
    let bytes = |text: &str| {
        let text = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
        Base64UrlUnpadded::decode_vec(&text).ok()
    };
    let key = bytes(&subscription.keys.p256dh);
    let key = key.and_then(|key| PublicKey::from_sec1_bytes(&key).ok());
    let secret = bytes(&subscription.keys.auth).and_then(|secret| secret.try_into().ok());
    let (Some(key), Some(secret)) = (key, secret) else { return Err(no_subscription()) };
    Ok((subscription.endpoint, Receiver { key, secret }))
}

fn no_subscription() -> SendError {
    SendError::permanent("the device token is no subscription of a browser")
}

fn headers(delivery: &Delivery) -> Result<Vec<(&'static str, String)>, SendError> {
    let overrides = &delivery.overrides;
    let wrong = |name| SendError::permanent(format!("the override `{name}` is not valid"));
    let ttl = match overrides.get("ttl") {
        None | Some(Value::Null) => TIME_TO_LIVE,
        Some(ttl) => ttl.as_u64().ok_or_else(|| wrong("ttl"))?.min(TIME_TO_LIVE),
    };
    let text = |name| match overrides.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(wrong(name)),
    };
    let urgency = match text("urgency")? {
        Some(word @ ("very-low" | "low" | "normal" | "high")) => word,
        Some(_) => return Err(wrong("urgency")),
        None if delivery.message.severity == Severity::High => "high",
        None => "normal",
    };
    let mut headers = vec![
        ("content-type", "application/octet-stream".to_owned()),
        ("content-encoding", "aes128gcm".to_owned()),
        ("ttl", ttl.to_string()),
        ("urgency", urgency.to_owned()),
    ];
    if let Some(topic) = text("topic")? {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if topic.is_empty() || topic.len() > WebPush::MAX_TOPIC || !topic.bytes().all(is_letter) {
            return Err(wrong("topic"));
        }
        headers.push(("topic", topic.to_owned()));
    }
    Ok(headers)
}

fn message(delivery: &Delivery) -> Value {
    let message = &delivery.message;
    let url = message.cta.data.as_ref().and_then(|data| data.url.as_ref());
    let data = match delivery.overrides.get("data") {
        None | Some(Value::Null) => json!(delivery.notification.payload),
        Some(data) => data.clone(),
    };
    json!({ "title": message.title, "body": message.text(), "url": url, "data": data })
}

fn outcome(answer: Answer) -> Result<ProviderReceipt, SendError> {
    match answer.status {
        404 | 410 => Err(SendError::recipient_gone(answer.reason())),
        // The subscription may be for another key, and other browsers have other services.
        401 | 403 => Err(SendError::permanent(answer.reason())),
        // The service of Windows limits rates with it.
        406 => Err(answer.busy()),
        _ => {
            let accepted = answer.accepted()?;
            Ok(accepted.location.map_or_else(ProviderReceipt::default, ProviderReceipt::with_id))
        }
    }
}
