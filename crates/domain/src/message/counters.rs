//! Counters of the messages of a subscriber, kept with each change of one of them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Folder, InboxCounts, Message, MessagePlace, Progress, Shelf};
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
    /// Largest place in lists that a message has had.
    pub newest: Option<ListPlace>,
    /// Numbers of messages on the shelves, in the order of the shelves' numbers.
    pub shelves: [u32; 7],
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
        }
    }

    /// Returns the place of the message in lists.
    #[doc(hidden)]
    pub fn list_place(&self) -> ListPlace {
        let delivered_at = self.delivered_at.last().copied();
        let at = self.listed_at.or(delivered_at).unwrap_or(self.created_at);
        ListPlace { at, place: self.id.place() }
    }

    /// Returns the message as the newest one of a subscriber with these counters, also if the clock
    /// went back.
    #[doc(hidden)]
    #[must_use]
    pub fn listed(mut self, counters: &MessageCounters) -> Self {
        let sorted = self.list_place();
        let at = counters.newest.map_or(sorted.at, |newest| newest.next(sorted));
        self.listed_at = (at != sorted.at).then_some(at);
        self
    }
}

impl ListPlace {
    // The sort time of a message behind this one: that of `sorted`, unless the clock went back.
    fn next(self, sorted: ListPlace) -> Timestamp {
        if sorted > self {
            return sorted.at;
        }
        let same = ListPlace { at: self.at, ..sorted };
        if same > self { self.at } else { self.at.after(Duration::from_millis(1)) }
    }
}

impl MessageCounters {
    /// Counts a message.
    pub fn add(&mut self, item: &CountedMessage) {
        self.newest = self.newest.max(Some(item.sorted));
        self.count(item, |number| number.saturating_add(1));
    }

    /// Stops counting a message.
    pub fn remove(&mut self, item: &CountedMessage) {
        self.count(item, |number| number.saturating_sub(1));
    }

    // A tag or a severity that no message waits with has no entry.
    fn count(&mut self, item: &CountedMessage, change: impl Fn(u32) -> u32) {
        if let Some(number) = self.shelves.get_mut(usize::from(item.shelf.number())) {
            *number = change(*number);
        }
        let progress = match item.shelf {
            Shelf::Inbox(Folder::Open, progress) if !progress.is_read() => progress,
            Shelf::Inbox(..) | Shelf::Sent => return,
        };
        let change = |waiting: &mut Waiting| {
            waiting.unread = change(waiting.unread);
            if !progress.is_seen() {
                waiting.unseen = change(waiting.unseen);
            }
        };
        change(self.severities.entry(item.severity).or_default());
        for tag in &item.tags {
            change(self.tags.entry(tag.clone()).or_default());
        }
        self.severities.retain(|_, waiting| *waiting != Waiting::default());
        self.tags.retain(|_, waiting| *waiting != Waiting::default());
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

    /// Returns `true` if these are the counters of the messages that `counted` counts. Older
    /// messages that are gone may have been newer.
    pub fn agree_with(&self, counted: &Self) -> bool {
        self.newest >= counted.newest && *self == Self { newest: self.newest, ..counted.clone() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::notification::Ordinal;
    use crate::sample;

    fn sorted(at: i64, ordinal: u64) -> ListPlace {
        let place = MessagePlace::new(Ordinal::new(ordinal), 0);
        ListPlace { at: sample::at(at), place }
    }

    /// One row per message: its time and its place, and its sort time behind a message of the time 5
    /// in the place 5.
    #[test]
    fn a_message_is_listed_behind_those_that_were_delivered_before() {
        for (at, ordinal, sorts_at) in
            [(6, 6, 6), (6, 4, 6), (5, 6, 5), (5, 4, 6), (4, 6, 5), (4, 4, 6)]
        {
            let next = sorted(5, 5).next(sorted(at, ordinal));
            assert_eq!(next.as_millis(), sample::at(sorts_at).as_millis(), "{at} {ordinal}");
            assert!(ListPlace { at: next, ..sorted(at, ordinal) } > sorted(5, 5));
        }
    }

    fn item() -> impl Strategy<Value = CountedMessage> {
        let shelf = prop::sample::select(Shelf::ALL.to_vec());
        let severity = prop::sample::select(Severity::ALL.to_vec());
        let tags = prop::sample::subsequence(vec!["a".to_owned(), "b".to_owned()], 0..=2);
        (shelf, severity, tags, 0_u64..4).prop_map(|(shelf, severity, tags, place)| {
            CountedMessage { shelf, severity, tags, sorted: sorted(1, place) }
        })
    }

    fn waits(item: &CountedMessage) -> bool {
        [Progress::Unseen, Progress::Seen]
            .iter()
            .any(|progress| item.shelf == Shelf::Inbox(Folder::Open, *progress))
    }

    fn counted(items: &[CountedMessage]) -> MessageCounters {
        let mut counters = MessageCounters::default();
        for item in items {
            counters.add(item);
        }
        counters
    }

    proptest! {
        #[test]
        fn what_is_added_and_removed_counts_for_nothing(
            (stays, goes) in (prop::collection::vec(item(), 0..8), prop::collection::vec(item(), 0..8)),
        ) {
            let mut counters = counted(&[stays.clone(), goes.clone()].concat());
            for item in &goes {
                counters.remove(item);
            }
            prop_assert!(counters.agree_with(&counted(&stays)));
            prop_assert_eq!(counters.is_empty(), stays.is_empty());
        }

        #[test]
        fn counters_are_those_of_the_messages(items in prop::collection::vec(item(), 0..8)) {
            let counters = counted(&items);
            let count = |wanted: &dyn Fn(&CountedMessage) -> bool| {
                items.iter().filter(|item| wanted(item)).count()
            };
            let is_new = |item: &CountedMessage| {
                item.shelf == Shelf::Inbox(Folder::Open, Progress::Unseen)
            };
            let unread = count(&waits);
            let unseen = count(&is_new);
            prop_assert_eq!(counters.counts(), InboxCounts::new(unseen, unread));
            for shelf in Shelf::ALL {
                prop_assert_eq!(counters.on(shelf), count(&|item| item.shelf == shelf));
            }
            for severity in Severity::ALL {
                let waiting = counters.severities.get(severity).copied().unwrap_or_default();
                let there = count(&|item| waits(item) && item.severity == *severity);
                prop_assert_eq!(waiting.unread as usize, there);
            }
            for tag in ["a", "b"] {
                let waiting = counters.tags.get(tag).copied().unwrap_or_default();
                let has = |item: &CountedMessage| waits(item) && item.tags.iter().any(|one| one == tag);
                prop_assert_eq!(waiting.unread as usize, count(&has));
                let unseen = count(&|item| has(item) && is_new(item));
                prop_assert_eq!(waiting.unseen as usize, unseen);
            }
            let json = serde_json::to_vec(&counters).unwrap();
            prop_assert_eq!(serde_json::from_slice::<MessageCounters>(&json).unwrap(), counters);
        }
    }
}
