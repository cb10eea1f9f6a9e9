//! Parts of keys: how each kind is written, and how it is read.

use std::marker::PhantomData;

use domain::contact::Locale;
use domain::context::{ContextKey, ContextSet};
use domain::dead_letter::DeadLetterReason;
use domain::ids::{
    ApiKeyId, ConnectionId, ConnectionIdentifier, ContextId, DeadLetterId, DigestWindowId,
    EndpointId, EndpointIdentifier, EnvironmentId, IdempotencyKey, IntegrationId,
    IntegrationIdentifier, InternalSubscriberId, LayoutId, LayoutIdentifier, NotificationId,
    OrganizationId, QuarantineId, StepId, SubscriberId, SubscriptionId, SubscriptionIdentifier,
    SuppressionId, TaskId, TopicId, TopicKey, TransactionId, TranslationId, WorkflowId,
    WorkflowIdentifier,
};
use domain::message::{ListPlace, MessagePlace, Shelf};
use domain::notification::{NotificationOutcome, Ordinal};
use domain::page::OrderBy;
use domain::step::EventKey;
use domain::task::TaskClass;
use domain::time::Timestamp;
use domain::translation::{Resource, ResourceType};
use domain::vocabulary::Channel;
use uuid::Uuid;

/// A part of a key.
pub trait KeyPart {
    /// The form in which a part is given.
    type Form<'f>;
    /// The form in which a part is read.
    type Read<'k>;

    /// Writes `part` behind `key`.
    fn write(part: Self::Form<'_>, key: &mut Vec<u8>);

    /// Takes a part off the start of `key`. Returns `None` if `key` does not start with one.
    fn read<'k>(key: &mut &'k [u8]) -> Option<Self::Read<'k>>;
}

/// The parts of a key: none, or the first one and the others.
pub trait Parts {
    /// The form in which parts are read.
    type Read<'k>;

    /// Takes the parts off the start of `key`. Returns `None` if `key` does not start with them.
    fn read<'k>(key: &mut &'k [u8]) -> Option<Self::Read<'k>>;
}

/// The parts of these types, in this order.
macro_rules! parts {
    () => { () };
    ($first:ty $(, $other:ty)*) => { ($first, $crate::key::parts!($($other),*)) };
}
pub(crate) use parts;

impl Parts for () {
    type Read<'k> = ();

    fn read(_: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

impl<First: KeyPart, Others: Parts> Parts for (First, Others) {
    type Read<'k> = (First::Read<'k>, Others::Read<'k>);

    fn read<'k>(key: &mut &'k [u8]) -> Option<Self::Read<'k>> {
        Some((First::read(key)?, Others::read(key)?))
    }
}

// Parts that are given and read by value.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ty: |$value:ident| $bytes:expr, |$key:ident| $read:expr;)+) => {
        $($(#[$doc])* impl KeyPart for $name {
            type Form<'f> = Self;
            type Read<'k> = Self;

            fn write($value: Self, key: &mut Vec<u8>) {
                key.extend_from_slice(&$bytes);
            }

            fn read($key: &mut &[u8]) -> Option<Self> {
                $read
            }
        })+
    };
}

// Ids are their 16 bytes.
macro_rules! ids {
    ($($name:ident,)+) => {
        values! { $($name: |id| *Uuid::from(id).as_bytes(),
            |key| Some(Uuid::from_bytes(*take(key)?).into());)+ }
    };
}

// Names are texts.
macro_rules! names {
    ($($name:ident,)+) => {
        $(impl KeyPart for $name {
            type Form<'f> = &'f Self;
            type Read<'k> = Self;

            fn write(name: &Self, key: &mut Vec<u8>) {
                Text::write(name.as_str(), key);
            }

            fn read(key: &mut &[u8]) -> Option<Self> {
                Self::new(Text::read(key)?).ok()
            }
        })+
    };
}

ids! {
    ApiKeyId, ConnectionId, ContextId, EndpointId, EnvironmentId, IntegrationId, InternalSubscriberId, LayoutId,
    DeadLetterId, DigestWindowId, NotificationId, QuarantineId, StepId, SubscriptionId, SuppressionId, TaskId, TopicId, TranslationId, WorkflowId,
}

names! {
    ConnectionIdentifier, EndpointIdentifier, IdempotencyKey, IntegrationIdentifier,
    LayoutIdentifier, Locale, OrganizationId, SubscriberId, SubscriptionIdentifier, TopicKey,
    TransactionId, WorkflowIdentifier,
}

