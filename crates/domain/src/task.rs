//! Tasks: work of the pipeline that is due at a time, each with a lease of its own.

mod ahead;
mod attempt;
mod awaited;
mod job;
mod send;
mod tries;
mod work;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::environment::Home;
use crate::ids::{
    EnvironmentId, IntegrationId, MessageId, NotificationId, OrganizationId, SendId, TaskId,
    WorkflowId,
};
use crate::message::Message;
use crate::notification::Notification;
use crate::retention::{SweepPace, SweepPart};
use crate::time::Timestamp;
use crate::trigger::{FanOut, Trigger};
use crate::vocabulary::Severity;
use crate::workflow::Workflow;

pub use attempt::{AfterFailure, Claim, Retry};
pub use awaited::Awaited;
pub use send::SendWork;
pub use tries::{Failure, Tries};
pub use work::Work;

/// Work that is due at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Id given by the engine. The task of a job has the id of the job.
    #[serde(rename = "_id")]
    pub id: TaskId,
    /// Environment of the task.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Organization of the task.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Workflow of the task. `None` if it belongs to no workflow.
    #[serde(rename = "_templateId", default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<WorkflowId>,
    /// Order among the tasks that are due.
    pub class: TaskClass,
    /// Time of the last redrive, or of the return from quarantine. Attempts are counted from then on.
    #[serde(rename = "restartedAt", default, skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<Timestamp>,
    /// State.
    #[serde(flatten)]
    pub state: TaskState,
    /// What is to be done.
    pub work: Work,
}

/// Tasks of one class, environment and workflow. Workers take from all lanes with due tasks in
/// turn, so that many tasks of one workflow do not hold up those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// Class of its tasks.
    pub class: TaskClass,
    /// Environment of its tasks.
    pub environment_id: EnvironmentId,
    /// Workflow of its tasks.
    pub workflow_id: Option<WorkflowId>,
}

/// Order among the tasks that are due: all due tasks of a class come before those of the next one, but for
/// a share that the last class has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskClass {
    /// Work of a notification that is critical or of high severity.
    Urgent,
    /// Work of any other notification.
    Normal,
    /// Work that makes notifications, such as a broadcast, and upkeep.
    Background,
}

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum TaskState {
    /// Waits for an attempt.
    Waiting {
        /// Earliest time of the attempt.
        due_at: Timestamp,
        /// Number of attempts so far.
        attempts: u32,
    },
    /// Leased for an attempt.
    Leased {
        /// End of the lease, after which another attempt may begin.
        until: Timestamp,
        /// Number of attempts, the current one included.
        attempts: u32,
    },
    /// Is not due until an integration is resumed.
    Held {
        /// Integration that is paused.
        #[serde(rename = "_integrationId")]
        integration_id: IntegrationId,
        /// Number of attempts so far.
        attempts: u32,
    },
}

impl Task {
    /// Returns a task of `notification` that is due at `due_at`.
    pub fn of(notification: &Notification, id: TaskId, due_at: Timestamp, work: Work) -> Self {
        Self {
            id,
            environment_id: notification.environment_id,
            organization_id: notification.organization_id.clone(),
            workflow_id: notification.workflow_id,
            class: TaskClass::of(notification),
            restarted_at: None,
            state: TaskState::Waiting { due_at, attempts: 0 },
            work,
        }
    }

    /// Returns the task that sweeps an environment from `due_at` on. An environment has one, which
    /// has the id of the environment.
    pub fn sweep(home: &Home, due_at: Timestamp, pace: SweepPace) -> Self {
        let part = SweepPart::default();
        let work = Work::Sweep { part, after: Vec::new(), pace };
        Self::background(home, None, Uuid::from(home.environment_id).into(), due_at, work)
    }

    /// Returns a task of an environment that prepares notifications or ends them.
    pub fn background(
        home: &Home,
        workflow_id: Option<WorkflowId>,
        id: TaskId,
        due_at: Timestamp,
        work: Work,
    ) -> Self {
        Self {
            id,
            environment_id: home.environment_id,
            organization_id: home.organization_id.clone(),
            workflow_id,
            class: TaskClass::Background,
            restarted_at: None,
            state: TaskState::Waiting { due_at, attempts: 0 },
            work,
        }
    }

