//! Operations on the messages of subscribers.

use std::collections::HashSet;
use std::sync::Arc;

use domain::convert::IntoChecked;
use domain::ids::{MessageId, SubscriberId};
use domain::message::{MarkAs, MarkMessages, Message, MessageQuery};
use domain::page::{ListId, ListKind, Page};
use domain::subscriber::Subscriber;
use domain::workflow::Workflow;
use store::{List, ReadRecords, WriteRecords, counters, layout};

use crate::resources::{subscribers, workflows};
use crate::tx::View;
use crate::{Entity, Error, Result, Scope};

/// The messages of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::message::{MarkAs, MarkMessages, MessageQuery};
/// # use tidings::{step::Step, trigger::Trigger, workflow::WorkflowCreate};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
/// # env.events().trigger(&Trigger::new("greeting", "ada")?)?;
/// let message = &env.messages().list("ada", &MessageQuery::default())?.data[0];
/// assert_eq!(message.text(), Some("Hello!"));
///
/// env.messages().mark_as("ada", &[message.id], MarkAs::Seen)?;
/// // The same as a request.
/// let mark = MarkMessages::new([message.id], MarkAs::Seen)?;
/// assert_eq!(env.messages().mark("ada", &mark)?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Messages<'s> {
    pub(crate) scope: &'s Scope,
}

impl Messages<'_> {
    /// A page of the messages of a subscriber on every channel, newest first by default. Each has
    /// its subscriber and, as long as it exists, its workflow.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no such subscriber.
    pub fn list(
        &self,
        subscriber: impl IntoChecked<SubscriberId>,
        query: &MessageQuery,
    ) -> Result<Page<Message>> {
        self.listed(&subscriber.into_checked()?, query)
    }

    fn listed(&self, subscriber: &SubscriberId, query: &MessageQuery) -> Result<Page<Message>> {
        let list = self.scope.list_id(ListKind::Messages);
        self.scope.read("messages.list", |view| {
            let subscriber = subscribers::get(view, subscriber)?;
            let mut page = page(view, list, &subscriber, query)?;
            for message in &mut page.data {
                message.subscriber = Some(subscriber.clone());
                message.template = template(view, message)?;
            }
            Ok(page)
        })
    }

    /// The message of that id, with its subscriber and, as long as it exists, its workflow.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no such subscriber, or if it has no such message.
    pub fn get(
        &self,
        subscriber: impl IntoChecked<SubscriberId>,
        id: impl IntoChecked<MessageId>,
    ) -> Result<Message> {
        let (subscriber, id) = (subscriber.into_checked()?, id.into_checked()?);
        self.scope.operation("messages.get", || {
            let found = self.look_up(&subscriber, id)?;
            found.ok_or_else(|| Error::not_found(Entity::Message, id))
        })
    }

    /// The message of that id, with its subscriber and, as long as it exists, its workflow.
    /// Returns `None` if the subscriber has no such message.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no such subscriber.
    pub fn find(
        &self,
        subscriber: impl IntoChecked<SubscriberId>,
        id: impl IntoChecked<MessageId>,
    ) -> Result<Option<Message>> {
        let (subscriber, id) = (subscriber.into_checked()?, id.into_checked()?);
        self.scope.operation("messages.find", || self.look_up(&subscriber, id))
    }

    fn look_up(&self, subscriber: &SubscriberId, id: MessageId) -> Result<Option<Message>> {
        self.scope.view(|view| {
            let subscriber = subscribers::get(view, subscriber)?;
            let Some(mut message) = find(view, &subscriber, id)? else { return Ok(None) };
            message.template = template(view, &message)?;
            message.subscriber = Some(subscriber);
            Ok(Some(message))
        })
    }

    /// Marks messages of a subscriber. Returns the marked messages once each, in the order of the
    /// request. Ids of other subscribers' messages are ignored.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no such subscriber; [`Error::Invalid`] if there are no ids,
    /// or more than 1,000.
    pub fn mark(
        &self,
        subscriber: impl IntoChecked<SubscriberId>,
        mark: &MarkMessages,
    ) -> Result<Vec<Message>> {
        self.marked(&subscriber.into_checked()?, &mark.message_id, mark.mark_as)
    }

    /// The same as [`mark`](Self::mark), with the parts of the request.
    ///
    /// # Errors
    ///
    /// As [`mark`](Self::mark).
    pub fn mark_as(
        &self,
        subscriber: impl IntoChecked<SubscriberId>,
        ids: impl IntoIterator<Item: IntoChecked<MessageId>>,
        mark_as: MarkAs,
    ) -> Result<Vec<Message>> {
        let mark = MarkMessages::new(ids, mark_as)?;
        self.mark(subscriber, &mark)
    }

    fn marked(
        &self,
        subscriber: &SubscriberId,
        ids: &[MessageId],
        mark_as: MarkAs,
    ) -> Result<Vec<Message>> {
        self.scope.write("messages.mark_as", (subscriber, ids, mark_as), |tx| {
            Message::check_marked(ids)?;
            let subscriber = subscribers::get(tx, subscriber)?;
            let mut known = HashSet::new();
            let mut marked = Vec::with_capacity(ids.len());
            for id in ids.iter().filter(|id| known.insert(**id)) {
                let Some(before) = find(tx, &subscriber, *id)? else { continue };
                let mut after = before.clone();
                after.stage = before.stage.mark(mark_as, tx.now());
                tx.replace(&before, &after)?;
                marked.push(after);
            }
            Ok(marked)
        })
    }
}

// The workflow that the message is from.
fn template(view: &dyn View, message: &Message) -> Result<Option<Workflow>> {
    let Some(id) = message.workflow_id else { return Ok(None) };
    Ok(workflows::find_by_id(view, id)?.map(Arc::unwrap_or_clone))
}

/// A page of the messages of a subscriber.
pub(crate) fn page(
    view: &dyn View,
    list: ListId,
    subscriber: &Subscriber,
    query: &MessageQuery,
) -> Result<Page<Message>> {
    let request = query.page.check(list, MessageQuery::ORDERS)?;
    let (shelves, rest) = query.shelves();
    let (environment, owner) = (view.environment_id(), subscriber.id);
    let counters = counters::find(view, &layout::message_counters(environment, owner))?;
    let list =
        List::of_parts(shelves.into_iter().map(|shelf| {
            (layout::message_list(environment, owner, shelf), Some(counters.on(shelf)))
        }));
    let matches = |message: &Message| rest.matches(message);
    Ok(view.page(&list.of_records(rest.is_filtered(), &matches), &request)?)
}

// The message of that id, if it belongs to the subscriber.
fn find(view: &dyn View, subscriber: &Subscriber, id: MessageId) -> Result<Option<Message>> {
    let found = view.find::<Message>(&layout::message(view.environment_id(), id.place()))?;
    Ok(found.filter(|message| message.id == id && message.subscriber_id == subscriber.id))
}
