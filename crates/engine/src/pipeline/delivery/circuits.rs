//! The circuits of the integrations.
//!
//! They are kept in memory: a success writes nothing, and after a restart each circuit is closed. A
//! restart is often the repair, and a service that still fails opens its circuit soon again.

use std::collections::HashMap;

use domain::circuit::{Circuit, CircuitPolicy, Verdict};
use domain::ids::IntegrationId;
use domain::time::Timestamp;
use parking_lot::Mutex;

use super::provider::Delivery;
use super::send_result::{SendFailure, SendResult};

/// The circuits of the integrations of all environments, and the calls of each.
#[derive(Debug)]
pub(crate) struct Circuits {
    /// `None` if circuits never open.
    policy: Option<CircuitPolicy>,
    known: Mutex<HashMap<IntegrationId, IntegrationCalls>>,
}

/// Calls of an integration in this engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IntegrationCalls {
    circuit: Circuit,
    /// Number of messages that were accepted.
    pub(super) accepted: u64,
    /// Number of calls that were not.
    pub(super) failed: u64,
}

impl Circuits {
    pub(crate) fn new(policy: Option<CircuitPolicy>) -> Self {
        Self { policy, known: Mutex::default() }
    }

    /// Returns a copy, for a rehearsal.
    pub(crate) fn copied(&self) -> Self {
        Self { policy: self.policy, known: Mutex::new(self.known.lock().clone()) }
    }

    /// Returns the circuit of an integration.
    pub(crate) fn of(&self, id: IntegrationId) -> Circuit {
        self.known.lock().get(&id).map(|calls| calls.circuit).unwrap_or_default()
    }

    /// Returns the calls of all integrations that were called.
    pub(super) fn calls(&self) -> Vec<(IntegrationId, IntegrationCalls)> {
        let known = self.known.lock();
        let called = known.iter().filter(|(_, calls)| calls.accepted + calls.failed > 0);
        called.map(|(id, calls)| (*id, *calls)).collect()
    }

    /// Returns the integrations that are not called at `now`.
    pub(super) fn open(&self, now: Timestamp) -> Vec<IntegrationId> {
        let Some(policy) = &self.policy else { return Vec::new() };
        let known = self.known.lock();
        let waits = |calls: &IntegrationCalls| calls.circuit.waits_until(policy, now).is_some();
        known.iter().filter(|(_, calls)| waits(calls)).map(|(id, _)| *id).collect()
    }

    /// Returns the time until which an integration is not called.
    pub(super) fn waits_until(&self, id: IntegrationId, now: Timestamp) -> Option<Timestamp> {
        self.of(id).waits_until(self.policy.as_ref()?, now)
    }

    /// Begins a call, unless the integration is not called until the returned time.
    pub(super) fn begin(&self, id: IntegrationId, now: Timestamp) -> Option<Timestamp> {
        let mut known = self.known.lock();
        let calls = known.entry(id).or_default();
        let policy = self.policy.as_ref()?;
        let waits = calls.circuit.waits_until(policy, now);
        if waits.is_none() {
            calls.circuit = calls.circuit.calling(policy, now);
        }
        waits
    }

    /// Takes note of the answer of a provider, unless the integration was removed since the call has begun.
    pub(super) fn end(&self, delivery: &Delivery, result: &SendResult, now: Timestamp) {
        let (is_accepted, verdict) = match result {
            Ok(_) => (true, Some(Verdict::Works)),
            Err(SendFailure::NoProvider) => return,
            Err(failure) => (false, failure.verdict(&delivery.address)),
        };
        let mut known = self.known.lock();
        let Some(calls) = known.get_mut(&delivery.integration.id) else { return };
        calls.accepted += u64::from(is_accepted);
        calls.failed += u64::from(!is_accepted);
        if let (Some(policy), Some(verdict)) = (&self.policy, verdict) {
            calls.circuit = calls.circuit.after(policy, verdict, now);
        }
    }

    /// Forgets an integration that was removed.
    pub(crate) fn forget(&self, id: IntegrationId) {
        self.known.lock().remove(&id);
    }

    /// Closes the circuit of an integration that was changed.
    pub(crate) fn close(&self, id: IntegrationId) {
        if let Some(calls) = self.known.lock().get_mut(&id) {
            calls.circuit = Circuit::default();
        }
    }
}
