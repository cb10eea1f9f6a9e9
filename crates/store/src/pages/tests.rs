use domain::ids::MessageId;
use domain::message::{
    Edit, MarkAs, Message, MessageExcerpt, MessageQuery, Shelf, Signature, SignatureFilter,
};
use domain::page::{Direction, ListId, ListKind, PageQuery};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::*;
use crate::layout::Target;
use crate::memory::MemoryStore;
use crate::sample::{self, at, own};
use crate::{Entries, ReadRecords, WriteRecords, layout, read, write};

/// A message.
#[derive(Clone, Debug)]
struct About {
    tag: u8,
    is_seen: bool,
    is_readable: bool,
    // Whether its entry has a signature.
    is_signed: bool,
}

fn tag(of: u8) -> String {
    format!("tag {of}")
}

fn message(number: u64, about: &About) -> Message {
    let unseen = sample::message(number, &tag(about.tag));
    if about.is_seen { unseen.edited(Edit::Mark(MarkAs::Seen), at(number)) } else { unseen }
}

/// An inbox, and the pages that are asked of it.
#[derive(Debug)]
struct Case {
    all: Vec<About>,
    tags: Vec<u8>,
    limit: u32,
    page: WalkLimit,
    beyond: WalkLimit,
    is_ascending: bool,
    // What is known of the messages that are shown: their number, and a number that they do not exceed.
    is_counted: bool,
    knows_most: bool,
}

/// The inbox of a case, and what its pages have to show, in their order.
struct Inbox<'c> {
    case: &'c Case,
    store: MemoryStore,
    messages: Vec<Message>,
    query: MessageQuery,
}

/// A message of an inbox, and whether a walk reads it.
struct Listed<'i> {
    message: &'i Message,
    is_readable: bool,
    is_read: bool,
    is_shown: bool,
}

// What a walk from the start of a list looks at.
fn within<'l, 'i>(
    reach: WalkLimit,
    listed: &'l [Listed<'i>],
) -> impl Iterator<Item = &'l Listed<'i>> {
    let mut left = reach.records;
    listed.iter().take(reach.entries).take_while(move |one| {
        let goes_on = left > 0;
        left -= usize::from(one.is_read && goes_on);
        goes_on
    })
}

// Takes the signature out of the entry of a message.
fn unsign(txn: &mut dyn crate::Transaction, message: &Message) -> Result<()> {
    let key = message.key();
    for entry in Entries::of(message).iter().filter(|entry| entry.signature.is_some()) {
        let bare = Target { key: key.as_bytes(), signature: None };
        txn.put_bytes(&entry.key, &bare.to_bytes())?;
    }
    Ok(())
}

/// What was shown: readable messages, and the number of those that cannot be read.
type Shown = (Vec<MessageId>, usize);

impl<'c> Inbox<'c> {
    // Stores the messages, and damages those that cannot be read.
    fn of(case: &'c Case) -> Self {
        let numbered = (0..).zip(&case.all);
        let messages: Vec<_> = numbered.map(|(number, about)| message(number, about)).collect();
        let store = MemoryStore::default();
        write(&store, |txn| -> Result<()> {
            for (message, about) in messages.iter().zip(&case.all) {
                txn.insert(message)?;
                if !about.is_signed {
                    unsign(txn, message)?;
                }
                if !about.is_readable {
                    txn.put(Table::Messages, message.key().as_bytes(), b"damaged")?;
                }
            }
            Ok(())
        })
        .unwrap();
        let query = MessageQuery::default().tags(case.tags.iter().map(|of| tag(*of)));
        Self { case, store, messages, query }
    }

