//! Operations on the subscriptions in topics.

mod enrolment;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::convert::IntoChecked;
use domain::ids::{SubscriberId, SubscriptionIdentifier, TopicId, TopicKey};
use domain::page::{ListId, ListKind, Page};
use domain::subscriber::Subscriber;
use domain::subscription::{
    ResolvedSetting, Subscribe, Subscription, SubscriptionError, SubscriptionQuery,
    SubscriptionUpdate, Subscriptions, Unsubscribe, UnsubscribeItem, WorkflowSetting,
};
use domain::topic::Topic;
use domain::workflow::Workflow;
use store::layout::CountedList;
use store::{List, ReadRecords, WriteRecords, layout};

use crate::damage::if_readable;
use crate::resources::{subscribers, topics, workflows};
use crate::tx::{Reading, View};
use crate::{Entity, Error, Result, Subscribers, Topics};

use self::enrolment::{Collected, Enrolment};

impl Topics<'_> {
    /// Subscribes subscribers to a topic. A missing topic is created. An existing subscription of the same identifier
    /// stays unchanged, with its name and preferences, and is returned:
    /// [`update_subscription`](Self::update_subscription) changes it. The refusal of one subscription does not affect
    /// the others.
    ///
    /// # Errors
    ///
    /// [`Rejection::NoSubscription`](crate::Rejection::NoSubscription), if all subscriptions fail: a
    /// subscriber does not exist or has ten subscriptions, or the identifier is in use.
    /// [`Error::NotFound`] with all workflows of the preferences that do not exist. [`Error::Invalid`], if the request
    /// has no item or more than 100, a name or an identifier is too long, or the preferences are about more than 100
    /// workflows or name them with more than 100 names.
    pub fn subscribe(
        &self,
        topic: impl IntoChecked<TopicKey>,
        request: &Subscribe,
    ) -> Result<Subscriptions> {
        self.subscribe_of(&topic.into_checked()?, request)
    }

    fn subscribe_of(&self, topic: &TopicKey, request: &Subscribe) -> Result<Subscriptions> {
        self.scope.write("topics.subscribe", (topic, request), |tx| {
            request.check()?;
            let mut enrolment = Enrolment::new(tx, topic, request)?;
            let mut collected = Collected::default();
            for item in &request.subscriptions {
                collected.add(enrolment.enrol(tx, item)?);
            }
            collected.result(tx)
        })
    }

    /// Removes subscriptions from a topic: all of a subscriber, or single ones. The refusal of one
    /// item does not affect the others.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such topic;
    /// [`Rejection::NoSubscription`](crate::Rejection::NoSubscription), if all items fail, because a
    /// subscriber or a subscription does not exist. [`Error::Invalid`], if the request has no item or
    /// more than 100.
    pub fn unsubscribe(
        &self,
        topic: impl IntoChecked<TopicKey>,
        request: &Unsubscribe,
    ) -> Result<Subscriptions> {
        self.unsubscribe_of(&topic.into_checked()?, request)
    }

    fn unsubscribe_of(&self, topic: &TopicKey, request: &Unsubscribe) -> Result<Subscriptions> {
        self.scope.write("topics.unsubscribe", (topic, request), |tx| {
            request.check()?;
            let topic = topics::get(tx, topic)?;
            tx.expect_change(CountedList::Subscriptions(topic.environment_id, topic.id))?;
            let mut collected = Collected::default();
            for item in &request.subscriptions {
                match leaving(tx, &topic, item)? {
                    Ok(subscriptions) => {
                        for subscription in subscriptions {
                            tx.remove(&subscription)?;
                            collected.add(Ok(subscription));
                        }
                    }
                    Err(error) => collected.add(Err(error)),
                }
            }
            collected.result(tx)
        })
    }

    /// The subscription of that identifier, or else of that id, with its preferences about
    /// workflows.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscription or no such topic.
    pub fn get_subscription(
        &self,
        topic: impl IntoChecked<TopicKey>,
        identifier: impl IntoChecked<SubscriptionIdentifier>,
    ) -> Result<Subscription> {
        let (topic, identifier) = (topic.into_checked()?, identifier.into_checked()?);
        self.scope.read("topics.get_subscription", |view| {
            let topic = topics::get(view, &topic)?;
            let found = find(view, &topic, &identifier)?;
            with_workflows(view, found.ok_or_else(|| missing(&identifier))?)
        })
    }

    /// The subscription of that identifier, or else of that id, with its preferences about
    /// workflows. Returns `None` if there is no such subscription or no such topic.
    pub fn find_subscription(
        &self,
        topic: impl IntoChecked<TopicKey>,
        identifier: impl IntoChecked<SubscriptionIdentifier>,
    ) -> Result<Option<Subscription>> {
        let (topic, identifier) = (topic.into_checked()?, identifier.into_checked()?);
        self.scope.read("topics.find_subscription", |view| {
            let Some(topic) = topics::find(view, &topic)? else { return Ok(None) };
            let found = find(view, &topic, &identifier)?;
            found.map(|subscription| with_workflows(view, subscription)).transpose()
        })
    }

    /// A page of the subscriptions in a topic, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such topic; [`Error::Invalid`], if the limit, the
    /// cursors or the order of the query cannot be used, or if it has more than 100 contexts.
    pub fn subscriptions(
        &self,
        topic: impl IntoChecked<TopicKey>,
        query: &SubscriptionQuery,
    ) -> Result<Page<Subscription>> {
        self.subscriptions_of(&topic.into_checked()?, query)
    }

    fn subscriptions_of(
        &self,
        topic: &TopicKey,
        query: &SubscriptionQuery,
    ) -> Result<Page<Subscription>> {
        let list_id = self.scope.list_id(ListKind::Subscriptions);
        self.scope.read("topics.subscriptions", |view| {
            let topic = topics::get(view, topic)?;
            page(view, query, list_id.within(topic.id), listed(view, &topic, query)?)
        })
    }

    /// Changes the name or the preferences of a subscription. Preferences are replaced as a whole.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such topic or subscription, or with all workflows that
    /// do not exist; [`Error::Invalid`], if the name is too long, or the preferences are about more
    /// than 100 workflows or name them with more than 100 names.
    pub fn update_subscription(
        &self,
        topic: impl IntoChecked<TopicKey>,
        identifier: impl IntoChecked<SubscriptionIdentifier>,
        update: &SubscriptionUpdate,
    ) -> Result<Subscription> {
        self.update_subscription_of(&topic.into_checked()?, &identifier.into_checked()?, update)
    }

    fn update_subscription_of(
        &self,
        topic: &TopicKey,
        identifier: &SubscriptionIdentifier,
        update: &SubscriptionUpdate,
    ) -> Result<Subscription> {
        let arguments = (topic, identifier, update);
        self.scope.write("topics.update_subscription", arguments, |tx| {
            update.check()?;
            let topic = topics::get(tx, topic)?;
            let found = find(tx, &topic, identifier)?;
            let before = found.ok_or_else(|| missing(identifier))?;
            let words = update.preferences.as_deref();
            let verdicts = words.map(|words| verdicts(tx, words)).transpose()?;
            let after = before.updated(update.name.clone(), verdicts.as_deref(), tx.now());
            tx.replace(&before, &after)?;
            with_workflows(tx, after)
        })
    }
}

