//! Short forms of requests for subscriptions.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{SubscribeItem, UnsubscribeItem, WorkflowChoice, WorkflowFilter, WorkflowSetting};
use crate::condition::Rule;
use crate::error::{Invalid, Reason};
use crate::ids::{SubscriberId, SubscriptionIdentifier, WorkflowRef};
use crate::json::{Shape, Shaped, shape, text_or_object};
use crate::query;

// The derived error of an untagged enum does not name the fault. So an item that is no text is read
// as an object, and its fields decide.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubscribeFields {
    subscriber_id: SubscriberId,
    identifier: Option<SubscriptionIdentifier>,
    name: Option<String>,
}

shape! { SubscribeFields {
    "subscriberId": subscriber_id, "identifier": identifier, "name": name,
} }

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UnsubscribeFields {
    subscriber_id: Option<SubscriberId>,
    identifier: Option<SubscriptionIdentifier>,
}

shape! { UnsubscribeFields { "subscriberId": subscriber_id, "identifier": identifier } }

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WordFields {
    workflow_id: Option<WorkflowRef>,
    filter: Option<WorkflowFilter>,
    enabled: Option<bool>,
    condition: Option<Rule>,
}

shape! { WordFields {
    "workflowId": workflow_id, "filter": filter, "enabled": enabled, "condition": condition,
} }

macro_rules! short_forms {
    ($($item:ty: $text:ty, $fields:ty;)+) => {
        $(
            impl Shaped for $item {
                fn shape() -> Shape {
                    Shape::choice(|value| match value {
                        Value::Object(_) => <$fields>::shape().read_as::<$item>(),
                        _ => text_or_object::<$text>(),
                    })
                }
            }
        )+
    };
}

short_forms! {
    SubscribeItem: SubscriberId, SubscribeFields;
    UnsubscribeItem: SubscriberId, UnsubscribeFields;
    WorkflowSetting: String, WordFields;
}

impl<'de> Deserialize<'de> for SubscribeItem {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(id) => SubscriberId::new(id).map(Self::from).map_err(D::Error::custom),
            item => {
                let SubscribeFields { subscriber_id, identifier, name } = query::fields(item)?;
                Ok(Self { subscriber_id, identifier, name })
            }
        }
    }
}

impl<'de> Deserialize<'de> for UnsubscribeItem {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let fields = match Value::deserialize(from)? {
            Value::String(id) => {
                let subscriber_id = Some(SubscriberId::new(id).map_err(D::Error::custom)?);
                UnsubscribeFields { subscriber_id, identifier: None }
            }
            item => query::fields(item)?,
        };
        match fields {
            UnsubscribeFields { subscriber_id: None, identifier: Some(identifier) } => {
                Ok(Self::Subscription { identifier })
            }
            UnsubscribeFields { subscriber_id: Some(subscriber_id), identifier: None } => {
                Ok(Self::Subscriber { subscriber_id })
            }
            UnsubscribeFields { subscriber_id: Some(_), identifier: Some(_) } => {
                let reason = Reason::Excludes { other: "subscriberId".into() };
                Err(D::Error::custom(Invalid::new("identifier", reason)))
            }
            UnsubscribeFields { subscriber_id: None, identifier: None } => {
                let reason = Reason::MissingUnless { other: "identifier".into() };
                Err(D::Error::custom(Invalid::new("subscriberId", reason)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for WorkflowSetting {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let fields = match Value::deserialize(from)? {
            Value::String(id) => {
                WordFields { workflow_id: Some(id.into()), ..WordFields::default() }
            }
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
