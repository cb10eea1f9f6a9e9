//! Signatures of webhooks: HMAC-SHA256 of the id, the time and the body.

use std::time::{Duration, SystemTime};

use base64ct::{Base64, Base64Unpadded, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

// Time by which the clocks of sender and receiver may differ.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// Keys with which webhooks are signed. Prints without them.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tidings_providers::{SignedHeaders, WebhookKeys};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let keys = WebhookKeys::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").ok_or("no key")?;
/// let headers = SignedHeaders {
///     id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
///     timestamp: "1614265330",
///     signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
/// };
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_614_265_330);
/// keys.verify(&headers, br#"{"test": 2432232314}"#, now)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct WebhookKeys(Vec<Vec<u8>>);

/// Headers of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedHeaders<'a> {
    /// `webhook-id`: the same for every attempt.
    pub id: &'a str,
    /// `webhook-timestamp`: time of the attempt in seconds.
    pub timestamp: &'a str,
    /// `webhook-signature`: signatures with spaces between them.
    pub signature: &'a str,
}

/// Reason for which a webhook is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unverified {
    /// The time is no number of seconds.
    #[error("the timestamp is malformed")]
    Malformed,
    /// The time is more than five minutes ago, or ahead.
    #[error("the timestamp is not of these five minutes")]
    Expired,
    /// No signature is one of the keys.
    #[error("no signature matches")]
    Mismatch,
}

impl WebhookKeys {
    /// Shortest key, in bytes.
    pub const MIN_KEY: usize = 24;
    /// Longest key, in bytes.
    pub const MAX_KEY: usize = 64;

    /// Returns the keys in `text`, with spaces between them: each is `whsec_` and 24 to 64 bytes in
    /// base64. Returns `None` if there is no key, or one that is malformed.
    pub fn new(text: &str) -> Option<Self> {
        let key = |word: &str| {
            let word = word.strip_prefix("whsec_").unwrap_or(word).trim_end_matches('=');
            let key = Base64Unpadded::decode_vec(word).ok()?;
            (Self::MIN_KEY..=Self::MAX_KEY).contains(&key.len()).then_some(key)
        };
        let keys: Option<Vec<_>> = text.split_whitespace().map(key).collect();
        keys.filter(|keys| !keys.is_empty()).map(Self)
    }

    /// Returns the value of `webhook-signature`: a signature by each key.
    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let timestamp = timestamp.to_string();
        let signatures = self.0.iter().filter_map(|key| mac(key, id, &timestamp, body));
        let signed = signatures
            .map(|mac| format!("v1,{}", Base64::encode_string(&mac.finalize().into_bytes())));
        signed.collect::<Vec<_>>().join(" ")
    }

    /// Verifies a webhook that was received at `now`. The comparison takes the same time for every
    /// signature.
    ///
    /// # Errors
    ///
    /// [`Unverified`], and then the body is to be dropped.
    pub fn verify(
        &self,
        headers: &SignedHeaders<'_>,
        body: &[u8],
        now: SystemTime,
    ) -> Result<(), Unverified> {
        let sent = headers.timestamp.parse().map_err(|_| Unverified::Malformed)?;
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if now.abs_diff(Duration::from_secs(sent)) > TOLERANCE {
            return Err(Unverified::Expired);
        }
        let macs = self.0.iter().filter_map(|key| mac(key, headers.id, headers.timestamp, body));
        // The body is read once for each key, however many signatures a sender puts into the header.
        let macs: Vec<_> = macs.collect();
        let signatures = headers.signature.split(' ').filter_map(|word| word.strip_prefix("v1,"));
        let mut signatures = signatures.filter_map(|text| Base64::decode_vec(text).ok());
        let is_right = |signature: &Vec<u8>| {
            macs.iter().any(|mac| mac.clone().verify_slice(signature).is_ok())
        };
        signatures.any(|signature| is_right(&signature)).then_some(()).ok_or(Unverified::Mismatch)
    }
}

fn mac(key: &[u8], id: &str, timestamp: &str, body: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    Some(mac)
}

impl std::fmt::Debug for WebhookKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookKeys(***)")
    }
}
