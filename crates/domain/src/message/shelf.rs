//! Shelves: the parts in which the messages of a subscriber are listed.

use super::{MarkAs, Message, MessageQuery, Stage};
use crate::vocabulary::Channel;

/// Part of the messages of a subscriber. A message is on one shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// Messages outside the inbox: those of all channels but `in_app`.
    Sent,
    /// Messages in a folder of the inbox.
    Inbox(Folder, Progress),
}

/// Folder of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// Messages that wait for the reader.
    Open,
    /// Messages that are snoozed.
    Snoozed,
}

/// Stage of a message without its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Progress {
    Unseen,
    Seen,
    Read,
}

impl Shelf {
    /// Every shelf, in the order of their numbers.
    pub const ALL: [Shelf; 7] = [
        Shelf::Sent,
        Shelf::Inbox(Folder::Open, Progress::Unseen),
        Shelf::Inbox(Folder::Open, Progress::Seen),
        Shelf::Inbox(Folder::Open, Progress::Read),
        Shelf::Inbox(Folder::Snoozed, Progress::Unseen),
        Shelf::Inbox(Folder::Snoozed, Progress::Seen),
        Shelf::Inbox(Folder::Snoozed, Progress::Read),
    ];

    /// Returns the stable number of the shelf on disk. The numbers 7 to 9 are left for archived
    /// messages.
    pub const fn number(self) -> u8 {
        match self {
            Shelf::Sent => 0,
            Shelf::Inbox(Folder::Open, progress) => 1 + progress.number(),
            Shelf::Inbox(Folder::Snoozed, progress) => 4 + progress.number(),
        }
    }

    /// Returns `true` if the mark moves messages to another shelf.
    pub fn is_changed_by(self, mark_as: MarkAs) -> bool {
        match self {
            Shelf::Sent => false,
            Shelf::Inbox(_, progress) => progress.mark(mark_as) != progress,
        }
    }
}

impl Progress {
    /// Every progress, in order.
    pub const ALL: [Progress; 3] = [Progress::Unseen, Progress::Seen, Progress::Read];

    const fn number(self) -> u8 {
        match self {
            Progress::Unseen => 0,
            Progress::Seen => 1,
            Progress::Read => 2,
        }
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

impl Stage {
    /// Returns the stage without its times.
    #[doc(hidden)]
    pub const fn progress(self) -> Progress {
        match self {
            Stage::Unseen => Progress::Unseen,
            Stage::Seen { .. } => Progress::Seen,
            Stage::Read { .. } => Progress::Read,
        }
    }
}

impl Message {
    /// Returns the shelf of the message.
    #[doc(hidden)]
    pub fn shelf(&self) -> Shelf {
        if self.channel != Channel::InApp {
            return Shelf::Sent;
        }
        let folder = if self.snoozed_until.is_some() { Folder::Snoozed } else { Folder::Open };
        Shelf::Inbox(folder, self.stage.progress())
    }
}

impl MessageQuery {
    /// Returns the shelves with all messages of the query, and its conditions that they may not
    /// meet.
    #[doc(hidden)]
    pub fn shelves(&self) -> (Vec<Shelf>, Self) {
        let shelves = Shelf::ALL.into_iter().filter(|shelf| match (shelf, self.channel) {
            (Shelf::Sent, channel) => channel != Some(Channel::InApp),
            (Shelf::Inbox(Folder::Open, progress), None | Some(Channel::InApp)) => {
                self.may_have(*progress)
            }
            (Shelf::Inbox(Folder::Snoozed, progress), None) => self.may_have(*progress),
            (Shelf::Inbox(..), Some(_)) => false,
        });
        let mut rest = self.clone();
        if self.channel == Some(Channel::InApp) {
            (rest.channel, rest.read, rest.seen) = (None, None, None);
        }
        (shelves.collect(), rest)
    }

    fn may_have(&self, progress: Progress) -> bool {
        self.read.is_none_or(|read| progress.is_read() == read)
            && self.seen.is_none_or(|seen| progress.is_seen() == seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(Shelf::ALL.map(Shelf::number), [0, 1, 2, 3, 4, 5, 6]);
    }
}