values! {
    Uuid: |id| id.into_bytes(), |key| take(key).copied().map(Uuid::from_bytes);
    u8: |tag| [tag], |key| take::<1>(key).map(|[tag]| *tag);
    u32: |number| number.to_be_bytes(), |key| take(key).copied().map(u32::from_be_bytes);
    u64: |number| number.to_be_bytes(), |key| take(key).copied().map(u64::from_be_bytes);
    u128: |number| number.to_be_bytes(), |key| take(key).copied().map(u128::from_be_bytes);
    // The sign bit is flipped, so that times sort as times.
    Timestamp: |time| (time.as_millis().cast_unsigned() ^ (1 << 63)).to_be_bytes(), |key| {
        let sortable = u64::from_be_bytes(*take(key)?) ^ (1 << 63);
        Some(Timestamp::from_millis(sortable.cast_signed()))
    };
    Ordinal: |ordinal| {
        let [_, _, _, bytes @ ..] = ordinal.get().to_be_bytes();
        bytes
    }, |key| {
        let bytes: &[u8; 5] = take(key)?;
        Some(Ordinal::new(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))))
    };
    MessagePlace: |place| place.to_bytes(), |key| take(key).copied().map(MessagePlace::from_bytes);
    Shelf: |shelf| [shelf.number()], |key| {
        let [number] = take(key)?;
        Shelf::ALL.into_iter().find(|shelf| shelf.number() == *number)
    };
    EventKey: |key| Uuid::from(key).into_bytes(), |key| {
        Some(Uuid::from_bytes(*take(key)?).into())
    };
    TaskClass: |class| [class.number()], |key| {
        let [number] = take(key)?;
        TaskClass::ALL.into_iter().find(|class| class.number() == *number)
    };
    NotificationOutcome: |outcome| [outcome.number()], |key| {
        let [number] = take(key)?;
        let mut all = NotificationOutcome::ALL.iter().copied();
        all.find(|outcome| outcome.number() == *number)
    };
    DeadLetterReason: |reason| [reason.number()], |key| {
        let [number] = take(key)?;
        DeadLetterReason::ALL.iter().copied().find(|reason| reason.number() == *number)
    };
    Channel: |channel| [channel as u8], |key| {
        let [number] = take(key)?;
        Channel::ALL.iter().copied().find(|channel| *channel as u8 == *number)
    };
    // No workflow is the nil id.
    Option<WorkflowId>: |id| id.map_or(Uuid::nil(), Uuid::from).into_bytes(), |key| {
        let id = Uuid::from_bytes(*take(key)?);
        Some((!id.is_nil()).then(|| id.into()))
    };
}

impl KeyPart for ListPlace {
    type Form<'f> = Self;
    type Read<'k> = Self;

    fn write(place: Self, key: &mut Vec<u8>) {
        Timestamp::write(place.at, key);
        MessagePlace::write(place.place, key);
    }

    fn read(key: &mut &[u8]) -> Option<Self> {
        Some(Self { at: Timestamp::read(key)?, place: MessagePlace::read(key)? })
    }
}

/// A text that has no type of its own. Texts end in NUL, which no text of a record contains.
#[derive(Debug)]
pub enum Text {}

// In place of NUL in the text of a query. No text of a record has this byte, which is not of UTF-8, so that
// the query finds nothing.
const NO_TEXT: u8 = 0xFF;

impl KeyPart for Text {
    type Form<'f> = &'f str;
    type Read<'k> = &'k str;

    fn write(text: &str, key: &mut Vec<u8>) {
        let start = key.len();
        key.extend_from_slice(text.as_bytes());
        let written = key.get_mut(start..).into_iter().flatten();
        written.filter(|byte| **byte == 0).for_each(|byte| *byte = NO_TEXT);
        key.push(0);
    }

    fn read<'k>(key: &mut &'k [u8]) -> Option<&'k str> {
        let (text, rest) = key.split_at_checked(memchr::memchr(0, key)?)?;
        *key = rest.get(1..)?;
        str::from_utf8(text).ok()
    }
}

impl KeyPart for ContextKey {
    type Form<'f> = &'f Self;
    type Read<'k> = Self;

    fn write(context: &Self, key: &mut Vec<u8>) {
        Text::write(context.kind(), key);
        Text::write(context.id(), key);
    }

