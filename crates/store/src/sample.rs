//! Records for unit tests.

use domain::ids::{EnvironmentId, InternalSubscriberId, MessageId};
use domain::message::{Message, MessagePlace};
use domain::notification::Ordinal;
use domain::time::Timestamp;
use serde_json::json;
use uuid::Uuid;

/// The environment and the subscriber of all messages.
pub(crate) fn own() -> (EnvironmentId, InternalSubscriberId) {
    (Uuid::from_u128(1).into(), Uuid::from_u128(2).into())
}

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(i64::try_from(millis).unwrap())
}

/// The message of that number in an inbox, which nobody has seen.
pub(crate) fn message(number: u64, tag: &str) -> Message {
    let (environment, subscriber) = own();
    let id = MessageId::new(at(number), MessagePlace::new(Ordinal::new(number), 0), 0);
    serde_json::from_value(json!({
        "_id": id,
        "_environmentId": environment,
        "_organizationId": Uuid::from_u128(3),
        "_notificationId": Uuid::from_u128(4),
        "_subscriberId": subscriber,
        "createdAt": at(number),
        "transactionId": "t",
        "channel": "in_app",
        "cta": {},
        "read": false,
        "seen": false,
        "status": "sent",
        "tags": [tag],
    }))
    .unwrap()
}
