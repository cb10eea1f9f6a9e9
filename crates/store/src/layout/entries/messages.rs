//! Messages.

use domain::ids::{EnvironmentId, InternalSubscriberId};
use domain::message::{
    Counted, DeletedMessage, ListPlace, Message, MessageExcerpt, Shelf, Signature, WholeMessage,
};
use domain::observer::Event;

use crate::key::{Bytes, Key};
use crate::layout::{deleted_messages, message, message_changes, message_counters, message_list};
use crate::record::{Entries, Excerpt, Record};

impl Record for Message {
    fn key(&self) -> Key<Self> {
        message(self.environment_id, self.id.place())
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let owner = (self.environment_id, self.subscriber_id);
        let key = list_entry(owner, self.shelf(), self.list_place());
        entries.add_signed(key, || Signature::of(self));
        if let Some(change) = self.last_change {
            let changes = message_changes(self.environment_id, self.subscriber_id);
            entries.add(changes.then(change).then(self.id.place()).end());
        }
    }

    fn counted(&self) -> Option<(Key<Bytes>, Counted)> {
        let key = message_counters(self.environment_id, self.subscriber_id);
        Some((key, Counted::Message(self.counted_part())))
    }

    fn events(before: Option<&Self>, after: Option<&Self>) -> Vec<Event> {
        Event::of_message(before, after).into_iter().collect()
    }
}

// The entry of a message in a list of a subscriber.
fn list_entry(
    (environment, subscriber): (EnvironmentId, InternalSubscriberId),
    shelf: Shelf,
    place: ListPlace,
) -> Key<Message> {
    message_list(environment, subscriber, shelf).then(place).end()
}

impl Excerpt for MessageExcerpt {
    type Of = Message;

    fn key(&self, environment: EnvironmentId) -> Key<Message> {
        message(environment, self.id.place())
    }

    fn entry(&self, environment: EnvironmentId) -> Key<Message> {
        list_entry((environment, self.subscriber_id), self.shelf(), self.list_place())
    }
}

impl Excerpt for WholeMessage {
    type Of = Message;

    fn key(&self, environment: EnvironmentId) -> Key<Message> {
        message(environment, self.0.id.place())
    }

    fn entry(&self, environment: EnvironmentId) -> Key<Message> {
        let Self(message) = self;
        list_entry((environment, message.subscriber_id), message.shelf(), message.list_place())
    }
}

impl Record for DeletedMessage {
    fn key(&self) -> Key<Self> {
        let deleted = deleted_messages(self.environment_id, self.subscriber_id);
        deleted.then(self.change).then(self.message_id.place()).end()
    }

    fn counted(&self) -> Option<(Key<Bytes>, Counted)> {
        let key = message_counters(self.environment_id, self.subscriber_id);
        let (change, place) = (self.change, self.message_id.place());
        Some((key, Counted::Deletion { change, place }))
    }
}
