//! Snoozing messages: they are hidden until a time.

use domain::convert::{IntoChecked, each_checked};
use domain::ids::MessageId;
use domain::message::{Edit, Message};
use domain::time::Timestamp;

use super::Inbox;
use crate::Result;

impl Inbox<'_> {
    /// Hides messages until a time. A snoozed message is in no list without `snoozed`, and does not
    /// count. At the time a task wakes it: it is delivered again, unseen, as the newest message. The
    /// task is done by [`run_due`](crate::DeliveryQueue::run_due) or a [`Worker`](crate::Worker).
    ///
    /// A message that is snoozed again wakes at the new time. An archived message leaves the archive.
    /// Marks do not end a snooze; the archive does. Returns the messages once each, in the order of
    /// the ids. Ids of messages that are not in this inbox are ignored.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tidings::{Clock, Engine, ManualClock, store::memory::MemoryStore};
    /// # use tidings::{message::MessageQuery, step::Step, trigger::Trigger, workflow::WorkflowCreate};
    ///
    /// let clock = ManualClock::at("2026-01-05T09:00:00Z".parse()?);
    /// let engine = Engine::builder().clock(clock.clone()).build(MemoryStore::default());
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
    /// # env.events().trigger(&Trigger::new("greeting", "ada")?)?;
    /// let inbox = env.inbox("ada")?;
    /// let message = inbox.list(&MessageQuery::default())?.data[0].id;
    /// let tomorrow = clock.now().after(Duration::from_secs(24 * 60 * 60));
    /// inbox.snooze([message], tomorrow)?;
    /// assert_eq!(inbox.counts()?.unread, 0);
    ///
    /// engine.delivery().run_until(tomorrow)?;
    /// assert_eq!(inbox.counts()?.unseen, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such subscriber;
    /// [`Error::Invalid`](crate::Error::Invalid), if the time is not in the future, if there are no
    /// ids, or more than 1,000, or if the messages have more than 32 MiB.
    pub fn snooze(
        &self,
        ids: impl IntoIterator<Item: IntoChecked<MessageId>>,
        until: Timestamp,
    ) -> Result<Vec<Message>> {
        let ids: Vec<MessageId> = each_checked("messageId", ids)?;
        self.edit("inbox.snooze", &ids, Edit::Snooze(until))
    }

    /// Ends the snooze of messages before its time. They are in the inbox where they were, and not in
    /// the archive. Returns the messages as [`snooze`](Self::snooze) does.
    ///
    /// # Errors
    ///
    /// As [`archive`](Self::archive).
    pub fn unsnooze(
        &self,
        ids: impl IntoIterator<Item: IntoChecked<MessageId>>,
    ) -> Result<Vec<Message>> {
        self.edit("inbox.unsnooze", &each_checked("messageId", ids)?, Edit::Unsnooze)
    }
}
