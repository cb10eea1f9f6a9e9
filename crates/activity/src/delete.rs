//! Deleting notifications: one, or everything that is old.

use std::ops::ControlFlow;

use domain::ids::{EnvironmentId, TransactionId};
use domain::notification::{Notification, Ordinal};
use domain::time::Timestamp;
use store::{Order, ReadRecords, Result, Table, Transaction, WriteRecords, layout};

use crate::append::Runs;
use crate::head::Head;
use crate::set::Set;
use crate::{ActivityIndex, deleted};

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
        head.deleted += 1;
        forget_if_gone(txn, notification)?;
        head.put(txn, environment)
    }

    /// Removes at most `limit` of the notifications that were created before `time`, oldest first.
    /// The records of a trigger are removed with its last notification. Returns the number of
    /// removed notifications.
    pub fn delete_before(
        &self,
        txn: &mut dyn Transaction,
        environment: EnvironmentId,
        time: Timestamp,
        limit: usize,
    ) -> Result<usize> {
        let mut head = Head::get(&*txn, environment, self.segment_size)?;
        let (old, floor) = oldest(&*txn, environment, &head, time, limit)?;
        let there = old.len() as u64;
        // Notifications that were deleted before are below the floor now.
        head.deleted -= (floor - head.floor).saturating_sub(there).min(head.deleted);
        head.floor = floor;
        for notification in &old {
            txn.remove(notification)?;
        }
        for of_one in old.chunk_by(|one, next| one.transaction_id == next.transaction_id) {
            if let Some(last) = of_one.last() {
                forget_if_gone(txn, last)?;
            }
        }
        head.put(txn, environment)?;
        Ok(old.len())
    }
}

// The oldest notifications before `time`, and the ordinal behind them.
fn oldest(
    txn: &dyn Transaction,
    environment: EnvironmentId,
    head: &Head,
    time: Timestamp,
    limit: usize,
) -> Result<(Vec<Notification>, u64)> {
    let mut old: Vec<Notification> = Vec::new();
    let mut floor = head.next;
    let range = layout::notifications_from(environment, Ordinal::new(head.floor));
    txn.each(&range, Order::Ascending, |notification| {
        if notification.created_at >= time || old.len() == limit {
            floor = notification.id.ordinal().get();
            return ControlFlow::Break(());
        }
        old.push(notification);
        ControlFlow::Continue(())
    })?;
    Ok((old, floor))
}

// Removes the records of a trigger that has no notifications left.
fn forget_if_gone(txn: &mut dyn Transaction, of: &Notification) -> Result<()> {
    let (environment, id) = (of.environment_id, &of.transaction_id);
    let runs = Runs::find(&*txn, environment, id)?;
    // Missing runs do not prove that the trigger has no notifications, so its records stay.
    let mut is_gone = runs.iter().next().is_some();
    for run in runs.iter() {
        let range = layout::notifications_between(environment, run);
        txn.scan_bytes(&range, Order::Ascending, Some(1), &mut |_, _| {
            is_gone = false;
            ControlFlow::Continue(())
        })?;
    }
    if is_gone {
        forget(txn, environment, id)?;
    }
    Ok(())
}

// Removes the records of a trigger by their keys, so that one that is not readable goes, too.
fn forget(txn: &mut dyn Transaction, environment: EnvironmentId, id: &TransactionId) -> Result<()> {
    let range = layout::transaction(environment, id).range();
    let mut triggers = Vec::new();
    txn.scan_bytes(&range, Order::Ascending, None, &mut |entry, trigger| {
        triggers.push((entry.to_vec(), trigger.to_vec()));
        ControlFlow::Continue(())
    })?;
    for (entry, trigger) in triggers {
        txn.delete(Table::Transactions, &entry)?;
        txn.delete(Table::Triggers, &trigger)?;
    }
    Ok(())
}
