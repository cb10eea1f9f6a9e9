//! Leases of jobs, as reads show them.

use domain::ids::TaskId;
use domain::job::JobStatus;
use domain::notification::Notification;
use domain::task::{Task, TaskState};
use store::{ReadRecords, layout};
use uuid::Uuid;

use crate::Result;
use crate::tx::View;

/// Sets the status of the jobs whose messages are being sent. The lease of an attempt is in the
/// task of the job only, so that a claim does not rewrite the notification.
pub(crate) fn fill_in(view: &dyn View, notifications: &mut [Notification]) -> Result<()> {
    let jobs = notifications.iter_mut().flat_map(|notification| &mut notification.jobs);
    let mut queued: Vec<_> =
        jobs.filter(|job| matches!(job.status, JobStatus::Queued { .. })).collect();
    let task = |id: TaskId| layout::task(view.environment_id(), id);
    let keys: Vec<_> = queued.iter().map(|job| task(Uuid::from(job.id).into())).collect();
    let tasks = view.find_many::<Task>(&keys)?;
    for (job, task) in queued.iter_mut().zip(tasks) {
        if let Some(TaskState::Leased { until, attempts }) = task.map(|task| task.state) {
            job.status = JobStatus::Running { lease_until: until, attempts };
        }
    }
    Ok(())
}
