//! Operations on the messages of subscribers.

use std::collections::HashSet;
use std::sync::Arc;

use domain::convert::{IntoChecked, each_checked};
use domain::ids::{MessageId, SubscriberId, TaskId};
use domain::message::{
    DeletedMessage, Edit, MarkAs, Message, MessageExcerpt, MessageFacts, MessageQuery, Shelf,
    Signature, SignatureFilter, WholeMessage,
};
use domain::page::{ListId, ListKind, Page, PageQuery, PageRequest, Total};
use domain::subscriber::Subscriber;
use domain::task::Task;
use domain::time::Timestamp;
use domain::workflow::Workflow;
use store::{
    Bounds, Excerpt, List, Order, ReadRecords, Selection, WalkLimit, WriteRecords, counters, layout,
};

use crate::damage::if_readable;
use crate::resources::{subscribers, workflows};
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

/// The messages of an environment.
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
/// let message = &env.messages().list("ada", &MessageQuery::default())?.data[0];
/// assert_eq!(message.text(), Some("Hello!"));
///
/// assert_eq!(env.messages().mark("ada", [message.id], MarkAs::Seen)?.len(), 1);
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
    /// [`Error::NotFound`], if there is no such subscriber; [`Error::Invalid`], if a list in the
    /// query is too long, or if its page cannot be used.
    pub fn list(
        &self,
        subscriber: impl IntoChecked<SubscriberId>,
        query: &MessageQuery,
    ) -> Result<Page<Message>> {
        self.list_of(&subscriber.into_checked()?, query)
    }

    fn list_of(&self, subscriber: &SubscriberId, query: &MessageQuery) -> Result<Page<Message>> {
        let list = self.scope.list_id(ListKind::Messages);
        self.scope.read("messages.list", |view| {
            let subscriber = Arc::new(subscribers::get(view, subscriber)?);
            let mut page = page(view, list, &subscriber, &MessageSelection::of_all(query))?;
            for message in &mut page.data {
                message.subscriber = Some(Arc::clone(&subscriber));
                message.workflow = workflow(view, message)?;
            }
            Ok(page)
        })
    }

    /// The message of that id, with its subscriber and, as long as it exists, its workflow.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber, or if it has no such message.
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
    /// [`Error::NotFound`], if there is no such subscriber.
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
            message.workflow = workflow(view, &message)?;
            message.subscriber = Some(Arc::new(subscriber));
            Ok(Some(message))
        })
    }

    /// Marks messages of a subscriber on any channel. Returns the marked messages once each, in the order
    /// of the request. Ids of other subscribers' messages are ignored.
    /// [`Inbox::mark_as`](crate::Inbox::mark_as) marks those in the inbox only.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber; [`Error::Invalid`], if there are no ids,
    /// or more than 1,000, or if the messages have more than 32 MiB.
    pub fn mark(
        &self,
        subscriber: impl IntoChecked<SubscriberId>,
        ids: impl IntoIterator<Item: IntoChecked<MessageId>>,
        mark_as: MarkAs,
    ) -> Result<Vec<Message>> {
        self.mark_of(&subscriber.into_checked()?, &each_checked("messageId", ids)?, mark_as)
    }

    fn mark_of(
        &self,
        subscriber: &SubscriberId,
        ids: &[MessageId],
        mark_as: MarkAs,
    ) -> Result<Vec<Message>> {
        let arguments = (subscriber, ids, mark_as);
        self.scope.write_of("messages.mark", subscriber, arguments, |tx| {
            Message::check_marked(ids)?;
            let subscriber = subscribers::get(tx, subscriber)?;
            let found = find_each(tx, &subscriber, ids)?;
            let (edit, change) = (Edit::Mark(mark_as), next_change(tx, &subscriber)?);
            let marked =
                found.iter().map(|one| replace(tx, one, one.edited(edit, tx.now()), change));
            marked.collect()
        })
    }
}

// The workflow that the message is from, if it can be read.
fn workflow(view: &dyn View, message: &Message) -> Result<Option<Arc<Workflow>>> {
    let Some(id) = message.workflow_id else { return Ok(None) };
    Ok(if_readable(workflows::find_by_id(view, id))?.flatten())
}

