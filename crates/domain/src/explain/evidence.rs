//! Evidence: what the decisions about the steps of a notification are made from.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;

use super::{FilteredMember, Rejected, SendTime};
use crate::condition::Rule;
use crate::filter::{FilterCheck, FilterSource, excerpt};
use crate::ids::{IntegrationIdentifier, StepId, SubscriberId};
use crate::json;
use crate::preference::{ConditionData, Layer, Layers, Preference, settings};
use crate::step::{Admission, DelayEnd, Throttle};
use crate::time::Timestamp;
use crate::vocabulary::Channel;

/// Inputs of a decision about a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Evidence {
    /// Time of the decision.
    pub at: Timestamp,
    /// Decision.
    #[serde(flatten)]
    pub kind: EvidenceKind,
}

/// Decision about a step, with what it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum EvidenceKind {
    /// The condition of the step in JSON Logic was evaluated.
    RunIf {
        /// `true` if the condition holds.
        holds: bool,
        /// Condition.
        rule: Value,
        /// Values of its variables, by path. `null` if there is none. Long values are cut.
        actual: BTreeMap<String, Value>,
    },
    /// The filters of the step were evaluated.
    Filters {
        /// `true` if they hold.
        holds: bool,
        /// Comparisons, each with the expected and the actual value.
        checks: Vec<FilterCheck>,
    },
    /// The preferences decided about a channel.
    Preference {
        /// Channel.
        channel: Channel,
        /// `true` if the channel may be used.
        enabled: bool,
        /// Layer that decided.
        decided_by: Layer,
        /// Layers that count, from the most to the least specific one.
        layers: Vec<LayerSetting>,
    },
    /// The schedule of the subscriber decided about a message.
    Schedule {
        /// Channel.
        channel: Channel,
        /// When the message is sent.
        timing: SendTime,
    },
    /// A delay began.
    Delay {
        /// End of the delay.
        end: DelayEnd,
    },
    /// A delay or a digest waits for the next opening of the schedule of the subscriber.
    Extended {
        /// Time of the opening.
        until: Timestamp,
    },
    /// A digest decided about the event.
    Digest {
        /// What the digest does with the event.
        result: DigestResult,
    },
    /// A throttle decided about the event.
    Throttle {
        /// `true` if the event passes.
        passes: bool,
        /// Number of events that pass in a window.
        limit: u32,
        /// Number of places that are taken, without that of this event.
        used: u32,
        /// Time at which the next place is free, or that of this event. `None` if the window of the event is over,
        /// so that it takes no place.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// A content was chosen among the variants of the step.
    Variants {
        /// Variants, in the order in which they are looked at.
        variants: Vec<VariantChoice>,
    },
    /// A message waits until its integration is resumed.
    Paused {
        /// Integration.
        integration: IntegrationIdentifier,
        /// Time at which it was paused.
        since: Timestamp,
    },
    /// An integration was chosen for a message.
    Integrations {
        /// Channel.
        channel: Channel,
        /// Integrations of the channel.
        candidates: Vec<Candidate>,
    },
}

/// Variant of a step, and whether it was chosen. None of them is chosen if the content is that of the
/// step itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct VariantChoice {
    /// Name, or the number of the variant if it has none.
    pub name: String,
    /// `true` if it was chosen.
    pub chosen: bool,
    /// Comparisons of its filters, if they were evaluated.
    pub checks: Vec<FilterCheck>,
}

/// Setting of a layer of preferences for a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LayerSetting {
    /// Layer.
    pub layer: Layer,
    /// Setting for the channel. `None` if the layer leaves the decision to the next one.
    pub enabled: Option<bool>,
    /// Condition of the layer. `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ConditionCheck>,
}

/// Condition of a layer of preferences, and what it was decided from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConditionCheck {
    /// `true` if the condition holds.
    pub holds: bool,
    /// Condition.
    pub rule: Value,
    /// Values of its variables, by path. `null` if there is none. Long values are cut.
    pub actual: BTreeMap<String, Value>,
}

/// What a digest does with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DigestResult {
    /// The event opens a window.
    #[non_exhaustive]
    Opens {
        /// End of the window.
        until: Timestamp,
    },
    /// The event joins a window that an earlier event has opened, and whose notification goes on.
    #[non_exhaustive]
    Joins {
        /// End of the window.
        until: Timestamp,
        /// Number of events in the window, without this one.
        events: u32,
    },
    /// The event passes at once.
    Passes,
}

/// Integration that might send a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Candidate {
    /// Identifier of the integration.
    pub identifier: IntegrationIdentifier,
    /// Provider of the integration.
    pub provider_id: String,
    /// Reason for which it does not send the message. `None` for the chosen one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Rejected>,
}

/// Evidence of the plans of one event, by subscriber and step, in the order of the decisions.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct EvidenceLog {
    of_steps: Mutex<HashMap<(SubscriberId, StepId), Vec<Evidence>>>,
    filtered: Mutex<BTreeMap<SubscriberId, FilteredMember>>,
    /// Size of the content so far, in bytes.
    content: AtomicUsize,
}

impl EvidenceLog {
    /// Adds evidence about a step, for a subscriber. Leaves out what was found before. A subscriber
    /// that the event creates has no id of the engine yet.
    pub fn note(&self, of: (SubscriberId, StepId), at: Timestamp, kind: EvidenceKind) {
        let mut all = self.of_steps.lock().unwrap_or_else(PoisonError::into_inner);
        let of_step = all.entry(of).or_default();
        // A turn and the attempts behind it make some decisions again.
        if of_step.iter().all(|found| found.kind != kind) {
            of_step.push(Evidence { at, kind });
        }
    }

