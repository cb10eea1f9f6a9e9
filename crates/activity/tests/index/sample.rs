//! Notifications that have few different terms, so that filters find something.

use domain::context::{ContextKey, ContextSet};
use domain::environment::Home;
use domain::ids::{
    EnvironmentId, InternalSubscriberId, NotificationId, OrganizationId, SubscriptionIdentifier,
    TopicKey, TransactionId, WorkflowId,
};
use domain::notification::{Notification, NotificationTopic};
use domain::time::Timestamp;
use domain::vocabulary::{Severity, StepType};
use uuid::Uuid;

/// The first instant of a history.
pub(crate) const START: i64 = 1_700_000_000_000;

pub(crate) fn environment() -> EnvironmentId {
    Uuid::from_u128(7).into()
}

pub(crate) fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(START.saturating_add(millis))
}

pub(crate) fn subscriber(number: u16) -> InternalSubscriberId {
    Uuid::from_u128(u128::from(number) << 40).into()
}

pub(crate) fn number_of(subscriber: InternalSubscriberId) -> u16 {
    u16::try_from(Uuid::from(subscriber).as_u128() >> 40).unwrap()
}

pub(crate) fn workflow(number: u16) -> WorkflowId {
    Uuid::from_u128(u128::from(number)).into()
}

pub(crate) fn topic(number: u16) -> TopicKey {
    TopicKey::new(format!("topic-{number}")).unwrap()
}

pub(crate) fn subscription(number: u16) -> SubscriptionIdentifier {
    SubscriptionIdentifier::new(format!("subscription-{number}")).unwrap()
}

pub(crate) fn transaction(number: u8) -> TransactionId {
    TransactionId::new(format!("transaction-{number}")).unwrap()
}

pub(crate) fn contexts(number: u16) -> ContextSet {
    let tenant = (number >= 1).then(|| ContextKey::new("tenant", "acme").unwrap());
    let app = (number >= 2).then(|| ContextKey::new("app", "shop").unwrap());
    tenant.into_iter().chain(app).collect()
}

pub(crate) const CHANNELS: [StepType; 3] = [StepType::InApp, StepType::Email, StepType::Sms];

/// A notification whose terms are made of the bits of `traits`.
pub(crate) fn notification(
    id: NotificationId,
    created_at: Timestamp,
    transaction_id: &TransactionId,
    traits: u16,
) -> Notification {
    let choose = |from: u32, choices: u16| (traits >> from) % choices;
    let organization_id = OrganizationId::new("acme").unwrap();
    let home = Home { organization_id, environment_id: environment() };
    // One in eight is for somebody who gets hardly anything else.
    let who = subscriber(if choose(0, 8) == 0 { 8 + traits / 8 } else { choose(0, 8) });
    let mut made = Notification::bare(id, &home, who, transaction_id.clone(), created_at);
    made.workflow_id = Some(choose(3, 4)).filter(|number| *number > 0).map(workflow);
    made.step_types = CHANNELS.into_iter().take(choose(5, 4).into()).collect();
    made.topics = (0..choose(7, 3)).map(|number| through(number, choose(9, 3))).collect();
    made.severity = Severity::ALL.get(usize::from(choose(11, 6))).copied();
    made.context_keys = contexts(choose(14, 4).saturating_sub(1));
    made
}

fn through(number: u16, subscriptions: u16) -> NotificationTopic {
    let subscriptions = (0..subscriptions).map(|one| subscription(number + one));
    let topic_id = Uuid::from_u128(number.into()).into();
    NotificationTopic::new(topic_id, topic(number), subscriptions.collect())
}
