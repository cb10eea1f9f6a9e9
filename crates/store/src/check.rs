//! Comparing the indexes of a store with its records.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Bound, ControlFlow};

use domain::api_key::EnvironmentKey;
use domain::connection::ChannelConnection;
use domain::context::Context;
use domain::digest::{DigestBucket, ThrottleSlot, WindowEvent};
use domain::endpoint::ChannelEndpoint;
use domain::environment::Environment;
use domain::idempotency::StoredAnswer;
use domain::integration::Integration;
use domain::layout::Layout;
use domain::message::{DeletedMessage, Message, MessageCounters, Tally};
use domain::notification::Notification;
use domain::preference::SubscriberPreference;
use domain::quarantine::Quarantined;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::suppression::Suppression;
use domain::task::Task;
use domain::topic::Topic;
use domain::translation::{Translation, TranslationGroup};
use domain::trigger::{AcceptedTrigger, CanceledTrigger, FanOut, FanOutState};
use domain::unsubscribe::LinkKey;
use domain::workflow::Workflow;

use crate::{
    Codec, Entries, Error, KeyRange, Order, Prefix, ReadRecords, Record, Result, Snapshot, Table,
    addresses, counters, lanes, layout, outcomes,
};

/// The result of comparing the indexes of a store with its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableCheck {
    /// The number of records.
    pub records: u64,
    /// The number of index entries.
    pub entries: u64,
    /// The first thousand findings. Empty if the store is sound.
    pub findings: Vec<TableFinding>,
}

/// An entry of a table that contradicts the records.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableFinding {
    /// The name of the table.
    pub table: &'static str,
    /// The key of the entry.
    pub key: Vec<u8>,
    /// The contradiction.
    pub problem: Problem,
}

/// A contradiction between an entry and the records.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The record cannot be decoded, or belongs under another key.
    Unreadable {
        /// The reason.
        reason: String,
    },
    /// A record has this entry, and the index does not.
    Missing,
    /// The index has this entry, and no record does.
    Extra,
    /// The counters of a subscriber's messages are not those of the messages.
    Miscounted,
    /// The lane does not begin with its first task.
    Misplaced,
    /// The row has other notifications than those with its outcome.
    Outdated,
}

/// Compares the indexes that `snapshot` shows with its records. That reads all of both.
///
/// The activity index has a comparison of its own.
pub fn check(snapshot: &dyn Snapshot) -> Result<TableCheck> {
    let mut checking = Checking::new(snapshot);
    checking.records()?;
    for index in indexes() {
        checking.index(index)?;
    }
    checking.counters()?;
    checking.lanes()?;
    checking.outcomes()?;
    checking.addresses()?;
    Ok(checking.check)
}

/// Every record of a kind that can be read.
pub fn readable<R: Record>(snapshot: &dyn Snapshot) -> Result<Vec<R>> {
    let codec = snapshot.codec();
    let mut records = Vec::new();
    each(snapshot, R::TABLE, |key, value| {
        records.extend(codec.decode(key, value));
        Ok(())
    })?;
    Ok(records)
}

// The tables whose entries lead to records. Those of the activity index, the outcomes, the counters,
// the lanes and the marks of sealing keys do not.
fn indexes() -> impl Iterator<Item = Table> {
    let is_activity =
        |table: &Table| *table == Table::ActivityHeads || layout::ACTIVITY.contains(table);
    let is_derived = |table: &Table| {
        matches!(
            table,
            Table::Addresses
                | Table::MessageCounters
                | Table::Lanes
                | Table::LaneHeads
                | Table::NotificationOutcomes
                | Table::HeldLanes
                | Table::Seals
        )
    };
    let is_other = move |table: &Table| is_activity(table) || is_derived(table);
    Table::ALL.into_iter().filter(move |table| !has_records(*table) && !is_other(table))
}

// The index entries of a record: each index and the key in it.
type IndexEntries = Vec<(Table, Vec<u8>)>;

// A kind of record, and the function for each entry of its table.
struct Kind {
    table: Table,
    entries: fn(Codec<'_>, &[u8], &[u8]) -> Result<IndexEntries>,
}

const KINDS: [Kind; 29] = [
    Kind::of::<Environment>(),
    Kind::of::<EnvironmentKey>(),
    Kind::of::<LinkKey>(),
    Kind::of::<Subscriber>(),
    Kind::of::<Workflow>(),
    Kind::of::<Integration>(),
    Kind::of::<Context>(),
    Kind::of::<SubscriberPreference>(),
    Kind::of::<ChannelEndpoint>(),
    Kind::of::<ChannelConnection>(),
    Kind::of::<Topic>(),
    Kind::of::<Subscription>(),
    Kind::of::<Layout>(),
    Kind::of::<Translation>(),
    Kind::of::<TranslationGroup>(),
    Kind::of::<AcceptedTrigger>(),
    Kind::of::<CanceledTrigger>(),
    Kind::of::<FanOut>(),
    Kind::of::<FanOutState>(),
    Kind::of::<Notification>(),
    Kind::of::<Task>(),
    Kind::of::<DigestBucket>(),
    Kind::of::<WindowEvent>(),
    Kind::of::<ThrottleSlot>(),
    Kind::of::<Quarantined>(),
    Kind::of::<Message>(),
    Kind::of::<DeletedMessage>(),
    Kind::of::<Suppression>(),
    Kind::of::<StoredAnswer>(),
];

impl Kind {
    const fn of<R: Record>() -> Self {
        let entries = |codec: Codec<'_>, key: &[u8], value: &[u8]| {
            let entries = Entries::of(&codec.decode::<R>(key, value)?);
            Ok(entries.iter().map(|key| (key.table(), key.as_bytes().to_vec())).collect())
        };
        Self { table: R::TABLE, entries }
    }
}

