//! Following an inbox: what has changed since a cursor, and waiting for the next change.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use domain::ids::SubscriberId;
use domain::message::{
    Changes, DeletedMessage, FeedCursor, FeedPage, InboxChange, Known, ListPlace, Message,
    MessageCounters, MessagePlace, Shelf, Standing,
};
use domain::page::{Bound, Cursor, Direction, ListKind, OrderBy, Page, PageRequest, Place};
use domain::subscriber::Subscriber;
use store::{List, Order, ReadRecords, layout};

use super::Inbox;
use crate::resources::subscribers;
use crate::tx::{Reading, View};
use crate::watch::Watch;
use crate::{Result, Scope};

// A waiting thread looks at the store after this time at the latest: another engine on the same
// store may have changed it.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The feed of the inbox. A client lists the inbox once, and then asks for what has changed.
///
/// A message is in the feed once, with its present state: a message that has changed several times
/// since the cursor is told once. Cursors stay good over restarts. The feed keeps the last 100 deletions of a
/// subscriber. It does not keep the deletions of a call that deletes more than 100 messages at a time, nor those of a
/// retention policy. A cursor from before a deletion that is not kept gets [`Changes::Reset`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tidings::message::{Changes, InboxChange, MessageQuery};
/// # use tidings::{step::Step, trigger::Trigger, workflow::WorkflowCreate};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
/// # env.subscribers().create(&tidings::subscriber::SubscriberCreate::new("ada")?)?;
/// let inbox = env.inbox("ada")?;
/// let mut cursor = inbox.cursor()?;
/// let shown = inbox.list(&MessageQuery::default())?; // after the cursor was taken
/// # env.events().trigger(&Trigger::new("greeting", "ada")?)?;
///
/// if inbox.wait(&cursor, Duration::from_secs(30))? {
///     match inbox.changes_since(&cursor)? {
///         Changes::Since(page) => {
///             for change in page.changes {
///                 match change {
///                     InboxChange::Message { message } => println!("{:?}", message.text()),
///                     InboxChange::Deleted { message_id } => println!("{message_id} is gone"),
///                 }
///             }
///             assert_eq!(page.counts.unread, 1);
///             cursor = page.next; // and again, if page.has_more
///         }
///         Changes::Reset { cursor: newest } => cursor = newest, // list the inbox again
///     }
/// }
/// # assert!(!inbox.wait(&cursor, Duration::ZERO)?);
/// # assert!(shown.data.is_empty());
/// # Ok(())
/// # }
/// ```
impl Inbox<'_> {
    /// Returns the newest cursor of the feed.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such subscriber.
    pub fn cursor(&self) -> Result<FeedCursor> {
        self.feed("inbox.cursor", |feed| Ok(feed.newest()))
    }

    /// Returns what has changed since a cursor: up to 100 deliveries and, behind the last delivery,
    /// up to 100 other changes. A page may be empty and yet have more behind it. A cursor behind a change has missed
    /// no earlier change. After a backup is restored, this holds only while the restored inbox has fewer changes than
    /// the cursor has read.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such subscriber;
    /// [`Error::Invalid`](crate::Error::Invalid), if the cursor is of another environment.
    pub fn changes_since(&self, cursor: &FeedCursor) -> Result<Changes> {
        self.feed("inbox.changes_since", |feed| match feed.standing(cursor)? {
            Standing::Lost => Ok(Changes::Reset { cursor: feed.newest() }),
            Standing::Newest | Standing::Behind => feed.page(cursor).map(Changes::Since),
        })
    }

    /// Waits until something has changed since a cursor, and blocks the thread. Returns `false` if
    /// nothing has changed until the timeout. Changes that came before the call count.
    ///
    /// # Errors
    ///
    /// As [`changes_since`](Self::changes_since).
    pub fn wait(&self, cursor: &FeedCursor, timeout: Duration) -> Result<bool> {
        let end = Instant::now().checked_add(timeout);
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut changed = pin!(self.changed(cursor));
        loop {
            if let Poll::Ready(answer) = changed.as_mut().poll(&mut Context::from_waker(&waker)) {
                return answer.map(|()| true);
            }
            let left =
                end.map_or(LONGEST_SLEEP, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(false);
            }
            thread::park_timeout(left.min(LONGEST_SLEEP));
        }
    }

    /// Returns a future that ends when something has changed since a cursor. It needs no runtime,
    /// has no timeout, and can be dropped at any time. Each commit that changes the inbox through
    /// this engine, or deletes the subscriber, wakes it, and each of another process if the store tells
    /// of them ([`Store::listen`](crate::store::Store::listen)).
    ///
    /// A poll reads two records on the thread that polls. For a file, that takes microseconds, as a rule. A
    /// store on a server takes round trips, and waits while the server is away: there, call
    /// [`wait`](Self::wait) on a thread that may block.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::Scope;
    /// use tidings::message::{Changes, FeedCursor};
    ///
    /// // The loop behind a stream of server-sent events.
    /// async fn follow(env: Scope, mut cursor: FeedCursor) -> tidings::Result<()> {
    ///     loop {
    ///         env.inbox("ada")?.changed(&cursor).await?;
    ///         // It reads a page: call it on a thread that may block, where the runtime has such threads.
    ///         match env.inbox("ada")?.changes_since(&cursor)? {
    ///             Changes::Since(page) => cursor = page.next, // send page.changes
    ///             Changes::Reset { cursor: newest } => cursor = newest, // send the list
    ///         }
    ///     }
    /// }
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.subscribers().create(&tidings::subscriber::SubscriberCreate::new("ada")?)?;
    /// # let cursor = env.inbox("ada")?.cursor()?;
    /// # fn is_free<T: Send + 'static>(_: T) {}
    /// # is_free(follow(env, cursor));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The future ends with the errors of [`changes_since`](Self::changes_since).
    pub fn changed(&self, cursor: &FeedCursor) -> InboxChanged {
        let (scope, subscriber) = (self.scope.clone(), self.subscriber.clone());
        InboxChanged { scope, subscriber, cursor: *cursor, watches: None }
    }

    fn feed<T>(&self, operation: &'static str, read: impl Fn(&Feed<'_>) -> Result<T>) -> Result<T> {
        self.scope.read(operation, |view| read(&Feed::of(view, self.scope, &self.subscriber)?))
    }
}

