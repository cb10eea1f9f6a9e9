//! Operations on the activity list.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use activity::{Check, Filter, Term};
use domain::context::ContextFilter;
use domain::ids::{InternalSubscriberId, NotificationId, SubscriberId, WorkflowId};
use domain::notification::{
    Notification, NotificationPage, NotificationQuery, NotificationSubscriber, NotificationTemplate,
};
use domain::subscriber::Subscriber;
use domain::time::Timestamp;
use domain::topic::fold;
use serde_json::json;
use store::{Order, ReadRecords, Snapshot, Table, layout};

use crate::idempotency::Step;
use crate::resources::workflows;
use crate::{Entity, Error, Result, Scope};

/// The activity list of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{from_value, json};
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// # env.workflows().create(from_value(json!({
/// #     "workflowId": "greeting", "name": "Greeting", "active": true,
/// #     "steps": [{ "type": "in_app", "template": { "body": "Hello!" } }],
/// # }))?)?;
/// # let trigger = json!({ "name": "greeting", "to": ["ada", "grace"], "transactionId": "t1" });
/// # env.events().trigger(&from_value(trigger)?)?;
/// let query = from_value(json!({ "transactionId": "t1", "subscriberIds": ["grace"] }))?;
/// let page = env.notifications().list(&query)?;
/// assert_eq!(page.data.len(), 1);
///
/// let notification = env.notifications().get(page.data[0].id)?;
/// for job in &notification.jobs {
///     for detail in &job.execution_details {
///         println!("{}: {}", job.kind, detail.detail);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Notifications<'s> {
    pub(crate) scope: &'s Scope,
}

impl Notifications<'_> {
    /// The notification of that id, with its jobs and their logs.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, id: NotificationId) -> Result<Notification> {
        self.scope.read(|snapshot| {
            let mut notification = get(self.scope, snapshot, id)?;
            Names::default().fill_in(self.scope, snapshot, &mut notification)?;
            Ok(notification)
        })
    }

    /// A page of the notifications that match `query`, newest first.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit is not between 1 and 50, or `after` comes after `before`.
    pub fn list(&self, query: &NotificationQuery) -> Result<NotificationPage> {
        let limit = query.check()?;
        let skip = u64::from(query.page) * limit as u64;
        self.scope.read(|snapshot| {
            let filter = filter(self.scope, snapshot, query)?;
            let environment = self.scope.environment_id();
            let index = self.scope.engine.activity();
            let found = index.find(snapshot, environment, &filter, skip, limit + 1)?;
            let mut names = Names::default();
            let mut data = Vec::with_capacity(limit);
            for ordinal in found.iter().take(limit) {
                let key = layout::notification(environment, *ordinal);
                let mut notification = snapshot.follow(Table::ActivitySegments, &key)?;
                names.fill_in(self.scope, snapshot, &mut notification)?;
                data.push(notification);
            }
            let has_more = found.len() > limit;
            Ok(NotificationPage { has_more, data, page_size: limit, page: query.page })
        })
    }

    /// How many notifications match `query`, on all of its pages.
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list).
    pub fn count(&self, query: &NotificationQuery) -> Result<u64> {
        query.check()?;
        self.scope.read(|snapshot| {
            let filter = filter(self.scope, snapshot, query)?;
            let index = self.scope.engine.activity();
            Ok(index.count(snapshot, self.scope.environment_id(), &filter)?)
        })
    }

    /// Deletes a notification, with its jobs and their logs. What it has put into an inbox stays;
    /// what it has not sent is not sent any more. A trigger whose notifications are all deleted is
    /// forgotten: its transaction id is free again.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn delete(&self, id: NotificationId) -> Result<()> {
        self.scope.write("notifications.delete", id, |txn, _| {
            let notification = get(self.scope, &*txn, id)?;
            Ok(self.scope.engine.activity().delete(txn, &notification)?)
        })
    }

    /// Deletes every notification that was created before `time`, and says how many it has deleted.
    /// Call it once in a while with the time until which an activity list goes back. A trigger
    /// whose notifications are all deleted is forgotten: its transaction id is free again.
    ///
    /// It takes as many transactions as need be; one that is interrupted goes on when it is called
    /// again.
    pub fn delete_before(&self, time: Timestamp) -> Result<u64> {
        const AT_A_TIME: usize = 1_000;
        let index = self.scope.engine.activity();
        let environment = self.scope.environment_id();
        let deleted = self.scope.write_in_steps(
            "notifications.delete_before",
            json!({ "time": time }),
            0,
            |txn, _, before| {
                let deleted = index.delete_before(txn, environment, time, AT_A_TIME)?;
                let all = before + deleted as u64;
                let is_last = deleted < AT_A_TIME;
                Ok(if is_last { Step::Done(all) } else { Step::More(all) })
            },
        )?;
        // The next trigger clears away what a failure leaves here.
        index.tend_all(self.scope.engine.store(), environment).ok();
        Ok(deleted)
    }

    /// Compares the index of the activity list with the notifications, all of them.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], if a part of the index or a notification cannot be read at all. In the
    /// first case [`rebuild_index`](Self::rebuild_index) helps.
    pub fn check_index(&self) -> Result<Check> {
        let environment = self.scope.environment_id();
        self.scope.read(|snapshot| Ok(self.scope.engine.activity().check(snapshot, environment)?))
    }

    /// Makes the index of the activity list anew from the notifications, whatever state it is in.
    /// Lists are read from the old one until then, and triggers go on meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], if a notification cannot be read, or they are not in the order of their
    /// times.
    pub fn rebuild_index(&self) -> Result<()> {
        let (engine, environment) = (&self.scope.engine, self.scope.environment_id());
        engine.activity().rebuild(engine.store(), environment)?;
        Ok(engine.activity().tend_all(engine.store(), environment)?)
    }
}

