//! Tidings, in a file.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tidings::ids::MessageId;
use tidings::message::{MarkAs, Message, MessageQuery};
use tidings::page::Total;
use tidings::step::Step;
use tidings::trigger::Trigger;
use tidings::workflow::WorkflowCreate;
use tidings::{Engine, Inbox, Scope};

use crate::inbox::UNREAD;
use crate::inbox::system::{MOST, Page, System};

const AT_A_TIME: usize = Trigger::MAX_BULK;

/// An idle store applies its log after a second. Before that, a page steps over the entries that the
/// marks have removed.
const UNTIL_APPLIED: Duration = Duration::from_secs(3);

/// The inbox of a subscriber, and the unread messages in it.
pub(crate) struct Tidings {
    scope: Scope,
    unread: Vec<MessageId>,
    /// Numbers of the unread messages, in the order in which they came.
    orders: Vec<usize>,
}

impl Tidings {
    /// Fills an inbox with `size` messages. The unread ones are spread over all.
    pub(crate) fn create(path: &Path, size: usize) -> Self {
        let engine = Engine::open(path).unwrap();
        let scope = engine.organization("acme").unwrap().development().unwrap();
        let step = Step::in_app("Your order {{ payload.order }} is on its way.").unwrap();
        let workflow = WorkflowCreate::new("order-shipped", "Order shipped").unwrap().step(step);
        scope.workflows().create(&workflow).unwrap();
        let orders = (0..UNREAD).map(|number| number * (size / UNREAD)).collect();
        let mut tidings = Self { scope, unread: Vec::new(), orders };
        for start in (0..size).step_by(AT_A_TIME) {
            tidings.trigger(start..size.min(start + AT_A_TIME));
        }
        tidings.inbox().mark_all(MarkAs::Read).unwrap();
        tidings.inbox().mark_as(&tidings.unread, MarkAs::Unseen).unwrap();
        thread::sleep(UNTIL_APPLIED);
        tidings
    }

    // Remembers those that are to be unread.
    fn trigger(&mut self, orders: std::ops::Range<usize>) {
        let trigger = |order: usize| {
            let trigger = Trigger::new("order-shipped", "ada").unwrap();
            trigger.payload(json!({ "order": order })).unwrap()
        };
        let triggers: Vec<_> = orders.clone().map(trigger).collect();
        self.scope.events().trigger_bulk(&triggers).unwrap().all().unwrap();
        let unread: Vec<_> = self.orders.iter().filter(|order| orders.contains(order)).collect();
        if unread.is_empty() {
            return;
        }
        let page = self.list(&MessageQuery::default().limit(100)).0;
        let place = |order: &usize| page.len() - 1 - (order - orders.start);
        let ids = unread.into_iter().map(|order| page[place(order)].id);
        self.unread.extend(ids.collect::<Vec<_>>());
    }

    fn inbox(&self) -> Inbox<'_> {
        self.scope.inbox("ada").unwrap()
    }

    fn list(&self, query: &MessageQuery) -> (Vec<Message>, usize) {
        let page = self.inbox().list(query).unwrap();
        let total = match page.total {
            Total::Exactly(total) => total.min(MOST),
            Total::AtLeast(_) | Total::Capped => MOST,
        };
        (page.data, total)
    }

    fn page(&self, query: &MessageQuery) -> Page {
        let (messages, total) = self.list(query);
        let texts = messages.iter().map(|one| one.text().unwrap().to_owned()).collect();
        Page { texts, total }
    }

    /// Numbers of the unread messages, in the order in which they came.
    pub(crate) fn unread_orders(&self) -> &[usize] {
        &self.orders
    }

    /// Returns the newest message as it is stored, without its subscriber and workflow.
    pub(crate) fn newest(&self) -> Message {
        let mut message = self.list(&MessageQuery::default().limit(1)).0.remove(0);
        (message.subscriber, message.workflow) = (None, None);
        message
    }
}

impl System for Tidings {
    fn name(&self) -> &'static str {
        "Tidings"
    }

    fn page(&self) -> Page {
        self.page(&MessageQuery::default().limit(10))
    }

    fn unread(&self) -> Page {
        self.page(&MessageQuery::default().unread().limit(10))
    }

    fn counts(&self) -> [usize; 2] {
        let counts = self.inbox().counts().unwrap();
        [counts.unseen, counts.unread]
    }

    fn mark(&self, number: usize, is_read: bool) {
        let mark_as = if is_read { MarkAs::Read } else { MarkAs::Unseen };
        self.inbox().mark_as([self.unread[number]], mark_as).unwrap();
    }
}
