//! The circuits of the integrations.
//!
//! They are kept in memory: a success writes nothing, and after a restart each circuit is closed. A
//! restart is often the repair, and a service that still fails opens its circuit soon again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use domain::circuit::{Circuit, CircuitPolicy, Verdict};
use domain::ids::{EnvironmentId, IntegrationId, TaskId};
use domain::task::{Lane, Task};
use domain::time::Timestamp;
use parking_lot::Mutex;

use super::provider::Delivery;
use super::send_result::{SendFailure, SendResult};

/// Largest number of slots in which messages wait for an integration. Those in others wait until they are due.
const MOST_SLOTS: usize = 4_096;

/// Number of messages that are due at the end of a pause. One of them is the probe, and the others are there if it
/// was canceled, say. Any more would be claimed and put back at the end of each pause.
const MOST_CANDIDATES: usize = 1_000;

/// The circuits of the integrations of all environments, and the calls of each.
#[derive(Debug)]
pub(crate) struct Circuits {
    /// `None` if circuits never open.
    policy: Option<CircuitPolicy>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    calls: HashMap<IntegrationId, IntegrationCalls>,
    /// Messages that wait for an integration.
    waiting: HashMap<IntegrationId, Waiting>,
    /// Slots of messages that need not wait any more, and the entry of the queue behind which others are left. It is
    /// empty if none was looked at.
    released: BTreeMap<Slot, Vec<u8>>,
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

/// Messages that wait for an integration.
#[derive(Debug, Default)]
struct Waiting {
    slots: BTreeSet<Slot>,
    /// End of the pause.
    until: Timestamp,
    /// Messages that are due then.
    candidates: HashSet<TaskId>,
}

/// Place of the tasks of a lane that are due at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) due_at: Timestamp,
    pub(super) lane: Lane,
}

impl Circuits {
    pub(crate) fn new(policy: Option<CircuitPolicy>) -> Self {
        Self { policy, known: Mutex::default() }
    }

    /// Returns a copy without the messages that wait, for a rehearsal.
    pub(crate) fn copied(&self) -> Self {
        let calls = self.known.lock().calls.clone();
        Self { policy: self.policy, known: Mutex::new(Known { calls, ..Known::default() }) }
    }

    /// Returns the circuit of an integration.
    pub(crate) fn of(&self, id: IntegrationId) -> Circuit {
        self.known.lock().circuit(id)
    }

    /// Returns the calls of all integrations that were called.
    pub(super) fn calls(&self) -> Vec<(IntegrationId, IntegrationCalls)> {
        let known = self.known.lock();
        let called = known.calls.iter().filter(|(_, calls)| calls.accepted + calls.failed > 0);
        called.map(|(id, calls)| (*id, *calls)).collect()
    }

    /// Returns those of the integrations that are not called at `now`.
    pub(super) fn open(
        &self,
        ids: impl Iterator<Item = IntegrationId>,
        now: Timestamp,
    ) -> Vec<IntegrationId> {
        let Some(policy) = &self.policy else { return Vec::new() };
        let known = self.known.lock();
        ids.filter(|id| known.circuit(*id).waits_until(policy, now).is_some()).collect()
    }

    /// Returns `true` if an integration is not called at `now`.
    pub(super) fn is_open(&self, id: IntegrationId, now: Timestamp) -> bool {
        let until = self.policy.as_ref().and_then(|policy| self.of(id).waits_until(policy, now));
        until.is_some()
    }

    /// Begins a call. Returns `false` if the integration is not called at `now`.
    pub(super) fn begin(&self, id: IntegrationId, now: Timestamp) -> bool {
        let mut known = self.known.lock();
        let calls = known.calls.entry(id).or_default();
        let Some(policy) = &self.policy else { return true };
        let may_begin = calls.circuit.waits_until(policy, now).is_none();
        if may_begin {
            calls.circuit = calls.circuit.calling(policy, now);
        }
        may_begin
    }

