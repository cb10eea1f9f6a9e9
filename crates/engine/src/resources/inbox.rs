//! The inbox of a subscriber: its in-app messages.

mod by_ids;
mod by_query;
mod feed;
mod snooze;

use domain::convert::{IntoChecked, each_checked};
use domain::ids::{MessageId, SubscriberId};
use domain::message::{Edit, InboxCounts, MarkAs, Message, MessageCounters, MessageQuery};
use domain::page::{ListKind, Page, Total};
use domain::vocabulary::Severity;
use store::layout;

use crate::resources::messages::{self, MessageSelection};
use crate::resources::subscribers;
use crate::tx::View;
use crate::{Result, Scope};

pub use feed::InboxChanged;

/// The inbox of a subscriber.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::message::{MarkAs, MessageQuery};
/// # use tidings::{step::Step, trigger::Trigger, workflow::WorkflowCreate};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
/// # env.events().trigger(&Trigger::new("greeting", "ada")?)?;
/// let inbox = env.inbox("ada")?;
/// assert_eq!(inbox.counts()?.unread, 1);
///
/// let message = &inbox.list(&MessageQuery::default())?.data[0];
/// inbox.mark_as([message.id], MarkAs::Read)?;
/// assert_eq!(inbox.counts()?.unread, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Inbox<'s> {
    pub(crate) scope: &'s Scope,
    pub(crate) subscriber: SubscriberId,
}

impl Inbox<'_> {
    /// A page of the messages in the inbox, newest first by default. Without `archived` and `snoozed` in
    /// the query, these are messages that are neither. A query for another channel than `in_app` matches
    /// none.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such subscriber;
    /// [`Error::Invalid`](crate::Error::Invalid), if a list in the query is too long or was set without
    /// values, or if its page cannot be used.
    pub fn list(&self, query: &MessageQuery) -> Result<Page<Message>> {
        let list = self.scope.list_id(ListKind::Messages);
        self.scope.read("inbox.list", |view| {
            let subscriber = subscribers::get(view, &self.subscriber)?;
            messages::page(view, list, &subscriber, &MessageSelection::of_inbox(query))
        })
    }

    /// Returns the numbers of unseen and of unread messages in the inbox. Snoozed and archived
    /// messages do not count. The cost does not depend on the size of the inbox.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such subscriber.
    pub fn counts(&self) -> Result<InboxCounts> {
        self.counted("inbox.counts", MessageCounters::counts)
    }

    /// Returns the numbers of unseen and of unread messages in the inbox with a tag. Snoozed and archived
    /// messages do not count.
    ///
    /// # Errors
    ///
    /// As [`counts`](Self::counts).
    pub fn counts_of_tag(&self, tag: &str) -> Result<InboxCounts> {
        self.counted("inbox.counts_of_tag", |counters| counters.of_tag(tag))
    }

    /// Returns the numbers of unseen and of unread messages in the inbox of a severity. Snoozed and
    /// archived messages do not count.
    ///
    /// # Errors
    ///
    /// As [`counts`](Self::counts).
    pub fn counts_of_severity(&self, severity: Severity) -> Result<InboxCounts> {
        self.counted("inbox.counts_of_severity", |counters| counters.of_severity(severity))
    }

    /// Returns the number of messages that match `query`, on all pages. It is exact if counters tell it:
    /// for queries of `read`, `seen`, `archived` and `snoozed`, and for unread messages also by one tag
    /// or one severity. For other queries, at most 20,000 entries are looked at, and 2,000 messages read.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such subscriber;
    /// [`Error::Invalid`](crate::Error::Invalid), if a list in the query is too long.
    pub fn count(&self, query: &MessageQuery) -> Result<Total> {
        let list = self.scope.list_id(ListKind::Messages);
        self.scope.read("inbox.count", |view| {
            let subscriber = subscribers::get(view, &self.subscriber)?;
            messages::count(view, list, &subscriber, &MessageSelection::of_inbox(query))
        })
    }

    fn counted(
        &self,
        operation: &'static str,
        count: impl Fn(&MessageCounters) -> InboxCounts,
    ) -> Result<InboxCounts> {
        self.scope.read(operation, |view| {
            let subscriber = subscribers::get(view, &self.subscriber)?;
            let key = layout::message_counters(view.environment_id(), subscriber.id);
            Ok(count(&store::counters::find(view, &key)?))
        })
    }

    /// Marks messages. Returns them as [`archive`](Self::archive) does. Ids of messages that are not in
    /// this inbox are ignored. [`Messages::mark`](crate::Messages::mark) marks those of other channels,
    /// too.
    ///
    /// # Errors
    ///
    /// As [`archive`](Self::archive).
    pub fn mark_as(
        &self,
        ids: impl IntoIterator<Item: IntoChecked<MessageId>>,
        mark_as: MarkAs,
    ) -> Result<Vec<Message>> {
        self.edit("inbox.mark_as", &each_checked("messageId", ids)?, Edit::Mark(mark_as))
    }
}
