//! Stages: the progress of a reader with a message, and the changes that readers make.

use serde::{Deserialize, Serialize};

use super::{MarkAs, Message, Progress};
use crate::error::{Invalid, Reason};
use crate::time::Timestamp;
use crate::vocabulary::Channel;

// A reader may snooze a message without end, and a host may send it again.
const MAX_DELIVERIES: usize = 100;

/// Progress of the reader. Each stage includes the ones before it: a read message was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StageFields", into = "StageFields")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Stage {
    Unseen,
    Seen { seen_at: Timestamp },
    Read { seen_at: Timestamp, read_at: Timestamp },
    Archived { seen_at: Timestamp, read_at: Timestamp, archived_at: Timestamp },
}

// Wire form of a stage.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StageFields {
    read: bool,
    seen: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_seen_date: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_read_date: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    archived_at: Option<Timestamp>,
}

/// Change of a message by its reader.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Edit {
    /// The message is marked.
    Mark(MarkAs),
    /// The message is put into the archive.
    Archive,
    /// The message is taken out of the archive.
    Unarchive,
    /// The message is hidden until a time.
    Snooze(Timestamp),
    /// The snooze ends before its time.
    Unsnooze,
}

impl Stage {
    /// Returns the stage after `mark_as`. A mark without effect changes no time.
    #[doc(hidden)]
    #[must_use]
    pub fn mark(self, mark_as: MarkAs, now: Timestamp) -> Stage {
        match (mark_as, self) {
            (MarkAs::Unseen, _) => Stage::Unseen,
            // An unseen message that is marked unread becomes seen.
            (MarkAs::Seen | MarkAs::Unread, Stage::Unseen) => Stage::Seen { seen_at: now },
            (MarkAs::Read, Stage::Unseen) => Stage::Read { seen_at: now, read_at: now },
            (MarkAs::Read, Stage::Seen { seen_at }) => Stage::Read { seen_at, read_at: now },
            (MarkAs::Unread, Stage::Read { seen_at, .. } | Stage::Archived { seen_at, .. }) => {
                Stage::Seen { seen_at }
            }
            // The mark is set already, or a later stage includes it.
            (MarkAs::Seen | MarkAs::Unread, Stage::Seen { .. })
            | (MarkAs::Seen | MarkAs::Read, Stage::Read { .. } | Stage::Archived { .. }) => self,
        }
    }

    /// Returns the stage in the archive. An archived message is a read one.
    #[doc(hidden)]
    #[must_use]
    pub fn archive(self, now: Timestamp) -> Stage {
        match self.mark(MarkAs::Read, now) {
            Stage::Read { seen_at, read_at } => {
                Stage::Archived { seen_at, read_at, archived_at: now }
            }
            stage @ (Stage::Unseen | Stage::Seen { .. } | Stage::Archived { .. }) => stage,
        }
    }

    /// Returns the stage outside the archive.
    #[doc(hidden)]
    #[must_use]
    pub const fn unarchive(self) -> Stage {
        match self {
            Stage::Archived { seen_at, read_at, .. } => Stage::Read { seen_at, read_at },
            Stage::Unseen | Stage::Seen { .. } | Stage::Read { .. } => self,
        }
    }

    /// Returns the stage without its times.
    #[doc(hidden)]
    pub const fn progress(self) -> Progress {
        match self {
            Stage::Unseen => Progress::Unseen,
            Stage::Seen { .. } => Progress::Seen,
            Stage::Read { .. } | Stage::Archived { .. } => Progress::Read,
        }
    }

    /// Returns `true` if the message was seen.
    pub const fn is_seen(self) -> bool {
        self.progress().is_seen()
    }

    /// Returns `true` if the message was read.
    pub const fn is_read(self) -> bool {
        self.progress().is_read()
    }

    /// Returns `true` if the message is in the archive.
    pub const fn is_archived(self) -> bool {
        matches!(self, Stage::Archived { .. })
    }
}

impl Message {
    /// Returns the message after `edit`. Only messages in an inbox are archived and snoozed. A
    /// snooze takes a message out of the archive, and the archive ends a snooze.
    #[doc(hidden)]
    #[must_use]
    pub fn edited(&self, edit: Edit, now: Timestamp) -> Self {
        let mut after = self.clone();
        match edit {
            Edit::Mark(mark_as) => after.stage = self.stage.mark(mark_as, now),
            _ if self.channel != Channel::InApp => {}
            Edit::Archive => {
                after.stage = self.stage.archive(now);
                after.snoozed_until = None;
            }
            Edit::Unarchive => after.stage = self.stage.unarchive(),
            Edit::Snooze(until) => {
                after.stage = self.stage.unarchive();
                after.snoozed_until = Some(until);
            }
            Edit::Unsnooze => after.snoozed_until = None,
        }
        after
    }

    /// Returns the message after its snooze: it is delivered again, and unseen.
    #[doc(hidden)]
    #[must_use]
    pub fn woken(&self, now: Timestamp) -> Self {
        let mut after = self.clone();
        (after.snoozed_until, after.listed_at, after.stage) = (None, None, Stage::Unseen);
        after.delivered_at.push(now);
        after.limit_deliveries();
        after
    }

    /// Drops times of delivery from the middle, if there are more than [`MAX_DELIVERIES`].
    pub(super) fn limit_deliveries(&mut self) {
        let last = self.delivered_at.len().saturating_sub(MAX_DELIVERIES / 2);
        if last > MAX_DELIVERIES / 2 {
            self.delivered_at.drain(MAX_DELIVERIES / 2..last);
        }
    }

    /// Refuses a snooze that is over at `now`.
    #[doc(hidden)]
    pub fn check_snooze(until: Timestamp, now: Timestamp) -> Result<(), Invalid> {
        let refused = || Invalid::new("until", Reason::malformed("a time in the future"));
        if until > now { Ok(()) } else { Err(refused()) }
    }
}

impl TryFrom<StageFields> for Stage {
    type Error = Invalid;

    fn try_from(fields: StageFields) -> Result<Self, Invalid> {
        let dates = (fields.last_seen_date, fields.last_read_date, fields.archived_at);
        match (fields.seen, fields.read, dates) {
            (false, false, (None, None, None)) => Ok(Stage::Unseen),
            (true, false, (Some(seen_at), None, None)) => Ok(Stage::Seen { seen_at }),
            (true, true, (Some(seen_at), Some(read_at), None)) => {
                Ok(Stage::Read { seen_at, read_at })
            }
            (true, true, (Some(seen_at), Some(read_at), Some(archived_at))) => {
                Ok(Stage::Archived { seen_at, read_at, archived_at })
            }
            _ => {
                let expected = "together with `seen` and both dates";
                Err(Invalid::new("read", Reason::malformed(expected)))
            }
        }
    }
}

impl From<Stage> for StageFields {
    fn from(stage: Stage) -> Self {
        let (seen, read) = (stage.is_seen(), stage.is_read());
        let (last_seen_date, last_read_date, archived_at) = match stage {
            Stage::Unseen => (None, None, None),
            Stage::Seen { seen_at } => (Some(seen_at), None, None),
            Stage::Read { seen_at, read_at } => (Some(seen_at), Some(read_at), None),
            Stage::Archived { seen_at, read_at, archived_at } => {
                (Some(seen_at), Some(read_at), Some(archived_at))
            }
        };
        Self { read, seen, last_seen_date, last_read_date, archived_at }
    }
}
