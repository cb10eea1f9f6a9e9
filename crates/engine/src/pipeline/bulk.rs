//! Several events in one call.

use std::iter;

use domain::error::Invalid;
use domain::ids::TransactionId;
use domain::time::Timestamp;
use domain::trigger::{Trigger, TriggerReceipt};
use store::Step;

use crate::idempotency::StoredRefusal;
use crate::pipeline::current::NamedRecords;
use crate::pipeline::planned::Prepared;
use crate::pipeline::prepare::{Request, transaction_id};
use crate::pipeline::trigger::{accept, current_receipt, prefetch};
use crate::scope::Write;
use crate::tx::{MAX_TRANSACTION_CONTENT, Tx};
use crate::{Result, Scope};

pub(crate) const NAME: &str = "events.trigger_bulk";

/// A transaction takes events until they have so many notifications.
const NOTIFICATIONS: usize = 500;

type Receipt = Result<TriggerReceipt, StoredRefusal>;

/// A bulk under way.
struct Bulk<'b> {
    scope: &'b Scope,
    now: Timestamp,
    checked: Result<(), Invalid>,
    /// Empty if the bulk is refused.
    triggers: &'b [Trigger],
    write: Write<'b>,
    /// The ids of the events that come without one. `None` if the preparation makes them.
    ids: Option<Vec<TransactionId>>,
    /// The receipts of the events that have happened.
    receipts: Vec<Receipt>,
}

/// Result of a transaction that is not the last one.
enum Part {
    /// The next events have happened.
    Happened(Vec<Receipt>),
    /// No event has happened, because an equal call has begun and its events have other ids.
    Unnamed,
}

/// Returns `true` if a transaction with so many notifications and bytes of content takes no more events.
fn is_enough((notifications, content): (usize, usize)) -> bool {
    notifications >= NOTIFICATIONS || content >= MAX_TRANSACTION_CONTENT
}

/// Triggers the events of a bulk, in as many transactions as they need.
pub(crate) fn accept_all(scope: &Scope, triggers: &[Trigger]) -> Result<Vec<Receipt>> {
    let now = scope.engine.now();
    let write = Write::new(scope, NAME, now, triggers)?;
    let checked = Trigger::check_bulk(triggers);
    let triggers = if checked.is_ok() { triggers } else { &[] };
    let mut bulk = Bulk { scope, now, checked, triggers, write, ids: None, receipts: Vec::new() };
    loop {
        let prepared = bulk.prepare()?;
        match bulk.accept_next(&prepared)? {
            Step::More(Part::Happened(receipts)) => bulk.receipts.extend(receipts),
            Step::More(Part::Unnamed) => bulk.assign_ids()?,
            Step::Done(receipts) => return Ok(receipts),
        }
    }
}

impl<'b> Bulk<'b> {
    // Prepares the events of the next transaction. A repeated call has to find the events that have
    // happened, so they have ids before the first of several transactions.
    fn prepare(&mut self) -> Result<Vec<Prepared>> {
        let prepared = self.prepare_next()?;
        let is_last = self.receipts.len() + prepared.len() == self.triggers.len();
        if is_last || self.write.call().is_none() || self.ids.is_some() {
            return Ok(prepared);
        }
        self.assign_ids()?;
        self.prepare_next()
    }

    fn prepare_next(&self) -> Result<Vec<Prepared>> {
        self.scope.prepare(self.now, |preparation| {
            let (mut prepared, mut notifications, mut content) = (Vec::new(), 0, 0);
            for (trigger, id) in self.events().skip(self.receipts.len()) {
                if is_enough((notifications, content)) {
                    break;
                }
                let next = preparation.prepare(Request::for_recipients(trigger), id)?;
                let (more, bytes) = next.size();
                notifications += more;
                content += bytes;
                prepared.push(next);
            }
            Ok(prepared)
        })
    }

    // The events, each with the id that it has if it comes without one.
    fn events(&self) -> impl Iterator<Item = (&'b Trigger, Option<&TransactionId>)> {
        let mut ids = self.ids.iter().flatten();
        self.triggers.iter().map(move |trigger| {
            (trigger, if trigger.transaction_id.is_none() { ids.next() } else { None })
        })
    }

    // Assigns ids to the events that come without one: those of an equal call that has begun, or new ones.
    fn assign_ids(&mut self) -> Result<()> {
        let Some(call) = self.write.call() else { return Ok(()) };
        let seed = self.scope.engine.parts.seeds.draw(self.now);
        let random = seed.start();
        let unnamed = self.triggers.iter().filter(|trigger| trigger.transaction_id.is_none());
        let ids = unnamed.map(|_| transaction_id(&random)).collect::<Result<Vec<_>>>()?;
        self.ids = Some(call.begin_with_ids(&ids)?);
        Ok(())
    }

    fn accept_next(&self, prepared: &[Prepared]) -> Result<Step<Part, Vec<Receipt>>> {
        let before = self.receipts.len();
        self.write.step(|tx| {
            self.checked.clone()?;
            if let (Some(call), None) = (self.write.call(), &self.ids)
                && call.has_begun_with_ids(tx)?
            {
                return Ok(Step::More(Part::Unnamed));
            }
            prefetch(tx, prepared)?;
            // Without ids, a repeated call would not find what one of several transactions has done.
            let may_end_early = self.write.call().is_none() || self.ids.is_some();
            let (mut named, mut receipts) = (NamedRecords::before_events(tx), Vec::new());
            for (trigger, prepared) in iter::zip(self.triggers.iter().skip(before), prepared) {
                // An event that is prepared again may have more than was planned.
                if may_end_early && is_enough(named.size()) {
                    break;
                }
                let request = Request::for_recipients(trigger);
                receipts.push(accept(tx, request, prepared, &mut named)?);
            }
            if before + receipts.len() < self.triggers.len() {
                return Ok(Step::More(Part::Happened(receipts)));
            }
            Ok(Step::Done([self.earlier(tx)?, receipts].concat()))
        })
    }

    // The receipts of earlier transactions, for the answer.
    fn earlier(&self, tx: &Tx<'_>) -> Result<Vec<Receipt>> {
        let receipts = self.receipts.iter().map(|receipt| match receipt {
            Ok(receipt) if self.write.call().is_some() => current_receipt(tx, receipt).map(Ok),
            receipt => Ok(receipt.clone()),
        });
        receipts.collect()
    }
}
