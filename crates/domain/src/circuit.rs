//! Circuits: an integration that keeps failing is not called for a while.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{IntegrationId, IntegrationIdentifier};
use crate::integration::Integration;
use crate::time::Timestamp;

/// Policy that says when the circuit of an integration opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitPolicy {
    /// Number of failures in a row that open the circuit. At least 1.
    pub failures: u32,
    /// Longest time between two consecutive failures. After a longer time, the count starts again.
    pub gap: Duration,
    /// Time until the first probe. It doubles with each failed probe, up to 16 times the first value.
    pub pause: Duration,
}

/// State of the calls of an integration.
///
/// A closed circuit lets each call through. An open one lets none through until its pause is over.
/// Then it lets one through as a probe: a success closes the circuit, a failure opens it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Circuit {
    /// Calls are made.
    Closed {
        /// Number of failures in a row.
        failures: u32,
        /// Time of the latest of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        latest: Option<Timestamp>,
    },
    /// No calls are made.
    Open {
        /// Time of the next probe.
        until: Timestamp,
        /// Number of probes in a row that have failed.
        probes: u32,
    },
    /// A probe is under way.
    HalfOpen {
        /// Time at which another probe may begin, if this one has no answer.
        until: Timestamp,
        /// Number of probes in a row that have failed.
        probes: u32,
    },
}

/// State of an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct IntegrationHealth {
    /// Integration.
    #[serde(rename = "_integrationId")]
    pub integration_id: IntegrationId,
    /// Its identifier.
    pub identifier: IntegrationIdentifier,
    /// State of its calls in this engine.
    #[serde(flatten)]
    pub circuit: Circuit,
}

impl IntegrationHealth {
    /// Returns the state of an integration.
    #[doc(hidden)]
    pub fn new(integration: &Integration, circuit: Circuit) -> Self {
        let identifier = integration.identifier.clone();
        Self { integration_id: integration.id, identifier, circuit }
    }
}

/// What a call tells of its integration.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has answered, be it with a refusal of the message.
    Works,
    /// It cannot send at the moment.
    Fails,
    /// The call says nothing about it, such as one to a server of the recipient that has no answer.
    Unknown,
}

// Number of times that a pause doubles.
const DOUBLINGS: u32 = 4;

impl Default for CircuitPolicy {
    /// 20 failures in a row, each within a minute of the one before, open the circuit for half a minute.
    fn default() -> Self {
        Self::new(20, Duration::from_secs(60))
    }
}

impl Default for Circuit {
    fn default() -> Self {
        Circuit::Closed { failures: 0, latest: None }
    }
}

impl CircuitPolicy {
    /// Returns the policy of so many `failures` in a row, with at most `gap` between two of them. A gap that
    /// is shorter than the timeout of a provider starts the count again with each timeout. The first pause is
    /// 30 seconds.
    ///
    /// ```
    /// # extern crate tidings_domain as tidings;
    /// use std::time::Duration;
    /// use tidings::circuit::CircuitPolicy;
    ///
    /// let policy = CircuitPolicy::new(5, Duration::from_secs(10)).pause(Duration::from_secs(60));
    /// assert_eq!(policy.failures, 5);
    /// ```
    pub const fn new(failures: u32, gap: Duration) -> Self {
        Self { failures, gap, pause: Duration::from_secs(30) }
    }

    /// Sets the time until the first probe.
    #[must_use]
    pub const fn pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    // The pause behind so many probes that have failed.
    fn pause_after(&self, probes: u32) -> Duration {
        self.pause.saturating_mul(1 << probes.min(DOUBLINGS))
    }

    /// Returns the longest pause.
    #[doc(hidden)]
    pub fn longest_pause(&self) -> Duration {
        self.pause_after(DOUBLINGS)
    }
}

impl Circuit {
    /// Returns the time until which no call is made. Returns `None` if one may be made at `now`.
    #[doc(hidden)]
    pub fn waits_until(self, policy: &CircuitPolicy, now: Timestamp) -> Option<Timestamp> {
        match self {
            Circuit::Closed { .. } => None,
            Circuit::Open { until, probes } | Circuit::HalfOpen { until, probes } => {
                // A pause that has much longer to go than any was set before the clock went back. Another thread
                // may have read a later time than this one.
                let longest = policy.pause_after(probes).saturating_mul(2);
                let is_sound = until <= now.after(longest);
                (until > now && is_sound).then_some(until)
            }
        }
    }

