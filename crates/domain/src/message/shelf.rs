//! Shelves: the parts in which the messages of a subscriber are listed.

use super::{Edit, MarkAs, Message, MessageFacts};
use crate::vocabulary::Channel;

/// Part of the messages of a subscriber. A message is on one shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// Messages outside the inbox: those of all channels but `in_app`.
    Sent,
    /// Messages in a folder of the inbox.
    Inbox(Folder, Progress),
    /// Messages in the archive of the inbox. All of them were read.
    Archived,
}

/// Folder of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// Messages that wait for the reader.
    Open,
    /// Messages that are snoozed.
    Snoozed,
}

/// Stage of a message without its times. The stages are in the order of their numbers on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Progress {
    Unseen,
    Seen,
    Read,
}

impl Shelf {
    /// Every shelf, in the order of their numbers.
    pub const ALL: [Shelf; 8] = [
        Shelf::Sent,
        Shelf::Inbox(Folder::Open, Progress::Unseen),
        Shelf::Inbox(Folder::Open, Progress::Seen),
        Shelf::Inbox(Folder::Open, Progress::Read),
        Shelf::Inbox(Folder::Snoozed, Progress::Unseen),
        Shelf::Inbox(Folder::Snoozed, Progress::Seen),
        Shelf::Inbox(Folder::Snoozed, Progress::Read),
        Shelf::Archived,
    ];

    /// Returns the shelf of a message.
    pub fn of(message: MessageFacts<'_>) -> Self {
        let MessageFacts { channel, progress, is_archived, is_snoozed, .. } = message;
        match (channel, is_archived, is_snoozed) {
            (Channel::Email | Channel::Sms | Channel::Chat | Channel::Push, ..) => Shelf::Sent,
            (Channel::InApp, true, _) => Shelf::Archived,
            (Channel::InApp, false, false) => Shelf::Inbox(Folder::Open, progress),
            (Channel::InApp, false, true) => Shelf::Inbox(Folder::Snoozed, progress),
        }
    }

    /// Returns the stable number of the shelf on disk.
    pub const fn number(self) -> u8 {
        match self {
            Shelf::Sent => 0,
            Shelf::Inbox(Folder::Open, progress) => 1 + progress.number(),
            Shelf::Inbox(Folder::Snoozed, progress) => 4 + progress.number(),
            Shelf::Archived => 7,
        }
    }

    /// Returns `true` if messages on the shelf are in an inbox.
    pub const fn is_inbox(self) -> bool {
        match self {
            Shelf::Sent => false,
            Shelf::Inbox(..) | Shelf::Archived => true,
        }
    }

    /// Returns `true` if the edit moves messages to another shelf.
    pub fn is_changed_by(self, edit: Edit) -> bool {
        match (self, edit) {
            (Shelf::Sent, _) => false,
            (Shelf::Inbox(_, progress), Edit::Mark(mark_as)) => progress.mark(mark_as) != progress,
            (Shelf::Archived, Edit::Mark(mark_as)) => {
                matches!(mark_as, MarkAs::Unread | MarkAs::Unseen)
            }
            (_, Edit::Archive) => self != Shelf::Archived,
            (_, Edit::Unarchive) => self == Shelf::Archived,
            (_, Edit::Snooze(_)) => !matches!(self, Shelf::Inbox(Folder::Snoozed, _)),
            (_, Edit::Unsnooze) => matches!(self, Shelf::Inbox(Folder::Snoozed, _)),
        }
    }
}

impl Progress {
    /// Every progress, in order.
    pub const ALL: [Progress; 3] = [Progress::Unseen, Progress::Seen, Progress::Read];

    const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the progress after `mark_as`.
    #[must_use]
    pub const fn mark(self, mark_as: MarkAs) -> Progress {
        match (mark_as, self) {
            (MarkAs::Unseen, _) => Progress::Unseen,
            (MarkAs::Read, _) => Progress::Read,
            // An unseen message that is marked unread becomes seen.
            (MarkAs::Unread, _) | (MarkAs::Seen, Progress::Unseen) => Progress::Seen,
            (MarkAs::Seen, Progress::Seen | Progress::Read) => self,
        }
    }

    /// Returns `true` if the message was seen.
    pub const fn is_seen(self) -> bool {
        match self {
            Progress::Unseen => false,
            Progress::Seen | Progress::Read => true,
        }
    }

    /// Returns `true` if the message was read.
    pub const fn is_read(self) -> bool {
        match self {
            Progress::Unseen | Progress::Seen => false,
            Progress::Read => true,
        }
    }
}

impl Message {
    /// Returns the shelf of the message.
    #[doc(hidden)]
    pub fn shelf(&self) -> Shelf {
        Shelf::of(self.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Stage;
    use crate::time::Timestamp;

    const AT: Timestamp = Timestamp::from_millis(1);

    #[test]
    fn a_mark_moves_the_progress_as_it_moves_the_stage() {
        let read = Stage::Read { seen_at: AT, read_at: AT };
        for stage in [Stage::Unseen, Stage::Seen { seen_at: AT }, read] {
            for mark_as in MarkAs::ALL {
                let after = stage.progress().mark(*mark_as);
                assert_eq!(stage.mark(*mark_as, AT).progress(), after, "{stage:?} {mark_as}");
            }
        }
    }

    /// Files have these numbers.
    #[test]
    fn every_shelf_keeps_its_number() {
        assert_eq!(Shelf::ALL.map(Shelf::number), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
