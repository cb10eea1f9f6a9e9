//! Integrations that the host application declares in its code.

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
            conditions,
            configurations,
            fallback,
            on_unknown,
        } = create;
        if channel != self.channel {
            let expected = "the channel that the integration has";
            return Err(Invalid::new("channel", Reason::malformed(expected)));
        }
        if provider_id != self.provider_id {
            let expected = "the provider that the integration has";
            return Err(Invalid::new("providerId", Reason::malformed(expected)));
        }
        Ok(IntegrationUpdate {
            name: Some(name.unwrap_or(provider_id)),
            identifier: None,
            credentials: Some(credentials),
            active,
            conditions: Some(conditions),
            configurations: configurations.map_or(Patch::Clear, Patch::Set),
            fallback: fallback.map_or(Patch::Clear, Patch::Set),
            on_unknown: Some(on_unknown),
        })
    }
}
