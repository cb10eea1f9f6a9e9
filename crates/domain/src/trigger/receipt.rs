//! Receipts of triggers.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::ids::{
    EnvironmentId, NotificationId, SubscriberId, TopicKey, TransactionId, WorkflowIdentifier,
};
use crate::json::is_default;
use crate::time::Timestamp;
use crate::vocabulary::wire_enum;
use crate::workflow::Workflow;

/// Result of a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TriggerReceipt {
    /// Always `true`: a trigger that is not acknowledged is an error.
    pub acknowledged: bool,
    /// Status.
    pub status: TriggerStatus,
    /// Id of the event.
    pub transaction_id: TransactionId,
    /// Notifications of the subscribers that the trigger names: at most 100. The activity list has
    /// the others: see [`NotificationQuery::of_transaction`].
    ///
    /// [`NotificationQuery::of_transaction`]: crate::notification::NotificationQuery::of_transaction
    #[serde(default)]
    pub notifications: Vec<CreatedNotification>,
    /// `true` if tasks notify the other recipients, because there are more than 100. The progress is
    /// that of the event.
    #[serde(default, skip_serializing_if = "is_default")]
    pub continues: bool,
    /// Numbers of subscribers in its topics, without those that the trigger names. They are zero if
    /// tasks notify these subscribers.
    #[serde(default, skip_serializing_if = "TopicCounts::is_zero")]
    pub topics: TopicCounts,
    /// Topics of the trigger that do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_topics: Vec<TopicKey>,
}

/// Numbers of subscribers in the topics of a trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TopicCounts {
    /// Subscribers with a notification, each counted once.
    pub created: usize,
    /// Subscribers without a subscription that admits the event.
    pub filtered: usize,
}

/// Acknowledged trigger, stored so that a repetition creates nothing.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedTrigger {
    /// Environment of the trigger.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Time of the acknowledgement.
    pub created_at: Timestamp,
    /// Ordinals of its notifications, one behind the other. The index of the activity list sets
    /// them.
    pub ordinals: Range<u64>,
    /// Workflow of the event. Later runs of an event do not have it, and neither do older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowIdentifier>,
    /// Result of the trigger.
    #[serde(flatten)]
    pub receipt: TriggerReceipt,
}

/// Whom the receipt of a trigger names: some of its fields.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerRecipients {
    /// Ordinals of its notifications, one behind the other.
    pub ordinals: Range<u64>,
    /// Id of the event.
    pub transaction_id: TransactionId,
    #[serde(default)]
    notifications: Vec<NamedSubscriber>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedSubscriber {
    subscriber_id: SubscriberId,
}

/// Notification of a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreatedNotification {
    /// Id of the subscriber in the host application.
    pub subscriber_id: SubscriberId,
    /// Id of the notification, made by the engine.
    #[serde(rename = "_notificationId")]
    pub notification_id: NotificationId,
}

wire_enum! {
    /// Status of a trigger.
    #[non_exhaustive]
    TriggerStatus, "status":
    Processed = "processed",
    TriggerNotActive = "trigger_not_active",
    NoActiveSteps = "no_workflow_active_steps_defined",
    NoSteps = "no_workflow_steps_defined",
}

impl TriggerReceipt {
    /// Returns `true` if the event has happened. Otherwise its workflow is inactive or has no active steps.
    #[must_use]
    pub fn is_processed(&self) -> bool {
        self.status == TriggerStatus::Processed
    }
}

impl TriggerRecipients {
    /// Returns `true` if a notification is that of this subscriber.
    pub fn has(&self, id: &SubscriberId) -> bool {
        self.notifications.iter().any(|created| created.subscriber_id == *id)
    }
}

impl AcceptedTrigger {
    /// Returns an acknowledged trigger, without notifications.
    pub fn new(
        environment_id: EnvironmentId,
        created_at: Timestamp,
        workflow: Option<WorkflowIdentifier>,
        receipt: TriggerReceipt,
    ) -> Self {
        Self { environment_id, created_at, ordinals: 0..0, workflow, receipt }
    }

    /// Returns `true` if the event may be one of `workflow`.
    pub fn may_be_of(&self, workflow: &WorkflowIdentifier) -> bool {
        self.workflow.as_ref().is_none_or(|own| own == workflow)
    }

    /// Returns an acknowledged trigger whose receipt is empty.
    pub fn bare(
        environment_id: EnvironmentId,
        created_at: Timestamp,
        transaction_id: TransactionId,
    ) -> Self {
        let receipt = TriggerReceipt::empty(TriggerStatus::Processed, transaction_id);
        Self::new(environment_id, created_at, None, receipt)
    }
}

impl TriggerReceipt {
    /// Returns the receipt of a trigger of `workflow`, without notifications.
    #[doc(hidden)]
    pub fn of(workflow: &Workflow, transaction_id: TransactionId) -> Self {
        Self::empty(TriggerStatus::of(workflow), transaction_id)
    }

    fn empty(status: TriggerStatus, transaction_id: TransactionId) -> Self {
        Self {
            acknowledged: true,
            status,
            transaction_id,
            notifications: Vec::new(),
            continues: false,
            topics: TopicCounts::default(),
            missing_topics: Vec::new(),
        }
    }
}

impl TopicCounts {
    /// Returns the numbers of subscribers with and without a notification.
    pub fn new(created: usize, filtered: usize) -> Self {
        Self { created, filtered }
    }

    fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

impl CreatedNotification {
    /// Returns the notification with this id for a subscriber.
    #[doc(hidden)]
    pub fn new(subscriber_id: SubscriberId, notification_id: NotificationId) -> Self {
        Self { subscriber_id, notification_id }
    }
}

impl TriggerStatus {
    /// Returns the status of a trigger of `workflow`.
    #[doc(hidden)]
    pub fn of(workflow: &Workflow) -> Self {
        if !workflow.active {
            TriggerStatus::TriggerNotActive
        } else if workflow.steps.is_empty() {
            TriggerStatus::NoSteps
        } else if workflow.active_steps().next().is_none() {
            TriggerStatus::NoActiveSteps
        } else {
            TriggerStatus::Processed
        }
    }
}
