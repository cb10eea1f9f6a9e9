//! Queries of messages, and the shelves that they look at.

use serde::{Deserialize, Serialize};

use super::excerpt::Payload;
use super::{DataFilter, Folder, MessageFacts, Progress, Shelf, TagFilter};
use crate::context::ContextFilter;
use crate::error::{Invalid, at_most_items, in_order};
use crate::ids::{TransactionId, WorkflowRef};
use crate::json::shape;
use crate::page::{OrderBy, PageQuery};
use crate::query::{self, Emptied, write_unless_emptied};
use crate::time::Timestamp;
use crate::vocabulary::{Channel, Severity};
use crate::workflow::Workflow;

/// Query of the messages of a subscriber, newest first. A message must meet every condition that is
/// set.
///
/// In an inbox, a query without `archived` and `snoozed` is about messages that are neither. All of its
/// messages are of the channel `in_app`, so a query for another channel matches none.
///
/// Conditions on the channel, on `read`, `seen`, `archived` and `snoozed` cost nothing. The other
/// ones are checked message by message. A page looks at 20,000 entries of the list and reads 2,000 messages
/// at most. Most messages that do not match are recognized by their entries, and not read. A page may
/// therefore have fewer messages than its limit, or none, and yet a cursor behind it. For its total, it
/// looks at the first 10,000 entries as well, and reads up to 1,000 of their messages. Entries do not tell
/// `data` and the times of creation.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::message::MessageQuery;
///
/// // Messages with the tag `orders` and one of the others, of an order that is open or paid.
/// let query = MessageQuery::default()
///     .tags(["orders"])
///     .and_tags(["urgent", "today"])
///     .data("order.status", ["open", "paid"])?;
/// // The same as a request.
/// let request = r#"{
///     "tags": { "and": [{ "or": ["orders"] }, { "or": ["urgent", "today"] }] },
///     "data": { "order.status": ["open", "paid"] }
/// }"#;
/// assert_eq!(tidings::json::read::<MessageQuery>(request.as_bytes())?, query);
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[non_exhaustive]
pub struct MessageQuery {
    /// Channel of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Id of the triggered event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<TransactionId>,
    /// `true` selects read messages, `false` unread ones.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub read: Option<bool>,
    /// `true` selects seen messages, `false` unseen ones.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub seen: Option<bool>,
    /// `true` selects archived messages, `false` the other ones.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// `true` selects snoozed messages, `false` the other ones.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub snoozed: Option<bool>,
    /// Tags of the workflow at the time of the event: the message has one of them, or one of each group.
    #[serde(skip_serializing_if = "TagFilter::is_empty")]
    pub tags: TagFilter,
    /// Values in the payload of the event, by name: the message has one of them, or one of each group.
    #[serde(skip_serializing_if = "DataFilter::is_empty")]
    pub data: DataFilter,
    /// Severities: the message has one of them.
    #[serde(
        rename = "severity",
        deserialize_with = "query::one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub severities: Vec<Severity>,
    /// Contexts, compared as a set. At most 100.
    #[serde(skip_serializing_if = "ContextFilter::is_any")]
    pub context_keys: ContextFilter,
    /// Workflows, by identifier, id or slug. At most 100.
    #[serde(
        rename = "templates",
        deserialize_with = "query::one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub workflows: Vec<WorkflowRef>,
    /// Earliest time of creation.
    #[serde(rename = "createdGte", skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Timestamp>,
    /// Latest time of creation.
    #[serde(rename = "createdLte", skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    #[serde(skip)]
    pub(super) emptied: Emptied,
}

shape! { MessageQuery {
    "channel": channel, "transactionId": transaction_id, "read": read as written,
    "seen": seen as written, "archived": archived as written, "snoozed": snoozed as written,
    "tags": tags, "data": data, "severity": severities as many, "contextKeys": context_keys,
    "templates": workflows as many, "createdGte": earliest, "createdLte": latest;
    page by MessageQuery::ORDERS
} }

write_unless_emptied!(MessageQuery);

impl MessageQuery {
    /// Fields that the list can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];
    /// Maximum number of values in each list of a query. [`TagFilter`] has the limits of tags and data.
    pub const MAX_VALUES: usize = 100;
    /// Maximum number of messages that a page reads.
    pub const MAX_SCANNED: usize = 2_000;
    /// Maximum number of entries of the list that a page looks at, to find the messages that it reads.
    pub const MAX_ENTRIES: usize = 20_000;

    // Refuses lists that a setter has left without values.
    fn check_emptied(&self) -> Result<(), Invalid> {
        self.emptied.check("severity", &self.severities)?;
        self.emptied.check("templates", &self.workflows)
    }

