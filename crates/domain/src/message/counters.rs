//! Counters of the messages of a subscriber, kept with each change of one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Folder, InboxCounts, Message, MessagePlace, MessageQuery, Progress, Shelf};
use crate::ids::MessageId;
use crate::json::is_default;
use crate::time::Timestamp;
use crate::vocabulary::Severity;

/// The part of a message that counters depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedMessage {
    /// Shelf of the message.
    pub shelf: Shelf,
    /// Severity of the notification.
    pub severity: Severity,
    /// Tags of the workflow.
    pub tags: Vec<String>,
    /// Place in lists.
    pub sorted: ListPlace,
    /// Number of the last change.
    pub last_change: Option<u64>,
}

/// What counters count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// A message.
    Message(CountedMessage),
    /// A deleted message, by the number of the change.
    Deletion {
        /// Number of the change.
        change: u64,
        /// Place of the message.
        place: MessagePlace,
    },
}

/// Counters with the changes of a transaction.
#[derive(Clone, Debug)]
pub struct Tally {
    counters: MessageCounters,
    // Number of the changes of the transaction.
    change: u64,
    // Messages that have left the inbox, and those of them that the feed tells.
    gone: BTreeSet<MessagePlace>,
    told: BTreeSet<MessagePlace>,
}

/// Place of a message in lists, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListPlace {
    /// Sort time.
    pub at: Timestamp,
    /// Place among the messages of the environment.
    pub place: MessagePlace,
}

/// Counters of the messages of a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageCounters {
    /// Largest place in lists that a message in the inbox has had.
    pub newest: Option<ListPlace>,
    /// Largest place in lists that a message outside the inbox has had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<ListPlace>,
    /// Number of the last change of messages in the inbox.
    #[serde(default, skip_serializing_if = "is_default")]
    pub changes: u64,
    /// Number of the last change of which the feed does not know everything.
    #[serde(default, skip_serializing_if = "is_default")]
    pub forgotten: u64,
    /// Number of deletions that the feed knows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deletions: u64,
    /// Numbers of messages on the shelves, in the order of the shelves' numbers.
    pub shelves: [u32; Shelf::ALL.len()],
    /// Messages in the open folder of the inbox by severity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub severities: BTreeMap<Severity, Waiting>,
    /// Messages in the open folder of the inbox by tag.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, Waiting>,
}

/// Numbers of messages that wait for the reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Number of unseen messages.
    pub unseen: u32,
    /// Number of unread messages.
    pub unread: u32,
}

impl Message {
    /// Returns what counters depend on.
    #[doc(hidden)]
    pub fn counted_part(&self) -> CountedMessage {
        CountedMessage {
            shelf: self.shelf(),
            severity: self.severity,
            tags: self.tags.clone(),
            sorted: self.list_place(),
            last_change: self.last_change,
        }
    }

    /// Returns the place of the message in lists.
    #[doc(hidden)]
    pub fn list_place(&self) -> ListPlace {
        let delivered_at = self.delivered_at.last().copied();
        ListPlace::of(self.id, [self.listed_at, delivered_at], self.created_at)
    }

    /// Returns the message as the newest one of a subscriber with these counters, also if the clock
    /// went back.
    #[doc(hidden)]
    #[must_use]
    pub fn listed(mut self, counters: &MessageCounters) -> Self {
        let sorted = self.list_place();
        let newest = counters.newest.max(counters.sent);
        let at = newest.map_or(sorted.at, |newest| newest.next(sorted));
        self.listed_at = (at != sorted.at).then_some(at);
        self
    }
}

impl ListPlace {
    // The place of the message with this id, by the first of `times` that it has.
    pub(super) fn of(id: MessageId, times: [Option<Timestamp>; 2], created_at: Timestamp) -> Self {
        let at = times.into_iter().flatten().next().unwrap_or(created_at);
        Self { at, place: id.place() }
    }

    // The sort time of a message behind this one: that of `sorted`, unless the clock went back.
    fn next(self, sorted: ListPlace) -> Timestamp {
        if sorted > self {
            return sorted.at;
        }
        let same = ListPlace { at: self.at, ..sorted };
        if same > self { self.at } else { self.at.after(Duration::from_millis(1)) }
    }
}

