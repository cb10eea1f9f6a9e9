//! Settlement of snoozes: a message is delivered again.

use domain::ids::MessageId;
use domain::task::Task;
use store::WriteRecords;

use super::{Settled, requeue};
use crate::Result;
use crate::pipeline::delivery::lease::Leased;
use crate::resources::messages;
use crate::tx::Tx;

/// Wakes a message as the newest one of its subscriber. Its task waits again if it was leased before the
/// snooze is over.
pub(super) fn wake(
    tx: &mut Tx<'_>,
    leased: &Leased,
    task: &Task,
    id: MessageId,
) -> Result<Settled> {
    let snoozed = messages::find_by_id(tx, id)?;
    let until = snoozed.as_ref().and_then(|message| message.snoozed_until);
    if let Some(until) = until.filter(|until| leased.since < *until) {
        return requeue::given_back(tx, leased, task, until).map(|()| Settled::Nothing);
    }
    tx.remove(task)?;
    let Some(before) = snoozed.filter(|_| until.is_some()) else { return Ok(Settled::Nothing) };
    let after = before.woken(tx.now()).listed(tx.counters(before.subscriber_id)?);
    tx.replace(&before, &after)?;
    Ok(Settled::Woken)
}