    // The messages in the order of the pages.
    fn listed(&self) -> Vec<Listed<'_>> {
        let filter = SignatureFilter::of(&self.query);
        let each = self.messages.iter().zip(&self.case.all);
        let mut listed: Vec<_> = each
            .map(|(message, about)| {
                let is_readable = about.is_readable;
                let is_read = !about.is_signed || filter.allows(Signature::of(message));
                let is_shown =
                    is_read && !is_readable || self.query.matches(message) && is_readable;
                Listed { message, is_readable, is_read, is_shown }
            })
            .collect();
        if !self.case.is_ascending {
            listed.reverse();
        }
        listed
    }

    fn expected(&self) -> Shown {
        let shown: Vec<_> = self.listed().into_iter().filter(|one| one.is_shown).collect();
        let readable = shown.iter().filter(|one| one.is_readable).map(|one| one.message.id);
        let readable: Vec<_> = readable.collect();
        let damaged = shown.len() - readable.len();
        (readable, damaged)
    }

    fn asked(&self) -> PageQuery {
        let Case { limit, is_ascending, .. } = *self.case;
        let direction = if is_ascending { Direction::Ascending } else { Direction::Descending };
        PageQuery::default().limit(limit).order_direction(direction)
    }

    fn page(&self, asked: &PageQuery) -> Page<Message> {
        let Case { page, beyond, is_counted, knows_most, .. } = *self.case;
        let ((environment, subscriber), (readable, damaged)) = (own(), self.expected());
        let list = List::of_parts(Shelf::ALL.map(|shelf| {
            let len = self.messages.iter().filter(|message| message.shelf() == shelf).count();
            (layout::message_list(environment, subscriber, shelf), Some(len))
        }));
        let total = is_counted.then_some(readable.len() + damaged);
        let at_most = if knows_most && damaged == 0 { readable.len() } else { usize::MAX };
        let bounds = Bounds { page, beyond, total, at_most };
        let shows = |excerpt: &MessageExcerpt| self.query.matches(excerpt);
        let filter = SignatureFilter::of(&self.query);
        let may_show = |signature| filter.allows(signature);
        let (shows, may_show) = (&shows, &may_show);
        let selection = Selection { list: &list, environment, shows, may_show, bounds };
        let id = ListId::new(environment, ListKind::Messages);
        let request = asked.check(id, MessageQuery::ORDERS).unwrap();
        read(&self.store, |snapshot| snapshot.selected_page(&selection, &request)).unwrap()
    }

    // No total says more than there is, or less than what the start of the list says.
    fn check_total(&self, total: Total) -> TestCaseResult {
        let listed = self.listed();
        let least = within(self.case.beyond, &listed).filter(|one| one.is_shown).count();
        let all = listed.iter().filter(|one| one.is_shown).count();
        let is_right = match total {
            Total::Exactly(count) => count == all,
            Total::AtLeast(count) => (least..=all).contains(&count),
            Total::Capped => false,
        };
        prop_assert!(is_right, "{total:?} of {all}, and at least {least}");
        Ok(())
    }

    // The pages behind `first`, which is the first of these.
    fn pages_behind(&self, first: Page<Message>) -> Result<Vec<Page<Message>>, TestCaseError> {
        let (mut next, mut pages) = (first.next.clone(), vec![first]);
        while let Some(cursor) = next {
            let page = self.page(&self.asked().after(&cursor));
            prop_assert!(page.data.len() + page.unreadable <= self.case.limit as usize);
            self.check_total(page.total)?;
            next = page.next.clone();
            pages.push(page);
        }
        Ok(pages)
    }

    // The pages in front of `last`, which is the last of these.
    fn pages_in_front(&self, last: Page<Message>) -> Result<Vec<Page<Message>>, TestCaseError> {
        let (mut previous, mut pages) = (last.previous.clone(), vec![last]);
        while let Some(cursor) = previous {
            let page = self.page(&self.asked().before(&cursor));
            self.check_total(page.total)?;
            previous = page.previous.clone();
            pages.push(page);
        }
        pages.reverse();
        Ok(pages)
    }
}

fn shown(pages: &[Page<Message>]) -> Shown {
    let messages = pages.iter().flat_map(|page| &page.data);
    let unreadable = pages.iter().map(|page| page.unreadable).sum();
    (messages.map(|message| message.id).collect(), unreadable)
}

prop_compose! {
    fn about()(
        (tag, is_seen) in (0..4_u8, any::<bool>()),
        (is_readable, is_signed) in (prop::bool::weighted(0.95), prop::bool::weighted(0.7)),
    ) -> About {
        About { tag, is_seen, is_readable, is_signed }
    }
}

fn reach(least: usize) -> impl Strategy<Value = WalkLimit> {
    (least..40, least..40).prop_map(|(entries, records)| WalkLimit { entries, records })
}

prop_compose! {
    fn case()(
        all in prop::collection::vec(about(), 0..60),
        tags in prop::collection::vec(0..4_u8, 1..3),
        (limit, page, beyond) in (1..8_u32, reach(1), reach(0)),
        (is_ascending, is_counted, knows_most) in any::<(bool, bool, bool)>(),
    ) -> Case {
        Case { all, tags, limit, page, beyond, is_ascending, is_counted, knows_most }
    }
}