impl Waiting {
    fn counts(self) -> InboxCounts {
        let [unseen, unread] =
            [self.unseen, self.unread].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        InboxCounts::new(unseen, unread)
    }
}

impl InboxCounts {
    // Returns the number of these messages that are on `shelves`. Returns `None` if some shelves may
    // have others of their kind.
    fn on(self, shelves: &[Shelf]) -> Option<usize> {
        let mut sum = 0;
        for shelf in shelves {
            sum += match shelf {
                Shelf::Inbox(Folder::Open, Progress::Unseen) => self.unseen,
                Shelf::Inbox(Folder::Open, Progress::Seen) => {
                    self.unread.saturating_sub(self.unseen)
                }
                Shelf::Inbox(..) | Shelf::Archived | Shelf::Sent => return None,
            };
        }
        Some(sum)
    }
}

impl Tally {
    /// Starts with the counters before the transaction.
    pub fn new(counters: MessageCounters) -> Self {
        let change = counters.next_change();
        Self { counters, change, gone: BTreeSet::new(), told: BTreeSet::new() }
    }

    /// Counts a change of a record: what it was, and what it is. Messages that `counts` refuses
    /// change no numbers of messages.
    pub fn change_among(
        &mut self,
        counts: &dyn Fn(&CountedMessage) -> bool,
        (before, after): (Option<&Counted>, Option<&Counted>),
    ) {
        match before {
            Some(Counted::Message(message)) => {
                if counts(message) {
                    self.counters.remove(message);
                }
                if after.is_none() && message.shelf.is_inbox() {
                    self.gone.insert(message.sorted.place);
                }
            }
            Some(Counted::Deletion { change, .. }) => {
                self.counters.deletions = self.counters.deletions.saturating_sub(1);
                self.counters.forgotten = self.counters.forgotten.max(*change);
            }
            None => {}
        }
        match after {
            Some(Counted::Message(message)) if counts(message) => self.counters.add(message),
            Some(Counted::Message(message)) => self.counters.note(message),
            Some(Counted::Deletion { change, place }) => {
                self.counters.delete(*change);
                self.told.insert(*place);
            }
            None => {}
        }
    }

    /// Takes a change of a record, which counts before and after it.
    pub fn change(&mut self, before: Option<&Counted>, after: Option<&Counted>) {
        self.change_among(&|_| true, (before, after));
    }

    /// Returns the counters after the transaction. A message that is gone without a deletion is
    /// forgotten.
    pub fn finish(self) -> MessageCounters {
        let Self { mut counters, change, gone, told } = self;
        if !gone.is_subset(&told) {
            counters.changes = counters.changes.max(change);
            counters.forgotten = counters.forgotten.max(change);
        }
        counters
    }
}

// Counts a message of a tag or a severity. One that no message waits with has no entry.
fn count_of<K: Ord + Clone>(all: &mut BTreeMap<K, Waiting>, of: &K, change: impl Fn(&mut Waiting)) {
    let mut waiting = all.get(of).copied().unwrap_or_default();
    change(&mut waiting);
    if waiting == Waiting::default() {
        all.remove(of);
    } else if let Some(before) = all.get_mut(of) {
        *before = waiting;
    } else {
        all.insert(of.clone(), waiting);
    }
}

impl MessageCounters {
    /// Returns the number of the changes of the next transaction.
    pub fn next_change(&self) -> u64 {
        self.changes.saturating_add(1)
    }

    /// Counts a deletion that the feed knows.
    pub fn delete(&mut self, change: u64) {
        self.deletions = self.deletions.saturating_add(1);
        self.changes = self.changes.max(change);
    }

    /// Counts a message.
    pub fn add(&mut self, item: &CountedMessage) {
        self.note(item);
        self.count(item, |number| number.saturating_add(1));
    }

    /// Goes on behind a message and its last change, without counting it.
    pub fn note(&mut self, item: &CountedMessage) {
        let newest = if item.shelf.is_inbox() { &mut self.newest } else { &mut self.sent };
        *newest = (*newest).max(Some(item.sorted));
        self.changes = self.changes.max(item.last_change.unwrap_or_default());
    }

    /// Stops counting a message.
    pub fn remove(&mut self, item: &CountedMessage) {
        self.count(item, |number| number.saturating_sub(1));
    }

