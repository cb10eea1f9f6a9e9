//! Integrations: accounts at providers, and the choice of the one that sends.

mod compose;
mod declare;
mod pause;
mod peers;
pub(crate) mod route;

use serde::{Deserialize, Serialize};

use crate::credentials::Credentials;
use crate::environment::Home;
use crate::error::{Invalid, Reason};
use crate::filter::{self, Filter};
use crate::ids::{
    EnvironmentId, IntegrationId, IntegrationIdentifier, OrganizationId, UserId, line,
};
use crate::json::shape;
use crate::patch::Patch;
use crate::query;
use crate::secret::Secret;
use crate::slug::slugify;
use crate::time::Timestamp;
use crate::vocabulary::{Channel, wire_enum};

pub use peers::Peers;
use peers::rank;
pub use route::{Choice, Routed, route};
pub(crate) use route::{is_candidate, rejected};

/// Account at a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Integration {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: IntegrationId,
    /// Environment of the integration.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Organization of the integration.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Display name: 1 to 128 characters.
    pub name: String,
    /// Identifier, unique in its environment.
    pub identifier: IntegrationIdentifier,
    /// Id of the provider. Any text is valid, since a host application can register its own
    /// providers.
    pub provider_id: String,
    /// Channel of the integration.
    pub channel: Channel,
    /// Credentials for the provider.
    pub credentials: Credentials,
    /// Settings for reports of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configurations: Option<Configurations>,
    /// Standing among the integrations of the channel.
    #[serde(flatten)]
    pub standing: Standing,
    /// Time at which the integration was paused. `None` if it is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// Filters: with some, it sends in place of the primary integration if they hold.
    #[serde(rename = "conditions", default)]
    pub filters: Vec<Filter>,
    /// Place among the fallbacks of the channel, which take over from the others. The lowest is the
    /// first. `None` if the integration is no fallback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<u32>,
    /// What follows a call whose answer was lost.
    #[serde(default, skip_serializing_if = "OnUnknown::is_default")]
    pub on_unknown: OnUnknown,
}

wire_enum! {
    /// Reaction to a lost answer of a provider, after which the message may have been sent. An answer 502 or 504 of a
    /// gateway counts as a lost answer.
    ///
    /// * `Resend`: the message is sent again, by a fallback too. It may arrive twice.
    /// * `ResendWithKey`: the message is sent again by the same integration only. That is for
    ///   services that take the idempotency key.
    /// * `GiveUp`: the message fails. It arrives once at most.
    #[derive(Default)]
    OnUnknown, "onUnknown":
    #[default]
    Resend = "resend",
    ResendWithKey = "resend_with_key",
    GiveUp = "give_up",
}

impl OnUnknown {
    const fn is_default(&self) -> bool {
        matches!(self, OnUnknown::Resend)
    }
}

/// Standing of an integration among those of its channel.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StandingFields", into = "StandingFields")]
pub enum Standing {
    /// Sends nothing.
    Inactive,
    /// Can be chosen to send.
    Active {
        /// `true` if the integration sends by default.
        primary: bool,
        /// Rank: the highest comes first. It is 0 on channels without a primary integration.
        priority: u32,
    },
    /// Deleted, and kept as a record only.
    Deleted {
        /// Time of the deletion.
        at: Timestamp,
        /// User that deleted the integration.
        by: UserId,
    },
}

// Wire form of a standing.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StandingFields {
    active: bool,
    primary: bool,
    #[serde(default)]
    priority: u32,
    deleted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deleted_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deleted_by: Option<UserId>,
}

/// Settings for the reports of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Configurations {
    /// `true` if the provider may report back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inbound_webhook_enabled: Option<bool>,
    /// Key that signs the reports of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inbound_webhook_signing_key: Option<Secret>,
}

shape! { Configurations {
    "inboundWebhookEnabled": inbound_webhook_enabled,
    "inboundWebhookSigningKey": inbound_webhook_signing_key,
} }

impl Configurations {
    // Refuses a mask in place of a secret, as a redacted record has it.
    fn check_unmasked(&self) -> Result<(), Invalid> {
        match &self.inbound_webhook_signing_key {
            Some(key) => key.check_unmasked("configurations.inboundWebhookSigningKey"),
            None => Ok(()),
        }
    }
}

