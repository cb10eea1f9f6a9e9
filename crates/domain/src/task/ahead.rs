//! Tasks that a clock has put off that was ahead of the present one.

use std::time::Duration;

use super::{Task, TaskState, Work};
use crate::job::{Job, JobStatus};
use crate::notification::Notification;
use crate::time::Timestamp;

/// Time by which a clock may differ from an earlier one. More is a mistake of one of them.
pub const CLOCK_DIFFERENCE: Duration = Duration::from_secs(24 * 60 * 60);

impl Task {
    /// Returns the task as it is at `now` if a clock has put it off that was ahead by more than a
    /// day. An attempt is due now, and any other task as long after `now` as it was after that clock's
    /// time. Returns `None` for any other task, and for one that waits for a time that its reader has
    /// named. A lease lasts `lease`. `notification` is that of the task, if it is known.
    pub fn brought_back(
        &self,
        now: Timestamp,
        lease: Duration,
        notification: Option<&Notification>,
    ) -> Option<Self> {
        let latest = now.after(CLOCK_DIFFERENCE);
        let state = match self.state {
            TaskState::Waiting { due_at, attempts } => {
                let set_at = self.set_at(due_at, notification)?;
                let due_at = brought_back(due_at, set_at, now)?;
                let due_at = if self.work.calls_the_host() { now } else { due_at };
                TaskState::Waiting { due_at, attempts }
            }
            TaskState::Leased { until, attempts } if until > latest.after(lease) => {
                TaskState::Leased { until: now, attempts }
            }
            TaskState::Leased { .. } | TaskState::Held { .. } => return None,
        };
        Some(self.with(state))
    }

    // Time at which it was decided when the task is due: that of the last change of its job, or else
    // of its notification. Tasks without a notification are due when they are queued, but for a message
    // that is asleep and for a sweep, which has a rule of its own.
    fn set_at(&self, due_at: Timestamp, notification: Option<&Notification>) -> Option<Timestamp> {
        let mut jobs = notification.iter().flat_map(|notification| &notification.jobs);
        let (id, job) = match &self.work {
            Work::Turn { notification_id } => {
                let is_delayed = |job: &&Job| matches!(job.status, JobStatus::Delayed { .. });
                (notification_id, jobs.find(is_delayed))
            }
            Work::Close { notification_id, step_id, .. } => {
                (notification_id, jobs.find(|job| job.step.id == *step_id))
            }
            Work::Send { notification_id, job_id, .. } | Work::Call { notification_id, job_id } => {
                let job = jobs.find(|job| job.id == *job_id);
                // A failed attempt is in the log only.
                let logged_at = job.and_then(|job| job.execution_details.last()?.created_at);
                return logged_at.max(Some(changed_at(job, notification_id.created_at())));
            }
            Work::FanOut { .. } | Work::Cancel { .. } | Work::Release { .. } => {
                return Some(due_at);
            }
            Work::Sweep { .. } | Work::Wake { .. } => return None,
        };
        Some(changed_at(job, id.created_at()))
    }
}

// Time of the last change of a job, or else that of its notification.
fn changed_at(job: Option<&Job>, created_at: Timestamp) -> Timestamp {
    job.and_then(|job| job.updated_at).unwrap_or(created_at)
}

impl Notification {
    /// Returns the notification with a task that is brought back at `now`, and due at `due_at`: its
    /// jobs are delayed as long after `now` as they were after the time of the clock that was ahead.
    /// The delay of a task that was leased is over, so none is longer than until `due_at`.
    #[doc(hidden)]
    #[must_use]
    pub fn brought_back(&self, now: Timestamp, due_at: Timestamp) -> Self {
        let mut after = self.clone();
        for job in &mut after.jobs {
            let set_at = changed_at(Some(job), self.created_at);
            if let JobStatus::Delayed { until } = job.status
                && let Some(until) = brought_back(until, set_at, now)
            {
                job.move_to(JobStatus::Delayed { until: until.min(due_at) }, now);
            }
        }
        after
    }
}

// Returns the time as long after `now` as `time` is after `set_at`, if that was a time of a clock that
// was ahead. An earlier time does not depend on that clock.
fn brought_back(time: Timestamp, set_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let is_put_off = set_at > now.after(CLOCK_DIFFERENCE) && time >= set_at;
    is_put_off.then(|| now.after(time.since(set_at)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ids::NotificationId;
    use crate::notification::Ordinal;

    const DAY: i64 = 86_400_000;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn task(state: &Value, work: Value) -> Task {
        let mut task = json!({
            "_id": "01999999-0000-7000-8000-000000000000",
            "_environmentId": "01999999-0000-7000-8000-000000000001",
            "_organizationId": "acme", "class": "normal", "attempts": 1, "work": work,
        });
        let (fields, state) = (task.as_object_mut().unwrap(), state.as_object().unwrap());
        fields.extend(state.clone());
        serde_json::from_value(task).unwrap()
    }

    /// One row per work and times: of the notification, of the task, and of the task on the second of
    /// January 1970.
    #[test]
    fn a_task_is_due_as_long_after_the_right_time() {
        let id = |created| NotificationId::new(at(created), Ordinal::new(1), 7);
        let of = |created: i64| json!({ "type": "turn", "_notificationId": id(created) });
        let fan_out = json!({ "type": "fan_out", "transactionId": "t" });
        let wake = json!({ "type": "wake", "_messageId": id(9 * DAY) });
        let sweep = json!({ "type": "sweep", "part": "messages" });
        let rows = [
            ("waiting", of(9 * DAY), 9 * DAY, Some(DAY)),
            ("waiting", of(9 * DAY), 9 * DAY + 5, Some(DAY + 5)),
            ("waiting", of(9 * DAY), 12 * DAY, Some(4 * DAY)),
            ("waiting", of(2 * DAY + 1), 2 * DAY + 1, Some(DAY)),
            ("waiting", of(2 * DAY), 9 * DAY, None),
            ("waiting", of(0), 9 * DAY, None),
            // A fixed time before the clock that was ahead.
            ("waiting", of(9 * DAY), 8 * DAY, None),
            ("waiting", fan_out.clone(), 9 * DAY, Some(DAY)),
            ("waiting", fan_out, 2 * DAY, None),
            ("waiting", wake, 9 * DAY, None),
            ("waiting", sweep, 9 * DAY, None),
            ("leased", of(0), 2 * DAY + 1_000, None),
            ("leased", of(0), 2 * DAY + 1_001, Some(DAY)),
        ];
        for (state, work, due_at, expected) in rows {
            let field = if state == "leased" { "until" } else { "dueAt" };
            let task = task(&json!({ "state": state, field: at(due_at) }), work);
            let after = task.brought_back(at(DAY), Duration::from_secs(1), None);
            let due_at = after.as_ref().and_then(|task| task.state.due_at());
            assert_eq!(due_at, expected.map(at), "{task:?}");
            assert!(after.is_none_or(|after| after == task.with(after.state)));
        }
        let held = json!({ "state": "held", "_integrationId": id(0) });
        let held = task(&held, of(9 * DAY));
        assert_eq!(held.brought_back(at(DAY), Duration::ZERO, None), None);
    }
}
