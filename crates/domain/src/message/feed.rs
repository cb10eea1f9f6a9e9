//! The feed of an inbox: what has changed since a cursor.
//!
//! A message is in the feed once, with its present state. Deliveries are ordered by the places of
//! messages in lists, which grow with each commit. Other changes have numbers: all changes of a
//! subscriber's messages in one transaction share one, which is larger than those before. So
//! messages that nobody has changed need no rows for the feed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{InboxCounts, ListPlace, Message, MessageCounters, MessagePlace};
use crate::error::{Invalid, Reason};
use crate::hex;
use crate::ids::{EnvironmentId, InternalSubscriberId, MessageId};
use crate::json::is_default;
use crate::time::Timestamp;

/// Place in the feed of an inbox. Opaque to callers, who may keep it as its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FeedCursor {
    environment: [u8; 4],
    subscriber: [u8; 4],
    /// Newest delivery that is known.
    delivered: Option<ListPlace>,
    /// Changes that are known.
    changed: Known,
}

/// Changes that are known: those up to a number, or those before it and a part of its own.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Number.
    pub number: u64,
    /// The last known one of the messages with this number. `None` if all of them are known.
    pub within: Option<MessagePlace>,
}

/// Changes of an inbox since a cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Changes {
    /// A page of the changes.
    Since(FeedPage),
    /// The changes are not known: the cursor is too old, or ahead of the inbox, as one is from before a backup was
    /// restored. The caller lists the inbox again, and goes on from this cursor.
    Reset {
        /// The newest cursor.
        cursor: FeedCursor,
    },
}

/// Page of the changes of an inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FeedPage {
    /// Changes: at most 200, each message once.
    pub changes: Vec<InboxChange>,
    /// Cursor behind the page.
    pub next: FeedCursor,
    /// `true` if there are more changes behind the page.
    pub has_more: bool,
    /// Numbers of unseen and unread messages.
    pub counts: InboxCounts,
    /// Number of changes that are left out of this page, because their records cannot be read. The
    /// engine's `check` finds them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unreadable: usize,
}

/// Change of an inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum InboxChange {
    /// A message is new, or has changed.
    Message {
        /// The message as it is.
        message: Box<Message>,
    },
    /// A message was deleted.
    Deleted {
        /// Id of the message.
        message_id: MessageId,
    },
}

/// Deleted message, which the feed tells.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedMessage {
    /// Environment of the message.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Subscriber.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    /// Number of the change.
    pub change: u64,
    /// Id of the message.
    #[serde(rename = "_messageId")]
    pub message_id: MessageId,
}

/// How a cursor stands to the newest one.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing has changed since.
    Newest,
    /// Something has changed since.
    Behind,
    /// What has changed since is not known.
    Lost,
}

impl DeletedMessage {
    /// Number of deletions of a subscriber that are kept.
    pub const KEPT: usize = 100;

    /// Returns the deletion of a message.
    pub fn of(message: &Message, change: u64) -> Self {
        let (environment_id, subscriber_id) = (message.environment_id, message.subscriber_id);
        Self { environment_id, subscriber_id, change, message_id: message.id }
    }
}

impl FeedPage {
    /// Number of messages that a page has of each kind of change.
    #[doc(hidden)]
    pub const LIMIT: usize = 100;

    /// Returns a page.
    #[doc(hidden)]
    pub fn new(
        changes: Vec<InboxChange>,
        next: FeedCursor,
        has_more: bool,
        counts: InboxCounts,
    ) -> Self {
        Self { changes, next, has_more, counts, unreadable: 0 }
    }

    /// Returns the page with the number of changes that are left out of it.
    #[doc(hidden)]
    #[must_use]
    pub fn without(self, unreadable: usize) -> Self {
        Self { unreadable, ..self }
    }
}

#[doc(hidden)]
impl FeedCursor {
    /// Returns the newest cursor of a subscriber with these counters.
    pub fn newest(
        environment: EnvironmentId,
        subscriber: InternalSubscriberId,
        counters: &MessageCounters,
    ) -> Self {
        Self {
            environment: tail(environment.into()),
            subscriber: tail(subscriber.into()),
            delivered: counters.newest,
            changed: Known { number: counters.changes, within: None },
        }
    }

    /// Returns the newest delivery that is known.
    pub const fn delivered(&self) -> Option<ListPlace> {
        self.delivered
    }

    /// Returns the changes that are known.
    pub const fn changed(&self) -> Known {
        self.changed
    }

    /// Returns the cursor with other places.
    #[must_use]
    pub const fn moved(self, delivered: Option<ListPlace>, changed: Known) -> Self {
        Self { delivered, changed, ..self }
    }

    /// Returns how the cursor stands to the `newest` one, if changes up to the number `forgotten`
    /// are not known any more. Refuses a cursor of another environment.
    pub fn standing(&self, newest: &Self, forgotten: u64) -> Result<Standing, Invalid> {
        if self.environment != newest.environment {
            return Err(foreign());
        }
        let number = self.changed.number;
        // A part of a number is known only as long as its deletions are.
        let known = number.saturating_sub(u64::from(self.changed.within.is_some()));
        let is_lost = self.subscriber != newest.subscriber
            || known < forgotten
            || number > newest.changed.number
            || self.delivered > newest.delivered;
        Ok(match self == newest {
            _ if is_lost => Standing::Lost,
            true => Standing::Newest,
            false => Standing::Behind,
        })
    }
}