/// One row per reach of a walk over a hundred messages, of which every tenth has the tag: the messages
/// on the first page, and the message at its end.
#[test]
fn a_walk_ends_at_the_first_of_its_bounds() {
    let is_asked = |number: u8| number.is_multiple_of(10);
    for (is_signed, entries, records, found, end) in [
        (true, 35, 35, 4, Some(34)),
        (true, 35, 2, 2, Some(10)),
        (true, 1_000, 10, 10, Some(90)),
        (true, 100, 1_000, 10, Some(99)),
        (true, 1_000, 11, 10, None),
        (false, 35, 35, 4, Some(34)),
        (false, 35, 12, 2, Some(11)),
        (false, 100, 99, 10, Some(98)),
        (false, 1_000, 1_000, 10, None),
    ] {
        let all = (0..100).map(|number| {
            let tag = u8::from(is_asked(number));
            About { tag, is_seen: false, is_readable: true, is_signed }
        });
        let reach = WalkLimit { entries, records };
        let case = Case {
            all: all.collect(),
            tags: vec![1],
            limit: 100,
            page: reach,
            beyond: reach,
            is_ascending: true,
            is_counted: false,
            knows_most: false,
        };
        let inbox = Inbox::of(&case);
        let page = inbox.page(&inbox.asked());
        let last = |number: u64| {
            let place = message(number, &case.all[0]).list_place();
            let list = layout::message_list(own().0, own().1, Shelf::Sent);
            let key = list.clone().then(place).end();
            let id = ListId::new(own().0, ListKind::Messages);
            Cursor::at(id, domain::page::OrderBy::Id, list.open().rest(key.as_bytes()).unwrap())
        };
        let expected = if end.is_none() { Total::Exactly(found) } else { Total::AtLeast(found) };
        assert_eq!((page.data.len(), page.total), (found, expected), "{reach:?}");
        assert_eq!(page.next, end.map(last), "{reach:?}");
    }
}

/// One row per number of entries in the two parts of a list: the total. Neither part is above the cap alone,
/// but for the last row.
#[test]
fn a_total_is_that_of_all_parts_up_to_the_cap() {
    let half = Total::CAP / 2;
    let (environment, subscriber) = own();
    let [first, second] = [Shelf::Sent, Shelf::Archived];
    let (store, mut message) = (MemoryStore::default(), sample::message(0, "tag"));
    let mut counts = [0; 2];
    for (wanted, expected) in [
        ([half, half - 1], Total::Exactly(Total::CAP - 1)),
        ([half, half], Total::Exactly(Total::CAP)),
        ([half + 1, half], Total::Capped),
        ([half + 1, half + 1], Total::Capped),
        ([half + 1, Total::CAP + 1], Total::Capped),
    ] {
        write(&store, |txn| -> Result<()> {
            for (part, (shelf, count)) in [first, second].into_iter().zip(&mut counts).enumerate() {
                for number in *count..wanted[part] {
                    let number = u64::try_from(2 * number + part).unwrap();
                    message.created_at = at(number);
                    let list = layout::message_list(environment, subscriber, shelf);
                    let key = list.then(message.list_place()).end();
                    txn.put_bytes(&key, b"an entry")?;
                }
                *count = wanted[part];
            }
            Ok(())
        })
        .unwrap();
        let parts =
            || [first, second].map(|shelf| layout::message_list(environment, subscriber, shelf));
        let shows = |_: &[u8]| true;
        let all = List::<Message>::new(parts());
        let by_text = List::<Message>::new(parts()).of_texts(true, &shows);
        // The number of one part is known.
        let lens = [None, Some(wanted[1])];
        let known = List::<Message>::of_parts(parts().into_iter().zip(lens));
        for list in [all, by_text, known] {
            let id = ListId::new(environment, ListKind::Messages);
            for direction in [Direction::Ascending, Direction::Descending] {
                let asked = PageQuery::default().limit(1).order_direction(direction);
                let request = asked.check(id, MessageQuery::ORDERS).unwrap();
                let page = read(&store, |snapshot| snapshot.page(&list, &request)).unwrap();
                assert_eq!((page.total, page.unreadable), (expected, 1), "{wanted:?} in {list:?}");
            }
        }
    }
}

proptest! {
    /// Whatever the bounds of a walk, its pages have what a filter over all messages says, in both
    /// directions, and again from the first page to which the way back leads.
    #[test]
    fn pages_are_what_a_filter_over_all_messages_says(case in case()) {
        let inbox = Inbox::of(&case);
        let start = inbox.page(&inbox.asked());
        inbox.check_total(start.total)?;
        let mut forwards = inbox.pages_behind(start)?;
        prop_assert_eq!(shown(&forwards), inbox.expected());
        let last = forwards.remove(forwards.len() - 1);
        let mut backwards = inbox.pages_in_front(last)?;
        prop_assert_eq!(shown(&backwards), inbox.expected());
        let again = inbox.pages_behind(backwards.remove(0))?;
        prop_assert_eq!(shown(&again), inbox.expected());
    }
}
