//! Operations on topics.

use domain::convert::IntoChecked;
use domain::ids::TopicKey;
use domain::page::{ListKind, Page};
use domain::topic::{Topic, TopicCreate, TopicQuery, TopicUpdate};
use store::layout::CountedList;
use store::{List, ReadRecords, Step, WriteRecords, layout};

use crate::resources::cascade::{Cascade, Deleting};
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

/// The topics of an environment, and the subscriptions in them.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::condition::var;
/// use tidings::subscription::{Subscribe, WorkflowSetting};
/// use tidings::topic::TopicQuery;
/// use tidings::trigger::{Recipient, Trigger};
/// use serde_json::json;
/// # use tidings::{step::Step, subscriber::SubscriberCreate, workflow::WorkflowCreate};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("price-drop", "Price drop")?.step(Step::in_app("{{ payload.price }}")?))?;
/// let cheap = WorkflowSetting::new("price-drop").condition(var("payload.price").less_than(10))?;
/// env.topics().subscribe("product:4711", &Subscribe::new("ada")?.preference(cheap))?;
///
/// for (price, recipients) in [(12, 0), (9, 1)] {
///     let trigger = Trigger::new("price-drop", Recipient::topic("product:4711")?)?;
///     let receipt = env.events().trigger(&trigger.payload(json!({ "price": price }))?)?;
///     assert_eq!(receipt.topics.created, recipients);
/// }
/// assert_eq!(env.topics().list(&TopicQuery::default())?.data[0].key.as_str(), "product:4711");
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
    /// [`Error::Conflict`], if the key is in use; [`Error::Invalid`], if the name is empty, longer
    /// than 100 characters or not readable.
    pub fn create(&self, create: &TopicCreate) -> Result<Topic> {
        self.scope.write("topics.create", create, |tx| {
            create.check()?;
            tx.expect_change(CountedList::Topics(tx.environment_id()))?;
            if find(tx, &create.key)?.is_some() {
                return Err(Error::conflict(Entity::Topic, &create.key));
            }
            insert(tx, create.clone())
        })
    }

    /// Creates or changes the topic of that key. Absent fields keep their value.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the name is empty, longer than 100 characters or not readable.
    pub fn upsert(&self, create: &TopicCreate) -> Result<Topic> {
        self.scope.write("topics.upsert", create, |tx| {
            create.check()?;
            tx.expect_change(CountedList::Topics(tx.environment_id()))?;
            match find(tx, &create.key)? {
                Some(before) => replace(tx, &before, create.to_update()),
                None => insert(tx, create.clone()),
            }
        })
    }

    /// The topic of that key.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, key: impl IntoChecked<TopicKey>) -> Result<Topic> {
        let key = key.into_checked()?;
        self.scope.read("topics.get", |view| get(view, &key))
    }

    /// The topic of that key. Returns `None` if there is none.
    pub fn find(&self, key: impl IntoChecked<TopicKey>) -> Result<Option<Topic>> {
        let key = key.into_checked()?;
        self.scope.read("topics.find", |view| find(view, &key))
    }

    /// A page of the topics, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit, the cursors or the order of the query cannot be used.
    pub fn list(&self, query: &TopicQuery) -> Result<Page<Topic>> {
        let request = query.page.check(self.scope.list_id(ListKind::Topics), TopicQuery::ORDERS)?;
        let prefix = layout::topic_list(self.scope.environment_id(), request.order_by);
        let search = query.search();
        let finds = |text: &[u8]| {
            let topic = layout::folded_topic(text);
            search.as_ref().zip(topic).is_some_and(|(search, topic)| search.finds(topic))
        };
        let list = List::new([prefix])
            .counted_as(CountedList::Topics(self.scope.environment_id()))
            .of_texts(search.is_some(), &finds);
        self.scope.read("topics.list", |view| Ok(view.page(&list, &request)?))
    }

    /// Renames a topic. Its key stays.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such topic; [`Error::Invalid`], if the name is empty,
    /// longer than 100 characters or not readable.
    pub fn update(&self, key: impl IntoChecked<TopicKey>, update: &TopicUpdate) -> Result<Topic> {
        self.update_of(&key.into_checked()?, update)
    }

    fn update_of(&self, key: &TopicKey, update: &TopicUpdate) -> Result<Topic> {
        self.scope.write("topics.update", (key, update), |tx| {
            update.check()?;
            let before = get(tx, key)?;
            replace(tx, &before, update.clone())
        })
    }

    /// Deletes a topic, with its subscriptions.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such topic.
    pub fn delete(&self, key: impl IntoChecked<TopicKey>) -> Result<()> {
        self.delete_of(&key.into_checked()?)
    }

    fn delete_of(&self, key: &TopicKey) -> Result<()> {
        self.scope.write_deletion("topics.delete", key, |tx, before| {
            tx.expect_change(CountedList::Topics(tx.environment_id()))?;
            let found = find(tx, key)?;
            if before.is_over(found.as_ref().map(|topic| topic.id)) {
                return Ok(Step::Done(()));
            }
            let topic = found.ok_or_else(|| missing(key))?;
            tx.expect_change(CountedList::Subscriptions(topic.environment_id, topic.id))?;
            let mut cascade = Cascade::new(tx, before.removed());
            let subscriptions = layout::subscriptions(topic.environment_id, topic.id);
            cascade.remove(&subscriptions)?;
            Ok(Deleting::after(cascade.then(|tx| Ok(tx.remove(&topic)?))?, topic.id))
        })
    }
}

/// The topic of that key.
pub(crate) fn get(view: &dyn View, key: &TopicKey) -> Result<Topic> {
    find(view, key)?.ok_or_else(|| missing(key))
}

/// The topic of that key. Returns `None` if there is none.
pub(crate) fn find(view: &dyn View, key: &TopicKey) -> Result<Option<Topic>> {
    Ok(view.find(&layout::topic(view.environment_id(), key))?)
}

/// Creates a topic under a key that is free.
pub(crate) fn insert(tx: &mut Tx<'_>, create: TopicCreate) -> Result<Topic> {
    let topic = Topic::new(tx.id(), tx.home(), create, tx.now());
    tx.insert(&topic)?;
    Ok(topic)
}

fn replace(tx: &mut Tx<'_>, before: &Topic, update: TopicUpdate) -> Result<Topic> {
    let after = before.updated(update, tx.now());
    tx.replace(before, &after)?;
    Ok(after)
}

fn missing(key: &TopicKey) -> Error {
    Error::not_found(Entity::Topic, key)
}
