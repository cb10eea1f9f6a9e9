//! Operations on subscribers.

mod bulk;
mod channels;
mod list;
mod removal;

use std::ops::ControlFlow;
use std::sync::Arc;

use domain::convert::IntoChecked;
use domain::ids::{InternalSubscriberId, SubscriberId};
use domain::page::{ListKind, Page};
use domain::person::{Erasure, PersonalData};
use domain::subscriber::{Subscriber, SubscriberCreate, SubscriberQuery, SubscriberUpdate};
use store::layout::CountedList;
use store::{Progress, ReadRecords, Step, WriteRecords, layout};

use crate::backfill;
use crate::damage;
use crate::resources::cascade::{Damaged, Deleting};
use crate::resources::{person, suppressions};
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

pub(super) use removal::{mark, removal};

/// The subscribers of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::subscriber::{SubscriberCreate, SubscriberUpdate};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// let ada = SubscriberCreate::new("ada")?.first_name("Ada").email("ada@example.org")?;
/// env.subscribers().create(&ada)?;
///
/// // A field that is not set stays.
/// let ada = env.subscribers().update("ada", &SubscriberUpdate::default().clear_email())?;
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
    /// [`Error::Conflict`], if the id is in use; [`Error::BeingDeleted`], if the
    /// [deletion](Self::delete) of its subscriber has begun; [`Error::Invalid`], if a text or the custom data
    /// is too large, if there are more than 100 destinations or two of one integration, or if an
    /// integration has more than 100 device tokens.
    pub fn create(&self, create: &SubscriberCreate) -> Result<Subscriber> {
        self.scope.write("subscribers.create", create, |tx| {
            create.profile.check()?;
            tx.limits().check_profile(&create.profile)?;
            tx.expect_change(CountedList::Subscribers(tx.environment_id()))?;
            let key = layout::subscriber(tx.environment_id(), &create.subscriber_id);
            if tx.contains(&key)? {
                return Err(taken(tx, &create.subscriber_id)?);
            }
            insert(tx, create)
        })
    }

    /// Creates or changes the subscriber of that id. Fields that are absent or `null` keep their value;
    /// [`update`](Self::update) clears fields. Destinations are added to those that are there, each as by
    /// [`set_channel`](Self::set_channel), for any integration:
    /// [`remove_channel`](Self::remove_channel) and [`remove_device`](Self::remove_device) remove them.
    /// [`upsert_bulk`](Self::upsert_bulk) takes up to 500 subscribers.
    ///
    /// # Errors
    ///
    /// [`Error::BeingDeleted`], if the [deletion](Self::delete) of the subscriber has begun;
    /// [`Error::Invalid`], if a text or the custom data is too large, if two of the destinations are of one
    /// integration, if the subscriber would have more than 100 destinations, or more than 100 device
    /// tokens of an integration.
    pub fn upsert(&self, create: &SubscriberCreate) -> Result<Subscriber> {
        self.scope.write("subscribers.upsert", create, |tx| {
            create.profile.check()?;
            tx.limits().check_profile(&create.profile)?;
            let upserted = upsert(tx, create)?;
            if upserted.deleted {
                return Err(being_deleted(&create.subscriber_id));
            }
            Ok(upserted)
        })
    }

    /// The subscriber of that id.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, id: impl IntoChecked<SubscriberId>) -> Result<Subscriber> {
        let id = id.into_checked()?;
        self.scope.read("subscribers.get", |view| get(view, &id))
    }

    /// The subscriber of that id. Returns `None` if there is none.
    pub fn find(&self, id: impl IntoChecked<SubscriberId>) -> Result<Option<Subscriber>> {
        let id = id.into_checked()?;
        self.scope.read("subscribers.find", |view| find(view, &id))
    }

    /// The subscriber to whom the engine has given that id, as in an [`Event`](crate::observer::Event) or
    /// a record. Returns `None` if there is none.
    pub fn find_by_id(
        &self,
        id: impl IntoChecked<InternalSubscriberId>,
    ) -> Result<Option<Subscriber>> {
        let id = id.into_checked()?;
        self.scope.read("subscribers.find_by_id", |view| find_by_id(view, id))
    }

    /// A page of the subscribers, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit, the cursors or the order of the query cannot be used.
    pub fn list(&self, query: &SubscriberQuery) -> Result<Page<Subscriber>> {
        let request =
            query.page.check(self.scope.list_id(ListKind::Subscribers), SubscriberQuery::ORDERS)?;
        let search = query.search();
        self.scope.operation("subscribers.list", || {
            if search.as_ref().is_some_and(|search| search.email.is_none()) {
                backfill::put_some(&self.scope.engine)?;
            }
            self.scope.view(|view| list::page(view, search.as_ref(), &request))
        })
    }

    /// Changes a subscriber. Cleared fields are removed. Custom data is replaced as a whole.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber; [`Error::Invalid`], if a text or the
    /// custom data is too large.
    pub fn update(
        &self,
        id: impl IntoChecked<SubscriberId>,
        update: &SubscriberUpdate,
    ) -> Result<Subscriber> {
        self.update_of(&id.into_checked()?, update)
    }

    fn update_of(&self, id: &SubscriberId, update: &SubscriberUpdate) -> Result<Subscriber> {
        self.scope.write("subscribers.update", (id, update), |tx| {
            update.check()?;
            tx.limits().check_update(update)?;
            let before = get(tx, id)?;
            let after = before.with_profile(before.profile.updated(update.clone()), tx.now());
            replace(tx, &before, &after)?;
            Ok(after)
        })
    }

    /// Sets whether a subscriber is connected, such as by an open page: `isOnline` in templates and
    /// conditions. The end of a connection sets `lastOnlineAt` to the time of the call. A call without a
    /// change does nothing.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::subscriber::SubscriberCreate;
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
    /// assert_eq!(env.subscribers().set_online("ada", true)?.last_online_at, None);
    /// let ada = env.subscribers().set_online("ada", false)?;
    /// assert_eq!(ada.last_online_at, Some(ada.updated_at));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber.
    pub fn set_online(
        &self,
        id: impl IntoChecked<SubscriberId>,
        is_online: bool,
    ) -> Result<Subscriber> {
        self.set_online_of(&id.into_checked()?, is_online)
    }

    fn set_online_of(&self, id: &SubscriberId, is_online: bool) -> Result<Subscriber> {
        self.scope.write("subscribers.set_online", (id, is_online), |tx| {
            let before = get(tx, id)?;
            let after = before.online(is_online, tx.now());
            tx.replace(&before, &after)?;
            Ok(after)
        })
    }

    /// Deletes a subscriber with messages, preferences, subscriptions, channel connections and
    /// channel endpoints. Its waiting messages are not sent. The activity list keeps its
    /// notifications.
    ///
    /// More than 500 dependents are removed in several transactions. From the first one on, nothing is
    /// sent to the subscriber, so that no message is sent without the preferences that are gone. After
    /// an interruption the subscriber is shown as `deleted`, and another call goes on.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber.
    pub fn delete(&self, id: impl IntoChecked<SubscriberId>) -> Result<()> {
        self.delete_of(&id.into_checked()?)
    }

    fn delete_of(&self, id: &SubscriberId) -> Result<()> {
        self.scope.write_deletion("subscribers.delete", id, |tx, before| {
            tx.expect_change(CountedList::Subscribers(tx.environment_id()))?;
            let found = find(tx, id)?.map(|found| found.id);
            if before.is_over(found) {
                return Ok(Step::Done(()));
            }
            let own = found.ok_or_else(|| missing(id))?;
            let step = removal(tx, id, &[own], before.removed(), Damaged::Kept)?;
            Ok(match Deleting::after(step, own) {
                Step::More(next) => Step::More(next),
                Step::Done(_) => Step::Done(()),
            })
        })
    }

    /// Everything that the environment has about a subscriber, as of one moment: for the person, or
    /// for another service. It holds the secrets of connections and endpoints.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber.
    pub fn export(&self, id: impl IntoChecked<SubscriberId>) -> Result<PersonalData> {
        person::export(self.scope, &id.into_checked()?)
    }

    /// Erases a subscriber: what [`delete`](Self::delete) removes, and the notifications with
    /// payloads, logs, tasks, dead letters and digest events. Triggers with several recipients lose
    /// this one. Stored answers and entries of the quarantine that tell of the subscriber are removed.
    /// A suppression is reduced to a hash of the address, so that the address stays suppressed if the person becomes
    /// a subscriber again.
    ///
    /// The id may be that of a deleted subscriber: the call erases the notifications of every subscriber who had the
    /// id. It also erases a subscriber whose record a [repair](crate::Engine::repair) has moved into quarantine. It
    /// therefore reads all notifications and subscriptions of the environment, in small parts.
    ///
    /// Tasks and digest events whose notification is gone are removed as well, those of others included,
    /// because they name nobody.
    ///
    /// The erasure takes several transactions. After an interruption, another call continues. Until it has ended, the
    /// subscriber is shown as `deleted`, gets no messages, and is left out of broadcasts and topics. The erasure does
    /// not search payloads and messages of other subscribers. They may contain the name of the person, such as that
    /// of the actor of an event.
    ///
    /// A file keeps erased bytes in pages that are free. [`RedbStore::compact`] leaves them out.
    /// PostgreSQL keeps them in dead rows until it vacuums its tables.
    ///
    /// [`RedbStore::compact`]: crate::store::redb::RedbStore::compact
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber, and nothing was removed.
    pub fn erase(&self, id: impl IntoChecked<SubscriberId>) -> Result<Erasure> {
        person::erase(self.scope, &id.into_checked()?, &mut |_| ControlFlow::Continue(()))
    }

    /// [`erase`](Self::erase) that calls `progress` between two transactions, and ends if it breaks.
    /// Another call goes on.
    ///
    /// # Errors
    ///
    /// As [`erase`](Self::erase).
    pub fn erase_with(
        &self,
        id: impl IntoChecked<SubscriberId>,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Erasure> {
        person::erase(self.scope, &id.into_checked()?, &mut progress)
    }
}

