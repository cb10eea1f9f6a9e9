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
    (shelf, severity, tags, 0_u64..4).prop_map(|(shelf, severity, tags, place)| CountedMessage {
        shelf,
        severity,
        tags,
        sorted: sorted(1, place),
        last_change: None,
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

/// One row per transaction: what it removes, what it tells, and the changes and the forgotten
/// ones then.
#[test]
fn a_message_that_is_gone_in_silence_is_forgotten() {
    let message = |shelf, place| {
        let (severity, tags) = (Severity::None, Vec::new());
        let sorted = sorted(1, place);
        Counted::Message(CountedMessage { shelf, severity, tags, sorted, last_change: Some(3) })
    };
    let open = Shelf::Inbox(Folder::Open, Progress::Read);
    let told = |change, place| {
        let place = MessagePlace::new(Ordinal::new(place), 0);
        (None, Some(Counted::Deletion { change, place }))
    };
    let gone = |shelf, place| (Some(message(shelf, place)), None);
    let before = MessageCounters { changes: 3, forgotten: 1, ..MessageCounters::default() };
    for (changes, expected) in [
        (vec![gone(open, 1), told(4, 1)], (4, 1, 1)),
        (vec![told(4, 1), gone(open, 1), gone(open, 2)], (4, 4, 1)),
        (vec![gone(open, 1)], (4, 4, 0)),
        (vec![gone(Shelf::Sent, 1)], (3, 1, 0)),
        (vec![(Some(message(open, 1)), Some(message(Shelf::Archived, 1)))], (3, 1, 0)),
        (vec![told(4, 1), (told(2, 9).1, None)], (4, 2, 0)),
    ] {
        let mut tally = Tally::new(before.clone());
        for (before, after) in &changes {
            tally.change(before.as_ref(), after.as_ref());
        }
        let after = tally.finish();
        let found = (after.changes, after.forgotten, after.deletions);
        assert_eq!(found, expected, "{changes:?}");
    }
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
            prop_assert_eq!(counters.of_tag(tag), InboxCounts::new(unseen, count(&has)));
        }
        let json = serde_json::to_vec(&counters).unwrap();
        prop_assert_eq!(serde_json::from_slice::<MessageCounters>(&json).unwrap(), counters);
    }
}