/// Future that ends when an inbox has changed. See [`Inbox::changed`].
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct InboxChanged {
    scope: Scope,
    subscriber: SubscriberId,
    cursor: FeedCursor,
    /// Of the messages, and of the subscriber.
    watches: Option<[Watch; 2]>,
}

impl Future for InboxChanged {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        let changed = this.look(context.waker());
        if !matches!(changed, Ok(false)) {
            this.watches = None;
        }
        match changed {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl InboxChanged {
    // Sees to it that `waker` is told of later changes, and then looks for earlier ones.
    fn look(&mut self, waker: &Waker) -> Result<bool> {
        let scope = &self.scope;
        let subscriber = scope.view(|view| subscribers::get(view, &self.subscriber))?;
        let counters = layout::message_counters(scope.environment_id(), subscriber.id);
        let record = layout::subscriber(scope.environment_id(), &self.subscriber);
        let keys = [counters.as_bytes(), record.as_bytes()];
        self.watches = Some(keys.map(|key| scope.engine.parts.watches.watch(key, waker)));
        let standing =
            scope.view(|view| Feed::of(view, scope, &self.subscriber)?.standing(&self.cursor))?;
        Ok(standing != Standing::Newest)
    }
}

// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

// The feed of a subscriber, as a view shows it.
struct Feed<'f> {
    view: &'f Reading<'f>,
    scope: &'f Scope,
    subscriber: Subscriber,
    counters: MessageCounters,
}

// What a page has of deliveries.
struct Delivered {
    messages: Vec<Message>,
    // The place of the last one, if there are more.
    end: Option<ListPlace>,
    unreadable: usize,
}

// What a page has of the other changes.
struct Others {
    changes: Vec<(u64, MessagePlace, InboxChange)>,
    has_more: bool,
    unreadable: usize,
}

impl<'f> Feed<'f> {
    fn of(view: &'f Reading<'_>, scope: &'f Scope, subscriber: &SubscriberId) -> Result<Self> {
        let subscriber = subscribers::get(view, subscriber)?;
        let key = layout::message_counters(view.environment_id(), subscriber.id);
        let counters = store::counters::find(view, &key)?;
        Ok(Self { view, scope, subscriber, counters })
    }

    fn newest(&self) -> FeedCursor {
        FeedCursor::newest(self.view.environment_id(), self.subscriber.id, &self.counters)
    }