    /// Returns the evidence about a step, for a subscriber, and forgets it.
    pub fn take(&self, of: (SubscriberId, StepId)) -> Vec<Evidence> {
        let mut all = self.of_steps.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&of).unwrap_or_default()
    }

    /// Adds a member of a topic whom no subscription admits. The first 100 are kept, each of them once: an
    /// event may be planned again.
    pub fn note_filtered(&self, member: impl FnOnce() -> FilteredMember) {
        const KEPT: usize = 100;
        let mut all = self.filtered.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < KEPT {
            let member = member();
            all.insert(member.subscriber_id.clone(), member);
        }
    }

    /// Returns these members by their ids, and forgets them.
    pub fn take_filtered(&self) -> Vec<FilteredMember> {
        let mut all = self.filtered.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all).into_values().collect()
    }

    /// Adds content of so many bytes, and returns the size of all content.
    pub fn count(&self, size: usize) -> usize {
        self.content.fetch_add(size, Ordering::Relaxed).saturating_add(size)
    }
}

impl EvidenceKind {
    /// Returns the evidence of a condition over `data`, with the values of its variables.
    pub(crate) fn rule(rule: &Rule, data: &Value, holds: bool) -> Self {
        let ConditionCheck { holds, rule, actual } = ConditionCheck::new(rule, data, holds);
        EvidenceKind::RunIf { holds, rule, actual }
    }

    /// Returns `true` if the decision depends on whether the subscriber has seen a message.
    pub(super) fn asks_for_reader(&self) -> bool {
        let is_of_reader = |path: &str| matches!(path.rsplit('.').next(), Some("seen" | "read"));
        let asks =
            |check: &FilterCheck| check.on == FilterSource::Steps && is_of_reader(&check.field);
        match self {
            EvidenceKind::RunIf { actual, .. } => {
                actual.keys().any(|path| path.starts_with("steps.") && is_of_reader(path))
            }
            EvidenceKind::Filters { checks, .. } => checks.iter().any(asks),
            EvidenceKind::Variants { variants } => {
                variants.iter().any(|variant| variant.checks.iter().any(asks))
            }
            EvidenceKind::Preference { .. }
            | EvidenceKind::Schedule { .. }
            | EvidenceKind::Delay { .. }
            | EvidenceKind::Extended { .. }
            | EvidenceKind::Digest { .. }
            | EvidenceKind::Throttle { .. }
            | EvidenceKind::Paused { .. }
            | EvidenceKind::Integrations { .. } => false,
        }
    }

    /// Returns the evidence of a throttle with `used` places taken, at `now`.
    #[doc(hidden)]
    pub fn throttle(
        metadata: &Throttle,
        used: usize,
        admission: Admission,
        now: Timestamp,
    ) -> Self {
        let (passes, until) = match admission {
            Admission::Admitted(slot) => (true, Some(slot.until).filter(|until| now < *until)),
            Admission::Refused { until } => (false, Some(until)),
        };
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        EvidenceKind::Throttle { passes, limit: metadata.limit(), used, until }
    }
}

impl DigestResult {
    /// Returns the result of an event that opens a window.
    #[doc(hidden)]
    pub const fn opens(until: Timestamp) -> Self {
        DigestResult::Opens { until }
    }

    /// Returns the result of an event that joins a window of `events` other ones.
    #[doc(hidden)]
    pub const fn joins(until: Timestamp, events: u32) -> Self {
        DigestResult::Joins { until, events }
    }
}

impl LayerSetting {
    pub(crate) fn all(layers: Layers<'_>, channel: Channel) -> Vec<Self> {
        let setting = |(preference, layer, enabled): (&Preference, _, _)| {
            let condition = ConditionCheck::of(preference, layers.data);
            Self { layer, enabled, condition }
        };
        settings(layers, channel).map(setting).collect()
    }
}

impl ConditionCheck {
    fn of(preference: &Preference, data: ConditionData<'_>) -> Option<Self> {
        match (&preference.condition, data) {
            (Some(rule), ConditionData::Known(data)) => {
                Some(Self::new(rule, data, rule.holds(data)))
            }
            (None, _) | (_, ConditionData::Missing | ConditionData::AssumedToHold) => None,
        }
    }

    /// Returns a condition over `data`, with its result.
    pub(super) fn evaluated(rule: &Rule, data: &Value) -> Self {
        Self::new(rule, data, rule.holds(data))
    }

    fn new(rule: &Rule, data: &Value, holds: bool) -> Self {
        let value = |path: &str| json::find(data, path).map(excerpt).unwrap_or_default();
        let (paths, _) = rule.paths();
        let actual = paths.into_iter().map(|path| (path.to_owned(), value(path))).collect();
        Self { holds, rule: rule.source().clone(), actual }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One row per path: the value that a condition compares is the value that is shown.
    #[test]
    fn the_values_of_a_condition_are_those_that_it_compares() {
        let data = json!({ "payload": { "a/b": { "~": 1 }, "items": ["x", { "id": "y" }] } });
        for (path, expected) in [
            ("payload.a/b.~", json!(1)),
            ("payload.items.0", json!("x")),
            ("payload.items.01.id", json!("y")),
        ] {
            let rule = json!({ "===": [{ "var": path }, expected] });
            let check = ConditionCheck::evaluated(&serde_json::from_value(rule).unwrap(), &data);
            assert!(check.holds, "{path}");
            assert_eq!(check.actual, BTreeMap::from([(path.to_owned(), expected)]));
        }
    }
}
