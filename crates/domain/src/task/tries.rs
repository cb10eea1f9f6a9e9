//! Tries: what is known of the earlier attempts to send a message, and who sends it next.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Retry;
use crate::ids::IntegrationId;
use crate::integration::{Choice, OnUnknown, Routed};
use crate::job::{Detail, SendTarget};
use crate::json::is_default;

/// Earlier attempts to send a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tries {
    /// Integrations that have failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<Failed>,
    /// Call without an answer, if its integration restricts what follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanswered: Option<Unanswered>,
    /// Destination that was called, if the message had no other one then. Later attempts go on with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    called: Option<SendTarget>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failed {
    #[serde(rename = "_integrationId")]
    integration_id: IntegrationId,
    times: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    misconfigured: bool,
}

// A call without an answer, and what may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "then", rename_all = "snake_case")]
enum Unanswered {
    ResendWithKey {
        #[serde(rename = "_integrationId")]
        integration_id: IntegrationId,
    },
    GiveUp,
}

/// Failure of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The service does not accept the message at the moment. It asks for a pause.
    Busy(Duration),
    /// The service never accepts the message.
    Refused,
    /// The integration cannot send.
    Misconfigured,
    /// The service may have accepted the message.
    Unknown,
}

/// Number of failed attempts through one integration before another one takes over.
const FAILURES_PER_ROUND: u32 = 2;

impl Tries {
    /// Returns the tries of a message with this destination, or with none, as the only one that is called.
    #[must_use]
    pub fn with_called(self, called: Option<SendTarget>) -> Self {
        Self { called, ..self }
    }

    /// Returns the destination that was called, if the message had no other one then.
    pub const fn called(&self) -> Option<&SendTarget> {
        self.called.as_ref()
    }

    /// Returns `true` if an answer was lost, and restricts what follows.
    pub const fn is_unanswered(&self) -> bool {
        self.unanswered.is_some()
    }

    /// Returns `true` if nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the integration that sends next: the first one with the fewest rounds of failures.
    /// Integrations with an `open` circuit come behind the others, then fallbacks that are paused, and
    /// those that cannot send come last.
    ///
    /// # Errors
    ///
    /// The reason for which no integration may send: there is none, or the answer to an earlier call
    /// was lost, and its integration forbids to send again.
    pub fn next<'a>(
        &self,
        route: &[Routed<'a>],
        open: &[IntegrationId],
    ) -> Result<Routed<'a>, Detail> {
        match self.unanswered {
            None => self.fewest(route, open).ok_or(Detail::NoActiveIntegration),
            Some(Unanswered::GiveUp) => Err(Detail::AnswerLost),
            Some(Unanswered::ResendWithKey { integration_id }) => {
                let same = route.iter().find(|routed| routed.integration.id == integration_id);
                same.copied().ok_or(Detail::AnswerLost)
            }
        }
    }

    /// Returns `true` if another integration of the route sends in place of the one that was chosen, while the
    /// circuit of that is open and its own is not.
    pub fn may_stand_in(&self, other: IntegrationId, chosen: IntegrationId) -> bool {
        // After a lost answer, only the same integration may send again.
        self.unanswered.is_none() && self.standing(other).0 == self.standing(chosen).0
    }

    fn fewest<'a>(&self, route: &[Routed<'a>], open: &[IntegrationId]) -> Option<Routed<'a>> {
        let first = route.iter().min_by_key(|routed| {
            let id = routed.integration.id;
            let (cannot, rounds) = self.standing(id);
            // A message does not wait for the resumption of a fallback if another one may send it before.
            let is_paused_fallback =
                routed.choice == Choice::Fallback && routed.integration.paused_at.is_some();
            (cannot, is_paused_fallback, open.contains(&id), rounds)
        });
        first.copied()
    }

    // Integrations that cannot send, and the number of rounds of failures.
    fn standing(&self, id: IntegrationId) -> (bool, u32) {
        let failed = self.failed.iter().find(|failed| failed.integration_id == id);
        failed
            .map_or((false, 0), |failed| (failed.misconfigured, failed.times / FAILURES_PER_ROUND))
    }

    /// Returns the tries during a call through an integration. They are stored before the call, if
    /// they differ.
    #[must_use]
    pub fn calling(&self, integration_id: IntegrationId, on_unknown: OnUnknown) -> Self {
        let unanswered = match on_unknown {
            OnUnknown::Resend => self.unanswered,
            OnUnknown::ResendWithKey => Some(Unanswered::ResendWithKey { integration_id }),
            OnUnknown::GiveUp => Some(Unanswered::GiveUp),
        };
        Self { unanswered, ..self.clone() }
    }

    /// Returns the attempt that may follow a failed call through the integration `id`, and the tries after it. `self` is
    /// what was known before the call. `others` are the other integrations of the route, and then
    /// those that do not take over at once.
    pub fn after(
        &self,
        (id, on_unknown): (IntegrationId, OnUnknown),
        failure: Failure,
        (others, unavailable): (&[IntegrationId], &[IntegrationId]),
    ) -> (Retry, Self) {
        let mut tries = self.clone();
        let asked = match (failure, on_unknown) {
            (Failure::Refused, _) | (Failure::Unknown, OnUnknown::GiveUp) => {
                return (Retry::Never, tries);
            }
            (Failure::Unknown, OnUnknown::ResendWithKey) => {
                return (Retry::Later(Duration::ZERO), tries.calling(id, on_unknown));
            }
            (Failure::Misconfigured, _) => {
                tries.count(id, true);
                None
            }
            (Failure::Busy(asked), _) => {
                tries.count(id, false);
                Some(asked)
            }
            (Failure::Unknown, OnUnknown::Resend) => {
                tries.count(id, false);
                Some(Duration::ZERO)
            }
        };
        // After a lost answer, only the same integration may send again.
        let others = if tries.unanswered.is_none() { others } else { &[] };
        let is_fresh =
            |id: &IntegrationId| tries.standing(*id) == (false, 0) && !unavailable.contains(id);
        let fresh = others.iter().any(is_fresh);
        let retry = match asked {
            _ if fresh && tries.standing(id) > (false, 0) => Retry::Switch,
            Some(asked) => Retry::Later(asked),
            None if others.iter().any(|other| !tries.standing(*other).0) => {
                Retry::Later(Duration::ZERO)
            }
            None => Retry::Never,
        };
        (retry, tries)
    }

    fn count(&mut self, id: IntegrationId, misconfigured: bool) {
        match self.failed.iter_mut().find(|failed| failed.integration_id == id) {
            Some(failed) => {
                failed.times = failed.times.saturating_add(1);
                failed.misconfigured = misconfigured;
            }
            None => self.failed.push(Failed { integration_id: id, times: 1, misconfigured }),
        }
    }
}

#[cfg(test)]
mod tests;
