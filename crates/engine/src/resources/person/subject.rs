//! Whose data an erasure is about.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use activity::{Filter, Term};
use domain::connection::ChannelConnection;
use domain::endpoint::ChannelEndpoint;
use domain::ids::{InternalSubscriberId, NotificationId, SubscriberId};
use domain::message::Message;
use domain::notification::{Notification, NotificationOwner, NotificationSubscriber, Ordinal};
use domain::page::OrderBy;
use domain::person::{Erasure, PersonalIdentifiers, addresses_of, addresses_of_message};
use domain::quarantine::Quarantined;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::suppression::Suppression;
use domain::time::Timestamp;
use domain::vocabulary::Channel;
use store::{Codec, Order, Prefix, Range, ReadRecords, Table, layout};

use super::ongoing_erasures::AnswersSince;
use super::{AT_A_TIME, Erasing, Part, Seen};
use crate::resources::removal_guard::RemovalGuard;
use crate::resources::{integrations, subscribers};
use crate::tx::{Reading, View};
use crate::{Result, Scope};

/// Time that a call may be under way before its answer is stored, which has the time of its beginning.
const UNDER_WAY: Duration = Duration::from_secs(60);

/// Who is erased: all subscribers who had one id, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) id: SubscriberId,
    /// The ids given by the engine.
    pub(super) own: BTreeSet<InternalSubscriberId>,
    /// Answers that are older were there when the erasure began.
    pub(super) since: Timestamp,
    /// The answers that this process has stored since.
    pub(super) answers_since: Arc<AnswersSince>,
    /// The notifications that were found, oldest first.
    pub(super) notifications: Vec<Ordinal>,
    /// The identifiers of the connections, endpoints and subscriptions that name the id.
    identifiers: BTreeSet<String>,
    /// The addresses in events, messages and suppressions, which are those of subscribers who were deleted
    /// as well, and those that the subscriber had when the erasure began.
    addresses: BTreeSet<(Channel, String)>,
}

/// Notification of a person, with what the person is recognized by in it and in its messages.
pub(super) struct PersonalNotification {
    pub(super) ordinal: Ordinal,
    owner: InternalSubscriberId,
    addresses: Vec<(Channel, String)>,
}

/// Looks for the subscriptions and the notifications of a person, and for a record in quarantine. Only
/// these tell the id that the engine gave a subscriber whose record is gone. Notifications name the id of the
/// host only in the recipient of the event, so that all of them are read.
pub(super) fn begun(scope: &Scope, id: &SubscriberId) -> Result<Erasing> {
    let since = scope.engine.now().before(UNDER_WAY);
    let answers_since = scope.engine.parts.ongoing_erasures.answers_of(scope.environment_id());
    let mut person = scope.view(|view| Person::begun(view, id, since, &answers_since))?;
    let mut after = Vec::new();
    while let Some(last) = scope.view(|view| person.add_subscriptions(view, &after))? {
        after = last;
    }
    after.clear();
    while let Some(last) = scope.view(|view| person.add_quarantined(view, &after))? {
        after = last;
    }
    let mut later = Vec::new();
    loop {
        let (found, last) = scope.view(|view| next_of(view, &person, &later, AT_A_TIME))?;
        person.add(found);
        let Some(last) = last else { break };
        later = last;
    }
    let part = Part::Notifications(person.notifications.len());
    let seen = Seen { later, ..Seen::default() };
    Ok(Erasing {
        person: Arc::new(person),
        seen,
        again: 0,
        part,
        guard: RemovalGuard::default(),
        erased: Erasure::default(),
        rows: 0,
    })
}

/// Returns those of the next `limit` notifications behind a key that are the person's, and the key of the
/// last one of all. There is no key at the end.
pub(super) fn next_of(
    view: &dyn View,
    person: &Person,
    after: &[u8],
    limit: usize,
) -> Result<(Vec<PersonalNotification>, Option<Vec<u8>>)> {
    let (mut some, mut own) = (Vec::new(), person.own.clone());
    let last = each_behind(view, after, limit, &mut |owner, whole| {
        if own.contains(&owner.subscriber_id) || owner.is_recipient(&person.id) {
            own.insert(owner.subscriber_id);
            some.extend(whole());
        }
    })?;
    let found: Result<_> = some.iter().map(|one| PersonalNotification::of(view, one)).collect();
    Ok((found?, last))
}

// Called with the owner of a notification, and with a function that decodes the whole notification.
type VisitOwner<'v> = dyn FnMut(NotificationOwner, &dyn Fn() -> Option<Notification>) + 'v;