    /// Returns the circuit during a call that begins at `now`.
    #[doc(hidden)]
    #[must_use]
    pub fn calling(self, policy: &CircuitPolicy, now: Timestamp) -> Self {
        match self {
            Circuit::Closed { .. } => self,
            Circuit::Open { probes, .. } | Circuit::HalfOpen { probes, .. } => {
                Circuit::HalfOpen { until: now.after(policy.pause_after(probes)), probes }
            }
        }
    }

    /// Returns the circuit after a call that has ended at `now`.
    #[doc(hidden)]
    #[must_use]
    pub fn after(self, policy: &CircuitPolicy, verdict: Verdict, now: Timestamp) -> Self {
        match (self, verdict) {
            (_, Verdict::Works) => Self::default(),
            (Circuit::Closed { failures, latest }, Verdict::Fails) => {
                // Two calls that end at once may be told in the other order, and a clock may be set.
                let is_recent = latest
                    .is_some_and(|latest| now.since(latest).max(latest.since(now)) <= policy.gap);
                let failures = if is_recent { failures.saturating_add(1) } else { 1 };
                if failures >= policy.failures {
                    Circuit::Open { until: now.after(policy.pause), probes: 0 }
                } else {
                    Circuit::Closed { failures, latest: Some(now) }
                }
            }
            // A call that fails now has begun before the circuit opened.
            (Circuit::Closed { .. }, Verdict::Unknown)
            | (Circuit::Open { .. }, Verdict::Fails | Verdict::Unknown) => self,
            // The next call is the probe.
            (Circuit::HalfOpen { probes, .. }, Verdict::Unknown) => {
                Circuit::Open { until: now, probes }
            }
            (Circuit::HalfOpen { probes, .. }, Verdict::Fails) => {
                let probes = probes.saturating_add(1);
                Circuit::Open { until: now.after(policy.pause_after(probes)), probes }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::at;

    const POLICY: CircuitPolicy =
        CircuitPolicy::new(3, Duration::from_millis(100)).pause(Duration::from_millis(10));

    fn closed(failures: u32, latest: i64) -> Circuit {
        Circuit::Closed { failures, latest: Some(at(latest)) }
    }

    fn open(until: i64, probes: u32) -> Circuit {
        Circuit::Open { until: at(until), probes }
    }

    fn half_open(until: i64, probes: u32) -> Circuit {
        Circuit::HalfOpen { until: at(until), probes }
    }

    /// One row per state: that after a failure at 50, until when no call is made at 50, and the
    /// state during a call that begins at 50. A success closes each, and a call without a verdict ends a probe.
    #[test]
    fn a_circuit_moves_with_each_call() {
        let none = Circuit::default();
        for (state, failed, waits, calling) in [
            (none, closed(1, 50), None, none),
            (closed(1, 40), closed(2, 50), None, closed(1, 40)),
            (closed(2, -50), open(60, 0), None, closed(2, -50)),
            // The latest failure is too old.
            (closed(2, -51), closed(1, 50), None, closed(2, -51)),
            // The clock has gone back, by a little and by a lot.
            (closed(1, 150), closed(2, 50), None, closed(1, 150)),
            (closed(2, 151), closed(1, 50), None, closed(2, 151)),
            (open(60, 0), open(60, 0), Some(60), half_open(60, 0)),
            (open(70, 0), open(70, 0), Some(70), half_open(60, 0)),
            (open(71, 0), open(71, 0), None, half_open(60, 0)),
            (open(50, 1), open(50, 1), None, half_open(70, 1)),
            (half_open(60, 0), open(70, 1), Some(60), half_open(60, 0)),
            (half_open(50, 3), open(210, 4), None, half_open(130, 3)),
            // The pause does not grow for ever.
            (half_open(50, 40), open(210, 41), None, half_open(210, 40)),
        ] {
            assert_eq!(state.after(&POLICY, Verdict::Fails, at(50)), failed, "{state:?}");
            assert_eq!(state.after(&POLICY, Verdict::Works, at(50)), none, "{state:?}");
            let unknown = match state {
                Circuit::Closed { .. } | Circuit::Open { .. } => state,
                Circuit::HalfOpen { probes, .. } => open(50, probes),
            };
            assert_eq!(state.after(&POLICY, Verdict::Unknown, at(50)), unknown, "{state:?}");
            assert_eq!(state.waits_until(&POLICY, at(50)), waits.map(at), "{state:?}");
            assert_eq!(state.calling(&POLICY, at(50)), calling, "{state:?}");
        }
    }

    #[test]
    fn one_failure_may_be_enough() {
        let policy = CircuitPolicy::new(0, Duration::ZERO).pause(Duration::from_millis(5));
        let after = Circuit::default().after(&policy, Verdict::Fails, at(1));
        assert_eq!(after, open(6, 0));
    }
}
