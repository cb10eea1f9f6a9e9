//! Operations on subscribers.

use domain::ids::SubscriberId;
use domain::message::Message;
use domain::page::Page;
use domain::preference::SubscriberPreference;
use domain::subscriber::{
    Profile, Subscriber, SubscriberCreate, SubscriberQuery, SubscriberUpdate,
};
use domain::subscription::Subscription;
use domain::time::Timestamp;
use store::{List, ReadRecords, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::resources::cascade::Cascade;
use crate::resources::integrations;
use crate::{Entity, Error, Result, Scope};

/// The subscribers of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{from_value, json};
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// let ada = json!({ "subscriberId": "ada", "firstName": "Ada", "email": "ada@example.org" });
/// let ada = env.subscribers().create(from_value(ada)?)?;
///
/// // What is left out stays, and null clears.
/// let update = from_value(json!({ "email": null }))?;
/// let ada = env.subscribers().update(&ada.subscriber_id, update)?;
/// assert_eq!(ada.profile.first_name.as_deref(), Some("Ada"));
/// assert_eq!(ada.profile.email, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Subscribers<'s> {
    pub(crate) scope: &'s Scope,
}

impl Subscribers<'_> {
    /// Creates a subscriber.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], if there is one of that id; [`Error::Invalid`], if an integration has
    /// more than 100 device tokens.
    pub fn create(&self, create: SubscriberCreate) -> Result<Subscriber> {
        self.scope.write("subscribers.create", &create, |txn, now| {
            create.profile.check()?;
            let id = &create.subscriber_id;
            let key = layout::subscriber(self.scope.environment_id(), id);
            if txn.contains(Table::Subscribers, &key)? {
                return Err(Error::conflict(Entity::Subscriber, id));
            }
            let id = self.scope.id(now);
            let subscriber = Subscriber::new(id, &self.scope.home, create.clone(), now);
            txn.insert(&subscriber)?;
            Ok(subscriber)
        })
    }

    /// Creates a subscriber, or gives the one of that id what is said here. What is not said
    /// stays.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if an integration has more than 100 device tokens.
    pub fn upsert(&self, create: SubscriberCreate) -> Result<Subscriber> {
        self.scope.write("subscribers.upsert", &create, |txn, now| {
            create.profile.check()?;
            upsert(self.scope, txn, create.clone(), now)
        })
    }

    /// The subscriber of that id.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, id: &SubscriberId) -> Result<Subscriber> {
        self.scope.read(|snapshot| get(self.scope, snapshot, id))
    }

    /// A page of the subscribers, newest first unless the query says otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the page that the query asks for cannot be one.
    pub fn list(&self, query: &SubscriberQuery) -> Result<Page<Subscriber>> {
        let request =
            query.page.check(self.scope.list_id(Table::Subscribers), SubscriberQuery::ORDERS)?;
        let environment = self.scope.environment_id();
        // Both tables sort by id behind what the subscribers have in common.
        let (table, prefix) = match &query.email {
            Some(email) => (Table::SubscriberEmails, layout::subscriber_emails(environment, email)),
            None => (Table::SubscriberIds, layout::subscriber_ids(environment)),
        };
        let shows = |subscriber: &Subscriber| query.shows(subscriber);
        let list = List::new(table, [prefix]).of_records(query.is_narrow(), &shows);
        self.scope.read(|snapshot| Ok(snapshot.page(&list, &request)?))
    }

    /// Changes what is said about a subscriber. A field that is kept stays, one that is cleared is
    /// gone, and custom data is replaced as a whole.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber.
    pub fn update(&self, id: &SubscriberId, update: SubscriberUpdate) -> Result<Subscriber> {
        self.scope.write("subscribers.update", (id, &update), |txn, now| {
            let before = get(self.scope, &*txn, id)?;
            let after = before.with_profile(before.profile.updated(update.clone()), now);
            txn.replace(&before, &after)?;
            Ok(after)
        })
    }

    /// Deletes a subscriber, with its messages, its preferences, its subscriptions, its channel
    /// connections and its channel endpoints. What is on its way to it is not sent any more; the
    /// activity list keeps what has happened.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber.
    pub fn delete(&self, id: &SubscriberId) -> Result<()> {
        let environment = self.scope.environment_id();
        self.scope.write_in_steps("subscribers.delete", id, (), |txn, _, ()| {
            let subscriber = get(self.scope, &*txn, id)?;
            let integrations = integrations::all(&self.scope.home, &*txn)?;
            let mut cascade = Cascade::new(txn);
            let messages = layout::messages(environment, subscriber.id);
            cascade.remove::<Message>(Table::Messages, &messages)?;
            let preferences = layout::preferences(environment, subscriber.id);
            cascade.remove::<SubscriberPreference>(Table::Preferences, &preferences)?;
            let subscriptions = layout::subscriber_subscriptions(environment, subscriber.id);
            cascade.remove::<Subscription>(Table::SubscriberSubscriptions, &subscriptions)?;
            for integration in integrations {
                integrations::remove_dependents(&mut cascade, &integration, Some(id))?;
            }
            cascade.then(|txn| Ok(txn.remove(&subscriber)?))
        })
    }
}

/// The subscriber of that id.
pub(crate) fn get(scope: &Scope, snapshot: &dyn Snapshot, id: &SubscriberId) -> Result<Subscriber> {
    find(scope, snapshot, id)?.ok_or_else(|| Error::not_found(Entity::Subscriber, id))
}

/// The subscriber of that id, if there is one.
pub(crate) fn find(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    id: &SubscriberId,
) -> Result<Option<Subscriber>> {
    Ok(snapshot.find(&layout::subscriber(scope.environment_id(), id))?)
}

/// The subscriber of that id, created or given what is said here.
pub(crate) fn upsert(
    scope: &Scope,
    txn: &mut dyn Transaction,
    create: SubscriberCreate,
    now: Timestamp,
) -> Result<Subscriber> {
    let key = layout::subscriber(scope.environment_id(), &create.subscriber_id);
    let Some(before) = txn.find::<Subscriber>(&key)? else {
        let subscriber = Subscriber::new(scope.id(now), &scope.home, create, now);
        txn.insert(&subscriber)?;
        return Ok(subscriber);
    };
    if create.profile == Profile::default() {
        return Ok(before);
    }
    let profile = before.profile.clone().superseded_by(create.profile);
    let after = before.with_profile(profile, now);
    txn.replace(&before, &after)?;
    Ok(after)
}
