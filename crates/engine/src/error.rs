//! Errors of operations.

use std::{error, fmt};

use domain::content::ButtonType;
use domain::dead_letter::RedriveRefusal;
use domain::error::excerpt;
use domain::ids::StepId;
use domain::notification::ResendRefusal;
use domain::quarantine::RequeueRefusal;
use domain::receipt::InboundRefusal;
use domain::subscription::SubscriptionError;
use domain::unsubscribe::TokenProblem;
use domain::vocabulary::Channel;
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

pub use domain::error::{Invalid, Reason, Unit};

// Length from which on the names in an error are counted only.
const MAX_LISTED: usize = 2048;

/// Result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of an operation. A failed operation changes nothing, with two exceptions: operations of
/// several transactions, and failures of the store.
#[derive(Debug, Error, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Error {
    /// A value of the caller breaks a rule.
    #[error(transparent)]
    Invalid(#[from] Invalid),

    /// A named entity does not exist, or belongs to another environment.
    #[error("{} not there{}", are(*entity, ids), meant(suggestion.as_deref()))]
    NotFound {
        /// Kind of the entity.
        entity: Entity,
        /// Names in the caller's spelling.
        ids: Vec<String>,
        /// Name of an entity that was perhaps meant.
        #[serde(skip_serializing_if = "Option::is_none")]
        suggestion: Option<String>,
    },

    /// An entity of that name exists already.
    #[error("{entity} `{id}` {}", taken(*entity))]
    Conflict {
        /// Kind of the entity.
        entity: Entity,
        /// Name in use.
        id: String,
    },

    /// The deletion of an entity has begun. It takes several transactions, and another call goes on with
    /// one that was interrupted.
    #[error("{entity} `{id}` is being deleted: if the deletion was interrupted, delete it again")]
    BeingDeleted {
        /// Kind of the entity.
        entity: Entity,
        /// Name of the entity.
        id: String,
    },

    /// A well-formed request that a rule forbids.
    #[error(transparent)]
    Rejected(#[from] Rejection),

    /// The caller has no valid API key.
    #[error(transparent)]
    Unauthorized(#[from] Unauthorized),

    /// The store failed. [`is_retryable`](Error::is_retryable) tells whether the same call may
    /// succeed later.
    #[error(transparent)]
    #[serde(serialize_with = "as_text")]
    Store(#[from] store::Error),
}

/// Reason for the refusal of an `Authorization` header.
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

/// Kinds of entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum Entity {
    ApiKey,
    ChannelConnection,
    ChannelEndpoint,
    Context,
    DeadLetter,
    Environment,
    Event,
    IdempotencyKey,
    Integration,
    Layout,
    Message,
    Notification,
    QuarantineEntry,
    Subscriber,
    Subscription,
    Suppression,
    Topic,
    Translation,
    TranslationGroup,
    Workflow,
}

/// Rejection of a well-formed request by a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Rejection {
    /// The name belongs to a built-in environment.
    #[error("the name `{name}` is reserved")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// Subscribers cannot opt out of a critical workflow.
    #[error("critical workflows take no preferences: {}", listed(workflows, ", "))]
    CriticalWorkflows {
        /// Names of the workflows in the caller's spelling.
        workflows: Vec<String>,
    },
    /// Only e-mail and text messages have a primary integration.
    #[error("{channel} integrations cannot be primary")]
    NoPrimary {
        /// The channel.
        channel: Channel,
    },
    /// A request for several subscriptions failed for all of them.
    #[error("each subscription was refused: {}", reasons(errors))]
    NoSubscription {
        /// Error of each subscription.
        errors: Vec<SubscriptionError>,
    },
    /// The message of a step is not sent again.
    #[error("the step `{step}` is not sent again: {reason}")]
    NotResent {
        /// The step.
        step: StepId,
        /// The reason.
        reason: ResendRefusal,
    },
    /// A dead letter is not redriven.
    #[error("the dead letter is not redriven: {reason}")]
    NotRedriven {
        /// The reason.
        reason: RedriveRefusal,
    },
    /// A task of the quarantine is not put back into the queue.
    #[error("the task is not put back into the queue: {reason}")]
    NotRequeued {
        /// The reason.
        reason: RequeueRefusal,
    },
    /// A message has no such button.
    #[error("the message has no {button} button")]
    NoAction {
        /// The button.
        button: ButtonType,
    },
    /// An environment has one in-app integration at most.
    #[error("an environment has at most one in_app integration")]
    OneInbox,
    /// An environment has at most [`ApiKey::MAX`](crate::api_key::ApiKey::MAX) API keys.
    #[error("an environment has at most {max} API keys")]
    TooManyApiKeys {
        /// Maximum number of keys.
        max: usize,
    },
    /// A report of a service is refused.
    #[error("the report of the service is refused: {reason}")]
    InboundReport {
        /// The reason.
        reason: InboundRefusal,
    },
    /// An unsubscribe link cannot be used.
    #[error("the unsubscribe link cannot be used: {}", problem.sentence())]
    UnsubscribeLink {
        /// The reason.
        problem: TokenProblem,
    },
    /// The engine has no page for unsubscribe links.
    #[error("the engine has no URL for unsubscribe links: see `Builder::unsubscribe_links`")]
    NoUnsubscribeUrl,
    /// The engine has no keys to seal records with.
    #[error("the engine has no keys to seal records with: see `Builder::sealing`")]
    NoSealingKeys,
    /// A simulation sets the clock of the engine.
    #[error("a simulation needs an engine with a manual clock")]
    ClockNotManual,
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
/// assert_eq!(Error::Rejected(Rejection::OneInbox).status(), 400);
/// ```
impl Error {
    /// Returns the error of an invalid value of `field`.
    pub fn invalid(field: impl Into<String>, reason: Reason) -> Self {
        Invalid::new(field, reason).into()
    }

    /// Returns the error of an `entity` that does not exist.
    pub fn not_found(entity: Entity, id: impl fmt::Display) -> Self {
        Error::none_of(entity, [id.to_string()])
    }

    /// Returns the error of several that do not exist.
    pub(crate) fn none_of(entity: Entity, ids: impl IntoIterator<Item = String>) -> Self {
        let mut named: Vec<String> = Vec::new();
        for id in ids.into_iter().map(excerpt) {
            if !named.contains(&id) {
                named.push(id);
            }
        }
        Error::NotFound { entity, ids: named, suggestion: None }
    }

    /// Adds the name that was perhaps meant.
    pub(crate) fn meaning(mut self, meant: Option<&str>) -> Self {
        if let Error::NotFound { suggestion, .. } = &mut self {
            *suggestion = meant.map(str::to_owned);
        }
        self
    }

    /// Puts the path of a refused field below `place`.
    pub(crate) fn within(self, place: impl fmt::Display) -> Self {
        match self {
            Error::Invalid(invalid) => invalid.within(place).into(),
            other => other,
        }
    }

    /// Returns the error of an `entity` that exists already.
    pub fn conflict(entity: Entity, id: impl fmt::Display) -> Self {
        Error::Conflict { entity, id: excerpt(id.to_string()) }
    }

    /// Returns the error of an `entity` whose deletion has begun.
    pub(crate) fn being_deleted(entity: Entity, id: impl fmt::Display) -> Self {
        Error::BeingDeleted { entity, id: excerpt(id.to_string()) }
    }

    /// Returns the table of the record that cannot be read, and the error of decoding it. Returns `None` for any
    /// other error.
    pub(crate) fn corruption(&self) -> Option<(&'static str, &(dyn error::Error + Send + Sync))> {
        match self {
            Error::Store(store::Error::Corrupt { table, source }) => Some((table, &**source)),
            _ => None,
        }
    }

    /// Returns the HTTP status for the answer of a service.
    pub const fn status(&self) -> u16 {
        match self {
            Error::Invalid(_) => 422,
            Error::NotFound { .. } => 404,
            Error::Conflict { .. }
            | Error::BeingDeleted { .. }
            | Error::Store(
                store::Error::TargetExists { .. }
                | store::Error::TargetInUse
                | store::Error::UnfinishedCopy,
            ) => 409,
            Error::Rejected(_) => 400,
            Error::Unauthorized(_) => 401,
            Error::Store(store::Error::StorageFull { .. }) => 507,
            Error::Store(
                store::Error::Interrupted { .. }
                | store::Error::Unavailable { .. }
                | store::Error::NeedsReopen { .. }
                | store::Error::ReadOnly { .. }
                | store::Error::Replaced { .. },
            ) => 503,
            Error::Store(_) => 500,
        }
    }

    /// Returns `true` if the same call with the same arguments may succeed later. A full disk is
    /// such a case: the engine goes on by itself when there is room.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Error::Store(error) => error.is_retryable(),
            Error::Invalid(_)
            | Error::NotFound { .. }
            | Error::Conflict { .. }
            | Error::BeingDeleted { .. }
            | Error::Rejected(_)
            | Error::Unauthorized(_) => false,
        }
    }
}

