//! Counters of messages: one row for each subscriber who has some.
//!
//! Counters that are lost are counted anew in steps, each in a transaction of its own. The row says
//! up to which message they go. A change of one of these messages changes the counters, and a
//! change of a later one does not, since a later step counts it. So other operations continue
//! between the steps, and each of them that changes a message of the subscriber does a step, unless it does
//! one for many others.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;

use domain::ids::{EnvironmentId, InternalSubscriberId};
use domain::message::{
    Counted, CountedMessage, DeletedMessage, ListPlace, Message, MessageCounters, Shelf, Tally,
};
use serde::{Deserialize, Serialize};

use crate::batch::{Batch, Limit};
use crate::layout::{self, MESSAGE_COUNTERS};
use crate::record::{self, corrupt, if_readable, misplaced};
use crate::{
    Bytes, Change, Key, Order, Range, ReadRecords, Record, Result, Snapshot, Step, Table,
    Transaction, encoding,
};

/// Number of messages that a step counts. In tests an inbox is small.
const STEP: usize = if cfg!(test) { 3 } else { 1_024 };

/// Number of inboxes that a transaction counts on at most. A later change of the others does.
const INBOXES: usize = if cfg!(test) { 2 } else { 8 };

/// Value of a row. It names its subscriber, so that no other row is taken for it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<C> {
    subscriber: InternalSubscriberId,
    counters: C,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Vec<u8>>,
}

/// Counters, and how far they go.
#[derive(Clone, Debug)]
pub(crate) struct CountersUntil {
    pub(crate) counters: MessageCounters,
    /// Messages behind this key of their list are not counted yet. `None` if all are.
    pub(crate) until: Option<Vec<u8>>,
}

/// Counters that the body of a transaction has read. They count none of its changes.
#[derive(Debug, Default)]
pub struct ReadCounters(BTreeMap<Vec<u8>, CountersUntil>);

/// Counters during a transaction.
struct Counting {
    tally: Tally,
    until: Option<Vec<u8>>,
}

impl Counting {
    fn of(CountersUntil { counters, until }: CountersUntil) -> Self {
        Self { tally: Tally::new(counters), until }
    }
}

/// Change of what counters count: a message before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recount {
    key: Key<Bytes>,
    before: Option<Counted>,
    after: Option<Counted>,
}

impl Recount {
    /// Returns the change of a record. Returns `None` if it counts as before, or not at all.
    pub(crate) fn of(
        before: Option<(Key<Bytes>, Counted)>,
        after: Option<(Key<Bytes>, Counted)>,
    ) -> Option<Self> {
        let (key_before, before) = before.unzip();
        let (key_after, after) = after.unzip();
        let key = key_after.or(key_before).filter(|_| before != after)?;
        Some(Self { key, before, after })
    }

    /// The key of the counters.
    pub const fn key(&self) -> &Key<Bytes> {
        &self.key
    }
}

/// The counters under `key`, which are those of [`message_counters`](crate::layout::message_counters).
/// Messages that are not counted yet are counted for this once.
pub fn find(snapshot: &(impl Snapshot + ?Sized), key: &Key<Bytes>) -> Result<MessageCounters> {
    let mut known = CountersUntil::find(snapshot, key.as_bytes())?;
    while known.until.is_some() {
        known.go_on(snapshot, key.as_bytes())?;
    }
    Ok(known.counters)
}

/// Begins to count the messages of a subscriber anew, as `key` has them.
pub fn begin(transaction: &mut dyn Transaction, key: &[u8]) -> Result<Step> {
    if MESSAGE_COUNTERS.read(key).is_none() {
        transaction.delete(Table::MessageCounters, key)?;
        return Ok(Step::Done(()));
    }
    CountersUntil::begun(&*transaction, key)?.step(transaction, key)
}

/// Goes on with that. It is done when all messages are counted.
pub fn go_on(transaction: &mut dyn Transaction, key: &[u8]) -> Result<Step> {
    CountersUntil::find(&*transaction, key)?.step(transaction, key)
}

impl ReadCounters {
    /// The counters under `key`, as [`find`] returns them, but that the numbers of messages may be
    /// too small. The newest places, the numbers of changes and the number of deletions are right,
    /// and cost no more in a large inbox.
    pub fn order(
        &mut self,
        snapshot: &(impl Snapshot + ?Sized),
        key: &Key<Bytes>,
    ) -> Result<&MessageCounters> {
        let known = match self.0.entry(key.as_bytes().to_vec()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(CountersUntil::find(snapshot, key.as_bytes())?),
        };
        Ok(&known.counters)
    }

    /// Notes that a subscriber is new, and so has no counters under `key`.
    pub fn begin(&mut self, key: &Key<Bytes>) {
        self.0.entry(key.as_bytes().to_vec()).or_insert_with(CountersUntil::none);
    }
}