    /// Returns the task that notifies the next recipients of an event from `due_at` on. Those of critical events
    /// and of high severity do not wait behind other messages. `workflow` is `None` if it was deleted.
    pub fn fan_out(
        home: &Home,
        (fan_out, workflow): (&FanOut, Option<&Workflow>),
        id: TaskId,
        due_at: Timestamp,
    ) -> Self {
        let work = Work::FanOut { transaction_id: fan_out.transaction_id.clone() };
        let class = workflow.map(|workflow| TaskClass::of_crowd(workflow, &fan_out.trigger));
        let task = Self::background(home, Some(fan_out.workflow_id), id, due_at, work);
        Self { class: class.unwrap_or(task.class), ..task }
    }

    /// Returns the task that ends the snooze of a message at `due_at`.
    pub fn wake(message: &Message, due_at: Timestamp) -> Self {
        let class = match message.severity {
            Severity::High => TaskClass::Urgent,
            Severity::Medium | Severity::Low | Severity::None => TaskClass::Normal,
        };
        Self {
            id: TaskId::of_wake(message.id),
            environment_id: message.environment_id,
            organization_id: message.organization_id.clone(),
            // A workflow that is paused or deleted does not keep its messages snoozed.
            workflow_id: None,
            class,
            restarted_at: None,
            state: TaskState::Waiting { due_at, attempts: 0 },
            work: Work::Wake { message_id: message.id },
        }
    }

    /// Returns the lane of the task.
    pub const fn lane(&self) -> Lane {
        Lane {
            class: self.class,
            environment_id: self.environment_id,
            workflow_id: self.workflow_id,
        }
    }

    /// Returns the environment of the task, with its organization.
    pub fn home(&self) -> Home {
        Home { organization_id: self.organization_id.clone(), environment_id: self.environment_id }
    }

    /// Returns the task that closes a window for the jobs of this notification.
    #[must_use]
    pub fn with_notification(mut self, carrier: NotificationId) -> Self {
        if let Work::Close { notification_id, .. } = &mut self.work {
            *notification_id = carrier;
        }
        self
    }

    /// Returns the task with this message to send.
    #[must_use]
    pub fn with_send_work(self, work: SendWork) -> Self {
        Self { work: Work::Send(work), ..self }
    }

    /// Returns the task without what was stored before a call that was not made: it has the work of `before`.
    #[must_use]
    pub fn uncalled(self, before: &Self) -> Self {
        Self { work: before.work.clone(), ..self }
    }

    /// Returns the message that the task sends to a provider. Returns `None` if it does other work.
    pub const fn send_work(&self) -> Option<&SendWork> {
        match &self.work {
            Work::Send(send) => Some(send),
            _ => None,
        }
    }

    /// Returns the id of the send of the task. Returns `None` if the task sends the only message of
    /// its job, or none.
    pub fn send_id(&self) -> Option<SendId> {
        self.send_work()?.target.as_ref().map(|_| Uuid::from(self.id).into())
    }

    /// Returns a task that has failed, due again at `now`. Its attempts are counted anew, and those before have no
    /// effect on it.
    #[must_use]
    pub fn restarted(self, now: Timestamp) -> Self {
        let state = TaskState::Waiting { due_at: now, attempts: 0 };
        Self { restarted_at: Some(now), state, ..self }
    }

    /// Returns the task in another state.
    #[must_use]
    pub fn with(&self, state: TaskState) -> Self {
        Self { state, ..self.clone() }
    }
}

impl TaskId {
    /// Returns the id of the task that ends the snooze of a message: that of the message.
    #[doc(hidden)]
    pub fn of_wake(message: MessageId) -> Self {
        Uuid::from(message).into()
    }
}

impl TaskClass {
    /// All classes, in their order.
    pub const ALL: [TaskClass; 3] = [TaskClass::Urgent, TaskClass::Normal, TaskClass::Background];

    /// Returns the number of the class in keys.
    #[doc(hidden)]
    pub const fn number(self) -> u8 {
        self as u8
    }

    fn of(notification: &Notification) -> Self {
        let is_critical = notification.critical == Some(true);
        let is_urgent = is_critical || notification.severity == Some(Severity::High);
        if is_urgent { TaskClass::Urgent } else { TaskClass::Normal }
    }

    fn of_crowd(workflow: &Workflow, trigger: &Trigger) -> Self {
        let is_urgent = workflow.critical || trigger.severity(workflow) == Severity::High;
        if is_urgent { TaskClass::Urgent } else { TaskClass::Background }
    }
}
