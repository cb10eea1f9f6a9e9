//! Changing every message in an inbox, or those that match a query, in steps.

use std::collections::VecDeque;

use domain::ids::MessageId;
use domain::message::{
    Edit, ListPlace, MarkAs, Message, MessageExcerpt, MessageQuery, Shelf, SignatureFilter,
    WholeMessage,
};
use domain::subscriber::Subscriber;
use domain::time::Timestamp;
use serde::Serialize;
use store::{Entry, Order, Range, ReadRecords, Step, layout};

use super::Inbox;
use crate::Result;
use crate::damage::if_readable;
use crate::resources::messages::{self, Selectable};
use crate::resources::subscribers;
use crate::tx::{MAX_TRANSACTION_CONTENT, Reading, Tx, View};

// Number of messages that one transaction looks at, so that it holds the writer for a few
// milliseconds.
const AT_A_TIME: usize = 250;

// Number of messages that are read together, since their size is not known before.
const FEW: usize = 16;

// Number of entries that are looked at together.
const MANY: usize = 256;

// Edit of many messages.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum BulkEdit {
    Edit(Edit),
    Delete,
}

// Progress of an edit of the messages on several shelves, one shelf after the other. A changed message stays in
// its place, or moves to a shelf that is not one of them.
//
// The first transaction looks at messages itself. If it does not get to the end of them, and there are
// conditions that the shelves do not imply, the others change what was found between them.
#[derive(Clone)]
struct BulkProgress {
    // All shelves, and those that were not looked at to the end.
    all: Vec<Shelf>,
    shelves: Vec<Shelf>,
    filter: MessageQuery,
    edit: BulkEdit,
    changed: u64,
    // The key of the last message that was looked at on the first of the shelves.
    behind: Vec<u8>,
    // The newest message at the start. Messages that arrive later stay as they are.
    through: Option<ListPlace>,
    // Messages that were found between two transactions.
    found: Option<VecDeque<MessageId>>,
}

