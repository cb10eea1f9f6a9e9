//! The circuits of the integrations.
//!
//! They are kept in memory: a success writes nothing, and after a restart each circuit is closed. A
//! restart is often the repair, and a service that still fails opens its circuit soon again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem;
use std::ops::Bound::{Excluded, Unbounded};

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
    /// Slots of messages that need not wait any more.
    released: BTreeMap<Slot, Released>,
    /// The slot that was taken last. The next one follows it, so that none whose transactions fail holds up others.
    taken: Option<Slot>,
    /// Number of changes of integrations.
    changes: u64,
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

/// A slot whose messages need not wait any more.
#[derive(Clone, Debug)]
pub(super) struct Released {
    /// Integration that takes messages again. `None` if others may send them.
    pub(super) by: Option<IntegrationId>,
    /// Entry of the queue behind which messages are left. It is empty if none was looked at.
    pub(super) behind: Vec<u8>,
}

/// What a message waits for: the first of some integrations that may be called.
#[derive(Clone, Debug)]
pub(super) struct Awaited {
    /// Integrations that may send the message.
    pub(super) ids: Vec<IntegrationId>,
    /// Number of changes before these were found.
    pub(super) changes: u64,
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
        self.policy.is_some_and(|policy| self.of(id).waits_until(&policy, now).is_some())
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
        let has_failed = matches!(result, Err(SendFailure::Provider(_)));
        calls.failed += u64::from(has_failed);
        let Some(policy) = &self.policy else { return false };
        calls.circuit = calls.circuit.after(policy, verdict, now);
        match verdict {
            Verdict::Works => known.release(id, Some(id)),
            Verdict::Unknown => known.release_candidates(id),
            Verdict::Fails => false,
        }
    }

    /// Returns the number of changes of integrations so far.
    pub(super) fn changes(&self) -> u64 {
        self.known.lock().changes
    }

    /// Puts off a message that waits for the first of the integrations that may be called. Returns the time at
    /// which it is due if it is not released before. The time is `now` if one may be called already, or if an
    /// integration was changed meanwhile.
    pub(super) fn wait(&self, awaited: &Awaited, task: &Task, now: Timestamp) -> Timestamp {
        let Some(policy) = &self.policy else { return now };
        let Awaited { ids, changes } = awaited;
        let mut known = self.known.lock();
        if known.changes != *changes {
            return now;
        }
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

    /// Takes a slot whose messages need not wait any more, and are not due at `now`.
    pub(super) fn take_released(&self, now: Timestamp) -> Option<(Slot, Released)> {
        let policy = self.policy.as_ref()?;
        let known = &mut *self.known.lock();
        loop {
            let (slot, released) = known.take_next()?;
            if slot.due_at <= now {
                continue;
            }
            let opened =
                released.by.filter(|id| known.circuit(*id).waits_until(policy, now).is_some());
            match opened {
                Some(id) => known.waiting.entry(id).or_default().add(slot, now),
                None => return Some((slot, released)),
            }
        }
    }

    /// Puts a slot back that has messages left.
    pub(super) fn put_back(&self, slot: Slot, released: Released) {
        // It may have been released once more.
        self.known.lock().released.entry(slot).or_insert(released);
    }

    /// Forgets an integration that was removed.
    pub(crate) fn forget(&self, id: IntegrationId) {
        let known = &mut *self.known.lock();
        known.calls.remove(&id);
        known.waiting.remove(&id);
    }

    /// Forgets the messages of an environment that was deleted.
    pub(crate) fn forget_environment(&self, id: EnvironmentId) {
        let known = &mut *self.known.lock();
        known.released.retain(|slot, _| slot.lane.environment_id != id);
        known.waiting.retain(|_, waiting| !waiting.is_in(id));
    }

    /// Closes the circuit of an integration that was changed. Another one may send its messages now, and it
    /// may send those of others. Returns `true` if messages were released.
    pub(crate) fn close(&self, environment_id: EnvironmentId, id: IntegrationId) -> bool {
        let mut known = self.known.lock();
        known.changes += 1;
        if let Some(calls) = known.calls.get_mut(&id) {
            calls.circuit = Circuit::default();
        }
        let waiting = known.waiting.iter().filter(|(_, waiting)| waiting.is_in(environment_id));
        let ids: Vec<_> = waiting.map(|(id, _)| *id).collect();
        ids.into_iter().filter(|id| known.release(*id, None)).count() > 0
    }
}

impl Known {
    fn circuit(&self, id: IntegrationId) -> Circuit {
        self.calls.get(&id).map(|calls| calls.circuit).unwrap_or_default()
    }

    // Releases the messages that wait for an integration. Returns `false` if there are none.
    fn release(&mut self, id: IntegrationId, by: Option<IntegrationId>) -> bool {
        let Some(Waiting { slots, .. }) = self.waiting.remove(&id) else { return false };
        self.add_released(slots, by);
        true
    }

    // Releases the messages that are due at the end of the pause of an integration: one of them is the next probe.
    // Returns `false` if there are none.
    fn release_candidates(&mut self, id: IntegrationId) -> bool {
        let Some(waiting) = self.waiting.get_mut(&id) else { return false };
        let (candidates, others): (BTreeSet<_>, _) = mem::take(&mut waiting.slots)
            .into_iter()
            .partition(|slot| slot.due_at <= waiting.until);
        waiting.slots = others;
        let are_there = !candidates.is_empty();
        self.add_released(candidates, Some(id));
        are_there
    }

    // What is released for two reasons does not wait again if the circuit of one integration opens.
    fn add_released(&mut self, slots: BTreeSet<Slot>, by: Option<IntegrationId>) {
        for slot in slots {
            let by = by.filter(|_| self.released.get(&slot).is_none_or(|known| known.by == by));
            self.released.insert(slot, Released { by, behind: Vec::new() });
        }
    }

    fn take_next(&mut self) -> Option<(Slot, Released)> {
        let mut next = self.released.range((self.taken.map_or(Unbounded, Excluded), Unbounded));
        let slot = *next.next().or_else(|| self.released.first_key_value())?.0;
        self.taken = Some(slot);
        self.released.remove_entry(&slot)
    }
}

impl Waiting {
    // Returns `true` if the messages are those of this environment, as all that wait for one integration.
    fn is_in(&self, id: EnvironmentId) -> bool {
        self.slots.first().is_some_and(|slot| slot.lane.environment_id == id)
    }

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
