//! Redriving and discarding the dead letters that match a query, in steps.

use domain::dead_letter::DeadLetterQuery;
use domain::ids::DeadLetterId;
use domain::message::Message;
use store::Step;

use super::scan::{self, Selection};
use super::{DeadLetters, discard, message_of, notification_of, redrive};
use crate::Result;
use crate::damage::if_readable;
use crate::tx::{MAX_TRANSACTION_CONTENT, Tx};

// Number of dead letters that one transaction changes, so that it holds the writer for a few
// milliseconds.
const AT_A_TIME: usize = 50;

// Edit of many dead letters.
#[derive(Clone, Copy)]
enum BulkEdit {
    Redrive,
    Discard,
}

// Progress of an edit of many dead letters.
#[derive(Clone, Copy, Default)]
struct BulkProgress {
    changed: u64,
    behind: Option<DeadLetterId>,
    // The newest dead letter at the start. Those that come later stay as they are.
    through: Option<DeadLetterId>,
}

/// Many dead letters: more than 50, or more than 4 MiB, take several transactions. Dead letters that
/// come meanwhile stay as they are. A call that fails on its way can be made again, and goes on.
impl DeadLetters<'_> {
    /// [Redrives](Self::redrive) the dead letters that match `query`. With a cursor, those in front of
    /// it stay. Returns their number. Those whose message was deleted stay in the list.
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list); [`Error::Invalid`](crate::Error::Invalid), if the query has a limit.
    pub fn redrive_matching(&self, query: &DeadLetterQuery) -> Result<u64> {
        self.edit_matching("dead_letters.redrive_matching", query, BulkEdit::Redrive)
    }

    /// Removes the dead letters that match `query` from the list, as [`discard`](Self::discard)
    /// does. With a cursor, those in front of it stay. Returns their number.
    ///
    /// # Errors
    ///
    /// As [`redrive_matching`](Self::redrive_matching).
    pub fn discard_matching(&self, query: &DeadLetterQuery) -> Result<u64> {
        self.edit_matching("dead_letters.discard_matching", query, BulkEdit::Discard)
    }

    fn edit_matching(
        &self,
        operation: &'static str,
        query: &DeadLetterQuery,
        edit: BulkEdit,
    ) -> Result<u64> {
        query.check_unpaged()?;
        let progress = BulkProgress { behind: query.cursor, ..BulkProgress::default() };
        self.scope.write_in_steps(operation, query, progress, |tx, progress| {
            progress.next(tx, query, edit)
        })
    }
}

impl BulkProgress {
    // Changes as many dead letters as one transaction does.
    fn next(
        mut self,
        tx: &mut Tx<'_>,
        query: &DeadLetterQuery,
        edit: BulkEdit,
    ) -> Result<Step<Self, u64>> {
        let newest = self.through.map_or_else(|| scan::newest(tx), |id| Ok(Some(id)))?;
        let Some(through) = newest else { return Ok(Step::Done(self.changed)) };
        self.through = Some(through);
        let selection = Selection::of(tx, query)?;
        let found = selection.scan(tx, self.behind, self.through, AT_A_TIME)?;
        let mut size = 0;
        for id in found.entries {
            if size >= MAX_TRANSACTION_CONTENT {
                return Ok(Step::More(self));
            }
            self.behind = Some(id);
            // A notification or a message that cannot be read does not hold up the others.
            let Some(notification) = if_readable(notification_of(tx, id))?.flatten() else {
                continue;
            };
            size += notification.size();
            self.changed += u64::from(match edit {
                BulkEdit::Redrive => {
                    let message = if_readable(message_of(tx, &notification, id))?;
                    let Some(message) = message else { continue };
                    size += message.as_ref().map_or(0, Message::size);
                    redrive(tx, &notification, (id, message))?.is_ok()
                }
                BulkEdit::Discard => discard(tx, &notification, id).map(|()| true)?,
            });
        }
        self.behind = found.next;
        Ok(if found.next.is_some() { Step::More(self) } else { Step::Done(self.changed) })
    }
}