/// New integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct IntegrationCreate {
    /// Id of the provider.
    pub provider_id: String,
    /// Channel of the integration.
    pub channel: Channel,
    /// Display name: 1 to 128 characters. If absent, it is the name of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Identifier, unique in its environment. If absent, the engine derives it from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<IntegrationIdentifier>,
    /// Credentials for the provider.
    #[serde(default)]
    pub credentials: Credentials,
    /// `true` if the integration sends. If absent, a new integration sends, and an existing one
    /// keeps its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// Filters: with some, it sends in place of the primary integration if they hold.
    #[serde(rename = "conditions", default)]
    pub filters: Vec<Filter>,
    /// Settings for reports of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configurations: Option<Configurations>,
    /// Place among the fallbacks of the channel, the lowest first. E-mail and text messages only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<u32>,
    /// What follows a call whose answer was lost.
    #[serde(default, skip_serializing_if = "OnUnknown::is_default")]
    pub on_unknown: OnUnknown,
}

shape! { IntegrationCreate {
    "providerId": provider_id, "channel": channel, "name": name, "identifier": identifier,
    "credentials": credentials, "active": active, "conditions": filters,
    "configurations": configurations, "fallback": fallback, "onUnknown": on_unknown,
} }

/// Partial update of an integration. Absent fields keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named after the fields of `Integration`")]
#[non_exhaustive]
pub struct IntegrationUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier: Option<IntegrationIdentifier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    #[serde(rename = "conditions", skip_serializing_if = "Option::is_none")]
    pub filters: Option<Vec<Filter>>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub configurations: Patch<Configurations>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub fallback: Patch<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknown>,
}

shape! { update IntegrationUpdate {
    "name": name, "identifier": identifier, "credentials": credentials, "active": active,
    "conditions": filters, "configurations": configurations, "fallback": fallback,
    "onUnknown": on_unknown,
} }

/// Options of the deletion of an integration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct IntegrationDelete {
    /// `true` if the next integration in rank becomes primary in place of a deleted primary one. A
    /// fallback becomes primary only if there is no other.
    /// Otherwise the channel sends nothing until another one becomes primary, unless exactly one
    /// active integration is left.
    #[serde(deserialize_with = "query::value")]
    pub promote: bool,
}

shape! { IntegrationDelete { "promote": promote as written } }

impl Integration {
    /// Longest display name, in characters.
    pub const MAX_NAME: usize = 128;

    /// Returns a new integration that is not active.
    #[doc(hidden)]
    pub fn new(
        id: IntegrationId,
        home: &Home,
        identifier: IntegrationIdentifier,
        create: IntegrationCreate,
    ) -> Result<Self, Invalid> {
        Self::check_provider(&create.provider_id)?;
        let integration = Self {
            id,
            environment_id: home.environment_id,
            organization_id: home.organization_id.clone(),
            name: create.name.unwrap_or_else(|| create.provider_id.clone()),
            identifier,
            provider_id: create.provider_id,
            channel: create.channel,
            credentials: create.credentials,
            configurations: create.configurations,
            standing: Standing::Inactive,
            paused_at: None,
            filters: create.filters,
            fallback: create.fallback,
            on_unknown: create.on_unknown,
        };
        integration.credentials.check_unmasked()?;
        integration.configurations.as_ref().map_or(Ok(()), Configurations::check_unmasked)?;
        integration.check()?;
        Ok(integration)
    }

    /// Returns the identifier of an integration created without one: its name and `suffix`.
    #[doc(hidden)]
    pub fn made_identifier(
        create: &IntegrationCreate,
        suffix: &str,
    ) -> Result<IntegrationIdentifier, Invalid> {
        let name = create.name.as_ref().unwrap_or(&create.provider_id);
        let mut slug: String = slugify(name).chars().filter(char::is_ascii).collect();
        slug.truncate(64);
        let parts = slug.split('-').chain([suffix]).filter(|part| !part.is_empty());
        IntegrationIdentifier::new(parts.collect::<Vec<_>>().join("-"))
    }

