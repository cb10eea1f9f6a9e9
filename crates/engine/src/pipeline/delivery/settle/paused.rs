//! Settlement of work that waits until a workflow or an integration is resumed. Its attempt does not
//! count.

use domain::ids::IntegrationId;
use domain::job::Detail;
use domain::task::Task;
use store::{WriteRecords, lanes};

use super::{RECHECK_DELAY, Settled, requeue};
use crate::Result;
use crate::pipeline::delivery::lease::Leased;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::{integrations, workflows};
use crate::tx::Tx;

// Leaves a task in the lane of its workflow, which claims skip. The lane may have been lost to damage.
pub(super) fn wait_for_workflow(tx: &mut Tx<'_>, leased: &Leased, task: &Task) -> Result<Settled> {
    let workflow = task.workflow_id.map_or(Ok(None), |id| workflows::find_by_id(tx, id))?;
    let now = tx.now();
    let is_paused = workflow.is_some_and(|workflow| workflow.is_paused());
    if is_paused {
        lanes::hold(tx, &task.lane())?;
    }
    let due_at = if is_paused { now } else { now.after(RECHECK_DELAY) };
    requeue::given_back(tx, leased, task, due_at)?;
    Ok(Settled::Nothing)
}

impl NotificationTx<'_, '_> {
    // Takes a message out of its lane, so that claims do not meet it again.
    pub(super) fn wait_for_integration(
        &mut self,
        job: usize,
        leased: &Leased,
        task: &Task,
        integration_id: IntegrationId,
    ) -> Result<Settled> {
        let integration = integrations::find(self.tx, integration_id)?;
        if !integration.is_some_and(|integration| integration.is_paused()) {
            let due_at = self.tx.now().after(RECHECK_DELAY);
            requeue::given_back(self.tx, leased, task, due_at)?;
            return Ok(Settled::Nothing);
        }
        let Some(state) = task.state.held(leased.attempt(), integration_id) else {
            return Ok(Settled::Superseded);
        };
        self.log(job, Detail::IntegrationPaused, Some(integration_id.to_string()));
        self.tx.replace(task, &task.with(state))?;
        Ok(Settled::Postponed)
    }
}
