//! Counters of messages: one row for each subscriber who has some.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use domain::ids::InternalSubscriberId;
use domain::message::{Counted, DeletedMessage, Message, MessageCounters, Tally};
use serde::{Deserialize, Serialize};

use crate::layout::{self, MESSAGE_COUNTERS};
use crate::record::{corrupt, if_readable, misplaced};
use crate::{
    Bytes, Change, Key, Order, ReadRecords, Record, Result, Snapshot, Table, Transaction,
    WriteRecords, encoding,
};

/// Value of a row. It names its subscriber, so that no other row is taken for it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<C> {
    subscriber: InternalSubscriberId,
    counters: C,
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
/// Those that cannot be read are counted anew.
pub fn find(snapshot: &(impl Snapshot + ?Sized), key: &Key<Bytes>) -> Result<MessageCounters> {
    match if_readable(known(snapshot, key))? {
        Some(counters) => Ok(counters),
        None => Ok(mended(recount(snapshot, key.as_bytes())?)),
    }
}

fn known(snapshot: &(impl Snapshot + ?Sized), key: &Key<Bytes>) -> Result<MessageCounters> {
    let mut counters = Ok(MessageCounters::default());
    snapshot.get_bytes(key, &mut |value| counters = read(key.as_bytes(), value))?;
    counters
}

/// Counts the messages of a subscriber. `key` is that of the counters.
pub(crate) fn recount(snapshot: &(impl Snapshot + ?Sized), key: &[u8]) -> Result<MessageCounters> {
    let parts = MESSAGE_COUNTERS.read(key);
    let (environment, (subscriber, ())) = parts.ok_or_else(|| misplaced(Table::MessageCounters))?;
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

/// Counts the changes of a transaction, and writes each row once.
pub fn count(transaction: &mut dyn Transaction, changes: &[Change]) -> Result<()> {
    // A row that cannot be read has no tally.
    let mut rows: BTreeMap<&[u8], (&Key<Bytes>, Option<Tally>)> = BTreeMap::new();
    for Recount { key, before, after } in
        changes.iter().filter_map(|change| change.recount.as_ref())
    {
        if !rows.contains_key(key.as_bytes()) {
            let known = if_readable(known(&*transaction, key))?;
            rows.insert(key.as_bytes(), (key, known.map(Tally::new)));
        }
        if let Some((_, Some(tally))) = rows.get_mut(key.as_bytes()) {
            tally.change(before.as_ref(), after.as_ref());
        }
    }
    for (key, tally) in rows.into_values() {
        let counters = match tally {
            Some(tally) => tally.finish(),
            None => mended(recount(&*transaction, key.as_bytes())?),
        };
        // The feed of a subscriber without messages goes on.
        if counters.is_empty() && !has_owner(transaction, key.as_bytes())? {
            transaction.delete_key(key)?;
        } else {
            transaction.put_bytes(key, &written(key.as_bytes(), &counters)?)?;
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
pub(crate) fn read(key: &[u8], value: &[u8]) -> Result<MessageCounters> {
    let row: Row<MessageCounters> = encoding::decode(value).map_err(unreadable)?;
    if row.subscriber != owner(key)? {
        return Err(corrupt(Table::MessageCounters, "it belongs under another key"));
    }
    Ok(row.counters)
}

pub(crate) fn written(key: &[u8], counters: &MessageCounters) -> Result<Vec<u8>> {
    let row = Row { subscriber: owner(key)?, counters };
    encoding::encode(&row, 0).map_err(unreadable)
}

/// Returns `true` if the subscriber is there to whom the counters under `key` belong.
pub(crate) fn has_owner(snapshot: &(impl Snapshot + ?Sized), key: &[u8]) -> Result<bool> {
    let owner = layout::counted_subscriber(key);
    snapshot.contains(&owner.ok_or_else(|| misplaced(Table::MessageCounters))?)
}

fn owner(key: &[u8]) -> Result<InternalSubscriberId> {
    let parts = MESSAGE_COUNTERS.read(key);
    let (_, (subscriber, ())) = parts.ok_or_else(|| misplaced(Table::MessageCounters))?;
    Ok(subscriber)
}

fn unreadable(source: impl std::error::Error + Send + Sync + 'static) -> crate::Error {
    corrupt(Table::MessageCounters, source)
}