/// Many messages: more than 250, or more than 4 MiB, take several transactions. Messages that arrive
/// meanwhile stay as they are, and one that another call marks meanwhile may be passed over. A call that fails
/// between two transactions can be repeated, also under an idempotency key. The repeated call changes the messages
/// that match then, and counts only its own changes.
impl Inbox<'_> {
    /// Marks all messages in the inbox that are not snoozed and not archived. Returns how many of
    /// them this changes.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::{message::MarkAs, step::Step, trigger::Trigger, workflow::WorkflowCreate};
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
    /// # env.events().trigger(&Trigger::new("greeting", "ada")?)?;
    /// let inbox = env.inbox("ada")?;
    /// assert_eq!(inbox.mark_all(MarkAs::Read)?, 1);
    /// assert_eq!(inbox.counts()?.unread, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such subscriber.
    pub fn mark_all(&self, mark_as: MarkAs) -> Result<u64> {
        self.edit_matching(
            "inbox.mark_all",
            &MessageQuery::default(),
            BulkEdit::Edit(Edit::Mark(mark_as)),
        )
    }

    /// Marks the messages that match `query`. Returns how many of them this changes.
    ///
    /// # Errors
    ///
    /// As [`mark_all`](Self::mark_all); [`Error::Invalid`](crate::Error::Invalid), if a list in the
    /// query is too long or was set without values, or if the query has a part of a page, such as a limit.
    pub fn mark_matching(&self, query: &MessageQuery, mark_as: MarkAs) -> Result<u64> {
        self.edit_matching("inbox.mark_matching", query, BulkEdit::Edit(Edit::Mark(mark_as)))
    }

    /// Puts the messages that match `query` into the archive, where they count as read. Returns how
    /// many this changes.
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
    /// assert_eq!(inbox.archive_matching(&MessageQuery::default().unread())?, 1);
    /// assert_eq!(inbox.list(&MessageQuery::default().archived())?.data.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`mark_matching`](Self::mark_matching).
    pub fn archive_matching(&self, query: &MessageQuery) -> Result<u64> {
        self.edit_matching("inbox.archive_matching", query, BulkEdit::Edit(Edit::Archive))
    }

    /// Takes the archived messages that match `query` out of the archive. They stay read. Returns
    /// how many this changes.
    ///
    /// # Errors
    ///
    /// As [`mark_matching`](Self::mark_matching).
    pub fn unarchive_matching(&self, query: &MessageQuery) -> Result<u64> {
        let mut archived = query.clone();
        archived.archived.get_or_insert(true);
        self.edit_matching("inbox.unarchive_matching", &archived, BulkEdit::Edit(Edit::Unarchive))
    }

    /// Hides the messages that match `query` until a time, as [`snooze`](Self::snooze) does. Returns
    /// how many this changes.
    ///
    /// # Errors
    ///
    /// As [`mark_matching`](Self::mark_matching); [`Error::Invalid`](crate::Error::Invalid), if the
    /// time is not in the future.
    pub fn snooze_matching(&self, query: &MessageQuery, until: Timestamp) -> Result<u64> {
        self.edit_matching("inbox.snooze_matching", query, BulkEdit::Edit(Edit::Snooze(until)))
    }

    /// Ends the snooze of the snoozed messages that match `query`, as
    /// [`unsnooze`](Self::unsnooze) does. Returns how many this changes.
    ///
    /// # Errors
    ///
    /// As [`mark_matching`](Self::mark_matching).
    pub fn unsnooze_matching(&self, query: &MessageQuery) -> Result<u64> {
        let mut snoozed = query.clone();
        snoozed.snoozed.get_or_insert(true);
        self.edit_matching("inbox.unsnooze_matching", &snoozed, BulkEdit::Edit(Edit::Unsnooze))
    }

    /// Deletes the messages that match `query`. Returns their number. Notifications in the activity
    /// list stay.
    ///
    /// # Errors
    ///
    /// As [`mark_matching`](Self::mark_matching).
    pub fn delete_matching(&self, query: &MessageQuery) -> Result<u64> {
        self.edit_matching("inbox.delete_matching", query, BulkEdit::Delete)
    }

    fn edit_matching(
        &self,
        operation: &'static str,
        query: &MessageQuery,
        edit: BulkEdit,
    ) -> Result<u64> {
        query.check_unpaged()?;
        let arguments = (&self.subscriber, query, edit);
        let progress = BulkProgress::new(query, edit);
        let mut search = |progress: BulkProgress| {
            let next = self.scope.view(|view| match subscribers::find(view, &self.subscriber)? {
                Some(subscriber) => progress.clone().searched(view, &subscriber),
                None => Ok(progress.clone()),
            });
            next.map(Step::More)
        };
        self.scope.write_in_steps_with(
            operation,
            arguments,
            (progress, &mut search),
            |tx, progress| {
                if let BulkEdit::Edit(Edit::Snooze(until)) = edit {
                    Message::check_snooze(until, tx.now())?;
                }
                let subscriber = subscribers::get(tx, &self.subscriber)?;
                progress.clone().next(tx, &subscriber)
            },
        )
    }
}

impl BulkProgress {
    fn new(query: &MessageQuery, edit: BulkEdit) -> Self {
        let (mut shelves, filter) = query.inbox_shelves();
        if let BulkEdit::Edit(edit) = edit {
            // A snooze that is moved leaves its message where it is.
            let moves = matches!(edit, Edit::Snooze(_));
            shelves.retain(|shelf| moves || shelf.is_changed_by(edit));
        }
        let (all, behind) = (shelves.clone(), Vec::new());
        Self { all, shelves, filter, edit, changed: 0, behind, through: None, found: None }
    }

    // Finds as many messages as one transaction changes.
    fn searched(mut self, view: &Reading<'_>, subscriber: &Subscriber) -> Result<Self> {
        let (Some(through), true) = (self.through, self.filter.is_filtered()) else {
            return Ok(self);
        };
        let mut found = self.found.take().unwrap_or_default();
        let signatures = SignatureFilter::of(&self.filter);
        while found.len() < AT_A_TIME
            && let Some(shelf) = self.shelves.first()
        {
            let list = layout::message_list(subscriber.environment_id, subscriber.id, *shelf);
            let range = layout::messages_until(&list, through).resumed(&self.behind);
            let next = if self.filter.needs_payload() {
                self.look::<WholeMessage>(view, &range, &signatures, &mut found)
            } else {
                self.look::<MessageExcerpt>(view, &range, &signatures, &mut found)
            };
            if let Some(last) = next? {
                self.behind = last;
            } else {
                self.shelves.remove(0);
                self.behind.clear();
            }
        }
        self.found = Some(found);
        Ok(self)
    }

