//! Integrations before they send: their provider accepts what is saved, and tries it.

use domain::credentials::Credentials;
use domain::error::{Invalid, Reason};
use domain::integration::Integration;
use domain::vocabulary::Channel;

use super::{IntegrationTestResult, SendError};
use crate::Engine;
use crate::host;

/// Asks the provider whether it can send with the credentials on the channel. An integration
/// without a registered provider is accepted. The panic of a provider is a refusal. No transaction
/// may be open.
pub(crate) fn accept(
    engine: &Engine,
    provider_id: &str,
    channel: Channel,
    credentials: &Credentials,
) -> Result<(), Invalid> {
    let provider = engine.parts.callbacks.provider(provider_id);
    let Some(provider) = provider else {
        return Ok(());
    };
    host::call(|| provider.accept(channel, credentials)).unwrap_or_else(|_| {
        let wanted = "credentials at which the provider does not panic";
        Err(Invalid::new("credentials", Reason::malformed(wanted)))
    })
}

/// Tries an integration. The panic of a provider is a failure. No transaction may be open.
pub(crate) fn test(engine: &Engine, integration: &Integration) -> IntegrationTestResult {
    let Some(provider) = engine.parts.callbacks.provider(&integration.provider_id) else {
        return IntegrationTestResult::NoProvider;
    };
    let panicked = |_| IntegrationTestResult::Failed(SendError::retryable("the provider panicked"));
    match host::call(|| provider.check(integration)).unwrap_or_else(panicked) {
        IntegrationTestResult::Failed(error) => IntegrationTestResult::Failed(error.shortened()),
        tested => tested,
    }
}

#[cfg(test)]
mod tests {
    use domain::integration::IntegrationCreate;
    use store::memory::MemoryStore;

    use super::super::{Delivery, Provider, ProviderReceipt};
    use super::*;

    #[derive(Debug)]
    struct Talkative;

    impl Provider for Talkative {
        fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
            Ok(ProviderReceipt::default())
        }

        fn check(&self, _: &Integration) -> IntegrationTestResult {
            IntegrationTestResult::Failed(SendError::permanent("no".repeat(1_000)))
        }
    }

    #[test]
    fn the_failure_of_a_test_is_as_short_as_that_of_a_message() {
        let engine = Engine::builder().default_provider(Talkative).build(MemoryStore::default());
        let env = engine.organization("acme").unwrap().development().unwrap();
        let create = IntegrationCreate::new("mail", Channel::Email).unwrap();
        let integration = env.integrations().create(&create).unwrap();
        let failed = test(&engine, &integration);
        let expected = SendError::permanent("no".repeat(500));
        assert!(matches!(&failed, IntegrationTestResult::Failed(error) if *error == expected));
    }
}
