//! Triggers and broadcasts.

use std::ops;

use domain::ids::{EnvironmentId, TransactionId};
use domain::notification::Ordinal;
use domain::trigger::{AcceptedTrigger, CanceledTrigger, FanOut, FanOutState, TriggerRecipients};

use crate::key::Key;
use crate::layout::{TRANSACTIONS, TRIGGERS, canceled_trigger, fan_out, fan_out_state};
use crate::record::{Entries, Excerpt, Record};

fn trigger(
    environment: EnvironmentId,
    ordinals: &ops::Range<u64>,
    transaction: &TransactionId,
) -> Key<AcceptedTrigger> {
    let (first, end) = (Ordinal::new(ordinals.start), Ordinal::new(ordinals.end));
    TRIGGERS.within(environment).then(first).then(end).then(transaction).end()
}

impl Excerpt for TriggerRecipients {
    type Of = AcceptedTrigger;

    fn key(&self, environment: EnvironmentId) -> Key<AcceptedTrigger> {
        trigger(environment, &self.ordinals, &self.transaction_id)
    }
}

impl Record for AcceptedTrigger {
    fn key(&self) -> Key<Self> {
        trigger(self.environment_id, &self.ordinals, &self.receipt.transaction_id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let of_transaction =
            TRANSACTIONS.within(self.environment_id).then(&self.receipt.transaction_id);
        let (first, end) = (Ordinal::new(self.ordinals.start), Ordinal::new(self.ordinals.end));
        entries.add(of_transaction.then(first).then(end).end());
    }
}

impl Record for CanceledTrigger {
    fn key(&self) -> Key<Self> {
        canceled_trigger(self.environment_id, &self.cancellation.transaction_id)
    }
}

impl Record for FanOut {
    fn key(&self) -> Key<Self> {
        fan_out(self.environment_id, &self.transaction_id)
    }
}

impl Record for FanOutState {
    fn key(&self) -> Key<Self> {
        fan_out_state(self.environment_id, &self.progress.transaction_id)
    }
}
