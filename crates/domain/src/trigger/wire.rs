//! Recipients on the wire.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Recipient, Recipients, SubscriberRecipient, TopicRecipient};
use crate::ids::SubscriberId;
use crate::json::{Shape, Shaped, text_or_object};
use crate::subscriber::SubscriberCreate;

impl Shaped for Recipients {
    fn shape() -> Shape {
        Shape::choice(|value| match value {
            Value::Array(_) => Vec::<Recipient>::shape(),
            _ => Recipient::shape(),
        })
    }
}

impl Shaped for SubscriberRecipient {
    fn shape() -> Shape {
        Shape::choice(|value| match value {
            Value::Object(_) => SubscriberCreate::shape(),
            _ => text_or_object::<SubscriberId>(),
        })
    }
}

impl Shaped for Recipient {
    fn shape() -> Shape {
        Shape::choice(|value| match value {
            Value::Object(topic)
                if ["type", "topicKey"].iter().any(|name| topic.contains_key(*name)) =>
            {
                TopicRecipient::shape()
            }
            Value::Object(_) => SubscriberCreate::shape(),
            _ => text_or_object::<SubscriberId>(),
        })
    }
}

// The derived error of an untagged enum does not name the fault.
impl<'de> Deserialize<'de> for Recipients {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::Array(recipients) => recipients
                .into_iter()
                .map(Recipient::deserialize)
                .collect::<Result<_, _>>()
                .map(Recipients::Many),
            recipient => Recipient::deserialize(recipient).map(Recipients::One),
        }
        .map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Recipient {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(id) => SubscriberId::new(id).map(Self::from).map_err(D::Error::custom),
            topic if topic.get("type").is_some() => {
                TopicRecipient::deserialize(topic).map(Recipient::Topic).map_err(D::Error::custom)
            }
            subscriber => {
                SubscriberCreate::deserialize(subscriber).map(Self::from).map_err(D::Error::custom)
            }
        }
    }
}

impl<'de> Deserialize<'de> for SubscriberRecipient {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(id) => SubscriberId::new(id).map(Self::from).map_err(D::Error::custom),
            subscriber => {
                SubscriberCreate::deserialize(subscriber).map(Self::from).map_err(D::Error::custom)
            }
        }
    }
}
