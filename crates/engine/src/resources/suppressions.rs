//! Operations on suppressions.

use std::iter;

use domain::ids::SubscriberId;
use domain::page::{ListKind, Page};
use domain::suppression::{
    SuppressedAddress, Suppression, SuppressionCreate, SuppressionQuery, SuppressionReason,
};
use domain::time::Timestamp;
use domain::vocabulary::Channel;
use store::{
    DamageScan, Entry, Key, List, Range, ReadRecords, Referent, Step, WriteRecords, layout,
};

use crate::damage;
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

/// Number of index entries that are looked at together in a search.
const SCANNED_AT_A_TIME: usize = 4_096;

/// The addresses of an environment to which no messages are sent. Reports of permanent bounces and of
/// complaints add to them, as do providers that answer with
/// [`SendError::recipient_gone`](crate::SendError::recipient_gone), and so may the host. A message for such an
/// address is skipped, also one of a critical workflow: `address_suppressed` in the log of its job.
///
/// A suppression that has expired has no effect and is in no list. It stays in the store until later ones are
/// added in the environment, each of which removes up to four that have expired, or until the addresses are
/// cleared.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::suppression::{SuppressionCreate, SuppressionQuery};
/// use tidings::vocabulary::Channel;
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// let gone = SuppressionCreate::new(Channel::Email, "ada@example.org")?.text("has left");
/// env.suppressions().add(&gone)?;
/// assert!(env.suppressions().find(Channel::Email, "Ada@Example.org")?.is_some());
///
/// env.suppressions().remove(Channel::Email, "ada@example.org")?;
/// assert_eq!(env.suppressions().list(&SuppressionQuery::default())?.data, []);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Suppressions<'s> {
    pub(crate) scope: &'s Scope,
}

impl Suppressions<'_> {
    /// Adds an address. If the address is suppressed already, the later expiry counts.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the text is too long.
    pub fn add(&self, create: &SuppressionCreate) -> Result<Suppression> {
        self.scope.write("suppressions.add", create, |tx| {
            create.check()?;
            add(tx, create.clone())
        })
    }

    /// The suppression of an address. Capitals of an e-mail address and separators of a phone number
    /// make no difference; another form of the same domain name does.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if messages are sent to it; [`Error::Invalid`], if it is no address of
    /// the channel.
    pub fn get(&self, channel: Channel, address: &str) -> Result<Suppression> {
        let of = SuppressedAddress::new(channel, address)?;
        let now = self.scope.engine.now();
        self.scope.read("suppressions.get", |view| {
            in_force(view, &of, now)?.ok_or_else(|| missing(address))
        })
    }

    /// The suppression of an address, as [`get`](Self::get) compares it. Returns `None` if messages
    /// are sent to it.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if it is no address of the channel.
    pub fn find(&self, channel: Channel, address: &str) -> Result<Option<Suppression>> {
        let address = SuppressedAddress::new(channel, address)?;
        let now = self.scope.engine.now();
        self.scope.read("suppressions.find", |view| in_force(view, &address, now))
    }

    /// A page of the suppressions, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit, the cursors or the order of the query cannot be used.
    pub fn list(&self, query: &SuppressionQuery) -> Result<Page<Suppression>> {
        let list_id = self.scope.list_id(ListKind::Suppressions);
        let request = query.page.check(list_id, SuppressionQuery::ORDERS)?;
        let (environment, now) = (self.scope.environment_id(), self.scope.engine.now());
        let prefix = layout::suppression_list(environment, query.channel);
        let is_in_force = |one: &Suppression| !one.has_expired(now);
        self.scope.read("suppressions.list", |view| {
            let expired = layout::expired_suppressions(environment, now);
            let has_expired = view.has_any(&expired)?;
            let list = List::new([prefix.clone()]).of_records(has_expired, &is_in_force);
            Ok(view.page(&list, &request)?)
        })
    }

    /// Removes an address, as [`get`](Self::get) compares it, so that messages are sent to it again.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if it is not suppressed; [`Error::Invalid`], if it is no address of the
    /// channel.
    pub fn remove(&self, channel: Channel, address: &str) -> Result<Suppression> {
        let of = SuppressedAddress::new(channel, address)?;
        self.scope.write("suppressions.remove", &of, |tx| {
            let found = find_all(tx, &of)?;
            let longest = longest(found.clone()).filter(|longest| !longest.has_expired(tx.now()));
            let longest = longest.ok_or_else(|| missing(of.address()))?;
            found.iter().try_for_each(|one| tx.remove(one))?;
            Ok(longest)
        })
    }

    /// Removes the addresses of a channel. Returns the number of those that were suppressed until then:
    /// what has expired is removed as well, and is not counted.
    pub fn clear_channel(&self, channel: Channel) -> Result<u64> {
        self.clear("suppressions.clear_channel", Some(channel))
    }

    /// Removes the addresses of all channels. Returns the number that [`clear_channel`](Self::clear_channel)
    /// counts.
    pub fn clear_all(&self) -> Result<u64> {
        self.clear("suppressions.clear_all", None)
    }

    fn clear(&self, operation: &'static str, channel: Option<Channel>) -> Result<u64> {
        // The writer is held for a few milliseconds.
        const AT_A_TIME: usize = 250;
        let start = (0, Vec::new(), None);
        self.scope.write_in_steps(operation, channel, start, |tx, (before, behind, scanned)| {
            let list = layout::suppression_list(tx.environment_id(), channel);
            let range = list.range().resumed(behind);
            let found = store::dependents(&*tx, &range, AT_A_TIME)?;
            if let Some(mut scan) = next_scan(&found, &range, scanned.as_ref()) {
                scan.step(tx, SCANNED_AT_A_TIME)?;
                return Ok(Step::More((*before, behind.clone(), Some(scan))));
            }
            let (now, mut count) = (tx.now(), *before);
            for entry in &found {
                let has_expired =
                    matches!(&entry.referent, Referent::Record(one) if one.has_expired(now));
                count += u64::from(!has_expired);
                match &entry.referent {
                    Referent::Record(suppression) => tx.remove(suppression)?,
                    Referent::Other(_) | Referent::Unreadable(_) | Referent::Missing => {
                        damage::take_out(&mut tx.draft, entry, &range)?;
                    }
                }
            }
            Ok(match found.last().filter(|_| found.len() == AT_A_TIME) {
                Some(entry) => Step::More((count, entry.key.clone(), scanned.clone())),
                None => Step::Done(count),
            })
        })
    }
}