    /// Takes note of the answer of a provider, unless the integration was removed since the call has begun.
    /// Returns `true` if messages were released.
    pub(super) fn end(&self, delivery: &Delivery, result: &SendResult, now: Timestamp) -> bool {
        let id = delivery.integration.id;
        let verdict = match result {
            Ok(_) => Verdict::Works,
            Err(failure) => failure.verdict(&delivery.address),
        };
        let mut known = self.known.lock();
        let Some(calls) = known.calls.get_mut(&id) else { return false };
        calls.accepted += u64::from(result.is_ok());
        let is_refused = matches!(result, Err(SendFailure::Provider(_)));
        calls.failed += u64::from(is_refused);
        let Some(policy) = &self.policy else { return false };
        calls.circuit = calls.circuit.after(policy, verdict, now);
        calls.circuit.waits_until(policy, now).is_none() && known.release(id)
    }

    /// Puts off a message that waits for the first of the integrations that may be called. Returns the time at
    /// which it is due if it is not released before. The time is `now` if one may be called already.
    pub(super) fn wait(&self, ids: &[IntegrationId], task: &Task, now: Timestamp) -> Timestamp {
        let Some(policy) = &self.policy else { return now };
        let mut known = self.known.lock();
        let until = |id: &IntegrationId| known.circuit(*id).waits_until(policy, now).unwrap_or(now);
        let first = ids.iter().map(|id| (until(id), *id)).min();
        let Some((until, first)) = first.filter(|(until, _)| *until > now) else { return now };
        let waiting = known.waiting.entry(first).or_default();
        let due_at = if waiting.has_candidate(task.id, until) {
            until
        } else {
            until.after(policy.longest_pause())
        };
        let slot = Slot { due_at, lane: task.lane() };
        for id in ids {
            known.waiting.entry(*id).or_default().add(slot, now);
        }
        due_at
    }

    /// Takes a slot whose messages need not wait any more, and the entry of the queue behind which they are.
    pub(super) fn take_released(&self) -> Option<(Slot, Vec<u8>)> {
        self.known.lock().released.pop_first()
    }

    /// Puts a slot back that has messages left.
    pub(super) fn put_back(&self, slot: Slot, behind: Vec<u8>) {
        // It may have been released once more.
        self.known.lock().released.entry(slot).or_insert(behind);
    }

    /// Forgets an integration that was removed.
    pub(crate) fn forget(&self, id: IntegrationId) {
        let known = &mut *self.known.lock();
        known.calls.remove(&id);
        known.waiting.remove(&id);
    }

    /// Closes the circuit of an integration that was changed. Another one may send its messages now, and it
    /// may send those of others. Returns `true` if messages were released.
    pub(crate) fn close(&self, environment_id: EnvironmentId, id: IntegrationId) -> bool {
        let mut known = self.known.lock();
        if let Some(calls) = known.calls.get_mut(&id) {
            calls.circuit = Circuit::default();
        }
        let is_there = |waiting: &Waiting| {
            waiting.slots.first().is_some_and(|slot| slot.lane.environment_id == environment_id)
        };
        let waiting = known.waiting.iter().filter(|(_, waiting)| is_there(waiting));
        let ids: Vec<_> = waiting.map(|(id, _)| *id).collect();
        ids.into_iter().filter(|id| known.release(*id)).count() > 0
    }
}

impl Known {
    fn circuit(&self, id: IntegrationId) -> Circuit {
        self.calls.get(&id).map(|calls| calls.circuit).unwrap_or_default()
    }

    // Releases the messages that wait for an integration. Returns `false` if there are none.
    fn release(&mut self, id: IntegrationId) -> bool {
        let Some(Waiting { slots, .. }) = self.waiting.remove(&id) else { return false };
        self.released.extend(slots.into_iter().map(|slot| (slot, Vec::new())));
        true
    }
}

impl Waiting {
    // Returns `true` if a message that waits for the end of a pause is due then. The settlement of a message may
    // be made several times.
    fn has_candidate(&mut self, id: TaskId, until: Timestamp) -> bool {
        if self.until != until {
            self.candidates.clear();
            self.until = until;
        }
        if self.candidates.len() < MOST_CANDIDATES {
            self.candidates.insert(id);
        }
        self.candidates.contains(&id)
    }

    // Adds a slot. Slots that are due at `now` need not be known.
    fn add(&mut self, slot: Slot, now: Timestamp) {
        while self.slots.first().is_some_and(|first| first.due_at <= now) {
            self.slots.pop_first();
        }
        if self.slots.len() < MOST_SLOTS {
            self.slots.insert(slot);
        }
    }
}
