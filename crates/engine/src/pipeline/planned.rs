//! Plans of triggers: what their transactions write.

use std::sync::Arc;

use domain::context::{Context, ContextSet, NamedContext};
use domain::ids::{InternalSubscriberId, TransactionId};
use domain::notification::NotificationTopic;
use domain::plan::Action;
use domain::subscriber::Subscriber;
use domain::trigger::{Crowd, SubscriberRecipient, TriggerReceipt};
use domain::workflow::Workflow;
use store::Kept;

use crate::idempotency::StoredRefusal;

/// A trigger before its transaction.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// The trigger was accepted before, or has no effect.
    NothingToDo(TriggerReceipt),
    /// An earlier event of the same call has this transaction id.
    Repeated(TransactionId),
    /// The trigger creates notifications.
    Planned(Box<PlannedTrigger>),
    /// The trigger is refused.
    Refused(StoredRefusal),
}

/// A trigger whose notifications are planned.
#[derive(Debug)]
pub(crate) struct PlannedTrigger {
    /// The receipt, without the notifications of direct recipients.
    pub(crate) receipt: TriggerReceipt,
    /// The stamp of the view in which it was planned, if that had one.
    pub(crate) stamp: Option<u64>,
    /// `false` if the preparation has made the transaction id.
    pub(crate) may_be_known: bool,
    pub(crate) workflow: Arc<Workflow>,
    /// Contexts that the trigger names.
    pub(crate) contexts: Vec<ReadContext>,
    pub(crate) context_keys: ContextSet,
    /// Subscribers that the trigger names.
    pub(crate) direct: Vec<NamedRecipient>,
    /// Subscribers that it reaches otherwise.
    pub(crate) others: Others,
    /// Subscriber who has caused the event, and the record as it was read.
    pub(crate) actor: Option<(SubscriberRecipient, Option<Arc<Kept<Subscriber>>>)>,
    /// Bytes of the payloads, overrides and messages of its notifications.
    pub(crate) content: usize,
}

/// A context that a trigger names.
#[derive(Debug)]
pub(crate) struct ReadContext {
    pub(crate) named: NamedContext,
    /// The context as it was read. `None` if it was not there.
    pub(crate) read: Option<Arc<Kept<Context>>>,
}

/// Recipient that a trigger names, and the record as it was read. `None` if it was not there.
pub(crate) type NamedRecipient = (PlannedRecipient, Option<Arc<Kept<Subscriber>>>);

/// Subscribers that a trigger does not name.
#[derive(Debug)]
pub(crate) enum Others {
    /// The transaction of the trigger notifies them. Each has the subscriber as it was read.
    Planned(Vec<(Subscriber, PlannedRecipient)>),
    /// Tasks notify them.
    Crowd(Crowd),
}

/// A recipient with the first turn of its notification.
#[derive(Debug)]
pub(crate) struct PlannedRecipient {
    pub(crate) recipient: SubscriberRecipient,
    pub(crate) topics: Vec<NotificationTopic>,
    pub(crate) first: FirstTurn,
}

/// The first turn of a notification.
#[derive(Debug)]
pub(crate) enum FirstTurn {
    /// It is a part of the transaction that creates the notification.
    Planned(Vec<Action>),
    /// A task plans it, since the workflow is paused.
    Later,
}

impl Prepared {
    /// Number of notifications that the transaction creates, and the bytes of their content.
    pub(crate) fn size(&self) -> (usize, usize) {
        let Prepared::Planned(planned) = self else { return (0, 0) };
        planned.size()
    }
}

impl PlannedTrigger {
    /// Number of its notifications, and the bytes of their content.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.direct.len() + self.others.planned().len(), self.content)
    }

    /// Returns the ids of the recipients that were there when the trigger was planned.
    pub(crate) fn known(&self) -> impl Iterator<Item = InternalSubscriberId> {
        let direct = self.direct.iter().filter_map(|(_, read)| Some(read.as_deref()?.id));
        direct.chain(self.others.planned().iter().map(|(member, _)| member.id))
    }
}

impl Others {
    /// Returns the members that the transaction of the trigger notifies.
    pub(crate) fn planned(&self) -> &[(Subscriber, PlannedRecipient)] {
        match self {
            Others::Planned(members) => members,
            Others::Crowd(_) => &[],
        }
    }
}
