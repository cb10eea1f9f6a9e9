//! Integrations before they send: their provider accepts what is saved, and tries it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::credentials::Credentials;
use domain::error::{Invalid, Reason};
use domain::integration::Integration;
use domain::vocabulary::Channel;

use super::{IntegrationTest, SendError, discard};
use crate::Engine;

/// Asks the provider whether it can send with the credentials on the channel. An integration
/// without a registered provider is accepted. The panic of a provider is a refusal. No transaction
/// may be open.
pub(crate) fn accept(
    engine: &Engine,
    provider_id: &str,
    channel: Channel,
    credentials: &Credentials,
) -> Result<(), Invalid> {
    let provider = engine.parts.providers.of(provider_id);
    let Some(provider) = provider else {
        return Ok(());
    };
    catch_unwind(AssertUnwindSafe(|| provider.accept(channel, credentials))).unwrap_or_else(
        |payload| {
            discard(payload);
            let wanted = "credentials at which the provider does not panic";
            Err(Invalid::new("credentials", Reason::malformed(wanted)))
        },
    )
}

/// Tries an integration. The panic of a provider is a failure. No transaction may be open.
pub(crate) fn test(engine: &Engine, integration: &Integration) -> IntegrationTest {
    let Some(provider) = engine.parts.providers.of(&integration.provider_id) else {
        return IntegrationTest::NoProvider;
    };
    catch_unwind(AssertUnwindSafe(|| provider.check(integration))).unwrap_or_else(|payload| {
        discard(payload);
        IntegrationTest::Failed(SendError::retryable("the provider panicked"))
    })
}