    fn count(&mut self, item: &CountedMessage, change: impl Fn(u32) -> u32) {
        if let Some(number) = self.shelves.get_mut(usize::from(item.shelf.number())) {
            *number = change(*number);
        }
        let progress = match item.shelf {
            Shelf::Inbox(Folder::Open, progress) if !progress.is_read() => progress,
            Shelf::Inbox(..) | Shelf::Archived | Shelf::Sent => return,
        };
        let change = |waiting: &mut Waiting| {
            waiting.unread = change(waiting.unread);
            if !progress.is_seen() {
                waiting.unseen = change(waiting.unseen);
            }
        };
        count_of(&mut self.severities, &item.severity, change);
        for tag in &item.tags {
            count_of(&mut self.tags, tag, change);
        }
    }

    /// Returns the number of messages on a shelf.
    pub fn on(&self, wanted: Shelf) -> usize {
        let number = self.shelves.get(usize::from(wanted.number())).copied();
        usize::try_from(number.unwrap_or_default()).unwrap_or(usize::MAX)
    }

    /// Returns `true` if there is no message.
    pub fn is_empty(&self) -> bool {
        self.shelves.iter().all(|number| *number == 0)
    }

    /// Returns the numbers of messages in the open folder.
    pub fn counts(&self) -> InboxCounts {
        let open = |progress| self.on(Shelf::Inbox(Folder::Open, progress));
        let unseen = open(Progress::Unseen);
        InboxCounts::new(unseen, unseen.saturating_add(open(Progress::Seen)))
    }

    /// Returns the numbers of messages with a tag in the open folder.
    pub fn of_tag(&self, tag: &str) -> InboxCounts {
        self.tags.get(tag).copied().unwrap_or_default().counts()
    }

    /// Returns the numbers of messages of a severity in the open folder.
    pub fn of_severity(&self, severity: Severity) -> InboxCounts {
        self.severities.get(&severity).copied().unwrap_or_default().counts()
    }

    /// Returns the number of messages on `shelves` that meet `rest`. Both are parts of one query.
    /// Returns `None` if only the messages tell.
    pub fn exactly(&self, shelves: &[Shelf], rest: &MessageQuery) -> Option<usize> {
        let page = rest.page.clone();
        let plain = MessageQuery { page, ..MessageQuery::default() };
        if *rest == plain {
            return Some(shelves.iter().map(|shelf| self.on(*shelf)).sum());
        }
        let (tags, severities) = (rest.tags.clone(), rest.severities.clone());
        let has_no_other = *rest == MessageQuery { tags, severities, ..plain };
        match (rest.tags.groups(), &rest.severities[..]) {
            _ if !has_no_other => None,
            ([group], []) => match &group[..] {
                [tag] => self.of_tag(tag).on(shelves),
                _ => None,
            },
            ([], [severity]) => self.of_severity(*severity).on(shelves),
            _ => None,
        }
    }

    /// Returns a number that is not less than the number of these messages. No message is there if
    /// it is 0.
    pub fn at_most(&self, shelves: &[Shelf], rest: &MessageQuery) -> usize {
        let sum = |mut counts: std::vec::IntoIter<InboxCounts>| {
            counts.try_fold(0_usize, |sum, counts| Some(sum.saturating_add(counts.on(shelves)?)))
        };
        let of_group = |group: &Vec<String>| group.iter().map(|tag| self.of_tag(tag)).collect();
        let severities = rest.severities.iter().map(|severity| self.of_severity(*severity));
        let of_severities: Vec<_> = severities.collect();
        let bounds = rest.tags.groups().iter().map(of_group);
        let bounds = bounds.chain((!of_severities.is_empty()).then_some(of_severities));
        let all = shelves.iter().map(|shelf| self.on(*shelf)).sum();
        bounds.filter_map(|counts| sum(counts.into_iter())).fold(all, usize::min)
    }

    /// Returns `true` if these are the counters of the messages that `counted` counts. Older
    /// messages that are gone may have been newer, or changed later.
    pub fn agree_with(&self, counted: &Self) -> bool {
        let (newest, sent) = (self.newest, self.sent);
        let (changes, forgotten) = (self.changes, self.forgotten);
        newest >= counted.newest
            && sent >= counted.sent
            && changes >= counted.changes.max(forgotten)
            && *self == Self { newest, sent, changes, forgotten, ..counted.clone() }
    }
}

#[cfg(test)]
mod tests;
