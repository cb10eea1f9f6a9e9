//! Destinations of endpoints: six types, with fields of their own.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::convert::{secret_conversions, text_conversions};
use crate::error::{Invalid, Reason, Unit};
use crate::ids::PlatformId;
use crate::json::{Member, Object, Shape, Shaped};
use crate::secret::Secret;
use crate::vocabulary::wire_enum;

/// Destination of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "EndpointFields", into = "EndpointFields")]
#[non_exhaustive]
pub enum Endpoint {
    /// Slack channel.
    SlackChannel {
        /// Id of the channel.
        channel_id: PlatformId,
    },
    /// Slack user.
    SlackUser {
        /// Id of the user.
        user_id: PlatformId,
    },
    /// Webhook of a chat platform.
    Webhook {
        /// URL of the webhook.
        url: WebhookUrl,
        /// Channel that the platform posts to.
        channel: Option<PlatformId>,
    },
    /// Telephone.
    Phone {
        /// Telephone number.
        phone_number: PhoneNumber,
    },
    /// Microsoft Teams channel.
    MsTeamsChannel {
        /// Id of the channel's team.
        team_id: PlatformId,
        /// Id of the channel.
        channel_id: PlatformId,
    },
    /// Microsoft Teams user.
    MsTeamsUser {
        /// Id of the user.
        user_id: PlatformId,
        /// Id of the user's tenant.
        tenant_id: Option<PlatformId>,
    },
}

wire_enum! {
    /// Type of destination.
    EndpointType, "type":
    SlackChannel = "slack_channel",
    SlackUser = "slack_user",
    Webhook = "webhook",
    Phone = "phone",
    MsTeamsChannel = "ms_teams_channel",
    MsTeamsUser = "ms_teams_user",
}

/// Telephone number in E.164 format: `+` and 2 to 15 digits, the first of which is not 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PhoneNumber(String);

/// Absolute `http` or `https` URL: at most 2,048 bytes. It grants write access to a channel, and so
/// is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(Secret);

// Wire form of an endpoint.
#[derive(Serialize, Deserialize)]
struct EndpointFields {
    #[serde(rename = "type")]
    kind: EndpointType,
    endpoint: Value,
}

macro_rules! places {
    ($($kind:literal: { $($name:literal: $type:ty),+ },)+) => {
        impl Shaped for Endpoint {
            fn shape() -> Shape {
                Shape::tagged::<Self>("type", &[$(
                    ($kind, || {
                        const PLACE: Member = Member::inside(&["endpoint"], || {
                            const FIELDS: &[Member] = &[$(Member::typed::<$type>(&[$name])),+];
                            Shape::members::<IgnoredAny>(FIELDS, &[])
                        });
                        Shape::members::<IgnoredAny>(&[PLACE], &[])
                    }),
                )+])
            }
        }
    };
}

places! {
    "slack_channel": { "channelId": PlatformId },
    "slack_user": { "userId": PlatformId },
    "webhook": { "url": Secret, "channel": Option<PlatformId> },
    "phone": { "phoneNumber": PhoneNumber },
    "ms_teams_channel": { "teamId": PlatformId, "channelId": PlatformId },
    "ms_teams_user": { "userId": PlatformId, "tenantId": Option<PlatformId> },
}

impl Endpoint {
    /// Returns the destination of type `kind` with the fields of `data`. Refuses missing and
    /// unknown fields.
    pub fn new(kind: EndpointType, data: &Object) -> Result<Self, Invalid> {
        let mut fields = Fields::of(data);
        let endpoint = match kind {
            EndpointType::SlackChannel => {
                Endpoint::SlackChannel { channel_id: fields.required("channelId")? }
            }
            EndpointType::SlackUser => Endpoint::SlackUser { user_id: fields.required("userId")? },
            EndpointType::Webhook => Endpoint::Webhook {
                url: fields.required("url")?,
                channel: fields.optional("channel")?,
            },
            EndpointType::Phone => {
                Endpoint::Phone { phone_number: fields.required("phoneNumber")? }
            }
            EndpointType::MsTeamsChannel => Endpoint::MsTeamsChannel {
                team_id: fields.required("teamId")?,
                channel_id: fields.required("channelId")?,
            },
            EndpointType::MsTeamsUser => Endpoint::MsTeamsUser {
                user_id: fields.required("userId")?,
                tenant_id: fields.optional("tenantId")?,
            },
        };
        fields.end(kind)?;
        Ok(endpoint)
    }

    /// Returns the type of destination.
    pub const fn kind(&self) -> EndpointType {
        match self {
            Endpoint::SlackChannel { .. } => EndpointType::SlackChannel,
            Endpoint::SlackUser { .. } => EndpointType::SlackUser,
            Endpoint::Webhook { .. } => EndpointType::Webhook,
            Endpoint::Phone { .. } => EndpointType::Phone,
            Endpoint::MsTeamsChannel { .. } => EndpointType::MsTeamsChannel,
            Endpoint::MsTeamsUser { .. } => EndpointType::MsTeamsUser,
        }
    }