/// The notification of that id, if there is one.
pub(crate) fn find(
    scope: &Scope,
    snapshot: &(impl Snapshot + ?Sized),
    id: NotificationId,
) -> Result<Option<Notification>> {
    let key = layout::notification(scope.environment_id(), id.ordinal());
    let found = snapshot.find::<Notification>(&key)?;
    Ok(found.filter(|notification| notification.id == id))
}

fn get(
    scope: &Scope,
    snapshot: &(impl Snapshot + ?Sized),
    id: NotificationId,
) -> Result<Notification> {
    find(scope, snapshot, id)?.ok_or_else(|| Error::not_found(Entity::Notification, id))
}

// What the query asks of the index, with the subscribers and workflows that it names looked up.
fn filter(scope: &Scope, snapshot: &dyn Snapshot, query: &NotificationQuery) -> Result<Filter> {
    let transaction = query.transaction_id.clone();
    let mut filter = Filter::new(query.after, query.before, transaction);
    if !query.channels.is_empty() {
        filter = filter.any_of(query.channels.iter().map(|kind| Term::channel(*kind)));
    }
    if !query.severity.is_empty() {
        filter = filter.any_of(query.severity.iter().map(|severity| Term::severity(*severity)));
    }
    if let Some(key) = &query.topic_key {
        filter = filter.any_of([Term::topic(key)]);
    }
    if let Some(identifier) = &query.subscription_id {
        filter = filter.any_of([Term::subscription(identifier)]);
    }
    if let ContextFilter::Exact(contexts) = &query.context_keys {
        filter = filter.any_of([Term::contexts(contexts)]);
    }
    if query.names_subscribers() {
        let named = named_subscribers(scope, snapshot, query)?;
        filter = filter.any_of(named.into_iter().map(Term::subscriber));
    }
    if !query.templates.is_empty() {
        let named = named_workflows(scope, snapshot, query)?;
        filter = filter.any_of(named.into_iter().map(Term::workflow));
    }
    Ok(filter)
}

fn named_subscribers(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    query: &NotificationQuery,
) -> Result<BTreeSet<InternalSubscriberId>> {
    let environment = scope.environment_id();
    let mut found = BTreeSet::new();
    for id in &query.subscriber_ids {
        let subscriber = snapshot.find::<Subscriber>(&layout::subscriber(environment, id))?;
        found.extend(subscriber.map(|subscriber| subscriber.id));
    }
    for email in &query.emails {
        let prefix = layout::subscriber_emails(environment, email);
        let subscribers = snapshot.all::<Subscriber>(Table::SubscriberEmails, &prefix)?;
        found.extend(subscribers.iter().map(|subscriber| subscriber.id));
    }
    if let Some(search) = query.searched() {
        let called = SubscriberId::new(search).map(|id| layout::subscriber(environment, &id));
        let called = called.map(|key| snapshot.find::<Subscriber>(&key)).ok().transpose()?;
        found.extend(called.flatten().map(|subscriber| subscriber.id));
        let (search, everybody) = (fold(search), layout::emails(environment).range());
        snapshot.scan(Table::SubscriberEmails, &everybody, Order::Ascending, &mut |key, _| {
            let entry = layout::subscriber_of_email(key);
            let has = |(email, id)| fold(email).contains(&search).then_some(id);
            found.extend(entry.and_then(has));
            ControlFlow::Continue(())
        })?;
    }
    Ok(found)
}

fn named_workflows(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    query: &NotificationQuery,
) -> Result<BTreeSet<WorkflowId>> {
    let mut found = BTreeSet::new();
    for name in &query.templates {
        match workflows::find(scope, snapshot, name)? {
            Some(workflow) => found.insert(workflow.id),
            // The notifications of a workflow that was deleted are still found by its id.
            None => name.parse().is_ok_and(|id| found.insert(id)),
        };
    }
    Ok(found)
}

/// The subscribers and workflows of a list, each looked up once.
#[derive(Default)]
struct Names {
    subscribers: HashMap<InternalSubscriberId, Option<NotificationSubscriber>>,
    templates: HashMap<WorkflowId, Option<NotificationTemplate>>,
}

impl Names {
    fn fill_in(
        &mut self,
        scope: &Scope,
        snapshot: &dyn Snapshot,
        notification: &mut Notification,
    ) -> Result<()> {
        let id = notification.subscriber_id;
        notification.subscriber = match self.subscribers.entry(id) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => {
                let key = layout::subscriber_id(scope.environment_id(), id);
                let subscriber = snapshot.find_by::<Subscriber>(Table::SubscriberIds, &key)?;
                unknown.insert(subscriber.as_ref().map(NotificationSubscriber::from)).clone()
            }
        };
        let Some(id) = notification.workflow_id else { return Ok(()) };
        notification.template = match self.templates.entry(id) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => {
                let workflow = workflows::find_by_id(scope, snapshot, id)?;
                unknown.insert(workflow.as_ref().map(NotificationTemplate::from)).clone()
            }
        };
        Ok(())
    }
}
