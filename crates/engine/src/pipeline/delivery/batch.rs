//! Batches: messages that were claimed together, within one lease.

use std::time::Duration;

use domain::environment::Home;
use domain::time::Timestamp;
use store::WriteRecords;

use super::provider::Delivery;
use super::{DeliveryQueue, DeliveryReport, settle};
use crate::resources::notifications;
use crate::tx::Tx;
use crate::{Engine, Result};

// Time of the engine's clock after which results are settled, checked after each call of a provider.
// If the process crashes before the settlement, the messages are sent again.
const UNSETTLED: Duration = Duration::from_millis(100);

impl DeliveryQueue<'_> {
    /// Sends a batch, and settles it in few transactions. Messages that do not fit into the lease
    /// are given back unsent. Returns the number of unsent messages.
    pub(super) fn deliver(
        &self,
        deliveries: Vec<Delivery>,
        report: &mut DeliveryReport,
    ) -> Result<usize> {
        let mut unsettled = Vec::with_capacity(deliveries.len());
        let mut since = self.engine.now();
        let mut slowest = Duration::ZERO;
        let mut waiting = deliveries.into_iter();
        while let Some(delivery) = waiting.next() {
            let start = self.engine.now();
            if !delivery.fits(start, slowest) {
                settle::settle(self.engine, &unsettled, report)?;
                let unsent: Vec<_> = std::iter::once(delivery).chain(waiting).collect();
                return give_back(self.engine, &unsent, report);
            }
            let result = self.send(&delivery);
            let end = self.engine.now();
            slowest = slowest.max(end.since(start));
            unsettled.push((delivery, result));
            if end.since(since) > UNSETTLED {
                settle::settle(self.engine, &std::mem::take(&mut unsettled), report)?;
                since = end;
            }
        }
        settle::settle(self.engine, &unsettled, report)?;
        Ok(0)
    }
}

impl Delivery {
    // Returns `true` if a call that begins at `now` and lasts `span` ends within the lease. A lease
    // up to the last instant there is does not end.
    fn fits(&self, now: Timestamp, span: Duration) -> bool {
        let left = self.lease_until.since(now);
        self.lease_until == Timestamp::MAX || (!left.is_zero() && left >= span)
    }
}

// Makes unsent messages due again. Their attempts do not count.
fn give_back(engine: &Engine, unsent: &[Delivery], report: &mut DeliveryReport) -> Result<usize> {
    let given_back = engine.write(engine.now(), |draft| {
        let mut given_back = 0;
        for delivery in unsent {
            let home = Home::from(&delivery.notification);
            given_back += usize::from(give_back_one(&mut draft.within(&home), delivery)?);
        }
        Ok(given_back)
    })?;
    report.superseded += unsent.len() - given_back;
    Ok(given_back)
}

fn give_back_one(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<bool> {
    let Some(before) = notifications::find(tx, delivery.notification.id)? else {
        return Ok(false);
    };
    let now = tx.now();
    let status =
        before.job(delivery.job).and_then(|job| job.status.given_back(delivery.attempts, now));
    let Some(status) = status else { return Ok(false) };
    let mut after = before.clone();
    after.updated_at = now.max(before.created_at);
    if let Some(job) = after.job_mut(delivery.job) {
        job.move_to(status, now);
    }
    tx.replace(&before, &after)?;
    Ok(true)
}
