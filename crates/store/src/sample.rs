//! Records for unit tests.

use domain::environment::{Environment, Home};
use domain::ids::{EnvironmentId, InternalSubscriberId, MessageId};
use domain::message::{Message, MessagePlace};
use domain::notification::Ordinal;
use domain::time::Timestamp;
use domain::unsubscribe::LinkKey;
use serde_json::json;
use uuid::Uuid;

use crate::memory::MemoryStore;
use crate::{WriteRecords, write};

/// The environment and the subscriber of all messages.
pub(crate) fn own() -> (EnvironmentId, InternalSubscriberId) {
    (Uuid::from_u128(1).into(), Uuid::from_u128(2).into())
}

/// A store with the records of the environments 1 and 2.
pub(crate) fn store() -> MemoryStore {
    let store = MemoryStore::default();
    write(&store, |txn| {
        [1, 2].into_iter().try_for_each(|number| {
            let environment_id = Uuid::from_u128(number).into();
            let home = Home { organization_id: "o".parse().unwrap(), environment_id };
            let key = "key".to_owned().into();
            txn.insert(&LinkKey { environment_id, key, created_at: at(0) })?;
            txn.insert(&Environment::stand_in(&home, "short".into(), at(0)))
        })
    })
    .unwrap();
    store
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
