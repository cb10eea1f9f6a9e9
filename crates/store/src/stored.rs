//! Stored types, and the code that reads and writes their values.
//!
//! The compiler makes generic code anew in each crate that uses it, and that of serde is large. So each
//! type has functions of its own, which are compiled here, once for all crates.

use domain::api_key::ApiKey;
use domain::connection::ChannelConnection;
use domain::context::Context;
use domain::digest::{DigestBucket, ThrottleSlot, WindowEvent};
use domain::endpoint::ChannelEndpoint;
use domain::environment::Environment;
use domain::idempotency::StoredAnswer;
use domain::integration::Integration;
use domain::layout::Layout;
use domain::message::{DeletedMessage, Message, MessageExcerpt, WholeMessage};
use domain::notification::{Notification, NotificationOwner, NotificationSubscriber};
use domain::preference::SubscriberPreference;
use domain::quarantine::Quarantined;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::suppression::Suppression;
use domain::task::Task;
use domain::topic::Topic;
use domain::translation::{Translation, TranslationGroup};
use domain::trigger::{AcceptedTrigger, CanceledTrigger, FanOut, FanOutState, TriggerRecipients};
use domain::unsubscribe::LinkKey;
use domain::workflow::Workflow;

use crate::encoding::{self, Unreadable, Unwritable};

/// A type that is read from values.
pub trait Readable: Sized {
    /// Returns what `value` has, in any encoding.
    ///
    /// # Errors
    ///
    /// The reason, if the value is not readable.
    fn read(value: &[u8]) -> Result<Self, Unreadable>;
}

/// A type that has values of its own.
pub trait Stored: Readable {
    /// Returns the value in JSON.
    ///
    /// # Errors
    ///
    /// An error of the serializer of the type.
    fn json(&self) -> Result<Vec<u8>, serde_json::Error>;

    /// Returns the value in few bytes, padded to `reserved_len` bytes.
    ///
    /// # Errors
    ///
    /// An error of the serializer of the type.
    fn packed(&self, reserved_len: usize) -> Result<Vec<u8>, Unwritable>;
}

macro_rules! readable {
    ($($type:ty),+ $(,)?) => {
        $(impl Readable for $type {
            fn read(value: &[u8]) -> Result<Self, Unreadable> {
                encoding::decode(value)
            }
        })+
    };
}

macro_rules! stored {
    ($($type:ty),+ $(,)?) => {
        readable! { $($type),+ }

        $(impl Stored for $type {
            fn json(&self) -> Result<Vec<u8>, serde_json::Error> {
                encoding::plain(self)
            }

            fn packed(&self, reserved_len: usize) -> Result<Vec<u8>, Unwritable> {
                encoding::encode(self, reserved_len)
            }
        })+
    };
}

readable! {
    MessageExcerpt,
    NotificationOwner,
    NotificationSubscriber,
    TriggerRecipients,
    WholeMessage,
}

stored! {
    AcceptedTrigger,
    CanceledTrigger,
    ChannelConnection,
    ChannelEndpoint,
    Context,
    DeletedMessage,
    DigestBucket,
    Environment,
    ApiKey,
    FanOut,
    FanOutState,
    Integration,
    Layout,
    LinkKey,
    Message,
    Notification,
    Quarantined,
    StoredAnswer,
    Subscriber,
    SubscriberPreference,
    Subscription,
    Suppression,
    Task,
    ThrottleSlot,
    Topic,
    Translation,
    TranslationGroup,
    WindowEvent,
    Workflow,
}
