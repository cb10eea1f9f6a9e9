//! The short forms that a request may have.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{SubscribeItem, UnsubscribeItem, WorkflowChoice, WorkflowFilter, WorkflowWord};
use crate::condition::Rule;
use crate::error::{Invalid, Reason};
use crate::ids::{SubscriberId, SubscriptionIdentifier};
use crate::query;

// What serde derives for untagged enums does not say what is wrong with an item. So an item that
// is no text is read as an object, and its fields are looked at.
impl<'de> Deserialize<'de> for SubscribeItem {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields {
            subscriber_id: SubscriberId,
            identifier: Option<SubscriptionIdentifier>,
            name: Option<String>,
        }
        match Value::deserialize(from)? {
            Value::String(id) => SubscriberId::new(id).map(Self::from).map_err(D::Error::custom),
            item => {
                let Fields { subscriber_id, identifier, name } = query::fields(item)?;
                Ok(Self { subscriber_id, identifier, name })
            }
        }
    }
}

impl<'de> Deserialize<'de> for UnsubscribeItem {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields {
            subscriber_id: Option<SubscriberId>,
            identifier: Option<SubscriptionIdentifier>,
        }
        let fields = match Value::deserialize(from)? {
            Value::String(id) => {
                let subscriber_id = Some(SubscriberId::new(id).map_err(D::Error::custom)?);
                Fields { subscriber_id, identifier: None }
            }
            item => query::fields(item)?,
        };
        match fields {
            Fields { identifier: Some(identifier), .. } => Ok(Self::Subscription { identifier }),
            Fields { subscriber_id: Some(subscriber_id), .. } => {
                Ok(Self::Subscriber { subscriber_id })
            }
            Fields { subscriber_id: None, identifier: None } => {
                let reason = Reason::MissingUnless { other: "identifier".into() };
                Err(D::Error::custom(Invalid::new("subscriberId", reason)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for WorkflowWord {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Fields {
            workflow_id: Option<String>,
            filter: Option<WorkflowFilter>,
            enabled: Option<bool>,
            condition: Option<Rule>,
        }
        let fields = match Value::deserialize(from)? {
            Value::String(id) => Fields { workflow_id: Some(id), ..Fields::default() },
            word => query::fields(word)?,
        };
        let workflows = match (fields.workflow_id, fields.filter) {
            (Some(workflow_id), None) => WorkflowChoice::One { workflow_id },
            (None, Some(filter)) => WorkflowChoice::Matching { filter },
            (Some(_), Some(_)) => {
                let reason = Reason::Excludes { other: "workflowId".into() };
                return Err(D::Error::custom(Invalid::new("filter", reason)));
            }
            (None, None) => {
                let reason = Reason::MissingUnless { other: "filter".into() };
                return Err(D::Error::custom(Invalid::new("workflowId", reason)));
            }
        };
        let enabled = fields.enabled.unwrap_or(true);
        Ok(Self { workflows, enabled, condition: fields.condition })
    }
}