    /// Checks the lists of the query.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.tags.check()?;
        self.data.check()?;
        self.check_emptied()?;
        at_most_items("severity", &self.severities, Self::MAX_VALUES)?;
        at_most_items("templates", &self.workflows, Self::MAX_VALUES)?;
        in_order(("createdGte", self.earliest), ("createdLte", self.latest))?;
        self.context_keys.check(Self::MAX_VALUES)
    }

    /// Checks the query of a call about all messages that match.
    #[doc(hidden)]
    pub fn check_unpaged(&self) -> Result<(), Invalid> {
        self.check()?;
        self.page.check_absent()
    }

    /// Returns the query of an inbox, which has in-app messages only.
    #[doc(hidden)]
    #[must_use]
    pub fn in_inbox(&self) -> Self {
        Self {
            channel: Some(self.channel.unwrap_or(Channel::InApp)),
            archived: Some(self.archived.unwrap_or(false)),
            snoozed: Some(self.snoozed.unwrap_or(false)),
            ..self.clone()
        }
    }

    /// Returns `true` if the query excludes messages.
    #[doc(hidden)]
    pub fn is_filtered(&self) -> bool {
        let page = self.page.clone();
        *self != Self { page, ..Self::default() }
    }

    /// Returns `true` if the conditions are also about what an excerpt of a message does not have.
    #[doc(hidden)]
    pub fn needs_payload(&self) -> bool {
        !self.data.is_empty()
    }

    /// Returns `true` if `message` meets the conditions, as far as it tells that. An excerpt has no payload.
    #[doc(hidden)]
    pub fn matches<'m>(&self, message: impl Into<MessageFacts<'m>>) -> bool {
        self.matches_facts(message.into())
    }

    fn matches_facts(&self, message: MessageFacts<'_>) -> bool {
        let is = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        self.channel.is_none_or(|channel| message.channel == channel)
            && self.transaction_id.as_ref().is_none_or(|id| message.transaction_id == id)
            && is(self.read, message.progress.is_read())
            && is(self.seen, message.progress.is_seen())
            && is(self.archived, message.is_archived)
            && is(self.snoozed, message.is_snoozed)
            && self.tags.matches(message.tags)
            && match message.payload {
                Payload::Known(payload) => self.data.matches(payload),
                Payload::Unknown => true,
            }
            && self.earliest.is_none_or(|earliest| message.created_at >= earliest)
            && self.latest.is_none_or(|latest| message.created_at <= latest)
            && (self.severities.is_empty() || self.severities.contains(&message.severity))
            && self.context_keys.matches(message.context_keys)
            && (self.workflows.is_empty() || self.names_workflow_of(message))
    }

    fn names_workflow_of(&self, message: MessageFacts<'_>) -> bool {
        let identifier = message.workflow_identifier;
        let is_named = |name: &str| {
            identifier.is_some_and(|identifier| identifier.as_str() == name)
                || Workflow::id_in(name).is_some_and(|id| message.workflow_id == Some(id))
        };
        self.workflows.iter().any(|name| is_named(name.as_str()))
    }

    /// Returns the shelves with all messages of the query, and its conditions that they may not
    /// meet.
    #[doc(hidden)]
    pub fn shelves(&self) -> (Vec<Shelf>, Self) {
        let shelves: Vec<_> =
            Shelf::ALL.into_iter().filter(|shelf| self.may_be_on(*shelf)).collect();
        let mut rest = self.clone();
        (rest.archived, rest.snoozed) = (None, None);
        if !shelves.contains(&Shelf::Sent) {
            (rest.channel, rest.read, rest.seen) = (None, None, None);
        }
        (shelves, rest)
    }

    /// Returns the same for an inbox. A query for another channel has no shelves there.
    #[doc(hidden)]
    pub fn inbox_shelves(&self) -> (Vec<Shelf>, Self) {
        let (mut shelves, rest) = self.in_inbox().shelves();
        shelves.retain(|shelf| shelf.is_inbox());
        (shelves, rest)
    }

    // Returns `true` if messages on a shelf may be selected.
    fn may_be_on(&self, on: Shelf) -> bool {
        let is_inbox = self.channel.is_none_or(|channel| channel == Channel::InApp);
        let (archived, snoozed) = (self.archived, self.snoozed);
        match on {
            Shelf::Sent => {
                self.channel != Some(Channel::InApp)
                    && archived != Some(true)
                    && snoozed != Some(true)
            }
            Shelf::Inbox(Folder::Open, progress) => {
                is_inbox && archived != Some(true) && snoozed != Some(true) && self.may_be(progress)
            }
            Shelf::Inbox(Folder::Snoozed, progress) => {
                is_inbox
                    && archived != Some(true)
                    && snoozed != Some(false)
                    && self.may_be(progress)
            }
            Shelf::Archived => {
                is_inbox
                    && archived != Some(false)
                    && snoozed != Some(true)
                    && self.may_be(Progress::Read)
            }
        }
    }

    fn may_be(&self, progress: Progress) -> bool {
        self.read.is_none_or(|read| progress.is_read() == read)
            && self.seen.is_none_or(|seen| progress.is_seen() == seen)
    }
}
