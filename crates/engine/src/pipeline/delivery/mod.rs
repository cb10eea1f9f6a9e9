//! Delivery: due jobs are claimed, handed to providers and settled. No transaction is open while a
//! provider works.

mod advance;
mod batch;
mod claim;
mod facts;
mod outbox;
mod provider;
mod report;
mod sample;
mod settle;

use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::time::Timestamp;

use crate::{Engine, Result};

pub(crate) use advance::StepRun;
pub(crate) use facts::{RunFacts, workflow_of};
pub use outbox::Outbox;
pub use provider::{Delivery, Provider, ProviderReceipt, SendError};
pub use report::{DeliveryFailure, DeliveryReport, FailureReason};

use provider::SendResult;

/// The delivery queue of all environments.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::{Engine, Outbox, store::memory::MemoryStore};
/// # use tidings::{integration::IntegrationCreate, step::Step, subscriber::SubscriberCreate};
/// # use tidings::{trigger::Trigger, vocabulary::Channel, workflow::WorkflowCreate};
///
/// let outbox = Outbox::default(); // or your own providers
/// let builder = Engine::builder().default_provider(outbox.clone());
/// let engine = builder.build(MemoryStore::default());
/// # let env = engine.organization("acme")?.development()?;
/// # env.integrations().create(&IntegrationCreate::new("ses", Channel::Email)?)?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::email("Hello!", "Hello!")?))?;
/// # let ada = SubscriberCreate::new("ada")?.email("ada@example.org")?;
/// # env.events().trigger(&Trigger::new("greeting", ada)?)?;
/// let report = engine.delivery().run_due(100)?;
/// assert_eq!((report.sent, outbox.sent().len()), (1, 1));
/// for failure in &report.failures {
///     eprintln!("{}: {}", failure.notification_id, failure.reason);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DeliveryQueue<'e> {
    engine: &'e Engine,
}

// Jobs of one claim, which are sent one after the other within one lease. After messages that did
// not fit, the next claim is as large as what fitted.
const BATCH: usize = 32;

impl<'e> DeliveryQueue<'e> {
    pub(crate) fn new(engine: &'e Engine) -> Self {
        Self { engine }
    }

    /// Runs at most `limit` due jobs of all environments, oldest first. A host application calls
    /// this function regularly, from one thread or several.
    ///
    /// # Errors
    ///
    /// [`Error::Store`](crate::Error::Store), also if a claimed job is still due. Claimed jobs that were not settled are run again when
    /// their lease is over.
    pub fn run_due(&self, limit: usize) -> Result<DeliveryReport> {
        let mut report = DeliveryReport::default();
        let (mut left, mut batch) = (limit, BATCH);
        let mut before = None;
        while left > 0 {
            let claimed = claim::claim(self.engine, left.min(batch))?;
            if claimed.looked_at == 0 {
                break;
            }
            // Every claim changes its notifications, unless the messages are given back.
            if before.is_some() && claimed.first == before {
                return Err(claim::not_claimed());
            }
            before = claimed.first;
            report.skipped += claimed.skipped;
            claimed.failures.into_iter().for_each(|failure| report.add(failure));
            let given_back = self.deliver(claimed.deliveries, &mut report)?;
            if given_back > 0 {
                before = None;
            }
            let done = claimed.looked_at - given_back;
            if done == 0 && batch == 1 {
                break;
            }
            left -= done;
            batch = if given_back > 0 { done.max(1) } else { (batch * 2).min(BATCH) };
        }
        Ok(report)
    }

    /// Returns the time at which the next job is due. The time is in the past if a job is due
    /// already. Returns `None` if no job waits.
    pub fn next_due(&self) -> Result<Option<Timestamp>> {
        claim::next_due(self.engine)
    }

    // The panic of a provider affects its own message only.
    fn send(&self, delivery: &Delivery) -> SendResult {
        let provider_id = &delivery.integration.provider_id;
        let Some(provider) = self.engine.parts.providers.of(provider_id) else {
            return SendResult::NoProvider;
        };
        catch_unwind(AssertUnwindSafe(|| provider.send(delivery))).map_or_else(
            |_| {
                let reason = "the provider panicked".into();
                SendResult::Refused(SendError::Retryable { after: None, reason })
            },
            SendResult::from,
        )
    }
}
