//! Marking every message in an inbox.

use domain::ids::MessageId;
use domain::message::{MarkAs, Message, MessageQuery};
use domain::vocabulary::Channel;
use store::{Order, ReadRecords, WriteRecords, layout};

use super::Inbox;
use crate::Result;
use crate::idempotency::Step;
use crate::resources::{messages, subscribers};
use crate::tx::{Tx, View};

// Number of messages that one transaction looks at.
const AT_A_TIME: usize = 1_000;

// Progress of the marking.
#[derive(Default)]
struct Progress {
    marked: usize,
    // Starting point of the next transaction.
    rest: Option<Rest>,
}

#[derive(Clone, Copy)]
struct Rest {
    // The last message that was looked at.
    behind: MessageId,
    // The newest message at the start. Messages that arrive later stay as they are.
    through: MessageId,
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
        let query = changed_by(mark_as, query.clone().channel(Channel::InApp));
        self.scope.write_in_steps("inbox.mark_all", arguments, Progress::default(), |tx, done| {
            self.mark_some(tx, &query, mark_as, done)
        })
    }

    fn mark_some(
        &self,
        tx: &mut Tx<'_>,
        query: &MessageQuery,
        mark_as: MarkAs,
        done: &Progress,
    ) -> Result<Step<Progress, usize>> {
        let subscriber = subscribers::get(tx, &self.subscriber)?;
        let (list, filter) = messages::source(tx.environment_id(), subscriber.id, query);
        let mut marked = done.marked;
        let Some((found, through)) = next_messages(tx, &list, done.rest)? else {
            return Ok(Step::Done(marked));
        };
        for before in found.iter().filter(|message| filter.matches(message)) {
            let mut after = before.clone();
            after.stage = before.stage.mark(mark_as, tx.now());
            tx.replace(before, &after)?;
            marked += usize::from(after.stage != before.stage);
        }
        Ok(match found.last() {
            Some(end) if found.len() == AT_A_TIME => {
                let rest = Some(Rest { behind: end.id, through });
                Step::More(Progress { marked, rest })
            }
            Some(_) | None => Step::Done(marked),
        })
    }
}

// The query without messages that the mark does not change, so that they need not be read.
fn changed_by(mark_as: MarkAs, mut query: MessageQuery) -> MessageQuery {
    match mark_as {
        MarkAs::Read => query.read = query.read.or(Some(false)),
        MarkAs::Seen => query.seen = query.seen.or(Some(false)),
        MarkAs::Unread | MarkAs::Unseen => {}
    }
    query
}

// The messages that one transaction looks at, and the last message of all. Returns `None` if the
// list is empty.
fn next_messages(
    view: &dyn View,
    list: &layout::MessageList,
    rest: Option<Rest>,
) -> Result<Option<(Vec<Message>, MessageId)>> {
    let (range, through) = if let Some(Rest { behind, through }) = rest {
        (layout::messages_behind(list, behind), through)
    } else {
        let newest = view.first(&list.range(), Order::Descending, 1)?;
        let Some(newest) = newest.first() else { return Ok(None) };
        (list.range(), newest.id)
    };
    let mut found = view.first(&range, Order::Ascending, AT_A_TIME)?;
    found.retain(|message| message.id <= through);
    Ok(Some((found, through)))
}
