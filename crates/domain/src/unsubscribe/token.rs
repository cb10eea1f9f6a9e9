//! Tokens: claims about one preference as bytes, with a signature, in letters that URLs take.
//!
//! | bytes | |
//! |---|---|
//! | 1 | version |
//! | 16 | environment |
//! | 16 | subscriber |
//! | 1 | channel of a workflow, or 0 for a topic |
//! | 16 | workflow, or zeros |
//! | 8 | expiry in milliseconds |
//! | any | key of the topic and contexts, one in each line |
//! | 32 | HMAC-SHA256 of the bytes before |

use base64ct::{Base64UrlUnpadded, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

use super::{TokenProblem, UnsubscribeLinks};
use crate::context::ContextSet;
use crate::ids::{EnvironmentId, InternalSubscriberId, TopicKey, WorkflowId};
use crate::secret::Secret;
use crate::time::Timestamp;
use crate::vocabulary::Channel;

const VERSION: u8 = 1;
const SIGNATURE: usize = 32;

/// Preference that a token is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Environment of the preference.
    pub environment_id: EnvironmentId,
    /// Subscriber of the preference.
    pub subscriber_id: InternalSubscriberId,
    /// Subject of the preference.
    pub from: Claimed,
    /// Contexts of the preference.
    pub context_keys: ContextSet,
    /// Time at which the token expires.
    pub expires_at: Timestamp,
}

/// Subject of a preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Messages of a workflow on a channel.
    Workflow(WorkflowId, Channel),
    /// A topic.
    Topic(TopicKey),
}

impl Claims {
    /// Returns the token that says this, signed with `key`.
    pub fn token(&self, key: &Secret) -> String {
        let mut bytes = self.to_bytes();
        let signature = mac(key, &bytes).map(|mac| mac.finalize().into_bytes());
        bytes.extend(signature.iter().flatten());
        Base64UrlUnpadded::encode_string(&bytes)
    }

    /// Returns the environment that a token names. Its signature is not verified.
    pub fn environment_of(token: &str) -> Result<EnvironmentId, TokenProblem> {
        let claims = parts(token).and_then(|(bytes, _)| Self::from_bytes(&bytes));
        claims.map(|claims| claims.environment_id).ok_or(TokenProblem::Malformed)
    }

    /// Reads a token at `now`. `key` is that of the environment, if it has one.
    pub fn verified(
        token: &str,
        environment: EnvironmentId,
        key: Option<&Secret>,
        now: Timestamp,
    ) -> Result<Self, TokenProblem> {
        let (bytes, signature) = parts(token).ok_or(TokenProblem::Malformed)?;
        let claims = Self::from_bytes(&bytes).ok_or(TokenProblem::Malformed)?;
        if claims.environment_id != environment {
            return Err(TokenProblem::OtherEnvironment);
        }
        let mac = key.and_then(|key| mac(key, &bytes));
        if mac.is_none_or(|mac| mac.verify_slice(&signature).is_err()) {
            return Err(TokenProblem::Forged);
        }
        if claims.expires_at <= now { Err(TokenProblem::Expired) } else { Ok(claims) }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend(Uuid::from(self.environment_id).as_bytes());
        bytes.extend(Uuid::from(self.subscriber_id).as_bytes());
        let mut lines = Vec::new();
        match &self.from {
            Claimed::Workflow(id, channel) => {
                bytes.push(number(*channel));
                bytes.extend(Uuid::from(*id).as_bytes());
            }
            Claimed::Topic(key) => {
                bytes.push(0);
                bytes.extend(Uuid::nil().as_bytes());
                lines.push(key.to_string());
            }
        }
        bytes.extend(self.expires_at.as_millis().to_be_bytes());
        lines.extend(self.context_keys.keys().map(ToString::to_string));
        bytes.extend(lines.join("\n").as_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ([VERSION], bytes) = bytes.split_first_chunk()? else { return None };
        let (environment, bytes) = bytes.split_first_chunk::<16>()?;
        let (subscriber, bytes) = bytes.split_first_chunk::<16>()?;
        let ([channel], bytes) = bytes.split_first_chunk()?;
        let (workflow, bytes) = bytes.split_first_chunk::<16>()?;
        let (expiry, bytes) = bytes.split_first_chunk::<8>()?;
        let mut lines = str::from_utf8(bytes).ok()?.split('\n');
        let from = match channel {
            0 => Claimed::Topic(TopicKey::new(lines.next()?).ok()?),
            channel => Claimed::Workflow(Uuid::from_bytes(*workflow).into(), of_number(*channel)?),
        };
        let contexts: Vec<String> = lines.map(ToOwned::to_owned).collect();
        Some(Self {
            environment_id: Uuid::from_bytes(*environment).into(),
            subscriber_id: Uuid::from_bytes(*subscriber).into(),
            from,
            context_keys: contexts.try_into().ok()?,
            expires_at: Timestamp::from_millis(i64::from_be_bytes(*expiry)),
        })
    }
}

// The claims and the signature.
fn parts(token: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    if token.len() > UnsubscribeLinks::MAX_TOKEN {
        return None;
    }
    let mut bytes = Base64UrlUnpadded::decode_vec(token).ok()?;
    let signature = bytes.split_off(bytes.len().checked_sub(SIGNATURE)?);
    Some((bytes, signature))
}

// A key may have any length.
fn mac(key: &Secret, bytes: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.expose().as_bytes()).ok()?;
    mac.update(bytes);
    Some(mac)
}

const fn number(channel: Channel) -> u8 {
    match channel {
        Channel::InApp => 1,
        Channel::Email => 2,
        Channel::Sms => 3,
        Channel::Chat => 4,
        Channel::Push => 5,
    }
}

fn of_number(wanted: u8) -> Option<Channel> {
    Channel::ALL.iter().copied().find(|channel| number(*channel) == wanted)
}