/// A page of the messages of a subscriber.
pub(crate) fn page(
    view: &dyn View,
    list: ListId,
    subscriber: &Subscriber,
    selection: &MessageSelection<'_>,
) -> Result<Page<Message>> {
    selection.query.check()?;
    let request = selection.query.page.check(list.within(subscriber.id), MessageQuery::ORDERS)?;
    let selected = Selected::by(view, subscriber, selection)?;
    if !selected.rest.is_filtered() {
        return Ok(view.page(&selected.list, &request)?);
    }
    if selected.rest.needs_payload() {
        return selected.page::<WholeMessage>(view, &request);
    }
    selected.page::<MessageExcerpt>(view, &request)
}

/// The number of messages of a subscriber that match a query.
pub(crate) fn count(
    view: &dyn View,
    list: ListId,
    subscriber: &Subscriber,
    selection: &MessageSelection<'_>,
) -> Result<Total> {
    selection.query.check()?;
    let request = PageQuery::default().check(list, MessageQuery::ORDERS)?;
    let selected = Selected::by(view, subscriber, selection)?;
    if selected.rest.needs_payload() {
        return selected.total::<WholeMessage>(view, &request);
    }
    selected.total::<MessageExcerpt>(view, &request)
}

/// A query of messages, with the shelves that it is about.
pub(crate) struct MessageSelection<'q> {
    query: &'q MessageQuery,
    shelves: Vec<Shelf>,
    // Conditions that the shelves do not imply.
    rest: MessageQuery,
}

impl<'q> MessageSelection<'q> {
    /// A query of the messages on all channels.
    pub(crate) fn of_all(query: &'q MessageQuery) -> Self {
        let (shelves, rest) = query.shelves();
        Self { query, shelves, rest }
    }

    /// A query of the messages in an inbox.
    pub(crate) fn of_inbox(query: &'q MessageQuery) -> Self {
        let (shelves, rest) = query.inbox_shelves();
        Self { query, shelves, rest }
    }
}

/// What of a message tells whether a query selects it.
pub(crate) trait Selectable: Excerpt<Of = Message> {
    /// Returns the id of the message.
    fn id(&self) -> MessageId;

    /// Returns what a query compares.
    fn facts(&self) -> MessageFacts<'_>;
}

impl Selectable for MessageExcerpt {
    fn id(&self) -> MessageId {
        self.id
    }

    fn facts(&self) -> MessageFacts<'_> {
        self.into()
    }
}

impl Selectable for WholeMessage {
    fn id(&self) -> MessageId {
        self.0.id
    }

    fn facts(&self) -> MessageFacts<'_> {
        self.into()
    }
}

// How far a page looks for its messages, and beyond them for its total.
const PAGE: WalkLimit =
    WalkLimit { entries: MessageQuery::MAX_ENTRIES, records: MessageQuery::MAX_SCANNED };
const BEYOND: WalkLimit = WalkLimit { entries: PAGE.entries / 2, records: PAGE.records / 2 };

// Messages that a query selects.
struct Selected<'q> {
    // The messages on its shelves.
    list: List<'static, Message>,
    rest: &'q MessageQuery,
    bounds: Bounds,
}

impl<'q> Selected<'q> {
    fn by(
        view: &dyn View,
        subscriber: &Subscriber,
        selection: &'q MessageSelection<'_>,
    ) -> Result<Self> {
        let (environment, owner) = (view.environment_id(), subscriber.id);
        let counters = counters::find(view, &layout::message_counters(environment, owner))?;
        let MessageSelection { shelves, rest, .. } = selection;
        let bounds = Bounds {
            page: PAGE,
            beyond: BEYOND,
            total: counters.exactly(shelves, rest),
            at_most: counters.at_most(shelves, rest),
        };
        let list = List::of_parts(shelves.iter().map(|shelf| {
            let len = Some(counters.on(*shelf));
            (layout::message_list(environment, owner, *shelf), len)
        }));
        Ok(Self { list, rest, bounds })
    }

    fn page<E: Selectable>(&self, view: &dyn View, request: &PageRequest) -> Result<Page<Message>> {
        let (shows, may_show) = self.conditions::<E>();
        Ok(view.selected_page(&self.among(view, &shows, &may_show), request)?)
    }

    fn total<E: Selectable>(&self, view: &dyn View, request: &PageRequest) -> Result<Total> {
        let (shows, may_show) = self.conditions::<E>();
        Ok(view.total(&self.among(view, &shows, &may_show), request)?)
    }

    // The conditions of the query, on messages and on their signatures.
    fn conditions<E: Selectable>(&self) -> (impl Fn(&E) -> bool, impl Fn(Signature) -> bool) {
        let filter = SignatureFilter::of(self.rest);
        (
            |message: &E| self.rest.matches(message.facts()),
            move |signature| filter.allows(signature),
        )
    }