/// Returns `true` if the entries of the table are records.
pub(crate) fn has_records(table: Table) -> bool {
    KINDS.iter().any(|kind| kind.table == table)
}

/// Returns whether the entry under `key` of a table is a record that can be read. Returns `None` if
/// the table has no records.
pub(crate) fn is_readable(
    codec: Codec<'_>,
    table: Table,
    key: &[u8],
    value: &[u8],
) -> Option<bool> {
    let kind = KINDS.iter().find(|kind| kind.table == table)?;
    Some((kind.entries)(codec, key, value).is_ok())
}

struct Checking<'s> {
    snapshot: &'s dyn Snapshot,
    // Number of entries of each index that lead to a record that has them.
    sound: BTreeMap<Table, u64>,
    check: TableCheck,
}

const EVERYTHING: KeyRange = (Bound::Unbounded, Bound::Unbounded);

impl<'s> Checking<'s> {
    fn new(snapshot: &'s dyn Snapshot) -> Self {
        Self { snapshot, sound: BTreeMap::new(), check: TableCheck::default() }
    }

    // Looks up every entry that a record has.
    fn records(&mut self) -> Result<()> {
        let snapshot = self.snapshot;
        for kind in &KINDS {
            each(snapshot, kind.table, |key, value| {
                self.check.records += 1;
                match (kind.entries)(snapshot.codec(), key, value) {
                    Ok(entries) => self.entries_of(key, &entries),
                    Err(Error::Corrupt { source, .. }) => {
                        let reason = source.to_string();
                        self.found(kind.table, key, Problem::Unreadable { reason });
                        Ok(())
                    }
                    Err(other) => Err(other),
                }
            })?;
        }
        Ok(())
    }

    fn entries_of(&mut self, record: &[u8], entries: &IndexEntries) -> Result<()> {
        for (index, key) in entries {
            let index = *index;
            let mut is_there = false;
            self.snapshot.get(index, key, &mut |target| is_there = target == record)?;
            if is_there {
                *self.sound.entry(index).or_default() += 1;
            } else {
                self.found(index, key, Problem::Missing);
            }
        }
        Ok(())
    }

    // An index with as many entries as were looked up has no others.
    fn index(&mut self, index: Table) -> Result<()> {
        let mut count = 0;
        each(self.snapshot, index, |_, _| {
            count += 1;
            Ok(())
        })?;
        self.check.entries += count;
        if self.sound.get(&index).copied().unwrap_or_default() == count {
            return Ok(());
        }
        let expected = self.expected(index)?;
        each(self.snapshot, index, |key, target| {
            if !expected.contains(&(key.to_vec(), target.to_vec())) {
                self.found(index, key, Problem::Extra);
            }
            Ok(())
        })
    }

    // The entries of an index that records have, each with the key of its record.
    fn expected(&self, index: Table) -> Result<BTreeSet<(Vec<u8>, Vec<u8>)>> {
        let mut expected = BTreeSet::new();
        for kind in &KINDS {
            each(self.snapshot, kind.table, |record, value| {
                let entries =
                    (kind.entries)(self.snapshot.codec(), record, value).unwrap_or_default();
                let of_index = entries.into_iter().filter(|(other, _)| *other == index);
                expected.extend(of_index.map(|(_, key)| (key, record.to_vec())));
                Ok(())
            })?;
        }
        Ok(expected)
    }

