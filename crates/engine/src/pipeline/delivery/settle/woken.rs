//! Settlement of snoozes: a message is delivered again.

use domain::ids::MessageId;
use domain::message::Message;
use domain::task::Task;
use store::{ReadRecords, WriteRecords, layout};

use super::Settled;
use crate::Result;
use crate::tx::{Tx, View};

/// Wakes a message as the newest one of its subscriber.
pub(super) fn wake(tx: &mut Tx<'_>, task: &Task, id: MessageId) -> Result<Settled> {
    let environment = tx.environment_id();
    tx.remove(task)?;
    let found = tx.find::<Message>(&layout::message(environment, id.place()))?;
    let is_snoozed = |found: &Message| found.id == id && found.snoozed_until.is_some();
    let Some(before) = found.filter(is_snoozed) else { return Ok(Settled::Superseded) };
    let after = before.woken(tx.now()).listed(tx.counters(before.subscriber_id)?);
    tx.replace(&before, &after)?;
    Ok(Settled::Woken)
}