    fn among<'s, E: Selectable>(
        &'s self,
        view: &dyn View,
        shows: &'s dyn Fn(&E) -> bool,
        may_show: &'s dyn Fn(Signature) -> bool,
    ) -> Selection<'s, E> {
        let environment = view.environment_id();
        Selection { list: &self.list, environment, shows, may_show, bounds: self.bounds }
    }
}

/// The message of that id, if it belongs to the subscriber.
pub(crate) fn find(
    view: &dyn View,
    subscriber: &Subscriber,
    id: MessageId,
) -> Result<Option<Message>> {
    let found = find_by_id(view, id)?;
    Ok(found.filter(|message| message.subscriber_id == subscriber.id))
}

/// The message of that id. Another message may have its place.
pub(crate) fn find_by_id(view: &dyn View, id: MessageId) -> Result<Option<Message>> {
    let found = view.find::<Message>(&layout::message(view.environment_id(), id.place()))?;
    Ok(found.filter(|message| message.id == id))
}

/// Those of the messages that belong to the subscriber, once each, in the order of `ids`.
///
/// # Errors
///
/// [`Error::Invalid`], if they are too large to be changed in one transaction.
pub(crate) fn find_each(
    view: &dyn View,
    subscriber: &Subscriber,
    ids: &[MessageId],
) -> Result<Vec<Message>> {
    let (mut known, mut found, mut size) = (HashSet::new(), Vec::new(), 0);
    for id in ids.iter().filter(|id| known.insert(**id)) {
        let Some(message) = find(view, subscriber, *id)? else { continue };
        size += message.size();
        Message::check_marked_size(size)?;
        found.push(message);
    }
    Ok(found)
}

/// The number of the changes of a subscriber's messages in this transaction.
pub(crate) fn next_change(tx: &mut Tx<'_>, subscriber: &Subscriber) -> Result<u64> {
    Ok(tx.counters(subscriber.id)?.next_change())
}

/// Stores a message that its reader has changed, with the task that ends its snooze. Returns the
/// message as stored. `change` is the number of the change.
pub(crate) fn replace(
    tx: &mut Tx<'_>,
    before: &Message,
    mut after: Message,
    change: u64,
) -> Result<Message> {
    if after == *before {
        return Ok(after);
    }
    if after.is_in_inbox() {
        after.last_change = Some(change);
    }
    move_wake(tx, before, after.snoozed_until)?;
    tx.replace(before, &after)?;
    Ok(after)
}

/// Deletes messages of a subscriber from the inbox. The feed tells them, unless there are many: then
/// clients list the inbox again.
pub(crate) fn delete(tx: &mut Tx<'_>, subscriber: &Subscriber, found: &[Message]) -> Result<()> {
    if found.len() <= DeletedMessage::KEPT {
        let (environment, owner) = (tx.environment_id(), subscriber.id);
        let counters = tx.counters(owner)?;
        let (deletions, change) = (counters.deletions, counters.next_change());
        let kept = usize::try_from(deletions).unwrap_or(usize::MAX);
        let overflow = kept.saturating_add(found.len()).saturating_sub(DeletedMessage::KEPT);
        let range = layout::deleted_messages(environment, owner).range();
        for oldest in tx.readable::<DeletedMessage>(&range, Order::Ascending, overflow)? {
            tx.remove(&oldest)?;
        }
        for message in found {
            tx.insert(&DeletedMessage::of(message, change))?;
        }
    }
    found.iter().try_for_each(|message| remove(tx, message))
}

/// Removes a message, with the task that ends its snooze.
pub(crate) fn remove(tx: &mut Tx<'_>, message: &Message) -> Result<()> {
    move_wake(tx, message, None)?;
    Ok(tx.remove(message)?)
}

/// Moves the task that ends the snooze of a message.
pub(crate) fn move_wake(
    tx: &mut Tx<'_>,
    message: &Message,
    until: Option<Timestamp>,
) -> Result<()> {
    if message.snoozed_until == until {
        return Ok(());
    }
    let key = layout::task(message.environment_id, TaskId::of_wake(message.id));
    let before = tx.find::<Task>(&key)?;
    let after = until.map(|until| Task::wake(message, until));
    match (&before, &after) {
        (Some(before), Some(after)) => tx.replace(before, after)?,
        (None, Some(after)) => tx.insert(after)?,
        (Some(before), None) => tx.remove(before)?,
        (None, None) => {}
    }
    Ok(())
}
