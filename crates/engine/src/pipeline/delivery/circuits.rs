//! The circuits of the integrations.
//!
//! They are kept in memory: a success writes nothing, and after a restart each circuit is closed. A
//! restart is often the repair, and a service that still fails opens its circuit soon again.

use std::collections::HashMap;

use domain::circuit::{Circuit, CircuitPolicy, Verdict};
use domain::ids::IntegrationId;
use domain::time::Timestamp;
use parking_lot::Mutex;

/// The circuits of the integrations of all environments.
#[derive(Debug)]
pub(crate) struct Circuits {
    /// `None` if circuits never open.
    pub(crate) policy: Option<CircuitPolicy>,
    // Circuits with failures.
    known: Mutex<HashMap<IntegrationId, Circuit>>,
}

impl Default for Circuits {
    fn default() -> Self {
        Self { policy: Some(CircuitPolicy::default()), known: Mutex::default() }
    }
}

impl Circuits {
    /// Returns a copy, for a rehearsal.
    pub(crate) fn copied(&self) -> Self {
        Self { policy: self.policy, known: Mutex::new(self.known.lock().clone()) }
    }

    /// Returns the circuit of an integration.
    pub(crate) fn of(&self, id: IntegrationId) -> Circuit {
        self.known.lock().get(&id).copied().unwrap_or_default()
    }

    /// Returns the integrations that are left alone at `now`.
    pub(super) fn open(&self, now: Timestamp) -> Vec<IntegrationId> {
        let Some(policy) = &self.policy else { return Vec::new() };
        let known = self.known.lock();
        let open = known.iter().filter(|(_, circuit)| circuit.waits_until(policy, now).is_some());
        open.map(|(id, _)| *id).collect()
    }

    /// Returns the time until which an integration is left alone.
    pub(super) fn waits_until(&self, id: IntegrationId, now: Timestamp) -> Option<Timestamp> {
        self.of(id).waits_until(self.policy.as_ref()?, now)
    }

    /// Begins a call, unless the integration is left alone until the returned time.
    pub(super) fn begin(&self, id: IntegrationId, now: Timestamp) -> Option<Timestamp> {
        let policy = self.policy.as_ref()?;
        let mut known = self.known.lock();
        let circuit = known.get_mut(&id)?;
        let waits = circuit.waits_until(policy, now);
        if waits.is_none() {
            *circuit = circuit.calling(policy, now);
        }
        waits
    }

    /// Takes note of the end of a call.
    pub(super) fn end(&self, id: IntegrationId, verdict: Verdict, now: Timestamp) {
        let Some(policy) = &self.policy else { return };
        let mut known = self.known.lock();
        match verdict {
            Verdict::Works => {
                known.remove(&id);
            }
            Verdict::Fails => {
                let circuit = known.entry(id).or_default();
                *circuit = circuit.after(policy, verdict, now);
            }
        }
    }

    /// Closes the circuit of an integration that was changed.
    pub(crate) fn close(&self, id: IntegrationId) {
        self.known.lock().remove(&id);
    }
}