    fn standing(&self, cursor: &FeedCursor) -> Result<Standing> {
        Ok(cursor.standing(&self.newest(), self.counters.forgotten)?)
    }

    // All deliveries come first. A message that has changed since is left to the other changes, so
    // that it is told once.
    fn page(&self, cursor: &FeedCursor) -> Result<FeedPage> {
        let (known, newest) = (cursor.changed(), self.newest());
        let Delivered { messages, end, unreadable } = self.delivered(cursor)?;
        let is_left = |message: &Message| {
            message.last_change.is_some_and(|change| !known.has(change, message.id.place()))
        };
        let messages = messages.into_iter().filter(|message| !is_left(message));
        let message = |message| InboxChange::Message { message: Box::new(message) };
        let mut told: Vec<_> = messages.map(message).collect();
        let counts = self.counters.counts();
        if let Some(end) = end {
            let next = cursor.moved(Some(end), known);
            return Ok(FeedPage::new(told, next, true, counts).without(unreadable));
        }
        let others = self.changed(known)?;
        let known = match others.changes.last().filter(|_| others.has_more) {
            Some((number, place, _)) => Known { number: *number, within: Some(*place) },
            None => newest.changed(),
        };
        told.extend(others.changes.into_iter().map(|(_, _, change)| change));
        let next = cursor.moved(newest.delivered(), known);
        let page = FeedPage::new(told, next, others.has_more, counts);
        Ok(page.without(unreadable + others.unreadable))
    }

    // The messages that were delivered since, oldest first.
    fn delivered(&self, cursor: &FeedCursor) -> Result<Delivered> {
        let environment = self.view.environment_id();
        let shelves = Shelf::ALL.into_iter().filter(|shelf| shelf.is_inbox());
        let list = List::of_parts(shelves.map(|shelf| {
            let len = Some(self.counters.on(shelf));
            (layout::message_list(environment, self.subscriber.id, shelf), len)
        }));
        let list_id = self.scope.list_id(ListKind::Messages);
        let place = match cursor.delivered() {
            Some(place) => {
                let key = layout::list_place_bytes(place);
                Place::After(Bound::Excluded(Cursor::at(list_id, OrderBy::Id, &key)))
            }
            None => Place::Start,
        };
        let (order_by, direction) = (OrderBy::Id, Direction::Ascending);
        let limit = FeedPage::LIMIT;
        let request = PageRequest { list: list_id, place, limit, order_by, direction };
        let Page { data: messages, next, unreadable, .. } = self.view.page(&list, &request)?;
        // The last entry of the page may be one that cannot be read.
        let end = next.and_then(|next| layout::list_place_of(next.key()));
        Ok(Delivered { messages, end, unreadable })
    }

    // The other changes, oldest first.
    fn changed(&self, known: Known) -> Result<Others> {
        let (environment, subscriber) = (self.view.environment_id(), self.subscriber.id);
        let one_more = FeedPage::LIMIT + 1;
        let edited = layout::message_changes(environment, subscriber);
        let edited = layout::changes_behind(&edited, known.number, known.within);
        let (edited, gap) =
            self.view.readable_with_gaps::<Message>(&edited, Order::Ascending, one_more)?;
        let deleted = layout::deleted_messages(environment, subscriber);
        let deleted = layout::changes_behind(&deleted, known.number, known.within);
        let (deleted, other_gap) =
            self.view.readable_with_gaps::<DeletedMessage>(&deleted, Order::Ascending, one_more)?;
        let edited = edited.into_iter().filter_map(|(gap, message)| {
            let (number, place) = (message.last_change?, message.id.place());
            Some((gap, (number, place, InboxChange::Message { message: Box::new(message) })))
        });
        let deleted = deleted.into_iter().map(|(gap, deleted)| {
            let DeletedMessage { change, message_id, .. } = deleted;
            (gap, (change, message_id.place(), InboxChange::Deleted { message_id }))
        });
        let mut all: Vec<_> = edited.chain(deleted).collect();
        all.sort_by_key(|(_, (number, place, _))| (*number, *place));
        let has_more = all.len() > FeedPage::LIMIT;
        all.truncate(FeedPage::LIMIT);
        let behind = if has_more { 0 } else { gap + other_gap };
        let unreadable = all.iter().map(|(gap, _)| gap).sum::<usize>() + behind;
        let changes = all.into_iter().map(|(_, change)| change).collect();
        Ok(Others { changes, has_more, unreadable })
    }
}