/// The subscriber of that id.
pub(crate) fn get(view: &dyn View, id: &SubscriberId) -> Result<Subscriber> {
    find(view, id)?.ok_or_else(|| missing(id))
}

/// The subscriber of that id. Returns `None` if there is none.
pub(crate) fn find(view: &dyn View, id: &SubscriberId) -> Result<Option<Subscriber>> {
    Ok(view.find(&layout::subscriber(view.environment_id(), id))?)
}

/// The subscriber to whom the engine has given that id. Returns `None` if there is none.
pub(crate) fn find_by_id(view: &dyn View, id: InternalSubscriberId) -> Result<Option<Subscriber>> {
    Ok(view.find(&layout::subscriber_id(view.environment_id(), id))?)
}

/// Creates a subscriber, or changes the one of that id, which is known.
pub(crate) fn upsert_known(
    tx: &mut Tx<'_>,
    create: &SubscriberCreate,
    before: Option<Arc<Subscriber>>,
) -> Result<Arc<Subscriber>> {
    match before {
        Some(before) if create.has_only_id() => Ok(before),
        Some(before) => change(tx, &before, create).map(Arc::new),
        None => insert(tx, create).map(Arc::new),
    }
}

/// Creates a subscriber, or changes the one of that id.
pub(crate) fn upsert(tx: &mut Tx<'_>, create: &SubscriberCreate) -> Result<Subscriber> {
    tx.expect_change(CountedList::Subscribers(tx.environment_id()))?;
    let Some(before) = find(tx, &create.subscriber_id)? else { return insert(tx, create) };
    change(tx, &before, create)
}

