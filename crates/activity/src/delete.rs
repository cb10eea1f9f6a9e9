//! Deleting notifications: one, or everything that is old.

use std::ops::{ControlFlow, Range};

use domain::ids::{EnvironmentId, TransactionId};
use domain::notification::{Notification, Ordinal};
use domain::time::Timestamp;
use domain::trigger::AcceptedTrigger;
use store::{Key, Order, ReadRecords, Result, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::head::{self, Head};
use crate::set::Set;
use crate::{ActivityIndex, corrupt, deleted};

/// Number of runs of a trigger that one transaction removes before the last notifications.
const RUNS_AT_A_TIME: usize = 256;

impl ActivityIndex {
    /// Removes a notification, and takes it out of the list. The records of a trigger are removed
    /// with its last notification.
    pub fn delete(&self, txn: &mut dyn Transaction, notification: &Notification) -> Result<()> {
        let environment = notification.environment_id;
        let ordinal = notification.id.ordinal().get();
        let mut head = Head::get(&*txn, environment, self.segment_size)?;
        txn.remove(notification)?;
        let (segment, place) = head.place(ordinal);
        let mut places = Set::default();
        places.insert(place);
        deleted::add(txn, environment, &head, segment, &places)?;
        head.count_deleted(head.deleted.saturating_add(1));
        forget_if_gone(txn, notification.environment_id, &notification.transaction_id)?;
        head.put(txn, environment)
    }

    /// Removes notifications, which are in the order of their ordinals, and takes them out of the
    /// list. The records of a trigger are removed with its last notification.
    pub fn delete_all(
        &self,
        txn: &mut dyn Transaction,
        environment: EnvironmentId,
        removed: &[Notification],
    ) -> Result<()> {
        self.remove(txn, environment, removed)?;
        for of_one in removed.chunk_by(|one, next| one.transaction_id == next.transaction_id) {
            if let Some(last) = of_one.last() {
                forget_if_gone(txn, last.environment_id, &last.transaction_id)?;
            }
        }
        Ok(())
    }

    /// Removes notifications, which are in the order of their ordinals, and takes them out of the
    /// list. The records of their triggers stay.
    pub fn remove(
        &self,
        txn: &mut dyn Transaction,
        environment: EnvironmentId,
        removed: &[Notification],
    ) -> Result<()> {
        let mut head = Head::get(&*txn, environment, self.segment_size)?;
        for notification in removed {
            txn.remove(notification)?;
        }
        let ordinals = removed.iter().map(|notification| notification.id.ordinal().get());
        leave_out(txn, environment, &mut head, &ordinals.collect::<Vec<_>>())?;
        head.put(txn, environment)
    }
}

/// Ordinals of notifications that were created before a certain time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Old(Vec<Range<u64>>);

impl Old {
    /// The ordinals of `ranges`, which are in order.
    pub(crate) fn new(ranges: Vec<Range<u64>>) -> Self {
        Self(ranges)
    }

    /// The ordinals as ranges, in order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().cloned()
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those from `ordinal` on.
    #[must_use]
    pub fn from(&self, ordinal: Ordinal) -> Self {
        let ranges = self.ranges().map(|range| range.start.max(ordinal.get())..range.end);
        Self(ranges.filter(|range| !range.is_empty()).collect())
    }

    /// The first `limit` notifications that are there and were created before `time`, and the rest.
    pub fn first(
        &self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        time: Timestamp,
        limit: usize,
    ) -> Result<(Vec<Notification>, Self)> {
        let mut found: Vec<Notification> = Vec::new();
        for (at, range) in self.0.iter().enumerate() {
            let mut rest = None;
            let within = layout::notifications_between(environment, range.clone());
            snapshot.each_readable(&within, Order::Ascending, |notification: Notification| {
                if found.len() == limit {
                    rest = Some(notification.id.ordinal().get()..range.end);
                    return ControlFlow::Break(());
                }
                // The index may be damaged.
                if notification.created_at < time {
                    found.push(notification);
                }
                ControlFlow::Continue(())
            })?;
            if let Some(rest) = rest {
                let later = self.0.iter().skip(at + 1).cloned();
                return Ok((found, Self([rest].into_iter().chain(later).collect())));
            }
        }
        Ok((found, Self::default()))
    }
}

// Takes removed notifications out of the list. The floor moves up to the first one that is left.
fn leave_out(
    txn: &mut dyn Transaction,
    environment: EnvironmentId,
    head: &mut Head,
    removed: &[u64],
) -> Result<()> {
    let all = layout::notifications_from(environment, Ordinal::new(head.floor));
    // A damaged page may hold keys of other records, with any ordinal.
    let floor = head::end(&*txn, &all, Order::Ascending)?.map_or(head.next, |it| it.min(head.next));
    let (below, above) = removed.split_at(removed.partition_point(|ordinal| *ordinal < floor));
    // The others below the floor were deleted before, or a repair has removed them and not rebuilt the
    // index yet. Only the former are counted.
    let before = if floor - head.floor > below.len() as u64 {
        deleted::count(&*txn, environment, head, head.floor..floor)?
    } else {
        0
    };
    head.floor = floor;
    head.count_deleted(head.deleted.saturating_sub(before).saturating_add(above.len() as u64));
    for of_one in above.chunk_by(|one, next| head.place(*one).0 == head.place(*next).0) {
        let Some(segment) = of_one.first().map(|ordinal| head.place(*ordinal).0) else { continue };
        let mut places = Set::default();
        for ordinal in of_one {
            places.insert(head.place(*ordinal).1);
        }
        deleted::add(txn, environment, head, segment, &places)?;
    }
    Ok(())
}

/// Removes the records of a trigger that had notifications, and has none left.
///
/// # Errors
///
/// Those of the store.
pub fn forget_if_gone(
    txn: &mut dyn Transaction,
    environment: EnvironmentId,
    id: &TransactionId,
) -> Result<()> {
    // Tasks still add to it.
    if txn.contains(&layout::fan_out(environment, id))? {
        return Ok(());
    }
    let entries = layout::transaction(environment, id).range();
    let run = |entry: &[u8]| layout::run_of_transaction(entry).map(|(run, _)| run);
    // A broadcast may have many runs, and nearly always a notification in the last one.
    let last = txn.first_known(&entries, Order::Descending, run)?;
    if last.map_or(Ok(false), |run| has_notifications(&*txn, environment, run))? {
        return Ok(());
    }
    // Of an event with more runs, `clear_runs` has removed the last ones that are empty.
    let mut has_runs = false;
    for limit in [Some(2 * RUNS_AT_A_TIME), None] {
        let runs = newest_runs(&*txn, &entries, limit)?;
        for run in runs.iter().cloned() {
            if has_notifications(&*txn, environment, run)? {
                return Ok(());
            }
        }
        has_runs = runs.iter().any(|run| !run.is_empty());
        if limit.is_some_and(|limit| runs.len() < limit) {
            break;
        }
    }
    // Runs that are missing or empty do not prove that the trigger had notifications, so its records stay.
    if has_runs { forget(txn, environment, id) } else { Ok(()) }
}

// The last of these runs, the newest first.
fn newest_runs(
    snapshot: &(impl Snapshot + ?Sized),
    runs: &store::Range<AcceptedTrigger>,
    limit: Option<usize>,
) -> Result<Vec<Range<u64>>> {
    let mut newest = Some(Vec::new());
    snapshot.scan_bytes(runs, Order::Descending, limit, &mut |entry, _| {
        let run = layout::run_of_transaction(entry).map(|(run, _)| run);
        newest = newest.take().zip(run).map(|(mut newest, run)| {
            newest.push(run);
            newest
        });
        if newest.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    newest.ok_or_else(|| corrupt(Table::Transactions, "it leads to no trigger"))
}

/// Removes runs of a trigger whose notifications are gone, so many at most, if it has others than `gone`,
/// which are in order, in none of its runs. Returns the key of the first entry of [`Table::Transactions`] that
/// it has removed, if there may be more of them: then it is called again, in another transaction, before `gone`
/// are deleted. The first run stays, which has the receipt. So an interruption leaves a trigger that the
/// deletion of its last notification removes.
///
/// # Errors
///
/// Those of the store.
pub fn clear_runs(
    txn: &mut dyn Transaction,
    environment: EnvironmentId,
    id: &TransactionId,
    gone: &[Ordinal],
) -> Result<Option<Vec<u8>>> {
    let entries = layout::transaction(environment, id).range();
    let run = |entry: &[u8]| layout::run_of_transaction(entry).map(|(run, _)| run);
    // A broadcast may have many runs, and nearly always a notification in the last one.
    let last = txn.first_known(&entries, Order::Descending, run)?;
    let is_in_use = last.map_or(Ok(false), |run| has_others(&*txn, environment, run, gone))?;
    if is_in_use || txn.contains(&layout::fan_out(environment, id))? {
        return Ok(None);
    }
    let Some(empty) = empty_runs(&*txn, environment, &entries, gone)? else { return Ok(None) };
    // The last one may be the first run.
    for (entry, trigger) in empty.iter().take(RUNS_AT_A_TIME) {
        txn.delete(Table::Transactions, entry)?;
        txn.delete_key(trigger)?;
    }
    Ok(empty.into_iter().next().map(|(first, _)| first))
}

// A run in the list of a transaction: its entry, and the key of its record.
type ListedRun = (Vec<u8>, Key<AcceptedTrigger>);

// The last of these runs, somewhat more than are removed at a time, without those of notifications in `gone`.
// Returns `None` if one has other notifications, or if there are no more of them than are removed at a time.
fn empty_runs(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    runs: &store::Range<AcceptedTrigger>,
    gone: &[Ordinal],
) -> Result<Option<Vec<ListedRun>>> {
    let most = RUNS_AT_A_TIME + 1 + gone.len();
    let mut found = Vec::new();
    snapshot.scan_bytes(runs, Order::Descending, Some(most), &mut |entry, _| {
        let run = layout::run_of_transaction(entry);
        found.extend(run.map(|(ordinals, trigger)| (ordinals, (entry.to_vec(), trigger))));
        ControlFlow::Continue(())
    })?;
    if found.len() <= RUNS_AT_A_TIME {
        return Ok(None);
    }
    let mut empty = Vec::new();
    for (ordinals, run) in found {
        if has_others(snapshot, environment, ordinals.clone(), gone)? {
            return Ok(None);
        }
        if !gone.iter().any(|ordinal| ordinals.contains(&ordinal.get())) {
            empty.push(run);
        }
    }
    Ok((empty.len() > RUNS_AT_A_TIME).then_some(empty))
}

// Returns `true` if there are notifications of `ordinals` beside those that are in `gone`.
fn has_others(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    ordinals: Range<u64>,
    gone: &[Ordinal],
) -> Result<bool> {
    let range = layout::notifications_between(environment, ordinals);
    let mut has_some = false;
    snapshot.scan_bytes(&range, Order::Ascending, None, &mut |key, _| {
        let ordinal = layout::ordinal_of(key);
        has_some = ordinal.is_none_or(|ordinal| gone.binary_search(&ordinal).is_err());
        if has_some { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(has_some)
}

fn has_notifications(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    ordinals: Range<u64>,
) -> Result<bool> {
    snapshot.has_any(&layout::notifications_between(environment, ordinals))
}

// Removes the records of a trigger by their keys, so that one that is not readable goes, too.
fn forget(txn: &mut dyn Transaction, environment: EnvironmentId, id: &TransactionId) -> Result<()> {
    let range = layout::transaction(environment, id).range();
    let mut triggers = Vec::new();
    txn.scan_bytes(&range, Order::Ascending, None, &mut |entry, _| {
        let trigger = layout::run_of_transaction(entry).map(|(_, trigger)| trigger);
        triggers.push((entry.to_vec(), trigger));
        ControlFlow::Continue(())
    })?;
    for (entry, trigger) in triggers {
        txn.delete(Table::Transactions, &entry)?;
        trigger.map_or(Ok(()), |trigger| txn.delete_key(&trigger))?;
    }
    txn.delete_key(&layout::canceled_trigger(environment, id))?;
    txn.delete_key(&layout::fan_out_state(environment, id))?;
    Ok(())
}
