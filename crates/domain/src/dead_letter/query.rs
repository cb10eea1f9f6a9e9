//! Queries of dead letters.

use serde::{Deserialize, Serialize};

use super::DeadLetterReason;
use crate::error::{Invalid, at_most_items, in_order};
use crate::ids::{DeadLetterId, IntegrationId, IntegrationRef, WorkflowId, WorkflowRef};
use crate::json::shape;
use crate::notification::Ordinal;
use crate::page;
use crate::query::{self, Emptied, write_unless_emptied};
use crate::setters::setters;
use crate::time::Timestamp;
use crate::vocabulary::Channel;

/// Query of dead letters, oldest failure first. A dead letter must meet every condition that is set,
/// by one of its values.
///
/// A page looks at 10,000 dead letters at most. It may therefore have fewer dead letters than its
/// limit, or none, and yet a cursor behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[non_exhaustive]
pub struct DeadLetterQuery {
    /// Workflows, by identifier, id or slug. At most 100.
    #[serde(
        rename = "templates",
        deserialize_with = "query::one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub workflows: Vec<WorkflowRef>,
    /// Integrations of the last attempt, by id or identifier. At most 100.
    #[serde(deserialize_with = "query::one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub integrations: Vec<IntegrationRef>,
    /// Channels of the message.
    #[serde(deserialize_with = "query::one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<Channel>,
    /// Reasons.
    #[serde(deserialize_with = "query::one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<DeadLetterReason>,
    /// Earliest time of the failure.
    #[serde(rename = "after", skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Timestamp>,
    /// Latest time of the failure.
    #[serde(rename = "before", skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
    /// Maximum number of dead letters on the page: 1 to 100, 10 by default.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Cursor of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<DeadLetterId>,
    #[serde(skip)]
    emptied: Emptied,
}

shape! { DeadLetterQuery {
    "templates": workflows as many, "integrations": integrations as many,
    "channels": channels as many, "reasons": reasons as many, "after": earliest, "before": latest,
    "limit": limit as written, "cursor": cursor,
} }

setters! { DeadLetterQuery:
    /// Lists the dead letters of these workflows, by identifier, id or slug. An empty list is refused.
    workflows: some_of(WorkflowRef, "templates");
    /// Lists the dead letters whose last attempt was made by these integrations, by id or
    /// identifier. An empty list is refused.
    integrations: some_of(IntegrationRef, "integrations");
    /// Lists the dead letters of these channels. An empty list is refused.
    channels: some_of(Channel, "channels");
    /// Lists the dead letters with these reasons. An empty list is refused.
    reasons: some_of(DeadLetterReason, "reasons");
    /// Lists the dead letters that have failed at this time or later.
    earliest: exact(Timestamp);
    /// Lists the dead letters that have failed at this time or earlier.
    latest: exact(Timestamp);
    /// Sets the maximum number of dead letters on the page: 1 to 100.
    limit: exact(u32);
    /// Lists the dead letters behind the page with this cursor.
    cursor: exact(DeadLetterId);
}

/// What an index entry tells of a dead letter.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterFacts {
    /// Id.
    pub id: DeadLetterId,
    /// Time of the failure.
    pub died_at: Timestamp,
    /// Workflow of the notification.
    pub workflow_id: Option<WorkflowId>,
    /// Integration of the last attempt.
    pub integration_id: Option<IntegrationId>,
    /// Channel of the message.
    pub channel: Channel,
    /// Reason.
    pub reason: DeadLetterReason,
    /// Ordinal of the notification.
    pub ordinal: Ordinal,
}

write_unless_emptied!(DeadLetterQuery);

impl DeadLetterQuery {
    /// Default size of a page.
    pub const DEFAULT_LIMIT: u32 = 10;
    /// Largest page.
    pub const MAX_LIMIT: u32 = 100;
    /// Maximum number of values in each list of a query.
    pub const MAX_VALUES: usize = 100;
    /// Maximum number of dead letters that a page looks at.
    pub const MAX_SCANNED: usize = 10_000;

    // Refuses lists that a setter has left without values.
    fn check_emptied(&self) -> Result<(), Invalid> {
        self.emptied.check("templates", &self.workflows)?;
        self.emptied.check("integrations", &self.integrations)?;
        self.emptied.check("channels", &self.channels)?;
        self.emptied.check("reasons", &self.reasons)
    }

    /// Checks the query, and returns the size of a page.
    #[doc(hidden)]
    pub fn check(&self) -> Result<usize, Invalid> {
        in_order(("after", self.earliest), ("before", self.latest))?;
        self.check_emptied()?;
        at_most_items("templates", &self.workflows, Self::MAX_VALUES)?;
        at_most_items("integrations", &self.integrations, Self::MAX_VALUES)?;
        at_most_items("channels", &self.channels, Self::MAX_VALUES)?;
        at_most_items("reasons", &self.reasons, Self::MAX_VALUES)?;
        page::limit(self.limit, Self::DEFAULT_LIMIT, Self::MAX_LIMIT)
    }

    /// Checks the query of a call about all dead letters that match.
    #[doc(hidden)]
    pub fn check_unpaged(&self) -> Result<(), Invalid> {
        self.check()?;
        page::absent("limit", self.limit.is_some())
    }

    /// Returns `true` if the facts meet the conditions on the channel, the reason and the time. The
    /// caller checks those on workflows and integrations, which have names.
    #[doc(hidden)]
    pub fn matches(&self, facts: &LetterFacts) -> bool {
        (self.channels.is_empty() || self.channels.contains(&facts.channel))
            && (self.reasons.is_empty() || self.reasons.contains(&facts.reason))
            && self.earliest.is_none_or(|earliest| facts.died_at >= earliest)
            && self.latest.is_none_or(|latest| facts.died_at <= latest)
    }
}
