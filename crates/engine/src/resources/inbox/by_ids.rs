//! Changing some messages of an inbox, by their ids.

use domain::content::ButtonType;
use domain::convert::{IntoChecked, each_checked};
use domain::ids::MessageId;
use domain::message::{CompleteAction, Edit, Message};
use domain::subscriber::Subscriber;

use super::Inbox;
use crate::error::Rejection;
use crate::resources::{messages, subscribers};
use crate::tx::Tx;
use crate::{Entity, Error, Result};

impl Inbox<'_> {
    /// Puts messages into the archive, where they count as read. A snooze ends. Returns the messages
    /// once each, in the order of the ids. Ids of messages that are not in this inbox are ignored.
    ///
    /// An archived message stays in the archive when it is marked as read or seen, and leaves it when
    /// it is marked as unread or unseen.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::{message::MessageQuery, step::Step, trigger::Trigger, workflow::WorkflowCreate};
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
    /// # env.events().trigger(&Trigger::new("greeting", "ada")?)?;
    /// let inbox = env.inbox("ada")?;
    /// let message = inbox.list(&MessageQuery::default())?.data[0].id;
    /// inbox.archive([message])?;
    /// assert_eq!(inbox.list(&MessageQuery::default())?.data, []);
    /// inbox.unarchive([message])?;
    /// assert_eq!(inbox.delete([message])?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber; [`Error::Invalid`], if there are no ids,
    /// or more than 1,000, or if the messages have more than 32 MiB.
    pub fn archive(
        &self,
        ids: impl IntoIterator<Item: IntoChecked<MessageId>>,
    ) -> Result<Vec<Message>> {
        self.edit("inbox.archive", &each_checked("messageId", ids)?, Edit::Archive)
    }

    /// Takes messages out of the archive. They stay read. Returns the messages as
    /// [`archive`](Self::archive) does.
    ///
    /// # Errors
    ///
    /// As [`archive`](Self::archive).
    pub fn unarchive(
        &self,
        ids: impl IntoIterator<Item: IntoChecked<MessageId>>,
    ) -> Result<Vec<Message>> {
        self.edit("inbox.unarchive", &each_checked("messageId", ids)?, Edit::Unarchive)
    }

    /// Deletes messages. Returns their number. Ids of messages that are not in this inbox are
    /// ignored. Notifications in the activity list stay.
    ///
    /// # Errors
    ///
    /// As [`archive`](Self::archive).
    pub fn delete(&self, ids: impl IntoIterator<Item: IntoChecked<MessageId>>) -> Result<u64> {
        let ids: Vec<MessageId> = each_checked("messageId", ids)?;
        self.scope.write("inbox.delete", (&self.subscriber, &ids), |tx| {
            let (subscriber, found) = self.some(tx, &ids)?;
            messages::delete(tx, &subscriber, &found)?;
            Ok(found.len() as u64)
        })
    }

    /// Completes the action of a button of a message, and marks the message as read. A completed
    /// action that is completed again keeps its time and its payload. Another button takes its
    /// place.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::content::ButtonType;
    /// use tidings::message::CompleteAction;
    /// # use tidings::{message::MessageQuery, trigger::Trigger};
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.workflows().create(&tidings::json::read(br#"{
    /// #     "workflowId": "invite", "name": "Invite", "steps": [{ "type": "in_app", "template": {
    /// #         "body": "Join?", "buttons": [{ "type": "primary", "content": "Join" }] } }] }"#)?)?;
    /// # env.events().trigger(&Trigger::new("invite", "ada")?)?;
    /// # let inbox = env.inbox("ada")?;
    /// # let id = inbox.list(&MessageQuery::default())?.data[0].id;
    /// let message = inbox.complete_action(id, &CompleteAction::new(ButtonType::Primary))?;
    /// assert!(message.stage.is_read());
    /// inbox.revert_action(id, ButtonType::Primary)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber, or no such message in the inbox;
    /// [`Rejection::NoAction`], if the message has no such button; [`Error::Invalid`], if the payload
    /// is larger than the custom data of a subscriber may be.
    pub fn complete_action(
        &self,
        id: impl IntoChecked<MessageId>,
        choice: &CompleteAction,
    ) -> Result<Message> {
        let id = id.into_checked()?;
        let of = &self.subscriber;
        self.scope.write_of("inbox.complete_action", of, (of, id, choice), |tx| {
            tx.limits().check_action(choice)?;
            let now = tx.now();
            self.act(tx, id, choice.kind, |message| message.completed(choice, now))
        })
    }

    /// Makes the completed action of a button pending again. An action that is pending, or completed
    /// by another button, stays.
    ///
    /// # Errors
    ///
    /// As [`complete_action`](Self::complete_action).
    pub fn revert_action(
        &self,
        id: impl IntoChecked<MessageId>,
        button: ButtonType,
    ) -> Result<Message> {
        let id = id.into_checked()?;
        let of = &self.subscriber;
        self.scope.write_of("inbox.revert_action", of, (of, id, button), |tx| {
            self.act(tx, id, button, |message| message.reverted(button))
        })
    }

    fn act(
        &self,
        tx: &mut Tx<'_>,
        id: MessageId,
        button: ButtonType,
        rule: impl Fn(&Message) -> Option<Message>,
    ) -> Result<Message> {
        let subscriber = subscribers::get(tx, &self.subscriber)?;
        let before = messages::find(tx, &subscriber, id)?.filter(Message::is_in_inbox);
        let before = before.ok_or_else(|| Error::not_found(Entity::Message, id))?;
        let after = rule(&before).ok_or(Error::Rejected(Rejection::NoAction { button }))?;
        let change = messages::next_change(tx, &subscriber)?;
        messages::replace(tx, &before, after, change)
    }

    pub(super) fn edit(
        &self,
        operation: &'static str,
        ids: &[MessageId],
        edit: Edit,
    ) -> Result<Vec<Message>> {
        let of = &self.subscriber;
        self.scope.write_of(operation, of, (of, ids, edit), |tx| {
            if let Edit::Snooze(until) = edit {
                Message::check_snooze(until, tx.now())?;
            }
            let (subscriber, found) = self.some(tx, ids)?;
            let change = messages::next_change(tx, &subscriber)?;
            let edited = found
                .iter()
                .map(|before| messages::replace(tx, before, before.edited(edit, tx.now()), change));
            edited.collect()
        })
    }

    // The subscriber, and those of the messages that are in this inbox.
    fn some(&self, tx: &mut Tx<'_>, ids: &[MessageId]) -> Result<(Subscriber, Vec<Message>)> {
        Message::check_marked(ids)?;
        let subscriber = subscribers::get(tx, &self.subscriber)?;
        let mut found = messages::find_each(tx, &subscriber, ids)?;
        found.retain(Message::is_in_inbox);
        Ok((subscriber, found))
    }
}