impl Unauthorized {
    // The key in the value of an `Authorization` header.
    pub(crate) fn key_in(authorization: &str) -> Result<&str> {
        let scheme = authorization.split_once(' ');
        match scheme {
            // As in HTTP, a scheme is the same in another case.
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("apikey") => Ok(key),
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("bearer") => {
                Err(Error::Unauthorized(Unauthorized::Bearer))
            }
            Some(_) | None => Err(Error::Unauthorized(Unauthorized::NoKey)),
        }
    }
}

/// Serializes a value as its text.
pub(crate) fn as_text<S: Serializer>(error: &impl fmt::Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(error)
}

const fn taken(entity: Entity) -> &'static str {
    match entity {
        Entity::IdempotencyKey => "was used for another call",
        Entity::Event => "is one of another workflow",
        Entity::ApiKey
        | Entity::ChannelConnection
        | Entity::ChannelEndpoint
        | Entity::Context
        | Entity::DeadLetter
        | Entity::Environment
        | Entity::Integration
        | Entity::Layout
        | Entity::Message
        | Entity::Notification
        | Entity::QuarantineEntry
        | Entity::Subscriber
        | Entity::Subscription
        | Entity::Suppression
        | Entity::Topic
        | Entity::Translation
        | Entity::TranslationGroup
        | Entity::Workflow => "is there already",
    }
}

