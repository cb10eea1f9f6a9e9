//! Refusals as they are stored under an idempotency key.

use domain::error::Invalid;
use serde::{Deserialize, Serialize};

use crate::{Entity, Error, Rejection};

/// A stored refusal. Its JSON is a part of the disk format: a variant or a field keeps its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum StoredRefusal {
    Invalid(Invalid),
    NotFound {
        entity: Entity,
        ids: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        suggestion: Option<String>,
    },
    Conflict {
        entity: Entity,
        id: String,
    },
    BeingDeleted {
        entity: Entity,
        id: String,
    },
    Rejected(Rejection),
}

impl StoredRefusal {
    /// The stored form of `error`. Returns `None` if it is no answer to the call: the store failed,
    /// or the caller had no key.
    pub(crate) fn of(error: &Error) -> Option<Self> {
        match error {
            Error::Invalid(invalid) => Some(Self::Invalid(invalid.clone())),
            Error::NotFound { entity, ids, suggestion } => Some(Self::NotFound {
                entity: *entity,
                ids: ids.clone(),
                suggestion: suggestion.clone(),
            }),
            Error::Conflict { entity, id } => {
                Some(Self::Conflict { entity: *entity, id: id.clone() })
            }
            Error::BeingDeleted { entity, id } => {
                Some(Self::BeingDeleted { entity: *entity, id: id.clone() })
            }
            Error::Rejected(rejection) => Some(Self::Rejected(rejection.clone())),
            Error::Unauthorized(_) | Error::Store(_) => None,
        }
    }
}

impl From<StoredRefusal> for Error {
    fn from(stored: StoredRefusal) -> Self {
        match stored {
            StoredRefusal::Invalid(invalid) => Error::Invalid(invalid),
            StoredRefusal::NotFound { entity, ids, suggestion } => {
                Error::NotFound { entity, ids, suggestion }
            }
            StoredRefusal::Conflict { entity, id } => Error::Conflict { entity, id },
            StoredRefusal::BeingDeleted { entity, id } => Error::BeingDeleted { entity, id },
            StoredRefusal::Rejected(rejection) => Error::Rejected(rejection),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::error::Reason;
    use domain::trigger::TriggerReceipt;
    use domain::vocabulary::Channel;

    use super::*;

    /// One row per kind of refusal: its JSON on disk.
    #[test]
    fn a_refusal_keeps_its_stored_form() {
        for (error, stored) in [
            (
                Error::Invalid(Invalid::new("name", Reason::TooMany { max: 5 })),
                r#"{"invalid":{"field":"name","reason":{"tooMany":{"max":5}}}}"#,
            ),
            (
                Error::not_found(Entity::TranslationGroup, "a"),
                r#"{"notFound":{"entity":"translationGroup","ids":["a"]}}"#,
            ),
            (
                Error::not_found(Entity::Workflow, "a").meaning(Some("b")),
                r#"{"notFound":{"entity":"workflow","ids":["a"],"suggestion":"b"}}"#,
            ),
            (
                Error::conflict(Entity::Topic, "orders"),
                r#"{"conflict":{"entity":"topic","id":"orders"}}"#,
            ),
            (
                Error::being_deleted(Entity::Workflow, "a"),
                r#"{"beingDeleted":{"entity":"workflow","id":"a"}}"#,
            ),
            (
                Error::Rejected(Rejection::NoPrimary { channel: Channel::Chat }),
                r#"{"rejected":{"noPrimary":{"channel":"chat"}}}"#,
            ),
            (Error::Rejected(Rejection::OneInbox), r#"{"rejected":"oneInbox"}"#),
        ] {
            let json = serde_json::to_string(&StoredRefusal::of(&error).unwrap()).unwrap();
            assert_eq!(json, stored);
            let read: StoredRefusal = serde_json::from_str(stored).unwrap();
            assert_eq!(Error::from(read).to_string(), error.to_string());
        }
    }

    /// The stored answer of a bulk trigger: receipts and refusals.
    #[test]
    fn an_answer_for_several_events_keeps_its_stored_form() {
        let stored = serde_json::json!([
            { "Ok": { "acknowledged": true, "status": "processed", "transactionId": "txn_1",
              "notifications": [] } },
            { "Err": { "notFound": { "entity": "workflow", "ids": ["a"] } } },
        ]);
        let read: Vec<Result<TriggerReceipt, StoredRefusal>> =
            serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), stored);
    }

    #[test]
    fn a_failure_of_the_store_is_not_stored() {
        let source = "on purpose".into();
        let failure = store::Error::Backend { backend: "test", action: "go on", source };
        assert!(StoredRefusal::of(&failure.into()).is_none());
    }
}
