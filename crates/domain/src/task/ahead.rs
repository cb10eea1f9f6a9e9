//! Tasks that a clock has put off that was ahead of the present one.

use std::time::Duration;

use super::{SendWork, Task, TaskState, Work};
use crate::job::{Job, JobStatus};
use crate::notification::Notification;
use crate::time::{MAX_CLOCK_SKEW, Timestamp};

impl Task {
    /// Returns the task as of `now` if a clock that was ahead by more than a day has set its due time or
    /// its lease, which lasts `lease`. A send or a call is due at once, or gets a new lease. A delay or a
    /// window keeps its length, and its end if that was set under a right clock. Returns `None` otherwise,
    /// and for a snooze that waits for its end. `notification` is that of the task, if it is known.
    pub fn brought_back(
        &self,
        now: Timestamp,
        lease: Duration,
        notification: Option<&Notification>,
    ) -> Option<Self> {
        let latest = now.after(MAX_CLOCK_SKEW);
        let job = notification.and_then(|notification| self.timed_job(notification));
        let delay = job.filter(|job| job.updated_at.is_some_and(|set_at| set_at <= latest));
        let delay = delay.and_then(|job| job.status.delayed_until()).unwrap_or(now);
        let state = match self.state {
            TaskState::Waiting { due_at, attempts } => {
                let set_at = self.set_at(due_at, job, notification.is_some())?;
                let due_at = brought_back(due_at, set_at, now)?;
                let due_at = if self.work.calls_the_host() { now } else { due_at.max(delay) };
                TaskState::Waiting { due_at, attempts }
            }
            TaskState::Leased { until, attempts } if until > latest.after(lease) => {
                // The host may be at it still, so the lease begins anew.
                let calls_the_host = self.work.calls_the_host();
                let until = if calls_the_host { now.after(lease) } else { now.max(delay) };
                TaskState::Leased { until, attempts }
            }
            TaskState::Leased { .. } | TaskState::Held { .. } => return None,
        };
        Some(self.with(state))
    }

    // The job whose time is that of the task. A turn goes on with the job that is delayed.
    fn timed_job<'n>(&self, notification: &'n Notification) -> Option<&'n Job> {
        if matches!(self.work, Work::Turn { .. }) {
            let mut jobs = notification.jobs.iter();
            return jobs.find(|job| job.status.delayed_until().is_some());
        }
        notification.jobs.get(self.work.job_in(notification)?)
    }

    // Time at which the due time was set. Tasks without a notification are due when they are queued, but
    // for a message that is snoozed and for a sweep, which has a rule of its own.
    fn set_at(&self, due_at: Timestamp, job: Option<&Job>, is_known: bool) -> Option<Timestamp> {
        let is_of_job = job.and_then(|job| job.status.due_at()) == Some(due_at);
        match &self.work {
            Work::Turn { notification_id }
            | Work::Close { notification_id, .. }
            | Work::Send(SendWork { notification_id, .. })
            | Work::Call { notification_id, .. }
                if is_of_job || !is_known =>
            {
                Some(changed_at(job, notification_id.created_at()))
            }
            // It was queued, or put back, at the time at which it is due.
            Work::Turn { .. }
            | Work::Close { .. }
            | Work::Send(_)
            | Work::Call { .. }
            | Work::FanOut { .. }
            | Work::Cancel { .. }
            | Work::Release { .. } => Some(due_at),
            Work::Sweep { .. } | Work::Wake { .. } => None,
        }
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
            if let Some(until) = job.status.delayed_until()
                && let Some(until) = brought_back(until, set_at, now)
            {
                job.move_to(JobStatus::Delayed { until: until.min(due_at) }, now);
            }
        }
        after
    }
}

