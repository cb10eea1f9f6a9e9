//! Operations on dead letters.

mod by_query;
mod scan;

use domain::convert::IntoChecked;
use domain::dead_letter::{DeadLetter, DeadLetterQuery, RedriveRefusal};
use domain::ids::DeadLetterId;
use domain::message::Message;
use domain::notification::Notification;
use domain::page::ForwardPage;
use store::{Order, ReadRecords, WriteRecords, layout};

use self::scan::Selection;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::messages;
use crate::tx::{Tx, View};
use crate::{Entity, Error, Rejection, Result, Scope};

/// The dead letters of an environment: messages for a provider that have failed for good. A dead
/// letter stays in the list until it is redriven or discarded, its step is sent again, or its
/// notification is deleted.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::SendError;
/// use tidings::dead_letter::{DeadLetterQuery, DeadLetterReason};
/// # use tidings::{integration::IntegrationCreate, step::Step, subscriber::SubscriberCreate};
/// # use tidings::{trigger::Trigger, vocabulary::Channel, workflow::WorkflowCreate};
/// # use tidings::{Engine, RecordingProvider, store::memory::MemoryStore};
/// # let recorder = RecordingProvider::default();
/// # let engine = Engine::builder().default_provider(recorder.clone()).build(MemoryStore::default());
/// # let env = engine.organization("acme")?.development()?;
/// # env.integrations().create(&IntegrationCreate::new("ses", Channel::Email)?)?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::email("Hello!", "Hello!")?))?;
/// # let ada = SubscriberCreate::new("ada")?.email("ada@example.org")?;
/// recorder.refuse_next(SendError::misconfigured("no password"));
/// env.events().trigger(&Trigger::new("greeting", ada)?)?;
/// assert_eq!(engine.delivery().run_due(100)?.failed, 1);
///
/// let unset = DeadLetterQuery::default().reasons([DeadLetterReason::Misconfigured]);
/// for letter in env.dead_letters().list(&unset)?.data {
///     eprintln!("{}: {}", letter.notification_id, letter.text.unwrap_or_default());
/// }
/// // ... the password is there
/// assert_eq!(env.dead_letters().redrive_matching(&unset)?, 1);
/// assert_eq!(engine.delivery().run_due(100)?.sent, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DeadLetters<'s> {
    pub(crate) scope: &'s Scope,
}