    /// Returns the integration after `update`, but for its standing.
    #[doc(hidden)]
    pub fn updated(&self, update: IntegrationUpdate) -> Result<Self, Invalid> {
        let mut integration = self.clone();
        integration.name = update.name.unwrap_or(integration.name);
        integration.identifier = update.identifier.unwrap_or(integration.identifier);
        if let Some(credentials) = update.credentials {
            credentials.check_unmasked()?;
            integration.credentials = credentials;
        }
        if let Patch::Set(configurations) = &update.configurations {
            configurations.check_unmasked()?;
        }
        integration.filters = update.filters.unwrap_or(integration.filters);
        integration.on_unknown = update.on_unknown.unwrap_or(integration.on_unknown);
        update.configurations.apply(&mut integration.configurations);
        update.fallback.apply(&mut integration.fallback);
        integration.check()?;
        Ok(integration)
    }

    fn check_provider(provider_id: &str) -> Result<(), Invalid> {
        line("providerId", provider_id, Self::MAX_NAME)
    }

    fn check(&self) -> Result<(), Invalid> {
        line("name", &self.name, Self::MAX_NAME)?;
        self.credentials.check()?;
        if self.fallback.is_some() && !self.channel.has_primary() {
            let expected = "left out: only e-mail and text messages have fallbacks";
            return Err(Invalid::new("fallback", Reason::malformed(expected)));
        }
        filter::check(&self.filters).map_err(|invalid| {
            let place = invalid.field.replacen("filters", "conditions", 1);
            invalid.named(place)
        })
    }

    /// Returns `true` if the integration can send.
    pub const fn is_active(&self) -> bool {
        match self.standing {
            Standing::Active { .. } => true,
            Standing::Inactive | Standing::Deleted { .. } => false,
        }
    }

    /// Returns `true` if the integration sends by default.
    pub const fn is_primary(&self) -> bool {
        match self.standing {
            Standing::Active { primary, .. } => primary,
            Standing::Inactive | Standing::Deleted { .. } => false,
        }
    }

    /// Returns the key that signs the reports of the provider, if the integration takes them.
    #[doc(hidden)]
    pub fn inbound_key(&self) -> Option<&Secret> {
        let configurations = self.configurations.as_ref()?;
        let is_enabled = configurations.inbound_webhook_enabled == Some(true);
        configurations.inbound_webhook_signing_key.as_ref().filter(|_| is_enabled)
    }

    /// Returns `true` if the integration is deleted.
    pub const fn is_deleted(&self) -> bool {
        match self.standing {
            Standing::Deleted { .. } => true,
            Standing::Inactive | Standing::Active { .. } => false,
        }
    }

    /// Returns the integration with its secrets masked.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        self.credentials = self.credentials.redacted();
        if let Some(configurations) = &mut self.configurations {
            let key = &mut configurations.inbound_webhook_signing_key;
            *key = key.as_ref().map(|_| Secret::redacted());
        }
        self
    }

    const fn priority(&self) -> u32 {
        match self.standing {
            Standing::Active { priority, .. } => priority,
            Standing::Inactive | Standing::Deleted { .. } => 0,
        }
    }
}

impl Channel {
    /// Returns `true` if one integration of the channel is primary.
    pub const fn has_primary(self) -> bool {
        match self {
            Channel::Email | Channel::Sms => true,
            Channel::InApp | Channel::Chat | Channel::Push => false,
        }
    }
}

impl From<StandingFields> for Standing {
    fn from(fields: StandingFields) -> Self {
        match (fields.deleted, fields.active) {
            (true, _) => Standing::Deleted {
                at: fields.deleted_at.unwrap_or_default(),
                by: fields.deleted_by.unwrap_or_else(UserId::host),
            },
            (false, true) => {
                Standing::Active { primary: fields.primary, priority: fields.priority }
            }
            (false, false) => Standing::Inactive,
        }
    }
}

impl From<Standing> for StandingFields {
    fn from(standing: Standing) -> Self {
        let gone = Self {
            active: false,
            primary: false,
            priority: 0,
            deleted: false,
            deleted_at: None,
            deleted_by: None,
        };
        match standing {
            Standing::Inactive => gone,
            Standing::Active { primary, priority } => {
                Self { active: true, primary, priority, ..gone }
            }
            Standing::Deleted { at, by } => {
                Self { deleted: true, deleted_at: Some(at), deleted_by: Some(by), ..gone }
            }
        }
    }
}

#[cfg(test)]
mod tests;
