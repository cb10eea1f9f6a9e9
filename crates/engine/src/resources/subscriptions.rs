//! Operations on the subscriptions in topics.

use domain::context::{ContextSet, NamedContext};
use domain::environment::Home;
use domain::ids::{SubscriptionId, SubscriptionIdentifier, TopicKey};
use domain::page::Page;
use domain::patch::Patch;
use domain::subscriber::Subscriber;
use domain::subscription::{
    Subscribe, SubscribeItem, Subscription, SubscriptionError, SubscriptionQuery,
    SubscriptionUpdate, Subscriptions, Unsubscribe, UnsubscribeItem, WorkflowVerdict, WorkflowWord,
};
use domain::time::Timestamp;
use domain::topic::{Topic, TopicCreate};
use domain::workflow::Workflow;
use store::{List, ReadRecords, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::resources::contexts::{self, NamedData};
use crate::resources::{subscribers, topics, workflows};
use crate::{Entity, Error, Result, Rule, Topics};

impl Topics<'_> {
    /// Puts subscribers into a topic, which is created if need be. A subscriber who is in it
    /// already under the same identifier stays in it as before. What does not work for one of them
    /// does not keep the others out.
    ///
    /// # Errors
    ///
    /// [`Rule::NoSubscription`], if it works for nobody: a subscriber is not there, is in the
    /// topic ten times already, or the identifier is somebody else's. [`Error::NotFound`] with all
    /// the workflows that the preferences name and that are not there. [`Error::Invalid`], if
    /// there is nobody, or there are more than 100, if a name or an identifier is too long, or if
    /// the preferences are about more than 100 workflows.
    pub fn subscribe(&self, topic: &TopicKey, request: &Subscribe) -> Result<Subscriptions> {
        self.scope.write("topics.subscribe", (topic, request), |txn, now| {
            request.check()?;
            let create = TopicCreate { key: topic.clone(), name: request.name.clone() };
            create.check()?;
            let named = contexts::named(request.context.as_ref())?;
            let keys = contexts::keys(&named);
            let verdicts = self.verdicts(&*txn, &request.preferences)?;
            let found = topics::find(self.scope, &*txn, topic)?;
            let mut entry = Entry { create, found, named, keys, verdicts, now };
            let mut outcome = Outcome::default();
            for item in &request.subscriptions {
                outcome.add(self.enter(txn, &mut entry, item)?);
            }
            outcome.result(self, &*txn)
        })
    }

    /// Takes subscribers out of a topic: all their subscriptions, or single ones. What does not
    /// work for one of them does not keep the others in.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such topic; [`Rule::NoSubscription`], if it works for
    /// nobody: a subscriber or a subscription is not there. [`Error::Invalid`], if there is
    /// nobody, or there are more than 100.
    pub fn unsubscribe(&self, topic: &TopicKey, request: &Unsubscribe) -> Result<Subscriptions> {
        self.scope.write("topics.unsubscribe", (topic, request), |txn, _| {
            request.check()?;
            let topic = topics::get(self.scope, &*txn, topic)?;
            let mut outcome = Outcome::default();
            for item in &request.subscriptions {
                match self.leaving(&*txn, &topic, item)? {
                    Ok(subscriptions) => {
                        for subscription in subscriptions {
                            txn.remove(&subscription)?;
                            outcome.add(Ok(subscription));
                        }
                    }
                    Err(error) => outcome.add(Err(error)),
                }
            }
            outcome.result(self, &*txn)
        })
    }

    /// The subscription of that identifier, or else of that id, with what it says about workflows.
    /// `None`, if there is no such subscription or no such topic.
    pub fn subscription(
        &self,
        topic: &TopicKey,
        identifier: &SubscriptionIdentifier,
    ) -> Result<Option<Subscription>> {
        self.scope.read(|snapshot| {
            let Some(topic) = topics::find(self.scope, snapshot, topic)? else { return Ok(None) };
            let found = find(snapshot, &topic, identifier)?;
            found.map(|subscription| self.with_workflows(snapshot, subscription)).transpose()
        })
    }

    /// A page of the subscriptions in a topic, newest first unless the query says otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such topic.
    pub fn subscriptions(
        &self,
        topic: &TopicKey,
        query: &SubscriptionQuery,
    ) -> Result<Page<Subscription>> {
        let request = query
            .page
            .check(self.scope.list_id(Table::Subscriptions), SubscriptionQuery::ORDERS)?;
        let environment = self.scope.environment_id();
        let shows =
            |subscription: &Subscription| query.context_keys.shows(&subscription.context_keys);
        self.scope.read(|snapshot| {
            let topic = topics::get(self.scope, snapshot, topic)?;
            let all = match &query.subscriber_id {
                None => {
                    let prefix = layout::subscriptions(environment, topic.id);
                    List::new(Table::SubscriptionIds, [prefix])
                }
                Some(subscriber) => {
                    let subscriber = subscribers::find(self.scope, snapshot, subscriber)?;
                    let prefix = subscriber.map(|subscriber| {
                        layout::topic_subscriber(environment, topic.id, subscriber.id)
                    });
                    List::new(Table::TopicSubscribers, prefix)
                }
            };
            let list = all.of_records(!query.context_keys.is_any(), &shows);
            let mut page: Page<Subscription> = snapshot.page(&list, &request)?;
            for subscription in &mut page.data {
                *subscription = self.with_workflows(snapshot, subscription.clone())?;
            }
            Ok(page)
        })
    }

    /// Changes the name of a subscription, or what it says about workflows, which is replaced as a
    /// whole.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such topic or subscription, or with all the workflows
    /// that are not there.
    pub fn update_subscription(
        &self,
        topic: &TopicKey,
        identifier: &SubscriptionIdentifier,
        update: &SubscriptionUpdate,
    ) -> Result<Subscription> {
        let arguments = (topic, identifier, update);
        self.scope.write("topics.update_subscription", arguments, |txn, now| {
            update.check()?;
            let topic = topics::get(self.scope, &*txn, topic)?;
            let found = find(&*txn, &topic, identifier)?;
            let before = found.ok_or_else(|| Error::not_found(Entity::Subscription, identifier))?;
            let words = update.preferences.as_deref();
            let verdicts = words.map(|words| self.verdicts(&*txn, words)).transpose()?;
            let after = before.updated(update.name.clone(), verdicts.as_deref(), now);
            txn.replace(&before, &after)?;
            self.with_workflows(&*txn, after)
        })
    }

    // Puts one subscriber into the topic, if nothing stands against it.
    fn enter(
        &self,
        txn: &mut dyn Transaction,
        entry: &mut Entry,
        item: &SubscribeItem,
    ) -> Result<Result<Subscription, SubscriptionError>> {
        let id = &item.subscriber_id;
        let Some(subscriber) = subscribers::find(self.scope, &*txn, id)? else {
            return Ok(Err(SubscriptionError::subscriber_not_found(id)));
        };
        let made = || Subscription::made_identifier(&entry.create.key, id, &entry.keys);
        let identifier = item.identifier.clone().map_or_else(made, Ok)?;
        if let Some(topic) = &entry.found {
            let key = layout::subscription(topic.environment_id, topic.id, &identifier);
            match txn.find::<Subscription>(&key)? {
                Some(there) if there.is_of(&subscriber, &entry.keys) => return Ok(Ok(there)),
                Some(_) => return Ok(Err(SubscriptionError::identifier_taken(id, &identifier))),
                None => {}
            }
            let prefix = layout::topic_subscriber(topic.environment_id, topic.id, subscriber.id);
            let max = Subscription::MAX_OF_SUBSCRIBER;
            if txn.count(Table::TopicSubscribers, &prefix, Some(max))? == max {
                return Ok(Err(SubscriptionError::limit_exceeded(id)));
            }
        }
        let topic = self.open(txn, entry)?;
        let ids = (self.scope.id(entry.now), identifier);
        let subscription = entry.subscription(&self.scope.home, ids, (&topic, &subscriber), item);
        txn.insert(&subscription)?;
        Ok(Ok(subscription))
    }

    // The topic and the contexts of the first subscription that works are created with it.
    fn open(&self, txn: &mut dyn Transaction, entry: &mut Entry) -> Result<Topic> {
        contexts::ensure(self.scope, txn, &entry.named, NamedData::IsIgnored, entry.now)?;
        entry.named.clear();
        if let Some(topic) = &entry.found {
            return Ok(topic.clone());
        }
        let topic = topics::insert(self.scope, txn, entry.create.clone(), entry.now)?;
        entry.found = Some(topic.clone());
        Ok(topic)
    }

    // The subscriptions that an item takes out of the topic.
    fn leaving(
        &self,
        snapshot: &dyn Snapshot,
        topic: &Topic,
        item: &UnsubscribeItem,
    ) -> Result<Result<Vec<Subscription>, SubscriptionError>> {
        let subscriptions = match item {
            UnsubscribeItem::Subscription { identifier } => {
                find(snapshot, topic, identifier)?.into_iter().collect()
            }
            UnsubscribeItem::Subscriber { subscriber_id } => {
                match subscribers::find(self.scope, snapshot, subscriber_id)? {
                    None => {
                        return Ok(Err(SubscriptionError::subscriber_not_found(subscriber_id)));
                    }
                    Some(subscriber) => of_subscriber(snapshot, topic, &subscriber)?,
                }
            }
        };
        if subscriptions.is_empty() {
            return Ok(Err(SubscriptionError::subscription_not_found(item)));
        }
        Ok(Ok(subscriptions))
    }

    // What is said about which workflow. Fails with all the workflows that are not there.
    fn verdicts(
        &self,
        snapshot: &dyn Snapshot,
        words: &[WorkflowWord],
    ) -> Result<Vec<WorkflowVerdict>> {
        let (mut verdicts, mut missing) = (Vec::new(), Vec::new());
        let tagged = self.tagged(snapshot, words)?;
        for word in words {
            for name in word.workflows.names() {
                match workflows::find(self.scope, snapshot, name)? {
                    Some(workflow) => verdicts.push(word.about(workflow.id)),
                    None => missing.push(name.clone()),
                }
            }
            let chosen = tagged.iter().filter(|workflow| word.workflows.chooses(workflow));
            verdicts.extend(chosen.map(|workflow| word.about(workflow.id)));
        }
        if !missing.is_empty() {
            return Err(Error::NotFound { entity: Entity::Workflow, ids: missing });
        }
        Ok(WorkflowVerdict::last_of_each(verdicts)?)
    }

    // The workflows that may be chosen by their tags.
    fn tagged(&self, snapshot: &dyn Snapshot, words: &[WorkflowWord]) -> Result<Vec<Workflow>> {
        if words.iter().all(|word| word.workflows.tags().is_empty()) {
            return Ok(Vec::new());
        }
        let prefix = layout::workflows(self.scope.environment_id());
        let mut workflows: Vec<Workflow> = snapshot.all(Table::Workflows, &prefix)?;
        workflows.retain(|workflow| !workflow.tags.is_empty());
        Ok(workflows)
    }

    fn with_workflows(
        &self,
        snapshot: &dyn Snapshot,
        mut subscription: Subscription,
    ) -> Result<Subscription> {
        for preference in &mut subscription.preferences {
            let workflow = workflows::find_by_id(self.scope, snapshot, preference.workflow_id)?;
            preference.workflow = workflow.as_ref().map(Workflow::info);
        }
        Ok(subscription)
    }
}

