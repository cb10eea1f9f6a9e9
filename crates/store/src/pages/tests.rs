use domain::ids::{EnvironmentId, InternalSubscriberId, MessageId};
use domain::message::{Edit, MarkAs, Message, MessageExcerpt, MessagePlace, MessageQuery, Shelf};
use domain::notification::Ordinal;
use domain::page::{Direction, ListId, ListKind, PageQuery};
use domain::time::Timestamp;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::memory::MemoryStore;
use crate::{ReadRecords, WriteRecords, layout, read, write};

fn own() -> (EnvironmentId, InternalSubscriberId) {
    (Uuid::from_u128(1).into(), Uuid::from_u128(2).into())
}

fn at(millis: usize) -> Timestamp {
    Timestamp::from_millis(i64::try_from(millis).unwrap())
}

// What a message is about, whether it was seen, and whether it can be read.
type About = (u8, bool, bool);

fn message(number: usize, (tag, is_seen, _): About) -> Message {
    let (environment, subscriber) = own();
    let ordinal = Ordinal::new(u64::try_from(number).unwrap());
    let id = MessageId::new(at(number), MessagePlace::new(ordinal, 0), 0);
    let unseen: Message = serde_json::from_value(json!({
        "_id": id,
        "_environmentId": environment,
        "_organizationId": Uuid::from_u128(3),
        "_notificationId": Uuid::from_u128(4),
        "_subscriberId": subscriber,
        "createdAt": at(number),
        "transactionId": "t",
        "channel": "in_app",
        "cta": {},
        "read": false,
        "seen": false,
        "status": "sent",
        "tags": [format!("tag {tag}")],
    }))
    .unwrap();
    if is_seen { unseen.edited(Edit::Mark(MarkAs::Seen), at(number)) } else { unseen }
}

// Stores the messages, and damages those that cannot be read.
fn put(store: &MemoryStore, all: &[About]) -> Vec<Message> {
    let messages: Vec<_> = (0..).zip(all).map(|(number, about)| message(number, *about)).collect();
    write(store, |txn| -> Result<()> {
        for (message, (_, _, is_readable)) in messages.iter().zip(all) {
            txn.insert(message)?;
            if !is_readable {
                txn.put(Message::TABLE, message.key().as_bytes(), b"damaged")?;
            }
        }
        Ok(())
    })
    .unwrap();
    messages
}

// What pages show: readable messages, and the number of those that cannot be read.
fn shown(page: &Page<Message>) -> (Vec<MessageId>, usize) {
    (page.data.iter().map(|message| message.id).collect(), page.unreadable)
}

fn most(total: Total) -> (usize, bool) {
    match total {
        Total::Exactly(count) => (count, true),
        Total::AtLeast(count) => (count, false),
        Total::Capped => unreachable!("there are few"),
    }
}

proptest! {
    /// Whatever the bounds of a walk, its pages have what a filter over all messages says, in both
    /// directions, and no total says more than there is, or less than what the start of the list says.
    #[test]
    fn pages_are_what_a_filter_over_all_messages_says(
        all in prop::collection::vec((0..4_u8, any::<bool>(), prop::bool::weighted(0.95)), 0..60),
        tags in prop::collection::vec(0..4_u8, 1..3),
        (limit, scanned, beyond) in (1..8_u32, 1..40_usize, 0..40_usize),
        is_ascending: bool,
        is_counted: bool,
        knows_most: bool,
    ) {
        let store = MemoryStore::default();
        let messages = put(&store, &all);
        let query = MessageQuery::default().tags(tags.iter().map(|tag| format!("tag {tag}")));
        let is_shown = |(message, (_, _, is_readable)): &(&Message, &About)| {
            !is_readable || query.matches(*message)
        };
        let mut expected: Vec<_> = messages.iter().zip(&all).filter(is_shown).collect();
        if !is_ascending {
            expected.reverse();
        }
        let readable: Vec<_> =
            expected.iter().filter(|(_, about)| about.2).map(|(message, _)| message.id).collect();
        let damaged = expected.len() - readable.len();

        let (environment, subscriber) = own();
        let list = List::of_parts(Shelf::ALL.map(|shelf| {
            let len = messages.iter().filter(|message| message.shelf() == shelf).count();
            (layout::message_list(environment, subscriber, shelf), Some(len))
        }));
        let matching = messages.iter().filter(|message| query.matches(*message)).count();
        let bounds = Bounds {
            scanned,
            beyond,
            total: is_counted.then_some(expected.len()),
            at_most: if knows_most && damaged == 0 { matching } else { usize::MAX },
        };
        let shows = |excerpt: &MessageExcerpt| query.matches(excerpt);
        let selection = Selection { list: &list, environment, shows: &shows, bounds };
        let direction =
            if is_ascending { Direction::Ascending } else { Direction::Descending };
        let id = ListId::new(environment, ListKind::Messages);
        let asked = PageQuery::default().limit(limit).order_direction(direction);
        let page = |asked: &PageQuery| {
            let request = asked.check(id, MessageQuery::ORDERS).unwrap();
            read(&store, |snapshot| snapshot.selected_page(&selection, &request)).unwrap()
        };

        let start: Vec<_> = if is_ascending {
            messages.iter().zip(&all).take(beyond).collect()
        } else {
            messages.iter().zip(&all).rev().take(beyond).collect()
        };
        let least = start.iter().filter(|one| is_shown(one)).count();
        let is_right = |total: Total| {
            let (count, is_exact) = most(total);
            count == expected.len() || !is_exact && (least..expected.len()).contains(&count)
        };

        let (mut found, mut unreadable, mut pages) = (Vec::new(), 0, Vec::new());
        let mut next = Some(asked.clone());
        while let Some(asked_now) = next {
            let page = page(&asked_now);
            let (ids, skipped) = shown(&page);
            prop_assert!(ids.len() + skipped <= usize::try_from(limit).unwrap());
            found.extend(ids);
            unreadable += skipped;
            prop_assert!(is_right(page.total), "{:?} of {}", page.total, expected.len());
            next = page.next.as_ref().map(|cursor| asked.clone().after(cursor));
            pages.push(page);
        }
        prop_assert_eq!((&found, unreadable), (&readable, damaged));

        let (mut found, mut unreadable) = (Vec::new(), 0);
        let mut previous = pages.last().and_then(|last| last.previous.clone());
        let last = pages.last().map(shown).unwrap_or_default();
        while let Some(cursor) = previous {
            let page = page(&asked.clone().before(&cursor));
            let (mut ids, skipped) = shown(&page);
            ids.extend(found);
            found = ids;
            unreadable += skipped;
            prop_assert!(is_right(page.total), "{:?} of {}", page.total, expected.len());
            previous = page.previous;
        }
        found.extend(last.0);
        // A page without messages has its cursor at an item that it does not show.
        if pages.last().is_some_and(|last| !last.data.is_empty()) {
            prop_assert_eq!((found, unreadable + last.1), (readable, damaged));
        }
    }
}
