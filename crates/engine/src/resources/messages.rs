//! Operations on the messages of subscribers.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use domain::ids::{MessageId, SubscriberId, WorkflowId};
use domain::message::{MarkAs, Message, MessageQuery};
use domain::page::Page;
use domain::subscriber::Subscriber;
use domain::vocabulary::Channel;
use domain::workflow::Workflow;
use store::{List, ReadRecords, Snapshot, Table, WriteRecords, layout};

use crate::resources::{subscribers, workflows};
use crate::{Entity, Error, Result, Scope};

/// The messages of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{from_value, json};
/// # use tidings::message::{MarkMessages, MessageQuery};
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// # env.workflows().create(from_value(json!({
/// #     "workflowId": "greeting", "name": "Greeting", "active": true,
/// #     "steps": [{ "type": "in_app", "template": { "body": "Hello!" } }],
/// # }))?)?;
/// # let ada = tidings::ids::SubscriberId::new("ada")?;
/// # env.events().trigger(&from_value(json!({ "name": "greeting", "to": "ada" }))?)?;
/// let message = &env.messages().list(&ada, &MessageQuery::default())?.data[0];
/// assert_eq!(message.text(), Some("Hello!"));
///
/// // As a request says it.
/// let mark = json!({ "messageId": message.id, "markAs": "seen" });
/// let MarkMessages { message_id, mark_as } = from_value(mark)?;
/// assert_eq!(env.messages().mark_as(&ada, &message_id, mark_as)?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Messages<'s> {
    pub(crate) scope: &'s Scope,
}

impl Messages<'_> {
    /// A page of the messages of a subscriber on every channel, newest first unless the query says
    /// otherwise, each with its subscriber and, as long as it exists, its workflow.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber.
    pub fn list(&self, subscriber: &SubscriberId, query: &MessageQuery) -> Result<Page<Message>> {
        self.scope.read(|snapshot| {
            let subscriber = subscribers::get(self.scope, snapshot, subscriber)?;
            let mut page = page(self.scope, snapshot, &subscriber, query)?;
            let mut known = Templates::default();
            for message in &mut page.data {
                message.subscriber = Some(subscriber.clone());
                message.template = known.of(self.scope, snapshot, message)?;
            }
            Ok(page)
        })
    }

    /// The message of that id, with its subscriber and, as long as it exists, its workflow.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber, or if it has no such message.
    pub fn get(&self, subscriber: &SubscriberId, id: MessageId) -> Result<Message> {
        self.scope.read(|snapshot| {
            let subscriber = subscribers::get(self.scope, snapshot, subscriber)?;
            let key = layout::message(self.scope.environment_id(), subscriber.id, id);
            let found: Option<Message> = snapshot.find(&key)?;
            let mut message = found.ok_or_else(|| Error::not_found(Entity::Message, id))?;
            message.template = Templates::default().of(self.scope, snapshot, &message)?;
            message.subscriber = Some(subscriber);
            Ok(message)
        })
    }

    /// Marks messages of a subscriber, and returns them as they are now, each once, in the order
    /// of `ids`. Ids of messages that are not the subscriber's are passed over.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber;
    /// [`Error::Invalid`], if there are no ids, or more than 1,000.
    pub fn mark_as(
        &self,
        subscriber: &SubscriberId,
        ids: &[MessageId],
        mark_as: MarkAs,
    ) -> Result<Vec<Message>> {
        self.scope.write("messages.mark_as", (subscriber, ids, mark_as), |txn, now| {
            Message::check_marked(ids)?;
            let subscriber = subscribers::get(self.scope, &*txn, subscriber)?;
            let mut known = HashSet::new();
            let mut marked = Vec::with_capacity(ids.len());
            for id in ids.iter().filter(|id| known.insert(**id)) {
                let key = layout::message(self.scope.environment_id(), subscriber.id, *id);
                let Some(before) = txn.find::<Message>(&key)? else { continue };
                let after = Message { stage: before.stage.mark(mark_as, now), ..before.clone() };
                txn.replace(&before, &after)?;
                marked.push(after);
            }
            Ok(marked)
        })
    }
}

// The workflows that messages are from, each looked up once.
#[derive(Default)]
struct Templates(HashMap<WorkflowId, Option<Workflow>>);

impl Templates {
    fn of(
        &mut self,
        scope: &Scope,
        snapshot: &dyn Snapshot,
        message: &Message,
    ) -> Result<Option<Workflow>> {
        let Some(id) = message.workflow_id else { return Ok(None) };
        Ok(match self.0.entry(id) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => {
                unknown.insert(workflows::find_by_id(scope, snapshot, id)?).clone()
            }
        })
    }
}

/// A page of the messages of a subscriber.
pub(crate) fn page(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    subscriber: &Subscriber,
    query: &MessageQuery,
) -> Result<Page<Message>> {
    let request = query.page.check(scope.list_id(Table::Messages), MessageQuery::ORDERS)?;
    let prefix = layout::messages(scope.environment_id(), subscriber.id);
    let (table, rest) = source(query);
    let shows = |message: &Message| rest.shows(message);
    let list = List::new(table, [prefix]).of_records(rest.is_narrow(), &shows);
    Ok(snapshot.page(&list, &request)?)
}

// The table that knows most of what the query asks for, and the rest of the query.
fn source(query: &MessageQuery) -> (Table, MessageQuery) {
    let rest = query.clone();
    match (query.channel, query.read, query.seen) {
        (Some(Channel::InApp), Some(false), _) => {
            (Table::UnreadMessages, MessageQuery { channel: None, read: None, ..rest })
        }
        (Some(Channel::InApp), _, Some(false)) => {
            (Table::UnseenMessages, MessageQuery { channel: None, seen: None, ..rest })
        }
        (Some(Channel::InApp), _, _) => {
            (Table::InboxMessages, MessageQuery { channel: None, ..rest })
        }
        (Some(_) | None, _, _) => (Table::Messages, rest),
    }
}