fn change(tx: &mut Tx<'_>, before: &Subscriber, create: &SubscriberCreate) -> Result<Subscriber> {
    let after = before.clone().superseded_by(create, tx.now())?;
    replace(tx, before, &after)?;
    Ok(after)
}

fn replace(tx: &mut Tx<'_>, before: &Subscriber, after: &Subscriber) -> Result<()> {
    tx.replace(before, after)?;
    note_lost(tx, before, after)
}

// Notes the subscriber in the suppressions of the addresses that it loses, so that its erasure finds them.
fn note_lost(tx: &mut Tx<'_>, before: &Subscriber, after: &Subscriber) -> Result<()> {
    suppressions::note(tx, &before.subscriber_id, before.addresses_lost(after))
}

fn insert(tx: &mut Tx<'_>, create: &SubscriberCreate) -> Result<Subscriber> {
    let subscriber = made(tx, create)?;
    put(tx, &subscriber)?;
    Ok(subscriber)
}

// A new subscriber, which is not stored yet.
fn made(tx: &Tx<'_>, create: &SubscriberCreate) -> Result<Subscriber> {
    let subscriber = Subscriber::new(tx.id(), tx.home(), create.clone(), tx.now());
    // Two subscribers with one id would share their inboxes.
    let key = layout::subscriber_id(tx.environment_id(), subscriber.id);
    if tx.engine().parts.seeds.may_repeat() && tx.contains(&key)? {
        return Err(Error::conflict(Entity::Subscriber, subscriber.id));
    }
    Ok(subscriber)
}

// Stores a new subscriber.
fn put(tx: &mut Tx<'_>, subscriber: &Subscriber) -> Result<()> {
    tx.insert(subscriber)?;
    tx.begin_counters(subscriber.id);
    Ok(())
}

// The refusal of an id in use. A subscriber that cannot be read has its id as well.
fn taken(view: &dyn View, id: &SubscriberId) -> Result<Error> {
    let found = damage::if_readable(find(view, id))?.flatten();
    let is_deleted = found.is_some_and(|found| found.deleted);
    Ok(if is_deleted { being_deleted(id) } else { Error::conflict(Entity::Subscriber, id) })
}

fn being_deleted(id: &SubscriberId) -> Error {
    Error::being_deleted(Entity::Subscriber, id)
}

fn missing(id: &SubscriberId) -> Error {
    Error::not_found(Entity::Subscriber, id)
}
