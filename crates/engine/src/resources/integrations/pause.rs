//! Integrations that are paused.

use domain::ids::IntegrationRef;
use domain::integration::Integration;
use store::WriteRecords;

use super::{Integrations, get_named};
use crate::Result;
use crate::pipeline::delivery::release;

impl Integrations<'_> {
    /// Pauses an integration, for example while its provider is out of order. The engine still chooses it for
    /// messages, which wait without an attempt until it is [resumed](Self::resume). Other integrations send as
    /// before. A paused fallback takes over only if no other integration can send. Events can be canceled and
    /// expire meanwhile. A call that the provider has begun is not recalled.
    ///
    /// An integration that is paused stays as it is, and `upsert` does not resume it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::{Engine, RecordingProvider, store::memory::MemoryStore, integration::IntegrationCreate};
    /// # use tidings::{step::Step, subscriber::SubscriberCreate, trigger::Trigger};
    /// # use tidings::{vocabulary::Channel, workflow::WorkflowCreate};
    /// # let recorder = RecordingProvider::default();
    /// # let engine = Engine::builder().default_provider(recorder.clone()).build(MemoryStore::default());
    /// # let env = engine.organization("acme")?.development()?;
    /// # let ses = env.integrations().create(&IntegrationCreate::new("ses", Channel::Email)?)?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("order-shipped", "Shipped")?.step(Step::email("Hi", "Hi")?))?;
    /// # let ada = SubscriberCreate::new("ada")?.email("ada@example.org")?;
    /// env.integrations().pause(ses.id)?;
    /// env.events().trigger(&Trigger::new("order-shipped", ada)?)?;
    /// assert_eq!(engine.delivery().run_due(100)?.postponed, 1);
    ///
    /// env.integrations().resume(ses.id)?;
    /// assert_eq!(engine.delivery().run_due(100)?.sent, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such integration.
    pub fn pause(&self, name: impl Into<IntegrationRef>) -> Result<Integration> {
        self.pause_of(name.into().as_str())
    }

    fn pause_of(&self, name: &str) -> Result<Integration> {
        self.scope.write("integrations.pause", name, |tx| {
            let before = get_named(tx, name)?;
            let after = before.paused(tx.now());
            tx.replace(&before, &after)?;
            Ok(after)
        })
    }

    /// Resumes an integration that was [paused](Self::pause): its messages are due again, some
    /// hundreds at a time. An integration that is not paused stays as it is.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such integration.
    pub fn resume(&self, name: impl Into<IntegrationRef>) -> Result<Integration> {
        self.resume_of(name.into().as_str())
    }

    fn resume_of(&self, name: &str) -> Result<Integration> {
        self.scope.write("integrations.resume", name, |tx| {
            let before = get_named(tx, name)?;
            let after = before.resumed();
            if before.is_paused() {
                tx.replace(&before, &after)?;
                release::begin(tx, before.id)?;
            }
            Ok(after)
        })
    }
}
