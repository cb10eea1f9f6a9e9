//! Errors: why an operation did not happen.

use std::fmt;

use domain::subscription::SubscriptionError;
use domain::vocabulary::Channel;
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

pub use domain::error::{Invalid, Reason, Unit};

/// Result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An operation did not happen. It left nothing behind, unless it is one that takes several
/// transactions or the store failed.
#[derive(Debug, Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Error {
    /// The caller handed in something that no rule allows.
    #[error(transparent)]
    Invalid(#[from] Invalid),

    /// The caller named something that is not there, or belongs to another environment.
    #[error("{entity} {} not there", are(ids))]
    NotFound {
        /// What kind of thing was named.
        entity: Entity,
        /// The names, as the caller wrote them.
        ids: Vec<String>,
    },

    /// What the caller wants to create is there already.
    #[error("{entity} `{id}` {}", taken(*entity))]
    Conflict {
        /// What kind of thing it is.
        entity: Entity,
        /// The name that is taken.
        id: String,
    },

    /// What the caller wants makes sense, and a rule forbids it.
    #[error(transparent)]
    Rejected(#[from] Rejection),

    /// The caller showed no key that opens an environment.
    #[error(transparent)]
    Unauthorized(Unauthorized),

    /// The store failed. Trying again may help; changing the arguments will not.
    #[error(transparent)]
    #[serde(serialize_with = "as_text", skip_deserializing)]
    Store(#[from] store::Error),
}

/// Why an `Authorization` header opens no environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Unauthorized {
    /// The scheme is `Bearer`, whose tokens other services take.
    #[error(
        "the `Authorization` header has the scheme `Bearer`: send `ApiKey`, a space and the key"
    )]
    Bearer,
    /// The header has another scheme, or none.
    #[error("the `Authorization` header must be `ApiKey`, a space and the key")]
    NoKey,
    /// The scheme is right, and no environment has the key.
    #[error("the API key is not known")]
    UnknownKey,
}

/// The kinds of things that an operation can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum Entity {
    ChannelConnection,
    ChannelEndpoint,
    Context,
    Environment,
    IdempotencyKey,
    Integration,
    Layout,
    Message,
    Notification,
    Subscriber,
    Subscription,
    Topic,
    Translation,
    TranslationGroup,
    Workflow,
}

/// A rule that forbids something that makes sense.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Rejection {
    /// Every organization has environments of these names from the start.
    #[error("the name `{name}` is reserved")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// Subscribers cannot opt out of a critical workflow.
    #[error("critical workflows take no preferences: {}", workflows.join(", "))]
    CriticalWorkflows {
        /// The workflows, as the caller named them.
        workflows: Vec<String>,
    },
    /// Only e-mail and text messages have a primary integration.
    #[error("{channel} integrations cannot be primary")]
    NoPrimary {
        /// The channel.
        channel: Channel,
    },
    /// A request for several subscriptions worked for none of them.
    #[error("none of the subscriptions: {}", reasons(errors))]
    NoSubscription {
        /// Why not, for each of them.
        errors: Vec<SubscriptionError>,
    },
    /// The inbox is one.
    #[error("an environment has at most one in_app integration")]
    OneInbox,
}

/// Errors that a host makes itself, such as a service in front of the engine.
///
/// ```
/// use tidings::error::{Reason, Rejection};
/// use tidings::{Entity, Error};
///
/// let malformed = Error::invalid("page", Reason::malformed("a number"));
/// assert_eq!(malformed.to_string(), "`page` must be a number");
/// assert_eq!(Error::not_found(Entity::Topic, "orders").status(), 404);
/// assert_eq!(Error::conflict(Entity::Topic, "orders").status(), 409);
/// assert_eq!(Error::rejected(Rejection::OneInbox).status(), 400);
/// ```
impl Error {
    /// Refuses the value of `field`, for `reason`.
    pub fn invalid(field: impl Into<String>, reason: Reason) -> Self {
        Invalid::new(field, reason).into()
    }

    /// Says that there is no `entity` called `id`.
    pub fn not_found(entity: Entity, id: impl fmt::Display) -> Self {
        Error::NotFound { entity, ids: vec![id.to_string()] }
    }

    /// Says that there is an `entity` called `id` already.
    pub fn conflict(entity: Entity, id: impl fmt::Display) -> Self {
        Error::Conflict { entity, id: id.to_string() }
    }

    /// Refuses what is asked for, for the reason of `rejection`.
    pub const fn rejected(rejection: Rejection) -> Self {
        Error::Rejected(rejection)
    }

    /// The HTTP status that a service in front of the engine would answer with.
    pub const fn status(&self) -> u16 {
        match self {
            Error::Invalid(_) => 422,
            Error::NotFound { .. } => 404,
            Error::Conflict { .. } => 409,
            Error::Rejected(_) => 400,
            Error::Unauthorized(_) => 401,
            Error::Store(_) => 500,
        }
    }
}

impl Unauthorized {
    // The key in the value of an `Authorization` header.
    pub(crate) fn key_in(authorization: &str) -> Result<&str> {
        let scheme = authorization.split_once(' ');
        match scheme {
            Some(("ApiKey", key)) => Ok(key),
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("bearer") => {
                Err(Error::Unauthorized(Unauthorized::Bearer))
            }
            Some(_) | None => Err(Error::Unauthorized(Unauthorized::NoKey)),
        }
    }
}

fn as_text<S: Serializer>(error: &store::Error, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(error)
}

const fn taken(entity: Entity) -> &'static str {
    match entity {
        Entity::IdempotencyKey => "was used for another call",
        _ => "is there already",
    }
}

fn reasons(errors: &[SubscriptionError]) -> String {
    errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; ")
}

fn are(ids: &[String]) -> String {
    let quoted: Vec<_> = ids.iter().map(|id| format!("`{id}`")).collect();
    format!("{} {}", quoted.join(", "), if ids.len() == 1 { "is" } else { "are" })
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entity::ChannelConnection => "channel connection",
            Entity::ChannelEndpoint => "channel endpoint",
            Entity::Context => "context",
            Entity::Environment => "environment",
            Entity::IdempotencyKey => "idempotency key",
            Entity::Integration => "integration",
            Entity::Layout => "layout",
            Entity::Message => "message",
            Entity::Notification => "notification",
            Entity::Subscriber => "subscriber",
            Entity::Subscription => "subscription",
            Entity::Topic => "topic",
            Entity::Translation => "translation",
            Entity::TranslationGroup => "translation group",
            Entity::Workflow => "workflow",
        })
    }
}
