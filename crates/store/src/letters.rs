//! Making the index of dead letters anew from the notifications.

use std::ops::ControlFlow;

use domain::ids::EnvironmentId;
use domain::notification::Notification;

use crate::batch::{Batch, Limit};
use crate::index_entries::FirstEntries;
use crate::record::Entries;
use crate::step::TableRebuild;
use crate::{OnRows, Record, Referent, Result, Store, Table, Transaction, index_entries, layout};

// Number of entries or notifications that one transaction looks at.
const AT_A_TIME: usize = 500;

/// Makes the index of an environment anew, some entries and notifications at a time. Each
/// transaction leaves an index that is no worse. Ends if `progress` breaks.
pub fn rebuild(
    store: &dyn Store,
    environment: EnvironmentId,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    let rebuild = TableRebuild { store, environment, table: Table::DeadLetters };
    let removed =
        rebuild.run(Vec::new(), progress, |txn, behind| remove_extra(txn, environment, behind))?;
    if removed.is_break() {
        return Ok(removed);
    }
    rebuild.run(Vec::new(), progress, |txn, behind| put(txn, environment, behind))
}

// Removes entries that no notification has. Returns the number of entries that were looked at, and the last
// one if there may be others behind it.
fn remove_extra(
    transaction: &mut dyn Transaction,
    environment: EnvironmentId,
    behind: &[u8],
) -> Result<(u64, Option<Vec<u8>>)> {
    let range = layout::dead_letters_behind(environment, None).resumed(behind);
    let limit = Limit::in_transaction(AT_A_TIME);
    let target = layout::notification_of_letter;
    let FirstEntries { entries, next } =
        index_entries::first_entries(&*transaction, &range, limit, target)?;
    for entry in &entries {
        match entry.referent {
            // The notification is left to a repair.
            Referent::Record(_) | Referent::Unreadable(_) => {}
            Referent::Other(_) | Referent::Missing => {
                transaction.delete(range.table(), &entry.key)?;
            }
        }
    }
    Ok((entries.len() as u64, next))
}

// Puts the entries of the first notifications behind a key. Returns their number, and the last key if there
// may be others behind it.
fn put(
    transaction: &mut dyn Transaction,
    environment: EnvironmentId,
    behind: &[u8],
) -> Result<(u64, Option<Vec<u8>>)> {
    let range = layout::notifications(environment).range().resumed(behind);
    let limit = Limit::in_transaction(AT_A_TIME);
    let Batch { rows, next } = Batch::read(&*transaction, &range, limit)?;
    let codec = transaction.codec();
    // A notification whose sealing key is missing keeps its entries.
    let readable = rows.iter().filter(|row| !codec.lacks_key_of(&row.value));
    let found: Result<Vec<Notification>> =
        readable.map(|row| codec.decode(&row.key, &row.value)).collect();
    for notification in &found? {
        let key = notification.key();
        for entry in Entries::of(notification).iter() {
            transaction.put(entry.key.table(), entry.key.as_bytes(), &entry.value(&key))?;
        }
    }
    Ok((rows.len() as u64, next))
}
