//! Turns: the jobs of a notification go on, planned on a snapshot.

use domain::ids::NotificationId;
use domain::job::JobStatus;
use domain::plan::{self, Action, Run};

use super::claim::Leased;
use crate::Engine;
use crate::Result;
use crate::pipeline::facts::RunFacts;
use crate::resources::notifications;
use crate::tx::Reading;

/// A planned turn of a notification.
#[derive(Debug)]
pub(super) struct Turn {
    /// Statuses of the jobs that the plan depends on.
    pub(super) statuses: Vec<JobStatus>,
    pub(super) actions: Vec<Action>,
}

/// Plans the turn of a notification. Returns `None` if it is gone.
pub(super) fn plan(
    engine: &Engine,
    leased: &Leased,
    notification_id: NotificationId,
) -> Result<Option<Turn>> {
    let home = leased.task.home();
    engine.read(|snapshot| {
        let view = Reading { engine, home: &home, snapshot };
        let Some(notification) = notifications::find(&view, notification_id)? else {
            return Ok(None);
        };
        let facts = RunFacts::of(&view, &notification)?;
        let statuses = notification.jobs.iter().map(|job| job.status).collect();
        let actions = plan::turn(&Run::of(&notification), facts.facts());
        Ok(Some(Turn { statuses, actions }))
    })
}
