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
            _ => SubscriberRecipient::shape(),
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
            topic if topic.get("type").is_some() => {
                TopicRecipient::deserialize(topic).map(Recipient::Topic).map_err(D::Error::custom)
            }
            recipient => subscriber(recipient).map(Recipient::Subscriber),
        }
    }
}

impl<'de> Deserialize<'de> for SubscriberRecipient {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        subscriber(Value::deserialize(from)?)
    }
}

fn subscriber<E: Error>(recipient: Value) -> Result<SubscriberRecipient, E> {
    match recipient {
        Value::String(id) => SubscriberId::new(id).map(Into::into).map_err(E::custom),
        create => SubscriberCreate::deserialize(create).map(Into::into).map_err(E::custom),
    }
}
