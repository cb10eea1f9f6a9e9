//! Integrations that the host application declares in its code.

use std::fmt::Display;

use super::{Integration, IntegrationCreate, IntegrationUpdate};
use crate::error::{Invalid, Reason};
use crate::patch::Patch;

impl Integration {
    /// Returns the update that sets every field of the declaration `create`. `active` is set only
    /// if it is present.
    ///
    /// # Errors
    ///
    /// The integration has another channel or another provider.
    #[doc(hidden)]
    pub fn redeclared(&self, create: IntegrationCreate) -> Result<IntegrationUpdate, Invalid> {
        let IntegrationCreate {
            provider_id,
            channel,
            name,
            identifier: _,
            credentials,
            active,
            filters,
            configurations,
            fallback,
            on_unknown,
        } = create;
        if channel != self.channel {
            return Err(self.fixed("channel", &self.channel));
        }
        if provider_id != self.provider_id {
            return Err(self.fixed("providerId", &self.provider_id));
        }
        Ok(IntegrationUpdate {
            name: Some(name.unwrap_or(provider_id)),
            identifier: None,
            credentials: Some(credentials),
            active,
            filters: Some(filters),
            configurations: configurations.map_or(Patch::Clear, Patch::Set),
            fallback: fallback.map_or(Patch::Clear, Patch::Set),
            on_unknown: Some(on_unknown),
        })
    }

    // Refusal of a declaration with another `field` than `value`, which no update changes.
    fn fixed(&self, field: &str, value: &dyn Display) -> Invalid {
        let identifier = &self.identifier;
        let expected = format!(
            "`{value}`, as that of the integration `{identifier}`; another one has another identifier"
        );
        Invalid::new(field, Reason::malformed(expected))
    }
}
