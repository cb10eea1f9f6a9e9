//! The inbox of a subscriber: its in-app messages.

mod mark_all;

use domain::convert::IntoChecked;
use domain::ids::{MessageId, SubscriberId};
use domain::message::{InboxCounts, MarkAs, Message, MessageQuery};
use domain::page::{ListKind, Page};
use domain::vocabulary::Channel;
use store::layout;

use crate::resources::messages::{self, Messages};
use crate::resources::subscribers;
use crate::tx::View;
use crate::{Result, Scope};

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
    /// A page of the messages in the inbox, newest first by default. The channel of the query is
    /// ignored.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound) if there is no such subscriber.
    pub fn list(&self, query: &MessageQuery) -> Result<Page<Message>> {
        let query = query.clone().channel(Channel::InApp);
        let list = self.scope.list_id(ListKind::Messages);
        self.scope.read("inbox.list", |view| {
            let subscriber = subscribers::get(view, &self.subscriber)?;
            messages::page(view, list, &subscriber, &query)
        })
    }

    /// Returns the numbers of unseen and of unread messages in the inbox.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound) if there is no such subscriber.
    pub fn counts(&self) -> Result<InboxCounts> {
        self.scope.read("inbox.counts", |view| {
            let subscriber = subscribers::get(view, &self.subscriber)?;
            let key = layout::message_counters(view.environment_id(), subscriber.id);
            Ok(store::counters::find(view, &key)?.counts())
        })
    }

    /// Marks messages of any channel, as [`Messages::mark_as`] does.
    ///
    /// # Errors
    ///
    /// As [`Messages::mark_as`].
    pub fn mark_as(
        &self,
        ids: impl IntoIterator<Item: IntoChecked<MessageId>>,
        mark_as: MarkAs,
    ) -> Result<Vec<Message>> {
        Messages { scope: self.scope }.mark_as(&self.subscriber, ids, mark_as)
    }
}
