//! Operations on the activity list.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use domain::ids::{InternalSubscriberId, NotificationId, WorkflowId};
use domain::notification::{
    Notification, NotificationPage, NotificationQuery, NotificationSubscriber, NotificationTemplate,
};
use domain::subscriber::Subscriber;
use store::{Key, Order, Prefix, ReadRecords, Snapshot, Table, layout};

use crate::{Entity, Error, Result, Scope, workflows};

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
            let found = snapshot.find(&layout::notification(self.scope.environment_id(), id))?;
            let mut notification =
                found.ok_or_else(|| Error::not_found(Entity::Notification, id))?;
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
        self.scope.read(|snapshot| {
            let mut found = match Narrowed::by(self.scope, snapshot, query)? {
                Some(narrowed) => narrowed.page(self.scope, snapshot, query, limit)?,
                None => Vec::new(),
            };
            let has_more = found.len() > limit;
            found.truncate(limit);
            let mut names = Names::default();
            for notification in &mut found {
                names.fill_in(self.scope, snapshot, notification)?;
            }
            Ok(NotificationPage { has_more, data: found, page_size: limit, page: query.page })
        })
    }
}

/// The subscribers and workflows that a query names, found. No set means that it names none.
struct Narrowed {
    subscribers: Option<BTreeSet<InternalSubscriberId>>,
    workflows: Option<BTreeSet<WorkflowId>>,
}

impl Narrowed {
    // Nothing, if the query names something of which there is none.
    fn by(
        scope: &Scope,
        snapshot: &dyn Snapshot,
        query: &NotificationQuery,
    ) -> Result<Option<Self>> {
        let subscribers = query.names_subscribers();
        let subscribers = subscribers.then(|| named_subscribers(scope, snapshot, query));
        let workflows = !query.templates.is_empty();
        let workflows = workflows.then(|| named_workflows(scope, snapshot, query));
        let (subscribers, workflows) = (subscribers.transpose()?, workflows.transpose()?);
        let found = Self { subscribers, workflows };
        let is_empty = found.subscribers.as_ref().is_some_and(BTreeSet::is_empty)
            || found.workflows.as_ref().is_some_and(BTreeSet::is_empty);
        Ok((!is_empty).then_some(found))
    }

    // The page that `query` asks for, and one notification more if there is one.
    fn page(
        &self,
        scope: &Scope,
        snapshot: &dyn Snapshot,
        query: &NotificationQuery,
        limit: usize,
    ) -> Result<Vec<Notification>> {
        let mut to_skip = limit.saturating_mul(query.page as usize);
        let mut found = Vec::with_capacity(limit + 1);
        let mut visit = |notification: Notification| {
            if !self.shows(&notification) || !query.shows(&notification) {
                return ControlFlow::Continue(());
            }
            if to_skip > 0 {
                to_skip -= 1;
                return ControlFlow::Continue(());
            }
            found.push(notification);
            if found.len() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (table, prefixes) = self.sources(scope, query);
        match prefixes.as_slice() {
            [prefix] => {
                let range = prefix.range();
                snapshot.each(table, &range, Order::Descending, |_, found| visit(found))?;
            }
            prefixes => {
                for key in newest_first(snapshot, table, prefixes)? {
                    if visit(snapshot.follow(table, &key)?).is_break() {
                        break;
                    }
                }
            }
        }
        Ok(found)
    }

    fn shows(&self, notification: &Notification) -> bool {
        self.subscribers.as_ref().is_none_or(|ids| ids.contains(&notification.subscriber_id))
            && self
                .workflows
                .as_ref()
                .is_none_or(|ids| notification.workflow_id.is_some_and(|id| ids.contains(&id)))
    }

    // Where the fewest notifications have to be looked at.
    fn sources(&self, scope: &Scope, query: &NotificationQuery) -> (Table, Vec<Prefix>) {
        let environment = scope.environment_id();
        if let Some(id) = &query.transaction_id {
            let prefix = layout::transaction_notifications(environment, id);
            return (Table::TransactionNotifications, vec![prefix]);
        }
        if let Some(ids) = &self.subscribers {
            let prefix = |id: &_| layout::subscriber_notifications(environment, *id);
            return (Table::SubscriberNotifications, ids.iter().map(prefix).collect());
        }
        if let Some(ids) = &self.workflows {
            let prefix = |id: &_| layout::workflow_notifications(environment, *id);
            return (Table::WorkflowNotifications, ids.iter().map(prefix).collect());
        }
        (Table::Notifications, vec![layout::notifications(environment)])
    }
}

// Keys end in ids, and ids sort by time.
fn newest_first(snapshot: &dyn Snapshot, table: Table, prefixes: &[Prefix]) -> Result<Vec<Key>> {
    let mut keys = Vec::new();
    for prefix in prefixes {
        keys.extend(snapshot.targets(table, prefix)?);
    }
    keys.sort_unstable_by(|left, right| right.cmp(left));
    Ok(keys)
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
        let everybody = layout::subscriber_ids(environment).range();
        snapshot.each(
            Table::SubscriberIds,
            &everybody,
            Order::Ascending,
            |_, subscriber: Subscriber| {
                if subscriber.matches(search) {
                    found.insert(subscriber.id);
                }
                ControlFlow::Continue(())
            },
        )?;
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
