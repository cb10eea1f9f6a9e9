//! Routes: the integrations that may send a message, in the order in which they are tried.

use serde::Serialize;

use super::{Integration, rank};
use crate::filter::{self, FilterCheck, FilterFacts, FilterReport};
use crate::job::Detail;
use crate::vocabulary::Channel;

/// Integration that may send a message.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed<'a> {
    /// Integration.
    pub integration: &'a Integration,
    /// Reason for its place in the order.
    pub choice: Choice,
}

/// Reason for which an integration may send a message.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The trigger names it.
    Named,
    /// Its filters hold.
    Filters,
    /// It is the primary one.
    Primary,
    /// No other one without filters is active.
    Sole,
    /// It is the newest one of a channel without a primary one.
    Newest,
    /// It takes over from those before it.
    Fallback,
}

/// Reason for which an integration does not send a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Rejected {
    /// It is not active.
    Inactive,
    /// The trigger names another one.
    NotNamed,
    /// Its filters do not hold.
    #[non_exhaustive]
    #[serde(rename = "conditions")]
    Filters {
        /// Comparisons, each with the expected and the actual value.
        checks: Vec<FilterCheck>,
    },
    /// The subscriber has no address there.
    #[non_exhaustive]
    NoAddress {
        /// Entry for the log of a job without an address.
        detail: Detail,
    },
    /// Another one comes before it, or it is one of several and none of them is primary.
    Outranked,
    /// It takes over if the chosen one fails.
    Waits,
    /// It has failed too often in a row, and is not called for a while.
    CircuitOpen,
}

/// Returns the reason for which `one` is no candidate for a message on its channel. Conditions do not
/// count for an integration that the trigger names.
pub(crate) fn rejected(
    one: &Integration,
    named: Option<&str>,
    facts: &FilterFacts<'_>,
) -> Option<Rejected> {
    if !one.is_active() {
        return Some(Rejected::Inactive);
    }
    if let Some(name) = named {
        return (one.identifier.as_str() != name).then_some(Rejected::NotNamed);
    }
    if one.filters.is_empty() {
        return None;
    }
    let FilterReport { holds, checks } = filter::evaluate(&one.filters, facts);
    (!holds).then_some(Rejected::Filters { checks })
}

/// Returns `true` for a candidate for a message on `channel`.
pub(crate) fn is_candidate(
    one: &Integration,
    channel: Channel,
    named: Option<&str>,
    facts: &FilterFacts<'_>,
) -> bool {
    one.channel == channel && rejected(one, named, facts).is_none()
}

/// Returns the integrations that may send on `channel`, in the order in which they are tried. The
/// `named` one comes first, then the first in rank whose filters hold, then the primary one. The
/// last choice is the only active one without filters. Channels without a primary integration take
/// the newest of these instead. The fallbacks follow, unless the `named` one is no candidate.
#[doc(hidden)]
pub fn route<'a>(
    integrations: &[&'a Integration],
    channel: Channel,
    named: Option<&str>,
    facts: &FilterFacts<'_>,
) -> Vec<Routed<'a>> {
    let admitted = |named: Option<&str>| {
        let all = integrations.iter().copied();
        all.filter(|one| is_candidate(one, channel, named, facts)).collect::<Vec<_>>()
    };
    let candidates = admitted(None);
    let first = match named {
        Some(_) => admitted(named).first().map(|one| (*one, Choice::Named)),
        None => first(&candidates, channel),
    };
    if first.is_none() && named.is_some() {
        return Vec::new();
    }
    let is_first = |one: &Integration| first.is_some_and(|(first, _)| first.id == one.id);
    let mut fallbacks: Vec<_> = candidates.into_iter().filter(|one| !is_first(one)).collect();
    fallbacks.retain(|one| one.fallback.is_some());
    fallbacks.sort_by_key(|one| (one.fallback, one.id));
    let fallbacks = fallbacks.into_iter().map(|one| (one, Choice::Fallback));
    let all = first.into_iter().chain(fallbacks);
    all.map(|(integration, choice)| Routed { integration, choice }).collect()
}

// A fallback is not the first choice, unless it is the primary one. Its filters say for which
// messages it takes over.
fn first<'a>(
    candidates: &[&'a Integration],
    channel: Channel,
) -> Option<(&'a Integration, Choice)> {
    let primary = candidates.iter().copied().find(|one| one.is_primary());
    let regular: Vec<_> = candidates.iter().copied().filter(|one| one.fallback.is_none()).collect();
    let (bare, conditional): (Vec<_>, Vec<_>) =
        regular.into_iter().partition(|one| one.filters.is_empty());
    if let Some(one) = conditional.into_iter().max_by_key(|one| rank(one)) {
        return Some((one, Choice::Filters));
    }
    if let Some(one) = primary {
        return Some((one, Choice::Primary));
    }
    let newest = bare.iter().copied().max_by_key(|one| one.id)?;
    match (channel.has_primary(), bare.len()) {
        (_, 1) => Some((newest, Choice::Sole)),
        (true, _) => None,
        (false, _) => Some((newest, Choice::Newest)),
    }
}