// Calls `visit` with the owners of the next `limit` notifications behind a key that can be read. Returns the
// key of the last one. Returns `None` at the end.
fn each_behind(
    view: &dyn View,
    after: &[u8],
    limit: usize,
    visit: &mut VisitOwner<'_>,
) -> Result<Option<Vec<u8>>> {
    let environment = view.environment_id();
    let all = layout::notifications(environment).range();
    rows_behind(view, all, (after, limit), &mut |codec, key, value| {
        if let Ok(owner) = codec.decode_excerpt::<NotificationOwner>(environment, key, value) {
            visit(owner, &|| codec.decode(key, value).ok());
        }
    })
}

// Called with the key and the value of a row.
type VisitRow<'v> = dyn FnMut(Codec<'_>, &[u8], &[u8]) + 'v;

// Calls `visit` with the next `limit` rows of `all` behind a key. Returns the key of the last one. Returns
// `None` at the end.
fn rows_behind<R>(
    view: &dyn View,
    all: Range<R>,
    (after, limit): (&[u8], usize),
    visit: &mut VisitRow<'_>,
) -> Result<Option<Vec<u8>>> {
    let rest = all.resumed(after);
    let (codec, mut last, mut count) = (view.codec(), None, 0);
    view.scan_bytes(&rest, Order::Ascending, Some(limit), &mut |key, value| {
        last = Some(key.to_vec());
        count += 1;
        visit(codec, key, value);
        ControlFlow::Continue(())
    })?;
    // A damaged table may show a place that was passed.
    Ok(last.filter(|last| count == limit && last.as_slice() > after))
}

// The addresses of the messages of a notification.
fn addresses_of_messages(view: &dyn View, of: Ordinal) -> Result<Vec<(Channel, String)>> {
    let all = layout::messages_of_one(view.environment_id(), of);
    let messages: Vec<Message> = view.readable(&all, Order::Ascending, usize::MAX)?;
    Ok(messages.into_iter().flat_map(addresses_of_message).collect())
}

/// The connections and the endpoints of a subscriber.
pub(super) fn channels_of(
    view: &dyn View,
    id: &SubscriberId,
) -> Result<(Vec<ChannelConnection>, Vec<ChannelEndpoint>)> {
    let (environment, order) = (view.environment_id(), OrderBy::Id);
    let (mut connections, mut endpoints) = (Vec::new(), Vec::new());
    for of in integrations::with_channels(view)? {
        let of_one = layout::channel_list(environment, order, of, Some(id), None);
        connections.extend(view.all(&of_one)?);
        let of_one = layout::channel_list(environment, order, of, Some(id), None);
        endpoints.extend(view.all(&of_one)?);
    }
    Ok((connections, endpoints))
}

/// Returns the connections and endpoints of a subscriber that can be read. An erasure removes the others by
/// their entries.
pub(super) fn readable_channels_of(
    view: &dyn View,
    id: &SubscriberId,
) -> Result<(Vec<ChannelConnection>, Vec<ChannelEndpoint>)> {
    let (environment, by) = (view.environment_id(), OrderBy::Id);
    let (order, all) = (Order::Ascending, usize::MAX);
    let (mut connections, mut endpoints) = (Vec::new(), Vec::new());
    for of in integrations::with_channels(view)? {
        let of_one = layout::channel_list(environment, by, of, Some(id), None).range();
        connections.extend(view.readable(&of_one, order, all)?);
        let of_one = layout::channel_list(environment, by, of, Some(id), None).range();
        endpoints.extend(view.readable(&of_one, order, all)?);
    }
    Ok((connections, endpoints))
}

/// The notifications of a subscriber, oldest first.
pub(super) fn of_subscriber(view: &Reading<'_>, subscriber: &Subscriber) -> Result<Vec<Ordinal>> {
    let filter = Filter::new(None, None, None).any_of([Term::subscriber(subscriber.id)]);
    let index = view.engine().activity();
    let mut all = index.find(view, view.environment_id(), &filter, 0, usize::MAX)?;
    all.sort_unstable();
    Ok(all)
}