impl CountersUntil {
    fn none() -> Self {
        Self { counters: MessageCounters::default(), until: None }
    }

    // Counters that cannot be read begin anew.
    fn find(snapshot: &(impl Snapshot + ?Sized), key: &[u8]) -> Result<Self> {
        match Self::readable(snapshot, key)? {
            Some(known) => Ok(known),
            None => Self::begun(snapshot, key),
        }
    }

    fn readable(snapshot: &(impl Snapshot + ?Sized), key: &[u8]) -> Result<Option<Self>> {
        let mut known = Ok(Self::none());
        snapshot.get(Table::MessageCounters, key, &mut |value| known = read(key, value))?;
        if_readable(known)
    }

    // Counters of no message, which a message in the list and its change are behind.
    fn begun(snapshot: &(impl Snapshot + ?Sized), key: &[u8]) -> Result<Self> {
        let (environment, subscriber) = parts(key)?;
        let mut counters = MessageCounters::default();
        for shelf in Shelf::ALL {
            let last = last_place(snapshot, environment, subscriber, shelf)?;
            let newest = if shelf.is_inbox() { &mut counters.newest } else { &mut counters.sent };
            *newest = (*newest).max(last);
        }
        let changes = layout::message_changes(environment, subscriber).open().range();
        let last = snapshot.first_known(&changes, Order::Descending, layout::change_of)?;
        counters.changes = last.unwrap_or_default();
        let deleted = layout::deleted_messages(environment, subscriber).open().range();
        snapshot.each_readable(&deleted, Order::Ascending, |deleted: DeletedMessage| {
            counters.delete(deleted.change);
            ControlFlow::Continue(())
        })?;
        Ok(Self { counters: mended(counters), until: Some(Vec::new()) })
    }

    // Counts the next messages. The count ends where the list cannot be gone through: otherwise each later
    // transaction of the inbox would fail.
    fn go_on(&mut self, snapshot: &(impl Snapshot + ?Sized), key: &[u8]) -> Result<()> {
        let Some(until) = self.until.take() else { return Ok(()) };
        self.until = if_readable(self.count_behind(snapshot, key, &until))?.flatten();
        Ok(())
    }

    // Counts the next messages behind a key. Returns the key of the last one. Returns `None` at the end.
    fn count_behind(
        &mut self,
        snapshot: &(impl Snapshot + ?Sized),
        key: &[u8],
        until: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let (environment, subscriber) = parts(key)?;
        let list: Range<Message> = layout::message_lists(environment, subscriber).range();
        let rest = list.resumed(until);
        let limit = Limit::in_transaction(STEP);
        let Batch { rows, mut next } = Batch::read(snapshot, &rest, limit)?;
        let found = record::follow_some::<Message>(snapshot, rest.table(), &rows, limit.bytes)?;
        found.iter().flatten().for_each(|message| self.counters.add(&message.counted_part()));
        // The next step goes on behind the last message that was read.
        if let Some(read) = rows.get(..found.len()).filter(|read| read.len() < rows.len()) {
            next = read.last().map(|last| last.key.clone());
        }
        Ok(next)
    }

    fn step(mut self, transaction: &mut dyn Transaction, key: &[u8]) -> Result<Step> {
        self.go_on(&*transaction, key)?;
        self.put(transaction, key)?;
        Ok(Step::of(self.until.is_some()))
    }

    fn put(&self, transaction: &mut dyn Transaction, key: &[u8]) -> Result<()> {
        // The feed of a subscriber without messages goes on.
        let is_needed =
            self.until.is_some() || !self.counters.is_empty() || has_owner(&*transaction, key)?;
        if is_needed {
            transaction.put(Table::MessageCounters, key, &self.written(key)?)
        } else {
            transaction.delete(Table::MessageCounters, key)
        }
    }

    fn written(&self, key: &[u8]) -> Result<Vec<u8>> {
        let Self { counters, until } = self;
        let row = Row { subscriber: owner(key)?, counters, until: until.clone() };
        encoding::encode(&row, 0).map_err(unreadable)
    }
}

// Returns `true` if the message is among those that are counted.
fn is_counted(key: &[u8], until: Option<&[u8]>, message: &CountedMessage) -> bool {
    let Some(until) = until else { return true };
    let Ok((environment, subscriber)) = parts(key) else { return false };
    let list = layout::message_list(environment, subscriber, message.shelf);
    list.then(message.sorted).end().as_bytes() <= until
}

// The last place in the list of a shelf.
fn last_place(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
    shelf: Shelf,
) -> Result<Option<ListPlace>> {
    let list = layout::message_list(environment, subscriber, shelf).open().range();
    snapshot.first_known(&list, Order::Descending, layout::place_in_list)
}

