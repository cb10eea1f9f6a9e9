//! Shapes without members: texts, numbers, flags, and objects with any content.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::Value;

use super::shape::{Kind, Null};
use super::{Object, Shape, Shaped, refusal};
use crate::api_key::ApiKeyName;
use crate::condition::Rule;
use crate::contact::{Email, Locale, TimeZone};
use crate::context::{ContextKey, ContextPart};
use crate::credentials::TlsOptions;
use crate::endpoint::PhoneNumber;
use crate::environment::{Color, EnvironmentName};
use crate::error::Invalid;
use crate::ids::{
    ConnectionIdentifier, DeadLetterId, EndpointIdentifier, EnvironmentId, IntegrationId,
    IntegrationIdentifier, IntegrationRef, LayoutIdentifier, MessageId, PlatformId, StepId,
    StepRef, SubscriberId, SubscriptionIdentifier, TopicKey, TransactionId, WorkflowIdentifier,
    WorkflowRef,
};
use crate::page::Cursor;
use crate::patch::Patch;
use crate::schedule::ClockTime;
use crate::secret::Secret;
use crate::template::Template;
use crate::time::Timestamp;
use crate::vocabulary::{Channel, Weekday};

impl<T: Shaped> Shaped for Option<T> {
    fn shape() -> Shape {
        Shape(Kind::Nullable(T::shape, Null::IsAbsent))
    }

    fn written() -> Shape {
        Shape(Kind::Nullable(T::written, Null::IsAbsent))
    }
}

impl<T: Shaped> Shaped for Patch<T> {
    fn shape() -> Shape {
        Shape(Kind::Nullable(T::shape, Null::Clears))
    }
}

impl<T: Shaped> Shaped for Vec<T> {
    fn shape() -> Shape {
        Shape(Kind::Items(T::shape))
    }
}

impl<V: Shaped> Shaped for BTreeMap<String, V> {
    fn shape() -> Shape {
        Shape::entries::<V>(|_| Ok(()))
    }
}

impl<V: Shaped> Shaped for BTreeMap<Weekday, V> {
    fn shape() -> Shape {
        Shape::entries::<V>(|name| name.parse::<Weekday>().map(drop))
    }
}

impl<V: Shaped> Shaped for BTreeMap<Channel, V> {
    fn shape() -> Shape {
        Shape::entries::<V>(|name| name.parse::<Channel>().map(drop))
    }
}

impl Shaped for bool {
    fn shape() -> Shape {
        Shape::leaf(refusal::read::<bool>)
    }

    fn written() -> Shape {
        Shape::leaf(|value| match value {
            Value::Bool(_) => Ok(()),
            Value::String(text) if text.parse::<bool>().is_ok() => Ok(()),
            _ => Err(refusal::not("`true` or `false`")),
        })
    }
}

impl Shaped for u32 {
    fn shape() -> Shape {
        Shape::leaf(refusal::read::<u32>)
    }

    fn written() -> Shape {
        Shape::leaf(|value| match value {
            Value::Number(number) if number.as_u64().is_some_and(|n| u32::try_from(n).is_ok()) => {
                Ok(())
            }
            Value::String(text) if text.parse::<u32>().is_ok() => Ok(()),
            _ => Err(refusal::not("a whole number")),
        })
    }
}

impl Shaped for DeadLetterId {
    fn shape() -> Shape {
        Shape::leaf(|value| match value {
            Value::String(text) => text.parse::<Self>().map(drop),
            _ => Err(refusal::not("a text")),
        })
    }
}

macro_rules! wholes {
    ($($type:ty),+ $(,)?) => {
        $(
            impl Shaped for $type {
                fn shape() -> Shape {
                    Shape::leaf(refusal::read::<$type>)
                }
            }
        )+
    };
}

wholes! { String, Value, Secret, TlsOptions, Template, WorkflowRef, IntegrationRef, StepRef }

// The errors of these types name the broken rule.
macro_rules! checked {
    ($from:ident in $variant:pat => $expected:literal: $($type:ty),+ $(,)?) => {
        $(
            impl Shaped for $type {
                fn shape() -> Shape {
                    Shape::leaf(|value| match value {
                        $variant => <$type>::try_from($from.clone()).map(drop),
                        _ => Err(refusal::not($expected)),
                    })
                }
            }
        )+
    };
}

checked! { text in Value::String(text) => "a text":
    ClockTime,
    Color,
    ConnectionIdentifier,
    ContextPart,
    Cursor,
    Email,
    EndpointIdentifier,
    EnvironmentName,
    ApiKeyName,
    IntegrationIdentifier,
    LayoutIdentifier,
    Locale,
    PhoneNumber,
    PlatformId,
    SubscriberId,
    SubscriptionIdentifier,
    TimeZone,
    Timestamp,
    TopicKey,
    TransactionId,
    WorkflowIdentifier,
}
checked! { members in Value::Object(members) => "an object": Object }

impl Shaped for Rule {
    fn shape() -> Shape {
        Shape::leaf(|value| Rule::new(value.clone()).map(drop))
    }
}

/// Shape of a text that may stand in place of an object.
pub(crate) fn text_or_object<T: TryFrom<String, Error: Into<Invalid>>>() -> Shape {
    Shape::leaf(|value| match value {
        Value::String(text) => T::try_from(text.clone()).map(drop).map_err(Into::into),
        _ => Err(refusal::not("a text or an object")),
    })
}

/// Shape of an enum that is written as one word.
pub(crate) fn word<T: FromStr<Err = Invalid>>() -> Shape {
    Shape::leaf(|value| match value {
        Value::String(word) => word.parse::<T>().map(drop),
        _ => Err(refusal::not("a text")),
    })
}

macro_rules! words {
    ($($type:ty),+ $(,)?) => {
        $(
            impl Shaped for $type {
                fn shape() -> Shape {
                    word::<$type>()
                }
            }
        )+
    };
}

words! { EnvironmentId, IntegrationId, MessageId, StepId }

/// Shape of a context key: `type:id`.
pub(crate) fn context_key() -> Shape {
    word::<ContextKey>()
}