/// The suppressions that name the id. Nothing else may have a former address.
pub(super) fn naming(view: &dyn View, id: &SubscriberId) -> Result<Vec<Suppression>> {
    let all = layout::suppressions(view.environment_id()).range();
    let (codec, mut found) = (view.codec(), Vec::new());
    view.scan_bytes(&all, Order::Ascending, None, &mut |key, value| {
        let named = codec.decode::<Suppression>(key, value).ok();
        found.extend(named.filter(|one| one.subscriber_ids.contains(id)));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The address of a suppression.
pub(super) fn address_of(suppression: &Suppression) -> (Channel, String) {
    (suppression.address.channel(), suppression.address.address().to_owned())
}

impl PersonalNotification {
    fn of(view: &dyn View, notification: &Notification) -> Result<Self> {
        let (ordinal, owner) = (notification.id.ordinal(), notification.subscriber_id);
        let mut addresses = addresses_of_messages(view, ordinal)?;
        addresses.extend(addresses_of(notification));
        Ok(Self { ordinal, owner, addresses })
    }
}

impl Person {
    // The person, without notifications.
    fn begun(
        view: &Reading<'_>,
        id: &SubscriberId,
        since: Timestamp,
        answers_since: &Arc<AnswersSince>,
    ) -> Result<Self> {
        let subscriber = subscribers::find(view, id)?;
        let named = naming(view, id)?;
        let addresses = named.iter().map(address_of);
        let (connections, endpoints) = readable_channels_of(view, id)?;
        let own = subscriber.iter().flat_map(|found| found.profile.addresses());
        let own = own.chain(endpoints.iter().filter_map(ChannelEndpoint::address));
        let connections = connections.iter().map(|connection| connection.identifier.to_string());
        let identifiers = endpoints.iter().map(|endpoint| endpoint.identifier.to_string());
        Ok(Self {
            id: id.clone(),
            own: subscriber.iter().map(|found| found.id).collect(),
            since,
            answers_since: Arc::clone(answers_since),
            notifications: Vec::new(),
            identifiers: connections.chain(identifiers).collect(),
            addresses: addresses.chain(own).collect(),
        })
    }

    // Adds the next subscriptions behind a key, if they are the person's. Returns the key of the last one
    // of all. Returns `None` at the end.
    fn add_subscriptions(&mut self, view: &dyn View, after: &[u8]) -> Result<Option<Vec<u8>>> {
        let all = layout::all_subscriptions(view.environment_id()).range();
        rows_behind(view, all, (after, AT_A_TIME), &mut |codec, key, value| {
            let found = codec.decode::<Subscription>(key, value).ok();
            if let Some(found) = found.filter(|found| found.subscriber_id == self.id) {
                self.own.insert(found.internal_subscriber_id);
                self.identifiers.insert(found.identifier.to_string());
            }
        })
    }

    // Adds the next entries of the quarantine behind a key, if they have a record of the subscriber. Its id may
    // be readable, or all of it if another record has taken its place in an index. Returns the key of the last
    // one of all. Returns `None` at the end.
    fn add_quarantined(&mut self, view: &dyn View, after: &[u8]) -> Result<Option<Vec<u8>>> {
        let environment = view.environment_id();
        let all = Prefix::<Quarantined>::of_all().range();
        rows_behind(view, all, (after, AT_A_TIME), &mut |codec, key, value| {
            let entry = codec.decode::<Quarantined>(key, value).ok();
            let entry = entry.filter(|entry| self.is_record(entry));
            let Some([key, value]) = entry.and_then(|entry| entry.record()) else { return };
            let found = codec.decode_excerpt::<NotificationSubscriber>(environment, &key, &value);
            self.own.extend(found.map(|found| found.id));
        })
    }

    // Returns `true` if an entry of the quarantine has a record of the subscriber.
    fn is_record(&self, entry: &Quarantined) -> bool {
        let key = layout::subscriber(entry.environment_id, &self.id);
        entry.table == Table::Subscribers.name()
            && entry.key == key.as_bytes().escape_ascii().to_string()
    }

    /// Adds notifications, of which some may be known.
    pub(super) fn add(&mut self, found: Vec<PersonalNotification>) {
        for PersonalNotification { ordinal, owner, addresses } in found {
            self.own.insert(owner);
            self.add_addresses(addresses);
            if let Err(place) = self.notifications.binary_search(&ordinal) {
                self.notifications.insert(place, ordinal);
            }
        }
    }

    pub(super) fn add_addresses(&mut self, found: impl IntoIterator<Item = (Channel, String)>) {
        self.addresses.extend(found);
    }

    /// Whether an entry of the quarantine is about the person. Its record may be that of the
    /// subscriber or have an identifier, and its task may be that of a notification.
    pub(super) fn is_in(&self, entry: &Quarantined, identifiers: &PersonalIdentifiers) -> bool {
        let Quarantined { key, value, task, .. } = entry;
        let work = entry.readable_task().ok().map(|task| task.work);
        let notification = work.and_then(|work| work.notification_id());
        let is_known = |id: NotificationId| self.notifications.binary_search(&id.ordinal()).is_ok();
        self.is_record(entry)
            || notification.is_some_and(is_known)
            || [key, value].into_iter().any(|text| identifiers.are_in_escaped(text))
            || task.as_ref().is_some_and(|task| identifiers.are_in(task))
    }

    /// What records about the person are recognized by.
    pub(super) fn personal_identifiers(
        &self,
        subscriber: Option<&Subscriber>,
    ) -> PersonalIdentifiers {
        PersonalIdentifiers::of(&self.id, self.own.clone(), self.addresses.clone())
            .naming(self.identifiers.clone())
            .with(subscriber)
    }
}
