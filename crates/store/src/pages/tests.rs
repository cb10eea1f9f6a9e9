use domain::ids::MessageId;
use domain::message::{Edit, MarkAs, Message, MessageExcerpt, MessageQuery, Shelf};
use domain::page::{Direction, ListId, ListKind, PageQuery};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::*;
use crate::memory::MemoryStore;
use crate::sample::{self, at, own};
use crate::{ReadRecords, WriteRecords, layout, read, write};

// What a message is about, whether it was seen, and whether it can be read.
type About = (u8, bool, bool);

fn tag(of: u8) -> String {
    format!("tag {of}")
}

fn message(number: u64, (of, is_seen, _): About) -> Message {
    let unseen = sample::message(number, &tag(of));
    if is_seen { unseen.edited(Edit::Mark(MarkAs::Seen), at(number)) } else { unseen }
}

/// An inbox, and the pages that are asked of it.
#[derive(Debug)]
struct Case {
    all: Vec<About>,
    tags: Vec<u8>,
    limit: u32,
    scanned: usize,
    beyond: usize,
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

/// What was shown: readable messages, and the number of those that cannot be read.
type Shown = (Vec<MessageId>, usize);

impl<'c> Inbox<'c> {
    // Stores the messages, and damages those that cannot be read.
    fn of(case: &'c Case) -> Self {
        let numbered = (0..).zip(&case.all);
        let messages: Vec<_> = numbered.map(|(number, about)| message(number, *about)).collect();
        let store = MemoryStore::default();
        write(&store, |txn| -> Result<()> {
            for (message, (_, _, is_readable)) in messages.iter().zip(&case.all) {
                txn.insert(message)?;
                if !is_readable {
                    txn.put(Message::TABLE, message.key().as_bytes(), b"damaged")?;
                }
            }
            Ok(())
        })
        .unwrap();
        let query = MessageQuery::default().tags(case.tags.iter().map(|of| tag(*of)));
        Self { case, store, messages, query }
    }

    // The messages in the order of the pages, each with whether it can be read, and is shown.
    fn listed(&self) -> Vec<(&Message, bool, bool)> {
        let each = self.messages.iter().zip(&self.case.all);
        let mut listed: Vec<_> = each
            .map(|(message, about)| {
                let is_readable = about.2;
                (message, is_readable, !is_readable || self.query.matches(message))
            })
            .collect();
        if !self.case.is_ascending {
            listed.reverse();
        }
        listed
    }

    fn expected(&self) -> Shown {
        let shown: Vec<_> = self.listed().into_iter().filter(|one| one.2).collect();
        let readable = shown.iter().filter(|one| one.1).map(|one| one.0.id).collect::<Vec<_>>();
        let damaged = shown.len() - readable.len();
        (readable, damaged)
    }

    fn asked(&self) -> PageQuery {
        let Case { limit, is_ascending, .. } = *self.case;
        let direction = if is_ascending { Direction::Ascending } else { Direction::Descending };
        PageQuery::default().limit(limit).order_direction(direction)
    }

    fn page(&self, asked: &PageQuery) -> Page<Message> {
        let Case { scanned, beyond, is_counted, knows_most, .. } = *self.case;
        let ((environment, subscriber), (readable, damaged)) = (own(), self.expected());
        let list = List::of_parts(Shelf::ALL.map(|shelf| {
            let len = self.messages.iter().filter(|message| message.shelf() == shelf).count();
            (layout::message_list(environment, subscriber, shelf), Some(len))
        }));
        let total = is_counted.then_some(readable.len() + damaged);
        let at_most = if knows_most && damaged == 0 { readable.len() } else { usize::MAX };
        let bounds = Bounds { scanned, beyond, total, at_most };
        let shows = |excerpt: &MessageExcerpt| self.query.matches(excerpt);
        let selection = Selection { list: &list, environment, shows: &shows, bounds };
        let id = ListId::new(environment, ListKind::Messages);
        let request = asked.check(id, MessageQuery::ORDERS).unwrap();
        read(&self.store, |snapshot| snapshot.selected_page(&selection, &request)).unwrap()
    }

    // No total says more than there is, or less than what the start of the list says.
    fn check_total(&self, total: Total) -> TestCaseResult {
        let listed = self.listed();
        let start = listed.iter().take(self.case.beyond);
        let least = start.filter(|one| one.2).count();
        let all = listed.iter().filter(|one| one.2).count();
        let is_right = match total {
            Total::Exactly(count) => count == all,
            Total::AtLeast(count) => (least..=all).contains(&count),
            Total::Capped => false,
        };
        prop_assert!(is_right, "{total:?} of {all}, and at least {least}");
        Ok(())
    }

    fn pages_forwards(&self) -> Result<Vec<Page<Message>>, TestCaseError> {
        let (mut pages, mut next) = (Vec::new(), Some(self.asked()));
        while let Some(asked) = next {
            let page = self.page(&asked);
            prop_assert!(page.data.len() + page.unreadable <= self.case.limit as usize);
            self.check_total(page.total)?;
            next = page.next.as_ref().map(|cursor| self.asked().after(cursor));
            pages.push(page);
        }
        Ok(pages)
    }

    // The last page, and those in front of it, in the order of the list.
    fn pages_backwards(&self, last: Page<Message>) -> Result<Vec<Page<Message>>, TestCaseError> {
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
    fn case()(
        all in prop::collection::vec((0..4_u8, any::<bool>(), prop::bool::weighted(0.95)), 0..60),
        tags in prop::collection::vec(0..4_u8, 1..3),
        (limit, scanned, beyond) in (1..8_u32, 1..40_usize, 0..40_usize),
        (is_ascending, is_counted, knows_most) in any::<(bool, bool, bool)>(),
    ) -> Case {
        Case { all, tags, limit, scanned, beyond, is_ascending, is_counted, knows_most }
    }
}

proptest! {
    /// Whatever the bounds of a walk, its pages have what a filter over all messages says, in both
    /// directions.
    #[test]
    fn pages_are_what_a_filter_over_all_messages_says(case in case()) {
        let inbox = Inbox::of(&case);
        let mut pages = inbox.pages_forwards()?;
        prop_assert_eq!(shown(&pages), inbox.expected());
        // A page without messages has its cursor at an item that it does not show.
        if let Some(last) = pages.pop().filter(|last| !last.data.is_empty()) {
            let pages = inbox.pages_backwards(last)?;
            prop_assert_eq!(shown(&pages), inbox.expected());
        }
    }
}