fn of_subscriber(
    snapshot: &dyn Snapshot,
    topic: &Topic,
    subscriber: &Subscriber,
) -> Result<Vec<Subscription>> {
    let prefix = layout::topic_subscriber(topic.environment_id, topic.id, subscriber.id);
    Ok(snapshot.all(Table::TopicSubscribers, &prefix)?)
}

// An identifier that looks like an id is an identifier first.
fn find(
    snapshot: &dyn Snapshot,
    topic: &Topic,
    identifier: &SubscriptionIdentifier,
) -> Result<Option<Subscription>> {
    let environment = topic.environment_id;
    let found = snapshot.find(&layout::subscription(environment, topic.id, identifier))?;
    match (found, identifier.as_str().parse()) {
        (None, Ok(id)) => {
            let key = layout::subscription_id(environment, topic.id, id);
            Ok(snapshot.find_by(Table::SubscriptionIds, &key)?)
        }
        (found, _) => Ok(found),
    }
}

// What the subscriptions of one request have in common.
struct Entry {
    create: TopicCreate,
    found: Option<Topic>,
    named: Vec<NamedContext>,
    keys: ContextSet,
    verdicts: Vec<WorkflowVerdict>,
    now: Timestamp,
}

impl Entry {
    fn subscription(
        &self,
        home: &Home,
        (id, identifier): (SubscriptionId, SubscriptionIdentifier),
        owner: (&Topic, &Subscriber),
        item: &SubscribeItem,
    ) -> Subscription {
        let keys = self.keys.clone();
        let new = Subscription::new(id, identifier, home, owner, keys, self.now);
        let name = item.name.clone().map_or(Patch::Keep, Patch::Set);
        new.updated(name, Some(&self.verdicts), self.now)
    }
}

// What came of a request so far.
#[derive(Default)]
struct Outcome {
    data: Vec<Subscription>,
    errors: Vec<SubscriptionError>,
}

impl Outcome {
    fn add(&mut self, outcome: Result<Subscription, SubscriptionError>) {
        match outcome {
            Ok(subscription) => self.data.push(subscription),
            Err(error) => self.errors.push(error),
        }
    }

    fn result(self, topics: &Topics<'_>, snapshot: &dyn Snapshot) -> Result<Subscriptions> {
        let Self { data, errors } = self;
        if data.is_empty() {
            return Err(Rule::NoSubscription { errors }.into());
        }
        let shown = data.into_iter().map(|one| topics.with_workflows(snapshot, one));
        Ok(Subscriptions::new(shown.collect::<Result<_>>()?, errors))
    }
}
