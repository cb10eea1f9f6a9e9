//! Operations on the reports of providers.

use domain::ids::{IntegrationId, IntegrationRef, JobId, NotificationId};
use domain::job::Job;
use domain::message::{Message, MessageStatus};
use domain::notification::Notification;
use domain::receipt::{
    Novelty, Receipt, ReceiptKind, ReceiptOutcome, Reported, ReportedAddress, novelty,
};
use domain::suppression::Suppression;
use domain::vocabulary::Channel;
use store::{Order, ReadRecords, Step, WriteRecords, layout};

use super::{get, get_named};
use crate::idempotency::StoredRefusal;
use crate::pipeline::delivery::inbound;
use crate::pipeline::facts::workflow_of;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::preferences::Place;
use crate::resources::{messages, suppressions};
use crate::scope::Between;
use crate::tx::{Tx, View};
use crate::{InboundReport, Integrations, Result};

impl Integrations<'_> {
    /// Records what a provider reports about a message: in the log of its job, once for each event.
    /// The message is found by the id that the provider gave it, see
    /// [`ProviderReceipt::with_id`](crate::ProviderReceipt::with_id). A permanent bounce and a complaint put
    /// the address on the list of [`suppressions`](crate::Scope::suppressions): a bounce for 90 days,
    /// a complaint for ever. A wish to unsubscribe switches off the channel of the workflow for the
    /// subscriber, unless the workflow is critical. Reports may come in any order.
    ///
    /// The host checks that the report comes from the provider.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::receipt::{Receipt, ReceiptKind, ReceiptOutcome};
    /// # use tidings::{integration::IntegrationCreate, vocabulary::Channel};
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # let mail = IntegrationCreate::new("ses", Channel::Email)?;
    /// # let integration = env.integrations().create(&mail)?;
    /// let bounce = Receipt::new("msg-17", ReceiptKind::Bounced)?.text("550 no such user");
    /// let outcome = env.integrations().ingest_receipt(integration.id, &bounce)?;
    /// assert_eq!(outcome, ReceiptOutcome::UnknownMessage);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such integration;
    /// [`Error::Invalid`](crate::Error::Invalid), if an id is empty, longer than 255 bytes, or has
    /// control characters.
    pub fn ingest_receipt(
        &self,
        name: impl Into<IntegrationRef>,
        receipt: &Receipt,
    ) -> Result<ReceiptOutcome> {
        self.ingest_receipt_of(name.into().as_str(), receipt)
    }

    fn ingest_receipt_of(&self, name: &str, receipt: &Receipt) -> Result<ReceiptOutcome> {
        // The send of the message may be stored later, so the call is over without a stored answer.
        let between: Between<'_, (), _> = &mut |()| Ok(Step::Done(ReceiptOutcome::UnknownMessage));
        self.scope.write_in_steps_with(
            "integrations.ingest_receipt",
            (name, receipt),
            ((), between),
            |tx, ()| {
                receipt.check()?;
                let integration = get_named(tx, name)?;
                Ok(match record(tx, integration.id, receipt)? {
                    ReceiptOutcome::UnknownMessage => Step::More(()),
                    outcome => Step::Done(outcome),
                })
            },
        )
    }

    /// Records the reports in a request of a service that the host has received. The provider of the
    /// integration verifies the request with `inboundWebhookSigningKey` of its configurations, reads
    /// it, and each report is recorded as by [`ingest_receipt`](Self::ingest_receipt), in a
    /// transaction of its own.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such integration;
    /// [`Rejection::InboundReport`](crate::Rejection::InboundReport), if the integration takes no
    /// reports, or its provider refuses this one; [`Error::Invalid`](crate::Error::Invalid) for a
    /// body of more than 1 MiB, or more than 1,000 reports.
    pub fn ingest_inbound(
        &self,
        name: impl Into<IntegrationRef>,
        report: &InboundReport,
    ) -> Result<Vec<ReceiptOutcome>> {
        self.ingest_inbound_of(name.into().as_str(), report)
    }

    fn ingest_inbound_of(&self, name: &str, report: &InboundReport) -> Result<Vec<ReceiptOutcome>> {
        let receipts = match self.receipts_in(name, report) {
            Ok(receipts) => Ok(receipts),
            // An equal call may have been accepted before.
            Err(error) => Err(StoredRefusal::of(&error).ok_or(error)?),
        };
        let count = receipts.as_ref().map_or(0, |(_, receipts)| receipts.len());
        let is_over = |outcomes: &Vec<ReceiptOutcome>| outcomes.len() >= count;
        // An answer with an unknown message is not stored, as that of one report is not.
        let between: Between<'_, Vec<ReceiptOutcome>, _> = &mut |outcomes| {
            Ok(if is_over(&outcomes) { Step::Done(outcomes) } else { Step::More(outcomes) })
        };
        self.scope.write_in_steps_with(
            "integrations.ingest_inbound",
            (name, report),
            (Vec::new(), between),
            |tx, before| {
                let (integration, receipts) = receipts.as_ref().map_err(Clone::clone)?;
                let mut outcomes = before.clone();
                if let Some(receipt) = receipts.get(outcomes.len()) {
                    get(tx, *integration)?;
                    outcomes.push(record(tx, *integration, receipt)?);
                }
                let is_known = !outcomes.contains(&ReceiptOutcome::UnknownMessage);
                Ok(if is_known && is_over(&outcomes) {
                    Step::Done(outcomes)
                } else {
                    Step::More(outcomes)
                })
            },
        )
    }

    // The reports in a request, and the integration whose they are.
    fn receipts_in(
        &self,
        name: &str,
        report: &InboundReport,
    ) -> Result<(IntegrationId, Vec<Receipt>)> {
        let integration = self.get(name)?;
        let receipts = inbound::receipts(&self.scope.engine, &integration, report)?;
        Ok((integration.id, receipts))
    }
}

