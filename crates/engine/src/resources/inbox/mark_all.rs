//! Marking every message in an inbox.

use domain::message::{ListPlace, MarkAs, Message, MessageQuery, Shelf};
use domain::subscriber::Subscriber;
use domain::vocabulary::Channel;
use store::{Order, ReadRecords, WriteRecords, layout};

use super::Inbox;
use crate::Result;
use crate::idempotency::Step;
use crate::resources::subscribers;
use crate::tx::{Tx, View};

// Number of messages that one transaction looks at.
const AT_A_TIME: usize = 1_000;

// Marking of the messages on several shelves, one shelf after the other. A marked message moves to
// a shelf that is not one of them.
#[derive(Clone)]
struct Marking {
    shelves: Vec<Shelf>,
    filter: MessageQuery,
    mark_as: MarkAs,
    marked: usize,
    // The last message that was looked at on the first of the shelves.
    behind: Option<ListPlace>,
    // The newest message at the start. Messages that arrive later stay as they are.
    through: Option<ListPlace>,
}

impl Inbox<'_> {
    /// Marks all messages in the inbox, and returns how many of them this changes.
    ///
    /// More than 1,000 messages take several transactions. Messages that arrive meanwhile stay as
    /// they are. A call that fails on its way can be made again, and goes on.
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
    /// [`Error::NotFound`](crate::Error::NotFound) if there is no such subscriber.
    pub fn mark_all(&self, mark_as: MarkAs) -> Result<usize> {
        self.mark_matching(&MessageQuery::default(), mark_as)
    }

    /// The same for the messages that match `query`, whose page and channel are not used.
    ///
    /// # Errors
    ///
    /// As [`mark_all`](Self::mark_all).
    pub fn mark_matching(&self, query: &MessageQuery, mark_as: MarkAs) -> Result<usize> {
        let arguments = (&self.subscriber, query, mark_as);
        let marking = Marking::new(query, mark_as);
        self.scope.write_in_steps("inbox.mark_all", arguments, marking, |tx, marking| {
            let subscriber = subscribers::get(tx, &self.subscriber)?;
            marking.clone().next(tx, &subscriber)
        })
    }
}

impl Marking {
    fn new(query: &MessageQuery, mark_as: MarkAs) -> Self {
        let (mut shelves, filter) = query.clone().channel(Channel::InApp).shelves();
        shelves.retain(|shelf| shelf.is_changed_by(mark_as));
        Self { shelves, filter, mark_as, marked: 0, behind: None, through: None }
    }

    // Marks as many messages as one transaction looks at.
    fn next(mut self, tx: &mut Tx<'_>, subscriber: &Subscriber) -> Result<Step<Self, usize>> {
        let list = |shelf| layout::message_list(subscriber.environment_id, subscriber.id, shelf);
        let newest =
            self.through.map_or_else(|| newest(tx, &self.shelves, list), |at| Ok(Some(at)));
        let Some(through) = newest? else { return Ok(Step::Done(self.marked)) };
        self.through = Some(through);
        let mut left = AT_A_TIME;
        while let Some(shelf) = self.shelves.first() {
            let range = layout::messages_between(&list(*shelf), self.behind, through);
            let found = tx.first(&range, Order::Ascending, left)?;
            self.mark(tx, &found)?;
            left -= found.len();
            self.behind = found.last().map(Message::list_place);
            if left == 0 {
                return Ok(Step::More(self));
            }
            self.shelves.remove(0);
            self.behind = None;
        }
        Ok(Step::Done(self.marked))
    }

    fn mark(&mut self, tx: &mut Tx<'_>, found: &[Message]) -> Result<()> {
        for before in found.iter().filter(|message| self.filter.matches(message)) {
            let mut after = before.clone();
            after.stage = before.stage.mark(self.mark_as, tx.now());
            tx.replace(before, &after)?;
            self.marked += usize::from(after.stage != before.stage);
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
        let found = view.first(&list(*shelf).range(), Order::Descending, 1)?;
        newest = newest.max(found.first().map(Message::list_place));
    }
    Ok(newest)
}
