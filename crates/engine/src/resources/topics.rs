//! Operations on topics.

use domain::ids::TopicKey;
use domain::page::Page;
use domain::subscription::Subscription;
use domain::time::Timestamp;
use domain::topic::{Topic, TopicCreate, TopicQuery, TopicUpdate};
use store::{List, ReadRecords, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::resources::cascade::Cascade;
use crate::{Entity, Error, Result, Scope};

/// The topics of an environment, and the subscriptions in them.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{from_value, json};
/// # use tidings::topic::TopicQuery;
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// # env.subscribers().create(from_value(json!({ "subscriberId": "ada" }))?)?;
/// # env.workflows().create(from_value(json!({
/// #     "workflowId": "price-drop", "name": "Price drop", "active": true,
/// #     "steps": [{ "type": "in_app", "template": { "body": "{{ payload.price }}" } }],
/// # }))?)?;
/// let watchers = "product:4711".try_into()?;
/// env.topics().subscribe(&watchers, &from_value(json!({
///     "subscriptions": ["ada"],
///     "preferences": [{
///         "workflowId": "price-drop",
///         "condition": { "<": [{ "var": "payload.price" }, 10] },
///     }],
/// }))?)?;
///
/// for (price, recipients) in [(12, 0), (9, 1)] {
///     let receipt = env.events().trigger(&from_value(json!({
///         "name": "price-drop",
///         "to": { "type": "Topic", "topicKey": "product:4711" },
///         "payload": { "price": price },
///     }))?)?;
///     assert_eq!(receipt.notifications.len(), recipients);
/// }
/// assert_eq!(env.topics().list(&TopicQuery::default())?.data[0].key, watchers);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Topics<'s> {
    pub(crate) scope: &'s Scope,
}

impl Topics<'_> {
    /// Creates a topic.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], if there is one of that key; [`Error::Invalid`], if the name is empty,
    /// longer than 100 characters or not readable.
    pub fn create(&self, create: &TopicCreate) -> Result<Topic> {
        self.scope.write("topics.create", create, |txn, now| {
            create.check()?;
            if find(self.scope, &*txn, &create.key)?.is_some() {
                return Err(Error::conflict(Entity::Topic, &create.key));
            }
            insert(self.scope, txn, create.clone(), now)
        })
    }

    /// Creates a topic, or gives the one of that key what is said here. What is not said stays.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the name is empty, longer than 100 characters or not readable.
    pub fn upsert(&self, create: &TopicCreate) -> Result<Topic> {
        self.scope.write("topics.upsert", create, |txn, now| {
            create.check()?;
            match find(self.scope, &*txn, &create.key)? {
                Some(before) => replace(txn, &before, create.to_update(), now),
                None => insert(self.scope, txn, create.clone(), now),
            }
        })
    }

    /// The topic of that key.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, key: &TopicKey) -> Result<Topic> {
        self.scope.read(|snapshot| get(self.scope, snapshot, key))
    }

    /// A page of the topics, newest first unless the query says otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the page that the query asks for cannot be one.
    pub fn list(&self, query: &TopicQuery) -> Result<Page<Topic>> {
        let request = query.page.check(self.scope.list_id(Table::Topics), TopicQuery::ORDERS)?;
        let prefix = layout::topic_list(self.scope.environment_id(), request.order_by);
        let search = query.search();
        let finds = |text: &[u8]| {
            let topic = layout::folded_topic(text);
            search.as_ref().zip(topic).is_some_and(|(search, topic)| search.finds(topic))
        };
        let list = List::new(Table::TopicLists, [prefix]).of_texts(search.is_some(), &finds);
        self.scope.read(|snapshot| Ok(snapshot.page(&list, &request)?))
    }

    /// Renames a topic. Its key stays.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such topic; [`Error::Invalid`], if the name is empty,
    /// longer than 100 characters or not readable.
    pub fn update(&self, key: &TopicKey, update: &TopicUpdate) -> Result<Topic> {
        self.scope.write("topics.update", (key, update), |txn, now| {
            update.check()?;
            let before = get(self.scope, &*txn, key)?;
            replace(txn, &before, update.clone(), now)
        })
    }

    /// Deletes a topic, with its subscriptions.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such topic.
    pub fn delete(&self, key: &TopicKey) -> Result<()> {
        self.scope.write_in_steps("topics.delete", key, (), |txn, _, ()| {
            let topic = get(self.scope, &*txn, key)?;
            let mut cascade = Cascade::new(txn);
            let subscriptions = layout::subscriptions(topic.environment_id, topic.id);
            cascade.remove::<Subscription>(Table::Subscriptions, &subscriptions)?;
            cascade.then(|txn| Ok(txn.remove(&topic)?))
        })
    }
}

/// The topic of that key.
pub(crate) fn get(scope: &Scope, snapshot: &dyn Snapshot, key: &TopicKey) -> Result<Topic> {
    find(scope, snapshot, key)?.ok_or_else(|| Error::not_found(Entity::Topic, key))
}

/// The topic of that key, if there is one.
pub(crate) fn find(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    key: &TopicKey,
) -> Result<Option<Topic>> {
    Ok(snapshot.find(&layout::topic(scope.environment_id(), key))?)
}

/// A new topic under a key that is free.
pub(crate) fn insert(
    scope: &Scope,
    txn: &mut dyn Transaction,
    create: TopicCreate,
    now: Timestamp,
) -> Result<Topic> {
    let topic = Topic::new(scope.id(now), &scope.home, create, now);
    txn.insert(&topic)?;
    Ok(topic)
}

fn replace(
    txn: &mut dyn Transaction,
    before: &Topic,
    update: TopicUpdate,
    now: Timestamp,
) -> Result<Topic> {
    let after = before.updated(update, now);
    txn.replace(before, &after)?;
    Ok(after)
}