// Records a report about a message of an integration.
fn record(tx: &mut Tx<'_>, id: IntegrationId, receipt: &Receipt) -> Result<ReceiptOutcome> {
    let range = layout::provider_message(tx.environment_id(), id, &receipt.provider_message_id);
    let newest = tx.first(&range, Order::Descending, 1)?.pop();
    let found = newest.and_then(|notification| {
        let job = notification.job_of_receipt(id, &receipt.provider_message_id)?;
        Some((notification, job))
    });
    let Some((before, job)) = found else { return Ok(ReceiptOutcome::UnknownMessage) };
    ingest(tx, &before, job, id, receipt)
}

fn ingest(
    tx: &mut Tx<'_>,
    before: &Notification,
    job: usize,
    integration: IntegrationId,
    receipt: &Receipt,
) -> Result<ReceiptOutcome> {
    let mut after = before.clone();
    let Some(stored) = after.jobs.get_mut(job) else { return Ok(ReceiptOutcome::UnknownMessage) };
    let (notification_id, job_id): (NotificationId, JobId) = (before.id, stored.id);
    let channel = stored.kind.channel();
    let message = message_of(tx, stored, integration)?;
    let Some(sent) = stored.provider_message(integration, &receipt.provider_message_id) else {
        return Ok(ReceiptOutcome::UnknownMessage);
    };
    let present = message.as_ref().and_then(Message::address);
    let own = sent.resent.as_ref().map_or_else(|| present.clone(), |sent| sent.address.clone());
    // The row of a message that was sent again to another address is that of the later send.
    let message = message.filter(|_| own == present);
    let about = ReportedAddress::of(channel, own, receipt);
    let other_address = about.other(tx.environment_id());
    let reported = Reported { receipt, other_address: other_address.as_deref() };
    match novelty(&sent.receipts, reported) {
        Novelty::New => sent.record(reported),
        Novelty::Repeated => return Ok(ReceiptOutcome::Repeated { notification_id, job_id }),
        Novelty::Outdated => return Ok(ReceiptOutcome::Outdated { notification_id, job_id }),
    }
    let mut notification_tx = NotificationTx::of(tx, after, None);
    notification_tx.log(job, receipt.kind.detail(), receipt.shown());
    let after = notification_tx.store_over(before)?;
    if receipt.kind == ReceiptKind::Unsubscribed
        && let Some(channel) = channel
    {
        unsubscribe(tx, &after, channel)?;
    }
    if let (ReceiptKind::Bounced, ReportedAddress::Own(_), Some(message)) =
        (receipt.kind, &about, &message)
    {
        mark_failed(tx, message, receipt)?;
    }
    let suppression = suppress(tx, &after, about, receipt)?.map(Box::new);
    Ok(ReceiptOutcome::Recorded { notification_id, job_id, suppression })
}

// The message that an integration has sent for a job. Returns `None` if it went to several destinations, or
// is gone.
fn message_of(tx: &Tx<'_>, job: &Job, integration: IntegrationId) -> Result<Option<Message>> {
    let Some(id) = job.message_of(integration) else { return Ok(None) };
    messages::find_by_id(tx, id)
}

fn mark_failed(tx: &mut Tx<'_>, message: &Message, receipt: &Receipt) -> Result<()> {
    let mut after = message.clone();
    let (error_id, error_text) = (receipt.kind.detail().to_string(), receipt.shown());
    after.status = MessageStatus::Error { error_id, error_text: error_text.unwrap_or_default() };
    Ok(tx.replace(message, &after)?)
}

// Suppresses the address that a report is about, if the report is a reason for it.
fn suppress(
    tx: &mut Tx<'_>,
    notification: &Notification,
    about: ReportedAddress,
    receipt: &Receipt,
) -> Result<Option<Suppression>> {
    let Some(reason) = receipt.kind.suppression() else { return Ok(None) };
    let Some(address) = about.into_suppressed() else { return Ok(None) };
    let subscriber = notification.recipient_id();
    suppressions::report(tx, address, (reason, receipt.shown()), subscriber.as_ref()).map(Some)
}

// Switches off the channel of the workflow for the subscriber, if all of them are there.
fn unsubscribe(tx: &mut Tx<'_>, notification: &Notification, channel: Channel) -> Result<()> {
    let subscriber = notification.subscriber_id;
    if !tx.contains(&layout::subscriber_id(tx.environment_id(), subscriber))? {
        return Ok(());
    }
    match workflow_of(tx, notification)? {
        Some(workflow) if !workflow.critical => {
            let contexts = notification.context_keys.clone();
            Place { subscriber, contexts }.switch_off(tx, &workflow, channel)
        }
        Some(_) | None => Ok(()),
    }
}