    fn read(key: &mut &[u8]) -> Option<Self> {
        Self::new(Text::read(key)?, Text::read(key)?).ok()
    }
}

impl KeyPart for ContextSet {
    type Form<'f> = &'f Self;
    type Read<'k> = Self;

    fn write(contexts: &Self, key: &mut Vec<u8>) {
        Text::write(contexts.canonical(), key);
    }

    fn read(key: &mut &[u8]) -> Option<Self> {
        let keys = Text::read(key)?.split(',').map(str::to_owned);
        Self::try_from(keys.collect::<Vec<_>>()).ok()
    }
}

impl KeyPart for Resource {
    type Form<'f> = &'f Self;
    type Read<'k> = Self;

    fn write(resource: &Self, key: &mut Vec<u8>) {
        Text::write(resource.resource_type.as_str(), key);
        Text::write(&resource.resource_id, key);
    }

    fn read(key: &mut &[u8]) -> Option<Self> {
        let (resource_type, id) = (Text::read(key)?.parse().ok()?, Text::read(key)?);
        Some(match resource_type {
            ResourceType::Workflow => Self::workflow(id),
            ResourceType::Layout => Self::layout(id),
        })
    }
}

/// A part that stands for any value, or for one.
#[derive(Debug)]
pub struct Any<P>(PhantomData<P>);

impl<P: KeyPart> KeyPart for Any<P> {
    type Form<'f> = Option<P::Form<'f>>;
    type Read<'k> = Option<P::Read<'k>>;

    fn write(part: Self::Form<'_>, key: &mut Vec<u8>) {
        key.push(u8::from(part.is_some()));
        if let Some(part) = part {
            P::write(part, key);
        }
    }

    fn read<'k>(key: &mut &'k [u8]) -> Option<Self::Read<'k>> {
        match take(key)? {
            [0] => Some(None),
            [1] => P::read(key).map(Some),
            _ => None,
        }
    }
}

/// The order of a list, and the place of an item in it.
#[derive(Debug)]
pub struct Sorted<Id>(PhantomData<Id>);

/// The place of an item in a list: its sort value and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortedPlace<'p, Id> {
    /// In a list by id.
    Id(Id),
    /// In a list by time of creation.
    CreatedAt(Timestamp, Id),
    /// In a list by time of the last change.
    UpdatedAt(Timestamp, Id),
    /// In a list by key. A key belongs to one item.
    Key(&'p str),
}

impl<Id> SortedPlace<'_, Id> {
    fn order_by(&self) -> OrderBy {
        match self {
            SortedPlace::Id(_) => OrderBy::Id,
            SortedPlace::CreatedAt(..) => OrderBy::CreatedAt,
            SortedPlace::UpdatedAt(..) => OrderBy::UpdatedAt,
            SortedPlace::Key(_) => OrderBy::Key,
        }
    }
}

impl<Id: KeyPart> KeyPart for Sorted<Id> {
    type Form<'f> = SortedPlace<'f, Id::Form<'f>>;
    type Read<'k> = SortedPlace<'k, Id::Read<'k>>;

    fn write(place: Self::Form<'_>, key: &mut Vec<u8>) {
        u8::write(place.order_by().tag(), key);
        match place {
            SortedPlace::Id(id) => Id::write(id, key),
            SortedPlace::CreatedAt(time, id) | SortedPlace::UpdatedAt(time, id) => {
                Timestamp::write(time, key);
                Id::write(id, key);
            }
            SortedPlace::Key(text) => Text::write(text, key),
        }
    }

    fn read<'k>(key: &mut &'k [u8]) -> Option<Self::Read<'k>> {
        let tag = u8::read(key)?;
        let order_by = OrderBy::ALL.iter().find(|order_by| order_by.tag() == tag)?;
        Some(match order_by {
            OrderBy::Id => SortedPlace::Id(Id::read(key)?),
            OrderBy::CreatedAt => SortedPlace::CreatedAt(Timestamp::read(key)?, Id::read(key)?),
            OrderBy::UpdatedAt => SortedPlace::UpdatedAt(Timestamp::read(key)?, Id::read(key)?),
            OrderBy::Key => SortedPlace::Key(Text::read(key)?),
        })
    }
}

fn take<'k, const N: usize>(key: &mut &'k [u8]) -> Option<&'k [u8; N]> {
    let (bytes, rest) = key.split_first_chunk()?;
    *key = rest;
    Some(bytes)
}
