//! Setters of message queries.

use super::{MarkAs, MarkMessages, MessageQuery};
use crate::convert::{IntoChecked, each_checked};
use crate::error::Invalid;
use crate::ids::{MessageId, TransactionId};
use crate::setters::{page_setters, setters};
use crate::vocabulary::Channel;

setters! { MessageQuery:
    /// Lists the messages on this channel.
    channel: exact(Channel);
    /// Lists the messages of this event.
    transaction_id: checked(TransactionId, "transactionId");
    /// Lists the read messages.
    read: flag(true);
    /// Lists the unread messages.
    unread @ read: flag(false);
    /// Lists the seen messages.
    seen: flag(true);
    /// Lists the unseen messages.
    unseen @ seen: flag(false);
}

page_setters!(MessageQuery);

impl MarkMessages {
    /// Returns a request that marks 1 to 1,000 messages.
    pub fn new(
        message_id: impl IntoIterator<Item: IntoChecked<MessageId>>,
        mark_as: MarkAs,
    ) -> Result<Self, Invalid> {
        Ok(Self { message_id: each_checked("messageId", message_id)?, mark_as })
    }
}
