//! Deliveries for the unit tests of a provider.

use domain::error::Reason;
use domain::integration::IntegrationCreate;
use domain::step::Step;
use domain::subscriber::SubscriberCreate;
use domain::trigger::Trigger;
use domain::workflow::WorkflowCreate;
use store::memory::MemoryStore;

use super::{Delivery, RecordingProvider};
use crate::{Engine, Error, ManualClock, Result, SeededEntropy};

impl Delivery {
    /// Returns the first delivery of a step, for the unit test of a provider. It is made as for a
    /// real message: the step is rendered, and the address is that of the subscriber. The channels
    /// of the subscriber belong to the integration. The same arguments make the same delivery.
    ///
    /// ```
    /// use tidings::integration::IntegrationCreate;
    /// use tidings::step::Step;
    /// use tidings::subscriber::SubscriberCreate;
    /// use tidings::vocabulary::Channel;
    /// use tidings::{Address, Delivery, Provider, ProviderReceipt, SendError};
    ///
    /// #[derive(Debug)]
    /// struct Relay;
    ///
    /// impl Provider for Relay {
    ///     fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
    ///         match &delivery.address {
    ///             Address::Email(_) => Ok(ProviderReceipt::with_id("queued-1")),
    ///             _ => Err(SendError::misconfigured("it sends e-mail only")),
    ///         }
    ///     }
    /// }
    ///
    /// # fn main() -> tidings::Result<()> {
    /// let ada = SubscriberCreate::new("ada")?.first_name("Ada").email("ada@example.org")?;
    /// let mail = Step::email("On its way", "<p>Dear {{ subscriber.firstName }}</p>")?;
    /// let relay = IntegrationCreate::new("relay", Channel::Email)?;
    /// let delivery = Delivery::sample(&mail, &ada, &relay)?;
    ///
    /// assert_eq!(delivery.message.text(), Some("<p>Dear Ada</p>"));
    /// assert_eq!(Relay.send(&delivery), Ok(ProviderReceipt::with_id("queued-1")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if an argument breaks a rule; if the step, the address of the subscriber
    /// and the integration are not of one channel; or if the step is not run.
    pub fn sample(
        step: &Step,
        subscriber: &SubscriberCreate,
        integration: &IntegrationCreate,
    ) -> Result<Self> {
        let recorder = RecordingProvider::default();
        let builder =
            Engine::builder().clock(ManualClock::default()).entropy(SeededEntropy::new(0));
        let engine = builder.default_provider(recorder.clone()).build(MemoryStore::default());
        let env = engine.organization("sample")?.development()?;
        let integration = env.integrations().create(integration)?;
        let mut subscriber = subscriber.clone();
        for channel in &mut subscriber.profile.channels {
            channel.integration_id = integration.id;
        }
        let workflow = WorkflowCreate::new("sample", "Sample")?.step(step.clone());
        env.workflows().create(&workflow)?;
        env.events().trigger(&Trigger::new("sample", subscriber)?)?;
        // A message to several destinations is a task, and one for each of them.
        engine.delivery().run_due(2)?;
        let expected = "for one channel, with a step, an address and an integration";
        recorder.sent().pop().ok_or_else(|| Error::invalid("sample", Reason::malformed(expected)))
    }
}
