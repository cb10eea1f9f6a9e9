//! Releases: messages that were held while an integration was paused are due again, some at a time.

use domain::ids::IntegrationId;
use domain::task::{Task, Work};
use store::{Limit, ReadRecords, Referent, WriteRecords, layout};

use super::due;
use crate::resources::integrations;
use crate::tx::{MAX_TRANSACTION_CONTENT, Tx, View};
use crate::{Engine, Result};

// What one transaction makes due again.
const AT_A_TIME: Limit = Limit { rows: 200, bytes: MAX_TRANSACTION_CONTENT };

/// Leaves a task that makes the messages of an integration due again, if it holds some.
pub(crate) fn begin(tx: &mut Tx<'_>, integration_id: IntegrationId) -> Result<()> {
    if !tx.has_any(&layout::held(tx.environment_id(), integration_id).range())? {
        return Ok(());
    }
    let work = Work::Release { integration_id };
    let task = Task::background(tx.home, None, tx.id(), tx.now(), work);
    Ok(tx.insert(&task)?)
}

/// Makes the next messages of an integration due again, and leaves a task for the others. Does
/// nothing if the attempt was superseded, or the integration is paused again.
pub(super) fn step(engine: &Engine, leased: &Task, integration_id: IntegrationId) -> Result<()> {
    let home = leased.home();
    engine.write_in(&home, engine.now(), |tx| {
        let Some(task) = tx.claimed(leased)? else { return Ok(()) };
        tx.remove(&task)?;
        let integration = integrations::find(tx, integration_id)?;
        if integration.is_some_and(|integration| integration.is_paused()) {
            return Ok(());
        }
        release(tx, integration_id)?;
        begin(tx, integration_id)
    })
}

fn release(tx: &mut Tx<'_>, integration_id: IntegrationId) -> Result<()> {
    let range = layout::held(tx.environment_id(), integration_id).range();
    let first = store::first_entries(tx, &range, AT_A_TIME, layout::held_task_of)?;
    for entry in &first.entries {
        match &entry.referent {
            Referent::Record(task) => {
                let due = task.with(task.state.released(tx.now()));
                tx.replace(task, &due)?;
            }
            Referent::Other(_) | Referent::Unreadable(_) | Referent::Missing => {
                due::take_out(&mut tx.draft, entry, &range)?;
            }
        }
    }
    Ok(())
}
