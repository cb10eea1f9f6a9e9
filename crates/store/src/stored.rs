//! Stored types, and the code that reads and writes their values.
//!
//! The compiler makes generic code anew in each crate that uses it, and that of serde is large. So each
//! type has functions of its own, which are compiled here, once for all crates.

use domain::message::{MessageExcerpt, WholeMessage};
use domain::notification::{NotificationOwner, NotificationSubscriber};
use domain::subscriber::SubscriberIds;
use domain::trigger::TriggerRecipients;

use crate::Table;
use crate::encoding::{Unreadable, Unwritable};

/// A type that is read from values.
pub trait Readable: Sized {
    /// Returns what `value` has, in any encoding.
    ///
    /// # Errors
    ///
    /// The reason, if the value is not readable.
    fn read(value: &[u8]) -> Result<Self, Unreadable>;
}

/// A type that has values of its own, in a table.
pub trait Stored: Readable {
    /// The table that has values of this type.
    const TABLE: Table;

    /// Returns the number of bytes of the content before it is compressed. Returns 0 if it cannot be written.
    fn content_len(&self) -> usize;

    /// Returns the value in few bytes, padded to `reserved_len` bytes.
    ///
    /// # Errors
    ///
    /// An error of the serializer of the type.
    fn packed(&self, reserved_len: usize) -> Result<Vec<u8>, Unwritable>;
}

macro_rules! readable {
    ($($type:ty),+ $(,)?) => {
        $(impl crate::stored::Readable for $type {
            fn read(value: &[u8]) -> Result<Self, crate::encoding::Unreadable> {
                crate::encoding::decode(value)
            }
        })+
    };
}

// The type of the records in a table.
macro_rules! stored {
    ($type:ident in $table:ident) => {
        crate::stored::readable! { $type }

        impl crate::stored::Stored for $type {
            const TABLE: crate::Table = crate::Table::$table;

            fn content_len(&self) -> usize {
                crate::encoding::content_len(self)
            }

            fn packed(&self, reserved_len: usize) -> Result<Vec<u8>, crate::encoding::Unwritable> {
                crate::encoding::encode(self, reserved_len)
            }
        }
    };
}

pub(crate) use {readable, stored};

readable! {
    MessageExcerpt,
    NotificationOwner,
    NotificationSubscriber,
    SubscriberIds,
    TriggerRecipients,
    WholeMessage,
}