    /// Returns the fields of the destination, secrets included.
    pub fn data(&self) -> Object {
        let fields = match self {
            Endpoint::SlackChannel { channel_id } => vec![("channelId", channel_id.as_str())],
            Endpoint::SlackUser { user_id } => vec![("userId", user_id.as_str())],
            Endpoint::Webhook { url, channel } => {
                let channel = channel.iter().map(|channel| ("channel", channel.as_str()));
                channel.chain([("url", url.expose())]).collect()
            }
            Endpoint::Phone { phone_number } => vec![("phoneNumber", phone_number.as_str())],
            Endpoint::MsTeamsChannel { team_id, channel_id } => {
                vec![("teamId", team_id.as_str()), ("channelId", channel_id.as_str())]
            }
            Endpoint::MsTeamsUser { user_id, tenant_id } => {
                let tenant_id = tenant_id.iter().map(|tenant_id| ("tenantId", tenant_id.as_str()));
                tenant_id.chain([("userId", user_id.as_str())]).collect()
            }
        };
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
        Object::of(fields.collect::<Map<String, Value>>())
    }
}

// Fields that are still unread. The rest is unknown and refused.
struct Fields<'d>(BTreeMap<&'d str, &'d Value>);

impl<'d> Fields<'d> {
    fn of(data: &'d Object) -> Self {
        Self(data.iter().map(|(name, value)| (name.as_str(), value)).collect())
    }

    fn optional<T: TryFrom<String, Error = Invalid>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, Invalid> {
        let place = || format!("endpoint.{name}");
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => {
                T::try_from(text.clone()).map(Some).map_err(|invalid| invalid.named(place()))
            }
            Some(_) => Err(Invalid::new(place(), Reason::malformed("a text"))),
        }
    }

    fn required<T: TryFrom<String, Error = Invalid>>(&mut self, name: &str) -> Result<T, Invalid> {
        let missing = || Invalid::new(format!("endpoint.{name}"), Reason::Missing);
        self.optional(name)?.ok_or_else(missing)
    }

    fn end(self, kind: EndpointType) -> Result<(), Invalid> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(other) => {
                let expected = format!("a field of the type `{kind}`, or left out");
                Err(Invalid::new(format!("endpoint.{other}"), Reason::malformed(expected)))
            }
        }
    }
}

impl PhoneNumber {
    /// Maximum number of digits behind the plus sign, as in E.164.
    pub const MAX_DIGITS: usize = 15;

    /// Checks `raw` and returns it as a number.
    pub fn new(raw: impl Into<String>) -> Result<Self, Invalid> {
        let raw = raw.into();
        let is_number = |digits: &str| {
            (2..=Self::MAX_DIGITS).contains(&digits.len())
                && !digits.starts_with('0')
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        if raw.strip_prefix('+').is_some_and(is_number) {
            return Ok(Self(raw));
        }
        let expected = "a number such as `+4930123456`";
        Err(Invalid::new("phoneNumber", Reason::malformed(expected)))
    }

    /// Returns the number as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_conversions!(PhoneNumber);

impl From<PhoneNumber> for String {
    fn from(number: PhoneNumber) -> String {
        number.0
    }
}

impl WebhookUrl {
    /// Longest URL, in bytes.
    pub const MAX_LEN: usize = 2_048;

    /// Checks `raw` and returns it as a URL.
    pub fn new(raw: impl Into<String>) -> Result<Self, Invalid> {
        let raw = raw.into();
        if raw.len() > Self::MAX_LEN {
            let reason = Reason::TooLong { max: Self::MAX_LEN, unit: Unit::Bytes };
            return Err(Invalid::new("url", reason));
        }
        // Requires a host only. The platform checks the rest.
        let (scheme, rest) = raw.split_once("://").unwrap_or_default();
        let is_known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = place.rsplit('@').next().unwrap_or_default();
        let is_plain = !raw.contains(|c: char| c.is_whitespace() || c.is_control());
        if is_known && is_plain && !host.is_empty() && !host.starts_with(':') {
            return Ok(Self(Secret::new(raw)));
        }
        Err(Invalid::new("url", Reason::malformed("an absolute `http` or `https` URL")))
    }

    /// Returns the URL, which is a secret.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Returns the masked form of a URL.
    #[must_use]
    pub fn redacted(&self) -> Self {
        Self(Secret::redacted())
    }
}

secret_conversions!(WebhookUrl);

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<EndpointFields> for Endpoint {
    type Error = Invalid;

    fn try_from(fields: EndpointFields) -> Result<Self, Invalid> {
        let data = Object::try_from(fields.endpoint);
        Endpoint::new(fields.kind, &data.map_err(|invalid| invalid.named("endpoint"))?)
    }
}

impl From<Endpoint> for EndpointFields {
    fn from(endpoint: Endpoint) -> Self {
        Self { kind: endpoint.kind(), endpoint: endpoint.data().into() }
    }
}
