//! Notes of a process that is killed, and the laws that they obey.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use testkit::kill::acknowledge;
use tidings::Delivery;
use tidings::ids::SendId;

use crate::feed::Seen;

/// Recipients of each event that is not for the crowd, and of each digest.
pub(super) const FEW: [&str; 3] = ["ada", "bob", "cyd"];

/// Messages that the two threads of a process may have claimed at a time.
const CLAIMED: u64 = 64;

/// What a process has done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Note {
    /// An event was accepted.
    Accepted(String),
    /// An event is canceled, or will be.
    Canceling(String),
    /// An event was canceled. A provider may get so many of its messages later.
    Canceled(String, u64),
    /// A provider gets a message.
    Handed(SendId, Handed),
    /// A client of this subscriber was told.
    Seen(String, Seen),
}

/// A message that a provider gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Handed {
    event: String,
    to: String,
    text: String,
}

/// Kinds of events. The id of an event begins with the word of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Crowd,
    Digest,
    Late,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Crowd, Self::Digest, Self::Late];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Crowd => "crowd",
            Self::Digest => "digest",
            Self::Late => "late",
        }
    }

    /// The id of the event of that number.
    pub(super) fn id(self, number: usize) -> String {
        format!("{}-{number}", self.word())
    }

    fn of(id: &str) -> Self {
        Self::ALL.into_iter().find(|kind| id.starts_with(kind.word())).unwrap()
    }
}

impl Note {
    pub(super) fn handed(delivery: &Delivery) -> Self {
        Self::Handed(
            delivery.idempotency_key(),
            Handed {
                event: delivery.notification.transaction_id.to_string(),
                to: delivery.subscriber.subscriber_id.to_string(),
                text: delivery.message.text().unwrap_or_default().to_owned(),
            },
        )
    }

    /// The id of the event that was accepted.
    pub(super) fn accepted(&self) -> Option<&str> {
        match self {
            Self::Accepted(id) => Some(id),
            Self::Canceling(_) | Self::Canceled(..) | Self::Handed(..) | Self::Seen(..) => None,
        }
    }

    pub(super) fn acknowledge(&self) {
        acknowledge(serde_json::to_string(self).unwrap());
    }
}

/// Notes of all processes that have worked on a file.
#[derive(Debug, Default)]
pub(super) struct Told<'n> {
    accepted: BTreeSet<&'n str>,
    canceling: BTreeSet<&'n str>,
    canceled: BTreeMap<&'n str, u64>,
    messages: BTreeMap<SendId, &'n Handed>,
}

impl<'n> Told<'n> {
    /// Takes notes in their order. No message of a canceled event is among the later ones, but for
    /// those that providers had, and attempts with one key have one text.
    #[track_caller]
    pub(super) fn of(notes: impl IntoIterator<Item = &'n Note>) -> Self {
        let mut told = Self::default();
        for note in notes {
            match note {
                Note::Accepted(id) => drop(told.accepted.insert(id)),
                Note::Canceling(id) => drop(told.canceling.insert(id)),
                Note::Canceled(id, running) => {
                    told.canceled.entry(id).or_insert(*running);
                }
                Note::Handed(key, message) => told.hand(*key, message),
                Note::Seen(..) => {}
            }
        }
        told
    }

    #[track_caller]
    fn hand(&mut self, key: SendId, message: &'n Handed) {
        let first = self.messages.entry(key).or_insert(message);
        assert_eq!(*first, message, "{key} has two contents");
        // The message of a digest goes on with the events that are left.
        if Kind::of(&message.event) != Kind::Digest
            && let Some(left) = self.canceled.get_mut(message.event.as_str())
        {
            let after = left.checked_sub(1);
            *left = after.unwrap_or_else(|| panic!("{} is canceled: {message:?}", message.event));
        }
    }

    /// Checks that each recipient was told once, and that each event is in one digest.
    #[track_caller]
    pub(super) fn check(&self, crowd: usize) {
        let mut recipients = BTreeMap::<_, BTreeSet<_>>::new();
        for Handed { event, to, .. } in self.messages.values() {
            let is_new = recipients.entry(event.as_str()).or_default().insert(to.as_str());
            assert!(is_new, "{to} was told twice about {event}");
        }
        let accepted = self.accepted.iter().map(|id| (*id, true));
        let others = recipients.keys().map(|id| (*id, self.accepted.contains(id)));
        for (id, is_accepted) in accepted.chain(others).filter(|(id, _)| !self.is_canceled(id)) {
            let expected = match Kind::of(id) {
                Kind::Crowd => crowd,
                Kind::Late => FEW.len(),
                Kind::Digest => continue,
            };
            let count = recipients.get(id).map_or(0, BTreeSet::len);
            assert!(count == expected || !is_accepted && count == 0, "{id} has told {count}");
        }
        self.check_digests();
    }

    #[track_caller]
    fn check_digests(&self) {
        let mut gathered = BTreeMap::<_, BTreeSet<_>>::new();
        for Handed { to, text, .. } in self.digests() {
            for id in text.split_whitespace() {
                let is_new = gathered.entry(id).or_default().insert(to.as_str());
                assert!(is_new, "{id} is in two digests for {to}");
            }
        }
        let accepted = self.accepted.iter().filter(|id| Kind::of(id) == Kind::Digest);
        for id in accepted.copied().filter(|id| !self.is_canceled(id)) {
            assert_eq!(gathered.get(id).map_or(0, BTreeSet::len), FEW.len(), "{id} is not told");
        }
        for (id, told) in gathered.iter().filter(|(id, _)| !self.is_canceled(id)) {
            assert_eq!(told.len(), FEW.len(), "{id} is told to {told:?}");
        }
    }

    fn digests(&self) -> impl Iterator<Item = &Handed> {
        let messages = self.messages.values().copied();
        messages.filter(|message| Kind::of(&message.event) == Kind::Digest)
    }

    fn is_canceled(&self, id: &str) -> bool {
        self.canceling.contains(id)
    }

    /// Whether there is something of everything.
    pub(super) fn is_rich(&self) -> bool {
        let is_accepted = |kind| self.accepted.iter().any(|id| Kind::of(id) == kind);
        let is_canceled = |kind| self.canceled.keys().any(|id| Kind::of(id) == kind);
        Kind::ALL.into_iter().all(is_accepted)
            && is_canceled(Kind::Late)
            && is_canceled(Kind::Digest)
    }

    /// Number of events of the largest digest.
    pub(super) fn largest_digest(&self) -> usize {
        let counts = self.digests().map(|message| message.text.split_whitespace().count());
        counts.max().unwrap_or_default()
    }
}

/// The number of messages of a canceled event that a provider may get later.
pub(super) fn allowed(cancellation: &tidings::trigger::Cancellation) -> u64 {
    let claimed = if cancellation.remaining > 0 { CLAIMED } else { 0 };
    cancellation.running + claimed
}