/// Adds an address. One that is suppressed already stays so for the longer time.
pub(crate) fn add(tx: &mut Tx<'_>, create: SuppressionCreate) -> Result<Suppression> {
    let added = put_new(tx, create)?;
    remove_expired(tx)?;
    Ok(added)
}

// Adds an address. If expired suppressions have the address, the new one names the same subscribers.
fn put_new(tx: &mut Tx<'_>, create: SuppressionCreate) -> Result<Suppression> {
    let (now, all) = (tx.now(), find_all(tx, &create.address)?);
    if let Some(before) = longest(all.clone()).filter(|before| !before.has_expired(now)) {
        let after = before.clone().renewed(create);
        tx.replace(&before, &after)?;
        return Ok(after);
    }
    let mut added = Suppression::new(tx.id(), tx.home(), create, now);
    for expired in all {
        tx.remove(&expired)?;
        added.subscriber_ids.extend(expired.subscriber_ids);
    }
    tx.insert(&added)?;
    Ok(added)
}

/// Suppresses an address that a provider has reported for `reason`, with its text. `subscriber` is that of
/// the message.
pub(crate) fn report(
    tx: &mut Tx<'_>,
    address: SuppressedAddress,
    (reason, text): (SuppressionReason, Option<String>),
    subscriber: Option<&SubscriberId>,
) -> Result<Suppression> {
    let added = add(tx, SuppressionCreate::reported(address, reason, text, tx.now()))?;
    match subscriber {
        Some(subscriber) => note_in(tx, &added, subscriber),
        None => Ok(added),
    }
}

/// Notes in the suppressions of some addresses that a subscriber has had them.
pub(crate) fn note(
    tx: &mut Tx<'_>,
    subscriber: &SubscriberId,
    addresses: impl IntoIterator<Item = (Channel, String)>,
) -> Result<()> {
    for (channel, text) in addresses {
        // A phone number of a subscriber may be any text.
        let Ok(address) = SuppressedAddress::new(channel, text) else { continue };
        for before in find_all(tx, &address)? {
            note_in(tx, &before, subscriber)?;
        }
    }
    Ok(())
}

/// Notes in a suppression that a subscriber has had its address.
pub(crate) fn note_in(
    tx: &mut Tx<'_>,
    before: &Suppression,
    subscriber: &SubscriberId,
) -> Result<Suppression> {
    put(tx, before, before.clone().of(subscriber))
}