    // Adds the first messages of a range that match to those that were found. Returns the key behind which
    // others may follow.
    fn look<E: Selectable>(
        &self,
        view: &Reading<'_>,
        range: &Range<Message>,
        signatures: &SignatureFilter,
        found: &mut VecDeque<MessageId>,
    ) -> Result<Option<Vec<u8>>> {
        let may_match = |signature| signatures.allows(signature);
        let environment = view.environment_id();
        let excerpts = store::excerpts::<E>(view, environment, (range, MANY), may_match)?;
        let matching = excerpts.found.iter().filter(|one| self.filter.matches(one.facts()));
        found.extend(matching.map(Selectable::id));
        Ok(excerpts.next)
    }

    // Changes messages that were found, and are still what they were. Others may have changed them
    // since.
    fn apply_to_found(
        mut self,
        tx: &mut Tx<'_>,
        subscriber: &Subscriber,
        mut found: VecDeque<MessageId>,
    ) -> Result<Step<Self, u64>> {
        let (mut messages, mut seen, mut size) = (Vec::new(), 0, 0);
        while seen < AT_A_TIME
            && size < MAX_TRANSACTION_CONTENT
            && let Some(id) = found.pop_front()
        {
            seen += 1;
            let message = if_readable(messages::find(&*tx, subscriber, id))?.flatten();
            if let Some(message) = message.filter(|message| self.is_about(message)) {
                size += message.size();
                messages.push(message);
            }
        }
        self.apply(tx, subscriber, messages)?;
        if found.is_empty() && self.shelves.is_empty() {
            return Ok(Step::Done(self.changed));
        }
        self.found = Some(found);
        Ok(Step::More(self))
    }

    // Returns `true` if the message is on one of the shelves, and has not arrived since the start.
    fn is_about(&self, message: &Message) -> bool {
        self.all.contains(&message.shelf()) && Some(message.list_place()) <= self.through
    }

    // Changes as many messages as one transaction looks at.
    fn next(mut self, tx: &mut Tx<'_>, subscriber: &Subscriber) -> Result<Step<Self, u64>> {
        if let Some(found) = self.found.take() {
            return self.apply_to_found(tx, subscriber, found);
        }
        let list = |shelf| layout::message_list(subscriber.environment_id, subscriber.id, shelf);
        let newest =
            self.through.map_or_else(|| newest(tx, &self.shelves, list), |at| Ok(Some(at)));
        let Some(through) = newest? else { return Ok(Step::Done(self.changed)) };
        self.through = Some(through);
        let (mut found, mut seen, mut size) = (Vec::new(), 0, 0);
        while seen < AT_A_TIME
            && size < MAX_TRANSACTION_CONTENT
            && let Some(shelf) = self.shelves.first()
        {
            let most = FEW.min(AT_A_TIME - seen);
            let range = layout::messages_until(&list(*shelf), through).resumed(&self.behind);
            let entries = store::dependents(&*tx, &range, most)?;
            let is_end = entries.len() < most;
            seen += entries.len();
            if let Some(last) = entries.last() {
                self.behind.clone_from(&last.key);
            }
            let messages: Vec<_> = entries.into_iter().filter_map(Entry::record).collect();
            size += messages.iter().map(Message::size).sum::<usize>();
            found.extend(messages);
            if is_end {
                self.shelves.remove(0);
                self.behind.clear();
            }
        }
        self.apply(tx, subscriber, found)?;
        Ok(if self.shelves.is_empty() { Step::Done(self.changed) } else { Step::More(self) })
    }

    // Changes the messages of a transaction, all at once: the feed tells all of their deletions, or none.
    fn apply(
        &mut self,
        tx: &mut Tx<'_>,
        subscriber: &Subscriber,
        mut found: Vec<Message>,
    ) -> Result<()> {
        if self.filter.is_filtered() {
            found.retain(|message| self.filter.matches(message));
        }
        match self.edit {
            BulkEdit::Edit(edit) => {
                let change_number = messages::next_change(tx, subscriber)?;
                for before in &found {
                    let after = before.edited(edit, tx.now());
                    let after = messages::replace(tx, before, after, change_number)?;
                    self.changed += u64::from(after != *before);
                }
            }
            BulkEdit::Delete => {
                messages::delete(tx, subscriber, &found)?;
                self.changed += found.len() as u64;
            }
        }
        Ok(())
    }
}

// The newest of the messages on `shelves`.
fn newest(
    view: &dyn View,
    shelves: &[Shelf],
    list: impl Fn(Shelf) -> layout::MessageList,
) -> Result<Option<ListPlace>> {
    let mut newest = None;
    for shelf in shelves {
        let range = list(*shelf).range();
        let found = view.first_known(&range, Order::Descending, layout::place_in_list)?;
        newest = newest.max(found);
    }
    Ok(newest)
}