impl DeadLetters<'_> {
    /// The dead letter of that id.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, id: impl IntoChecked<DeadLetterId>) -> Result<DeadLetter> {
        let id = id.into_checked()?;
        self.scope.read("dead_letters.get", |view| find(view, id)?.ok_or_else(|| missing(id)))
    }

    /// The dead letter of that id. Returns `None` if there is none.
    pub fn find(&self, id: impl IntoChecked<DeadLetterId>) -> Result<Option<DeadLetter>> {
        let id = id.into_checked()?;
        self.scope.read("dead_letters.find", |view| find(view, id))
    }

    /// A page of the dead letters that match `query`, oldest failure first.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit is not between 1 and 100, a list of the query is too long
    /// or was set without values, or `after` comes after `before`.
    pub fn list(&self, query: &DeadLetterQuery) -> Result<ForwardPage<DeadLetter, DeadLetterId>> {
        let limit = query.check()?;
        self.scope.read("dead_letters.list", |view| {
            let selection = Selection::of(view, query)?;
            let found = selection.scan(view, query.cursor, None, limit)?;
            let (data, unreadable) = scan::read(view, &found.entries)?;
            Ok(ForwardPage::new(data, found.next).without(unreadable))
        })
    }

    /// Returns the number of dead letters that match `query`, from its cursor on, whatever the limit is.
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list).
    pub fn count(&self, query: &DeadLetterQuery) -> Result<u64> {
        query.check()?;
        self.scope.read("dead_letters.count", |view| Selection::of(view, query)?.count(view))
    }

    /// Sends the message of a dead letter again, as if it had not been attempted before: with the
    /// content and the idempotency key of the earlier attempts. The integration is chosen anew, and
    /// the preferences are those of the attempt. Steps behind its step that have ended do not go on.
    /// Returns the dead letter, which is no longer in the list.
    ///
    /// A provider whose answer was lost may have the message already.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such dead letter; [`Rejection::NotRedriven`], if the
    /// message with the content was deleted.
    pub fn redrive(&self, id: impl IntoChecked<DeadLetterId>) -> Result<DeadLetter> {
        self.redrive_of(id.into_checked()?)
    }

    fn redrive_of(&self, id: DeadLetterId) -> Result<DeadLetter> {
        self.scope.write_naming("dead_letters.redrive", id, |tx| {
            let (notification, letter) = get(tx, id)?;
            let refused = |reason| Error::Rejected(Rejection::NotRedriven { reason });
            let message = message_of(tx, &notification, id)?;
            redrive(tx, &notification, (id, message))?.map_err(refused)?;
            Ok((notification.recipient_id(), letter))
        })
    }

    /// Removes a dead letter from the list. Its notification stays as it is. Returns the dead
    /// letter.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such dead letter.
    pub fn discard(&self, id: impl IntoChecked<DeadLetterId>) -> Result<DeadLetter> {
        self.discard_of(id.into_checked()?)
    }

    fn discard_of(&self, id: DeadLetterId) -> Result<DeadLetter> {
        self.scope.write_naming("dead_letters.discard", id, |tx| {
            let (notification, letter) = get(tx, id)?;
            discard(tx, &notification, id)?;
            Ok((notification.recipient_id(), letter))
        })
    }
}

fn find(view: &dyn View, id: DeadLetterId) -> Result<Option<DeadLetter>> {
    Ok(notification_of(view, id)?.and_then(|notification| notification.dead_letter(id)))
}

// The notification of a dead letter.
fn notification_of(view: &dyn View, id: DeadLetterId) -> Result<Option<Notification>> {
    let range = layout::dead_letter(view.environment_id(), id);
    Ok(view.first(&range, Order::Ascending, 1)?.pop())
}

// A dead letter, and the notification that it belongs to.
fn get(view: &dyn View, id: DeadLetterId) -> Result<(Notification, DeadLetter)> {
    let found = notification_of(view, id)?.and_then(|notification| {
        let letter = notification.dead_letter(id)?;
        Some((notification, letter))
    });
    found.ok_or_else(|| missing(id))
}

// The message of a dead letter of a notification, which may have been deleted.
fn message_of(
    view: &dyn View,
    notification: &Notification,
    id: DeadLetterId,
) -> Result<Option<Message>> {
    let Some(of) = notification.mark(id).and_then(|(_, mark)| mark.message_id) else {
        return Ok(None);
    };
    messages::find_by_id(view, of)
}

// Redrives a dead letter of a notification, with its message if that is there.
fn redrive(
    tx: &mut Tx<'_>,
    before: &Notification,
    (id, message): (DeadLetterId, Option<Message>),
) -> Result<Result<(), RedriveRefusal>> {
    let Some((place, _)) = before.mark(id) else { return Ok(Ok(())) };
    let mut notification_tx = NotificationTx::of(tx, before.clone(), None);
    let redriven = notification_tx.redrive(place, message)?;
    if redriven.is_ok() {
        notification_tx.store_over(before)?;
    }
    Ok(redriven)
}

// Removes a dead letter of a notification from the list.
fn discard(tx: &mut Tx<'_>, before: &Notification, id: DeadLetterId) -> Result<()> {
    let mut after = before.clone();
    if let Some((place, _)) = before.mark(id) {
        after.take_mark(place);
    }
    Ok(tx.replace(before, &after)?)
}

fn missing(id: DeadLetterId) -> Error {
    Error::not_found(Entity::DeadLetter, id)
}
