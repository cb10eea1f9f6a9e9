//! Constructors and setters of integrations.

use super::{
    Configurations, Integration, IntegrationCreate, IntegrationDelete, IntegrationUpdate, OnUnknown,
};
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
            filters: Vec::new(),
            configurations: None,
            fallback: None,
            on_unknown: OnUnknown::default(),
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
    /// Activates or deactivates the integration, also against what an operator has set. An inactive one
    /// sends nothing.
    active: exact(bool);
    /// Adds a filter. The integration sends only if this filter and all earlier ones hold.
    only_if @ filters: all_of(Filter);
    /// Adds filters. The integration sends only if one of these filters and all earlier ones hold. Without filters,
    /// nothing changes.
    only_if_any @ filters: any_of(Filter);
    /// Sets the settings for reports of the provider.
    configurations: exact(Configurations);
    /// Makes the integration a fallback in this place, the lowest first. It takes over from those
    /// before it after two failed attempts, or at once if they are not set up.
    fallback: exact(u32);
    /// Sets what follows a call whose answer was lost.
    on_unknown: exact(OnUnknown);
}

setters! { IntegrationUpdate:
    /// Sets the display name: 1 to 128 characters.
    name: into(String);
    /// Sets the identifier.
    identifier: checked(IntegrationIdentifier, "identifier");
    /// Sets the credentials, which replace the stored ones. A secret that is masked, as in a redacted
    /// record, is refused.
    credentials: exact(Credentials);
    /// Activates or deactivates the integration.
    active: exact(bool);
    /// Sets the settings for reports of the provider.
    configurations: exact(Configurations);
    /// Removes the settings for reports of the provider.
    clear_configurations @ configurations: clear();
    /// Makes the integration a fallback in this place, the lowest first.
    fallback: exact(u32);
    /// Makes the integration no fallback.
    clear_fallback @ fallback: clear();
    /// Sets what follows a call whose answer was lost.
    on_unknown: exact(OnUnknown);
}

impl IntegrationUpdate {
    /// Adds a filter to those that replace the stored ones. The integration sends only if this filter
    /// and all earlier ones of the update hold.
    #[must_use]
    pub fn only_if(self, filter: Filter) -> Self {
        self.only_if_any([filter])
    }

    /// Adds filters to those that replace the stored ones. The integration sends only if one of these
    /// filters and all earlier ones of the update hold. Without filters, nothing changes.
    #[must_use]
    pub fn only_if_any(mut self, filters: impl IntoIterator<Item = Filter>) -> Self {
        let mut filters = filters.into_iter().peekable();
        if filters.peek().is_some() {
            Filter::restrict(self.filters.get_or_insert_default(), filters);
        }
        self
    }

    /// Removes the filters.
    #[must_use]
    pub fn clear_filters(mut self) -> Self {
        self.filters = Some(Vec::new());
        self
    }
}

setters! { IntegrationDelete:
    /// Sets whether the next integration in rank becomes primary, if this one was.
    promote: exact(bool);
}

setters! { Configurations:
    /// Allows or forbids reports of the provider.
    inbound_webhook_enabled: exact(bool);
    /// Sets the key that signs the reports of the provider.
    inbound_webhook_signing_key: into(Secret);
}
