//! Leases of jobs, as reads show them.

use domain::ids::TaskId;
use domain::job::JobStatus;
use domain::notification::Notification;
use domain::task::{Task, TaskState};
use store::{ReadRecords, layout};

use crate::Result;
use crate::tx::View;

/// Sets the status of the jobs whose messages are being sent. The lease of an attempt is in the
/// task of the job only, so that a claim does not rewrite the notification.
pub(crate) fn fill_in(view: &dyn View, notifications: &mut [Notification]) -> Result<()> {
    let jobs = notifications.iter_mut().flat_map(|notification| &mut notification.jobs);
    let mut queued: Vec<_> =
        jobs.filter(|job| matches!(job.status, JobStatus::Queued { .. })).collect();
    let mut ids: Vec<(usize, TaskId)> = Vec::with_capacity(queued.len());
    for (number, job) in queued.iter().enumerate() {
        let ids_of = [job.id.into()].into_iter().chain(job.waiting_sends().map(|send| send.id));
        ids.extend(ids_of.map(|id| (number, id.into())));
    }
    let task = |(_, id): &(usize, TaskId)| layout::task(view.environment_id(), *id);
    let keys: Vec<_> = ids.iter().map(task).collect();
    let tasks = view.find_readable::<Task>(&keys)?;
    for ((number, _), task) in ids.into_iter().zip(tasks) {
        if let Some(TaskState::Leased { until, attempts }) = task.map(|task| task.state)
            && let Some(job) = queued.get_mut(number)
        {
            job.status = JobStatus::Running { lease_until: until, attempts };
        }
    }
    Ok(())
}
