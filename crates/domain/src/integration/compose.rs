//! Integrations as a program writes them.

use super::{Configurations, Integration, IntegrationCreate, IntegrationDelete, IntegrationUpdate};
use crate::credentials::Credentials;
use crate::error::Invalid;
use crate::filter::Filter;
use crate::ids::IntegrationIdentifier;
use crate::secret::Secret;
use crate::setters::setters;
use crate::vocabulary::Channel;

impl IntegrationCreate {
    /// Returns an integration of a provider on a channel, without credentials.
    pub fn new(provider_id: impl Into<String>, channel: Channel) -> Result<Self, Invalid> {
        let provider_id = provider_id.into();
        Integration::check_provider(&provider_id)?;
        Ok(Self {
            provider_id,
            channel,
            name: None,
            identifier: None,
            credentials: Credentials::default(),
            active: None,
            conditions: Vec::new(),
            configurations: None,
        })
    }
}

setters! { IntegrationCreate:
    /// Sets the display name: 1 to 128 characters.
    name: into(String);
    /// Sets the identifier.
    identifier: checked(IntegrationIdentifier, "identifier");
    /// Sets the credentials.
    credentials: exact(Credentials);
    /// Switches the integration on, also where an operator has switched it off.
    active: flag(true);
    /// Switches the integration off: it sends nothing.
    inactive @ active: flag(false);
    /// Sets the conditions, of which one must hold.
    conditions: each(Filter);
    /// Adds a condition, of which one must hold.
    condition @ conditions: push(Filter);
    /// Sets how it listens to the provider.
    configurations: exact(Configurations);
}

setters! { IntegrationUpdate:
    /// Sets the display name: 1 to 128 characters.
    name: into(String);
    /// Sets the identifier.
    identifier: checked(IntegrationIdentifier, "identifier");
    /// Sets the credentials, in place of those before.
    credentials: exact(Credentials);
    /// Switches the integration on or off.
    active: exact(bool);
    /// Sets the conditions, of which one must hold.
    conditions: each(Filter);
    /// Sets how it listens to the provider.
    configurations: exact(Configurations);
    /// Removes how it listens to the provider.
    clear_configurations @ configurations: clear();
}

setters! { IntegrationDelete:
    /// Makes the next one in rank primary, if this one was.
    promote: flag(true);
}

setters! { Configurations:
    /// Sets whether the provider may report back.
    inbound_webhook_enabled: exact(bool);
    /// Sets the key that the provider signs its reports with.
    inbound_webhook_signing_key: into(Secret);
}