impl Subscribers<'_> {
    /// A page of the subscriptions of a subscriber in all topics, newest first by default.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::subscription::{Subscribe, SubscriptionQuery};
    /// # use tidings::subscriber::SubscriberCreate;
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
    /// env.topics().subscribe("news", &Subscribe::new("ada")?)?;
    /// let page = env.subscribers().subscriptions("ada", &SubscriptionQuery::default())?;
    /// assert_eq!(page.data[0].topic_key.as_str(), "news");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber; [`Error::Invalid`], if the limit, the
    /// cursors or the order of the query cannot be used, or if it has more than 100 contexts.
    pub fn subscriptions(
        &self,
        id: impl IntoChecked<SubscriberId>,
        query: &SubscriptionQuery,
    ) -> Result<Page<Subscription>> {
        self.subscriptions_of(&id.into_checked()?, query)
    }

    fn subscriptions_of(
        &self,
        id: &SubscriberId,
        query: &SubscriptionQuery,
    ) -> Result<Page<Subscription>> {
        let list_id = self.scope.list_id(ListKind::Subscriptions);
        self.scope.read("subscribers.subscriptions", |view| {
            let subscriber = subscribers::get(view, id)?;
            let list_id = list_id.within(subscriber.id);
            let environment = view.environment_id();
            let topics = match &query.subscriber_id {
                Some(other) if other != id => Vec::new(),
                Some(_) | None => topics_of(view, &subscriber)?,
            };
            let in_topic = |topic| layout::topic_subscriber(environment, topic, subscriber.id);
            page(view, query, list_id, List::new(topics.into_iter().map(in_topic)))
        })
    }
}

// The topics with a subscription of the subscriber.
fn topics_of(view: &dyn View, subscriber: &Subscriber) -> Result<Vec<TopicId>> {
    let (environment, own) = (view.environment_id(), subscriber.id);
    let all = layout::subscriber_subscriptions(environment, own).range();
    let behind = |topic: &TopicId| layout::subscriptions_behind(environment, own, *topic);
    Ok(view.distinct(all, layout::topic_of_subscription, behind)?)
}

// A page of a list, with those subscriptions that meet the contexts of the query.
fn page(
    view: &Reading<'_>,
    query: &SubscriptionQuery,
    list_id: ListId,
    list: List<'_, Subscription>,
) -> Result<Page<Subscription>> {
    query.check()?;
    let request = query.page.check(list_id, SubscriptionQuery::ORDERS)?;
    let matches = |one: &Subscription| query.context_keys.matches(&one.context_keys);
    let list = list.of_records(!query.context_keys.is_any(), &matches);
    let mut page: Page<Subscription> = view.page(&list, &request)?;
    for subscription in &mut page.data {
        *subscription = with_workflows(view, subscription.clone())?;
    }
    Ok(page)
}