// Returns `now` plus the span from `set_at` to `time`, if a clock that was ahead has set `time` at `set_at`.
// Returns `None` otherwise, also if `time` is a day or more before `set_at`: then it does not depend on that
// clock. A time that is before `set_at` by less was planned before it was stored.
fn brought_back(time: Timestamp, set_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let is_of_that_clock = set_at < time.after(MAX_CLOCK_SKEW);
    let is_put_off = is_of_that_clock && set_at.is_far_ahead_of(now);
    is_put_off.then(|| now.after(time.since(set_at)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ids::NotificationId;
    use crate::notification::Ordinal;
    use crate::sample;

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
    }

    /// One row per work, status of its job, time of the last change of the job, time of the task, and
    /// the expected one on the second of January 1970. The event is of the first.
    #[test]
    fn a_task_is_due_as_its_job_says() {
        let delayed = |until: i64| JobStatus::Delayed { until: at(until) };
        let queued = |due_at: i64| JobStatus::Queued { due_at: at(due_at), attempts: 1 };
        let rows = [
            // A delay that has begun under the clock that was ahead, and one that ends behind the present.
            ("turn", delayed(9 * DAY + 7), 9 * DAY, ("waiting", 9 * DAY + 7), Some(DAY + 7)),
            ("turn", delayed(31 * DAY), DAY, ("waiting", 31 * DAY), None),
            ("turn", delayed(DAY + 7), DAY - 5, ("waiting", 9 * DAY), Some(DAY + 7)),
            ("turn", delayed(DAY + 7), DAY - 5, ("leased", 9 * DAY), Some(DAY + 7)),
            ("turn", delayed(9 * DAY), 8 * DAY, ("leased", 10 * DAY), Some(DAY)),
            // They were planned a little before they were stored.
            ("turn", delayed(9 * DAY - 7), 9 * DAY, ("waiting", 9 * DAY - 7), Some(DAY)),
            ("close", delayed(9 * DAY - 7), 9 * DAY, ("waiting", 9 * DAY - 7), Some(DAY)),
            ("send", queued(9 * DAY - 7), 9 * DAY, ("waiting", 9 * DAY - 7), Some(DAY)),
            // It was planned under the right clock, and stored under the one that was ahead.
            ("turn", delayed(4 * DAY), 9 * DAY, ("waiting", 4 * DAY), None),
            // It was queued behind another job.
            ("turn", JobStatus::Pending, 0, ("waiting", 9 * DAY), Some(DAY)),
            ("close", delayed(9 * DAY + 7), 9 * DAY, ("waiting", 9 * DAY + 7), Some(DAY + 7)),
            ("close", delayed(31 * DAY), DAY, ("waiting", 31 * DAY), None),
            ("close", delayed(DAY + 7), DAY - 5, ("waiting", 9 * DAY), Some(DAY + 7)),
            ("close", delayed(DAY + 7), DAY - 5, ("leased", 9 * DAY), Some(DAY + 7)),
            // A retry, a pause that a provider has asked for, and a message that was put back.
            ("send", queued(9 * DAY + 7), 9 * DAY, ("waiting", 9 * DAY + 7), Some(DAY)),
            ("send", queued(4 * DAY), DAY, ("waiting", 4 * DAY), None),
            ("send", queued(DAY), DAY, ("waiting", 9 * DAY), Some(DAY)),
            // The end of a snooze is looked up when the task is done.
            ("wake", queued(0), 0, ("waiting", 9 * DAY), None),
            ("wake", queued(0), 0, ("leased", 9 * DAY), Some(DAY)),
            // A provider may have the message.
            ("send", queued(9 * DAY), 9 * DAY, ("leased", 9 * DAY + 7), Some(DAY + 1_000)),
        ];
        let workflow = sample::workflow(json!([{ "type": "email", "template": {
            "subject": "S", "body": "B",
        } }]));
        let subscriber = sample::subscriber(json!({}));
        for (kind, status, changed_at, (state, time), expected) in rows {
            let mut notification = sample::notification(&workflow, &subscriber, json!({}));
            notification.jobs[0].move_to(status, at(changed_at));
            let job = &notification.jobs[0];
            let work = json!({
                "type": kind, "_notificationId": notification.id, "_jobId": job.id,
                "_stepId": job.step.id, "_windowId": job.id, "key": job.id, "_messageId": job.id,
            });
            let field = if state == "leased" { "until" } else { "dueAt" };
            let task = task(&json!({ "state": state, field: at(time) }), work);
            let after = task.brought_back(at(DAY), Duration::from_secs(1), Some(&notification));
            let due_at = after.as_ref().and_then(|task| task.state.due_at());
            assert_eq!(due_at, expected.map(at), "{task:?} {status:?}");
            // What was brought back stays where it is.
            let after = after.unwrap_or(task);
            let notification = notification.brought_back(at(DAY), after.state.due_at().unwrap());
            let again =
                after.brought_back(at(DAY + 1), Duration::from_secs(1), Some(&notification));
            assert_eq!(again, None, "{after:?}");
        }
        let id = NotificationId::new(at(0), Ordinal::new(1), 7);
        let of = |_: i64| json!({ "type": "turn", "_notificationId": id });
        let held = json!({ "state": "held", "_integrationId": id });
        let held = task(&held, of(9 * DAY));
        assert_eq!(held.brought_back(at(DAY), Duration::ZERO, None), None);
    }
}