#[doc(hidden)]
impl Known {
    /// Returns `true` if the change with this number of the message in `place` is known.
    pub fn has(self, number: u64, place: MessagePlace) -> bool {
        match self.within {
            None => number <= self.number,
            Some(within) => (number, place) <= (self.number, within),
        }
    }
}

// The last bytes of an id are random.
fn tail(id: Uuid) -> [u8; 4] {
    let [.., first, second, third, fourth] = id.into_bytes();
    [first, second, third, fourth]
}

fn foreign() -> Invalid {
    Invalid::new("cursor", Reason::malformed("a cursor of this inbox"))
}

const LEN: usize = 4 + 4 + (1 + 8 + 8) + 8 + (1 + 8);

impl FeedCursor {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend(self.environment);
        bytes.extend(self.subscriber);
        bytes.push(u8::from(self.delivered.is_some()));
        let zero = ListPlace { at: Timestamp::from_millis(0), place: MessagePlace::default() };
        let delivered = self.delivered.unwrap_or(zero);
        bytes.extend(delivered.at.as_millis().to_be_bytes());
        bytes.extend(delivered.place.to_bytes());
        bytes.extend(self.changed.number.to_be_bytes());
        bytes.push(u8::from(self.changed.within.is_some()));
        bytes.extend(self.changed.within.unwrap_or_default().to_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (environment, subscriber) = (take(&mut rest)?, take(&mut rest)?);
        let has_delivered = flag(&mut rest)?;
        let at = Timestamp::from_millis(i64::from_be_bytes(take(&mut rest)?));
        let place = MessagePlace::from_bytes(take(&mut rest)?);
        let number = u64::from_be_bytes(take(&mut rest)?);
        let has_within = flag(&mut rest)?;
        let within = MessagePlace::from_bytes(take(&mut rest)?);
        rest.is_empty().then_some(Self {
            environment,
            subscriber,
            delivered: has_delivered.then_some(ListPlace { at, place }),
            changed: Known { number, within: has_within.then_some(within) },
        })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

fn flag(bytes: &mut &[u8]) -> Option<bool> {
    match take(bytes)? {
        [0] => Some(false),
        [1] => Some(true),
        _ => None,
    }
}

// Hexadecimal digits need no escaping in a URL or in the id of a server-sent event.
impl fmt::Display for FeedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(self.to_bytes(), f)
    }
}

impl FromStr for FeedCursor {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let bytes: Option<Vec<u8>> = hex::read(text).take(LEN + 1).collect();
        bytes.and_then(|bytes| Self::from_bytes(&bytes)).ok_or_else(foreign)
    }
}

impl TryFrom<String> for FeedCursor {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<FeedCursor> for String {
    fn from(cursor: FeedCursor) -> String {
        cursor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::id;

    fn cursor(delivered: Option<i64>, number: u64, within: Option<u64>) -> FeedCursor {
        let delivered = delivered
            .map(|at| ListPlace { at: Timestamp::from_millis(at), place: MessagePlace::default() });
        let changed = Known { number, within: within.map(MessagePlace::from) };
        let newest = FeedCursor::newest(id(1), id(2), &MessageCounters::default());
        newest.moved(delivered, changed)
    }

    /// One row per cursor: how it stands to the newest one, whose changes up to 3 are forgotten.
    #[test]
    fn a_cursor_is_lost_when_it_is_too_old_or_not_of_this_feed() {
        use Standing::{Behind, Lost, Newest};
        let newest = cursor(Some(5), 7, None);
        for (old, standing) in [
            (newest, Newest),
            (cursor(Some(4), 7, None), Behind),
            (cursor(None, 7, None), Behind),
            (cursor(Some(5), 6, None), Behind),
            (cursor(Some(5), 7, Some(9)), Behind),
            (cursor(Some(5), 3, None), Behind),
            (cursor(Some(5), 4, Some(9)), Behind),
            (cursor(Some(5), 2, None), Lost),
            (cursor(Some(5), 3, Some(9)), Lost),
            (cursor(Some(5), 8, None), Lost),
            (cursor(Some(6), 7, None), Lost),
            (FeedCursor { subscriber: [9; 4], ..newest }, Lost),
        ] {
            assert_eq!(old.standing(&newest, 3), Ok(standing), "{old:?}");
        }
        let foreign = FeedCursor { environment: [9; 4], ..newest };
        let refusal = foreign.standing(&newest, 0).unwrap_err().to_string();
        assert_eq!(refusal, "`cursor` must be a cursor of this inbox");
    }

    proptest! {
        #[test]
        fn a_cursor_is_read_as_it_is_written(
            delivered: Option<i64>, number: u64, within: Option<u64>,
        ) {
            let cursor = cursor(delivered, number, within);
            let text = cursor.to_string();
            prop_assert_eq!(text.parse::<FeedCursor>(), Ok(cursor));
            for damaged in [&text[1..], &text[..text.len() - 2], &format!("{text}00")] {
                prop_assert!(damaged.parse::<FeedCursor>().is_err());
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = text.parse::<FeedCursor>();
        }
    }
}