// The list of the subscriptions in a topic, or of those of a subscriber in it.
fn listed(
    view: &dyn View,
    topic: &Topic,
    query: &SubscriptionQuery,
) -> Result<List<'static, Subscription>> {
    let environment = topic.environment_id;
    let Some(subscriber) = &query.subscriber_id else {
        let list = List::new([layout::subscription_ids(environment, topic.id)]);
        return Ok(list.counted_as(CountedList::Subscriptions(environment, topic.id)));
    };
    let subscriber = subscribers::find(view, subscriber)?;
    let prefix =
        subscriber.map(|subscriber| layout::topic_subscriber(environment, topic.id, subscriber.id));
    Ok(List::new(prefix))
}

// The subscriptions that an item takes out of the topic.
fn leaving(
    view: &dyn View,
    topic: &Topic,
    item: &UnsubscribeItem,
) -> Result<Result<Vec<Subscription>, SubscriptionError>> {
    let subscriptions = match item {
        UnsubscribeItem::Subscription { identifier } => {
            find(view, topic, identifier)?.into_iter().collect()
        }
        UnsubscribeItem::Subscriber { subscriber_id } => {
            match subscribers::find(view, subscriber_id)? {
                None => return Ok(Err(SubscriptionError::subscriber_not_found(subscriber_id))),
                Some(subscriber) => of_subscriber(view, topic, &subscriber)?,
            }
        }
    };
    if subscriptions.is_empty() {
        return Ok(Err(SubscriptionError::subscription_not_found(item)));
    }
    Ok(Ok(subscriptions))
}

// The preferences about each workflow. Fails with all workflows that do not exist.
fn verdicts(view: &dyn View, words: &[WorkflowSetting]) -> Result<Vec<ResolvedSetting>> {
    let (mut verdicts, mut missing) = (Vec::new(), Vec::new());
    let tagged = tagged(view, words)?;
    // A request may name each workflow 10,000 times.
    let mut known = HashMap::new();
    for word in words {
        for name in word.workflows.names() {
            let id = match known.entry(name) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(free) => {
                    *free.insert(workflows::find(view, name.as_str())?.map(|workflow| workflow.id))
                }
            };
            match id {
                Some(id) => verdicts.push(word.about(id)),
                None => missing.push(name.to_string()),
            }
        }
        let chosen = tagged.iter().filter(|workflow| word.workflows.chooses(workflow));
        verdicts.extend(chosen.map(|workflow| word.about(workflow.id)));
    }
    if !missing.is_empty() {
        return Err(Error::none_of(Entity::Workflow, missing));
    }
    Ok(ResolvedSetting::last_of_each(verdicts)?)
}

// The workflows that are chosen by their tags, and no more of them than are refused.
fn tagged(view: &dyn View, words: &[WorkflowSetting]) -> Result<Vec<Arc<Workflow>>> {
    let tags: HashSet<_> = words.iter().flat_map(|word| word.workflows.tags()).collect();
    if tags.is_empty() {
        return Ok(Vec::new());
    }
    let prefix = layout::workflows(view.environment_id());
    let (mut workflows, _) = view.engine().parts.decoded.workflows.readable(view, &prefix)?;
    workflows.retain(|one| !one.is_deleted() && one.tags.iter().any(|tag| tags.contains(tag)));
    workflows.truncate(Subscription::MAX_PREFERENCES + 1);
    Ok(workflows)
}

fn with_workflows(view: &dyn View, mut subscription: Subscription) -> Result<Subscription> {
    for preference in &mut subscription.preferences {
        let workflow = if_readable(workflows::find_by_id(view, preference.workflow_id))?.flatten();
        preference.workflow = workflow.map(|workflow| workflow.info());
    }
    Ok(subscription)
}

fn of_subscriber(
    view: &dyn View,
    topic: &Topic,
    subscriber: &Subscriber,
) -> Result<Vec<Subscription>> {
    let prefix = layout::topic_subscriber(topic.environment_id, topic.id, subscriber.id);
    Ok(view.all(&prefix)?)
}

// An identifier that looks like an id is an identifier first.
fn find(
    view: &dyn View,
    topic: &Topic,
    identifier: &SubscriptionIdentifier,
) -> Result<Option<Subscription>> {
    let environment = topic.environment_id;
    let found = view.find(&layout::subscription(environment, topic.id, identifier))?;
    match (found, identifier.as_str().parse()) {
        (None, Ok(id)) => {
            let key = layout::subscription_id(environment, topic.id, id);
            Ok(view.find(&key)?)
        }
        (found, _) => Ok(found),
    }
}

fn missing(identifier: &SubscriptionIdentifier) -> Error {
    Error::not_found(Entity::Subscription, identifier)
}