/// The suppression of an address at `now`. Returns `None` if there is none.
pub(crate) fn in_force(
    view: &dyn View,
    address: &SuppressedAddress,
    now: Timestamp,
) -> Result<Option<Suppression>> {
    Ok(longest(find_all(view, address)?).filter(|found| !found.has_expired(now)))
}

/// The suppressions of an address, also those that have expired: that of its hash, and behind it that of the
/// address itself. The host may have added both.
pub(crate) fn find_all(view: &dyn View, address: &SuppressedAddress) -> Result<Vec<Suppression>> {
    Ok(view.find_many(&keys_of(view, address))?.into_iter().flatten().collect())
}

/// Tells the store that the suppressions of these addresses are going to be read.
pub(crate) fn prefetch(
    view: &dyn View,
    addresses: impl Iterator<Item = (Channel, String)>,
) -> Result<()> {
    let addresses =
        addresses.filter_map(|(channel, text)| SuppressedAddress::new(channel, text).ok());
    let keys = addresses.flat_map(|address| keys_of(view, &address));
    Ok(view.prefetch(&mut keys.map(Key::into_parts))?)
}

fn keys_of(view: &dyn View, address: &SuppressedAddress) -> Vec<Key<Suppression>> {
    let hash = address.erased(view.environment_id());
    let own = Some(address).filter(|own| **own != hash);
    iter::once(&hash).chain(own).map(|of| key_of(view, of)).collect()
}

fn key_of(view: &dyn View, address: &SuppressedAddress) -> Key<Suppression> {
    layout::suppression(view.environment_id(), address.channel(), address.address())
}

// The one that holds longest. Of two that hold equally long, it is that of the address itself.
fn longest(all: Vec<Suppression>) -> Option<Suppression> {
    all.into_iter().max_by_key(Suppression::end)
}

/// Keeps a suppression by a hash of its address: nothing is sent to it as before. Returns `false` if
/// that is all that was left of it.
pub(crate) fn erase(tx: &mut Tx<'_>, before: &Suppression) -> Result<bool> {
    let after = before.erased();
    let is_changed = after != *before;
    put(tx, before, after)?;
    Ok(is_changed)
}

// Puts a suppression in place of another one, also at another address, which may have one already. Returns
// the one that is stored.
fn put(tx: &mut Tx<'_>, before: &Suppression, after: Suppression) -> Result<Suppression> {
    if after.address == before.address {
        tx.replace(before, &after)?;
        return Ok(after);
    }
    tx.remove(before)?;
    let Some(there) = tx.find(&key_of(tx, &after.address))? else {
        tx.insert(&after)?;
        return Ok(after);
    };
    let merged = there.clone().merged(after);
    tx.replace(&there, &merged)?;
    Ok(merged)
}

// A call that adds one removes some that have expired, so that their number falls.
fn remove_expired(tx: &mut Tx<'_>) -> Result<()> {
    const AT_A_TIME: usize = 4;
    let range = layout::expired_suppressions(tx.environment_id(), tx.now());
    let found = store::index_entries(tx, &range, AT_A_TIME, layout::suppression_of)?;
    for entry in &found {
        match &entry.referent {
            Referent::Record(expired) => tx.remove(expired)?,
            Referent::Other(_) | Referent::Unreadable(_) | Referent::Missing => {
                damage::take_out(&mut tx.draft, entry, &range)?;
            }
        }
    }
    // The call has one transaction, so the search is not spread over several.
    let mut scanned = None;
    while let Some(mut scan) = next_scan(&found, &range, scanned.as_ref()) {
        scan.step(tx, SCANNED_AT_A_TIME)?;
        scanned = Some(scan);
    }
    Ok(())
}

// The search for the other entries of suppressions that cannot be read, as far as it has come. Returns `None`
// if it is over, or there are none.
fn next_scan(
    found: &[Entry<Suppression>],
    range: &Range<Suppression>,
    scanned: Option<&DamageScan>,
) -> Option<DamageScan> {
    let wanted = DamageScan::of(found, range)?;
    match scanned.filter(|scanned| scanned.covers(&wanted)) {
        Some(scanned) if scanned.is_over() => None,
        Some(scanned) => Some(scanned.clone()),
        None => Some(wanted),
    }
}

fn missing(address: &str) -> Error {
    Error::not_found(Entity::Suppression, address)
}