fn reasons(errors: &[SubscriptionError]) -> String {
    let messages: Vec<_> = errors.iter().map(|error| error.message.as_str()).collect();
    listed(&messages, "; ")
}

fn are(entity: Entity, ids: &[String]) -> String {
    let quoted: Vec<_> = ids.iter().map(|id| format!("`{id}`")).collect();
    let (plural, verb) = if ids.len() == 1 { ("", "is") } else { ("s", "are") };
    format!("{entity}{plural} {} {verb}", listed(&quoted, ", "))
}

fn meant(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

// The first texts, up to 2 KiB of them, and the number of the others.
fn listed(texts: &[impl AsRef<str>], separator: &str) -> String {
    let mut list = String::new();
    for (index, text) in texts.iter().map(AsRef::as_ref).enumerate() {
        if index > 0 && list.len() + text.len() > MAX_LISTED {
            return format!("{list} and {} more", texts.len() - index);
        }
        list.push_str(if index == 0 { "" } else { separator });
        list.push_str(text);
    }
    list
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entity::ApiKey => "API key",
            Entity::ChannelConnection => "channel connection",
            Entity::ChannelEndpoint => "channel endpoint",
            Entity::Context => "context",
            Entity::DeadLetter => "dead letter",
            Entity::Environment => "environment",
            Entity::Event => "event",
            Entity::IdempotencyKey => "idempotency key",
            Entity::Integration => "integration",
            Entity::Layout => "layout",
            Entity::Message => "message",
            Entity::Notification => "notification",
            Entity::QuarantineEntry => "quarantine entry",
            Entity::Subscriber => "subscriber",
            Entity::Subscription => "subscription",
            Entity::Suppression => "suppression",
            Entity::Topic => "topic",
            Entity::Translation => "translation",
            Entity::TranslationGroup => "translation group",
            Entity::Workflow => "workflow",
        })
    }
}