/// Counts the messages of a subscriber. `key` is that of the counters.
pub(crate) fn recount(snapshot: &(impl Snapshot + ?Sized), key: &[u8]) -> Result<MessageCounters> {
    let (environment, subscriber) = parts(key)?;
    let mut tally = Tally::new(MessageCounters::default());
    let messages = layout::message_lists(environment, subscriber).range();
    snapshot.each_readable(&messages, Order::Ascending, |message: Message| {
        tally.change(None, message.counted().map(|(_, counted)| counted).as_ref());
        ControlFlow::Continue(())
    })?;
    let deleted = layout::deleted_messages(environment, subscriber).open().range();
    snapshot.each_readable(&deleted, Order::Ascending, |deleted: DeletedMessage| {
        tally.change(None, deleted.counted().map(|(_, counted)| counted).as_ref());
        ControlFlow::Continue(())
    })?;
    Ok(tally.finish())
}

/// Counters in place of those that are lost. Nobody knows the number of their last change, so that
/// they go on far behind it, and cursors of the feed start anew.
pub(crate) fn mended(counted: MessageCounters) -> MessageCounters {
    const FAR: u64 = 1 << 32;
    let changes = counted.changes.saturating_add(FAR);
    MessageCounters { changes, forgotten: changes, ..counted }
}

/// Counts the changes of a transaction, whose body has read `read`, and writes each row once.
pub fn count(
    transaction: &mut dyn Transaction,
    mut read: ReadCounters,
    changes: &[Change],
) -> Result<()> {
    // A row that cannot be read has no tally.
    let mut rows: BTreeMap<&[u8], Option<Counting>> = BTreeMap::new();
    for Recount { key, before, after } in
        changes.iter().filter_map(|change| change.recount.as_ref())
    {
        let row = match rows.entry(key.as_bytes()) {
            Entry::Occupied(row) => row.into_mut(),
            Entry::Vacant(free) => {
                let known = match read.0.remove(key.as_bytes()) {
                    Some(known) => Some(known),
                    None => CountersUntil::readable(&*transaction, key.as_bytes())?,
                };
                free.insert(known.map(Counting::of))
            }
        };
        if let Some(Counting { tally, until }) = row {
            let counts =
                |message: &CountedMessage| is_counted(key.as_bytes(), until.as_deref(), message);
            tally.change_among(&counts, (before.as_ref(), after.as_ref()));
        }
    }
    put_all(transaction, rows)
}

// Puts the counters of a transaction, and goes on with those of the first inboxes that are not counted.
fn put_all(
    transaction: &mut dyn Transaction,
    rows: BTreeMap<&[u8], Option<Counting>>,
) -> Result<()> {
    let mut steps = 0;
    for (key, row) in rows {
        let known = match row {
            Some(Counting { tally, until }) => CountersUntil { counters: tally.finish(), until },
            None => CountersUntil::begun(&*transaction, key)?,
        };
        let is_whole = known.until.is_none();
        if is_whole || steps < INBOXES {
            steps += usize::from(!is_whole);
            _ = known.step(transaction, key)?;
        } else {
            known.put(transaction, key)?;
        }
    }
    Ok(())
}

/// The counters in the value under `key`.
///
/// # Errors
///
/// [`Error::Corrupt`](crate::Error::Corrupt) if the value is not readable, or if it belongs under
/// another key.
pub(crate) fn read(key: &[u8], value: &[u8]) -> Result<CountersUntil> {
    let row: Row<MessageCounters> = encoding::decode(value).map_err(unreadable)?;
    if row.subscriber != owner(key)? {
        return Err(corrupt(Table::MessageCounters, "it belongs under another key"));
    }
    Ok(CountersUntil { counters: row.counters, until: row.until })
}

/// Returns `true` if the subscriber is there to whom the counters under `key` belong.
pub(crate) fn has_owner(snapshot: &(impl Snapshot + ?Sized), key: &[u8]) -> Result<bool> {
    let owner = layout::counted_subscriber(key);
    snapshot.contains(&owner.ok_or_else(|| misplaced(Table::MessageCounters))?)
}

fn owner(key: &[u8]) -> Result<InternalSubscriberId> {
    Ok(parts(key)?.1)
}

fn parts(key: &[u8]) -> Result<(EnvironmentId, InternalSubscriberId)> {
    let parts = MESSAGE_COUNTERS.read(key);
    let (environment, (subscriber, ())) = parts.ok_or_else(|| misplaced(Table::MessageCounters))?;
    Ok((environment, subscriber))
}

fn unreadable(source: impl std::error::Error + Send + Sync + 'static) -> crate::Error {
    corrupt(Table::MessageCounters, source)
}