    // Counts the messages of each subscriber.
    fn counters(&mut self) -> Result<()> {
        let snapshot = self.snapshot;
        let messages = readable::<Message>(snapshot)?.into_iter().filter_map(|one| one.counted());
        let deleted = readable::<DeletedMessage>(snapshot)?.into_iter();
        let mut tallies: BTreeMap<Vec<u8>, Tally> = BTreeMap::new();
        for (key, item) in messages.chain(deleted.filter_map(|one| one.counted())) {
            let tally = tallies.entry(key.as_bytes().to_vec());
            let tally = tally.or_insert_with(|| Tally::new(MessageCounters::default()));
            tally.change(None, Some(&item));
        }
        let tallies = tallies.into_iter().map(|(key, tally)| (key, tally.finish()));
        let mut counted: BTreeMap<Vec<u8>, MessageCounters> = tallies.collect();
        each(snapshot, Table::MessageCounters, |key, value| {
            self.check.entries += 1;
            let expected = counted.remove(key).unwrap_or_default();
            let agrees = counters::read(key, value)
                .is_ok_and(|counters| counters.agree_with(&expected))
                && (!expected.is_empty() || counters::has_owner(snapshot, key)?);
            if !agrees {
                self.found(Table::MessageCounters, key, Problem::Miscounted);
            }
            Ok(())
        })?;
        for key in counted.keys() {
            self.found(Table::MessageCounters, key, Problem::Miscounted);
        }
        Ok(())
    }

    // Finds the first task of each lane, and the lanes of paused workflows. A task that cannot be
    // read has no known lane, and a workflow that cannot be read may be paused, so that lanes are
    // compared only if all of them can be read.
    fn lanes(&mut self) -> Result<()> {
        let snapshot = self.snapshot;
        let tasks = readable::<Task>(snapshot)?;
        let workflows = readable::<Workflow>(snapshot)?;
        let is_known = snapshot.count(&Prefix::<Task>::of_all(), None)? == tasks.len()
            && snapshot.count(&Prefix::<Workflow>::of_all(), None)? == workflows.len();
        let mut expected = lanes::expected(&tasks, &workflows);
        for table in [Table::Lanes, Table::LaneHeads, Table::HeldLanes] {
            each(snapshot, table, |key, value| {
                self.check.entries += 1;
                if !expected.remove(&(table, key.to_vec(), value.to_vec())) && is_known {
                    self.found(table, key, Problem::Misplaced);
                }
                Ok(())
            })?;
        }
        for (table, key, _) in &expected {
            self.found(*table, key, Problem::Misplaced);
        }
        Ok(())
    }

    // Compares the rows of outcomes. A notification that cannot be read has no known outcomes, so
    // that rows are compared only if all notifications can be read.
    fn outcomes(&mut self) -> Result<()> {
        let snapshot = self.snapshot;
        let (mut expected, is_known) = outcomes::expected(snapshot)?;
        each(snapshot, Table::NotificationOutcomes, |key, value| {
            self.check.entries += 1;
            let row = expected.remove(key);
            if is_known && row.is_none_or(|row| row.bytes(key) != value) {
                self.found(Table::NotificationOutcomes, key, Problem::Outdated);
            }
            Ok(())
        })?;
        for key in expected.keys().filter(|_| is_known) {
            self.found(Table::NotificationOutcomes, key, Problem::Outdated);
        }
        Ok(())
    }

    // Looks for the address of each subscriber. A subscriber that cannot be read has no known
    // address, so that no address is one too many then.
    fn addresses(&mut self) -> Result<()> {
        let snapshot = self.snapshot;
        let subscribers = readable::<Subscriber>(snapshot)?;
        let is_known = snapshot.count(&Prefix::<Subscriber>::of_all(), None)? == subscribers.len();
        self.check.entries += snapshot.count(&Prefix::of_table(Table::Addresses), None)? as u64;
        let expected = subscribers.iter().filter_map(Record::address).collect();
        let missing = addresses::compare(snapshot, expected, &mut |key, problem| {
            if is_known || problem != Problem::Extra {
                self.found(Table::Addresses, key, problem);
            }
        })?;
        for subscriber in &subscribers {
            if subscriber.address().is_some_and(|address| missing.contains(&address)) {
                self.found(Table::Addresses, subscriber.key().as_bytes(), Problem::Missing);
            }
        }
        Ok(())
    }

    fn found(&mut self, table: Table, key: &[u8], problem: Problem) {
        const MANY: usize = 1_000;
        if self.check.findings.len() < MANY {
            let finding = TableFinding { table: table.name(), key: key.to_vec(), problem };
            self.check.findings.push(finding);
        }
    }
}

fn each(
    snapshot: &dyn Snapshot,
    table: Table,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let mut result = Ok(());
    snapshot.scan(table, &EVERYTHING, Order::Ascending, None, &mut |key, value| {
        result = visit(key, value);
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    result
}

impl fmt::Display for TableFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, key) = (self.table, self.key.escape_ascii());
        match &self.problem {
            Problem::Unreadable { reason } => write!(f, "{table} {key}: {reason}"),
            Problem::Missing => write!(f, "{table} {key}: the entry is missing"),
            Problem::Extra => write!(f, "{table} {key}: the entry leads to no record that has it"),
            Problem::Miscounted => {
                write!(f, "{table} {key}: the counters are not those of the messages")
            }
            Problem::Misplaced => {
                write!(f, "{table} {key}: the lane does not begin with its first task")
            }
            Problem::Outdated => {
                write!(f, "{table} {key}: the row is not that of the notifications")
            }
        }
    }
}
