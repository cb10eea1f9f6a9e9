//! Observers: a function of the host that is told what has happened.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ::domain::time::Timestamp;
use ::store::Change;
use parking_lot::{Condvar, Mutex};

use crate::clock::Clock;
use crate::host;

pub use ::domain::observer::{Event, JobEvent, MessageEvent};

// Number of events that wait at most.
const CAPACITY: usize = 10_000;

// Difference from the time that has passed by which a clock jumps.
const JUMP: Duration = Duration::from_secs(2);

// Longest reading of a clock that is compared with others. The thread may have stopped during a longer
// one.
const READING: Duration = Duration::from_millis(100);

type Function = Box<dyn FnMut(&Event) + Send>;

/// Tells an observer what has happened, from a thread of its own.
#[derive(Debug, Default)]
pub(crate) struct Dispatcher(Option<Arc<Shared>>);

/// The place of the events of a transaction among those of the others. They are told once all
/// tickets before it are used up. A ticket of a transaction that was not committed has none.
#[derive(Debug)]
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    number: u64,
    events: Vec<Event>,
    is_committed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    // Used by the thread only.
    function: Mutex<Function>,
    clock: Mutex<LastReading>,
    capacity: usize,
}

// When the clock was read for the last time, and what it showed.
#[derive(Debug, Default)]
struct LastReading(Option<(Instant, Timestamp)>);

#[derive(Debug, Default)]
struct Queue {
    // Number of the next ticket, and of the ticket whose events are told next.
    next_ticket: u64,
    next_told: u64,
    // Events behind a ticket that is not used up, and the number of those for which there was no room.
    behind: BTreeMap<u64, (Vec<Event>, u64)>,
    // Number of events in `behind`.
    waiting: usize,
    ready: VecDeque<Event>,
    // Number of events for which there was no room.
    lagged: u64,
    has_thread: bool,
    is_closed: bool,
}

impl Dispatcher {
    pub(crate) fn to(observer: impl FnMut(&Event) + Send + 'static) -> Self {
        Self(Some(Arc::new(Shared::new(Box::new(observer), CAPACITY))))
    }

    /// Takes a ticket for the events of a transaction that is about to be committed. Returns `None`
    /// if there is nothing to tell.
    pub(crate) fn ticket(&self, changes: &[Change]) -> Option<Ticket> {
        let shared = self.0.as_ref()?;
        let events: Vec<_> =
            changes.iter().flat_map(|change| change.events.iter().cloned()).collect();
        (!events.is_empty()).then(|| Ticket::take(shared, events))
    }

    /// Tells the observer of an event that belongs to no transaction.
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(shared) = &self.0 {
            Ticket::take(shared, vec![event()]).commit();
        }
    }

    /// Reads the clock, and tells the observer if it has jumped. A manual clock never does.
    pub(crate) fn read(&self, clock: &dyn Clock) -> Timestamp {
        let Some(shared) = self.0.as_ref().filter(|_| clock.as_manual().is_none()) else {
            return clock.now();
        };
        let begun = Instant::now();
        let now = clock.now();
        let jump = shared.clock.lock().follow((begun, Instant::now()), now);
        if let Some(event) = jump {
            Ticket::take(shared, vec![event]).commit();
        }
        now
    }
}

impl LastReading {
    // Takes the place of the last reading, and returns an event if the clock has jumped since that one. A
    // reading that took long, or that began before the last one, is left out.
    fn follow(&mut self, (begun, ended): (Instant, Instant), now: Timestamp) -> Option<Event> {
        let is_late = self.0.is_some_and(|(then, _)| begun < then);
        if is_late || ended.saturating_duration_since(begun) > READING {
            return None;
        }
        let (then, shown) = self.0.replace((begun, now))?;
        let from = shown.after(begun.saturating_duration_since(then));
        let has_jumped = from.since(now).max(now.since(from)) > JUMP;
        has_jumped.then_some(Event::ClockJumped { from, to: now })
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.queue.lock().is_closed = true;
            shared.changed.notify_all();
        }
    }
}

impl Ticket {
    fn take(shared: &Arc<Shared>, events: Vec<Event>) -> Self {
        let mut queue = shared.queue.lock();
        let number = queue.next_ticket;
        queue.next_ticket += 1;
        drop(queue);
        Self { shared: Arc::clone(shared), number, events, is_committed: false }
    }

    /// Tells the events, after those of earlier tickets.
    pub(crate) fn commit(mut self) {
        self.is_committed = true;
    }
}

// A transaction that fails, is refused, panics or runs again holds up no later one.
impl Drop for Ticket {
    fn drop(&mut self) {
        let events = if self.is_committed { mem::take(&mut self.events) } else { Vec::new() };
        self.shared.queue.lock().add(self.number, events, self.shared.capacity);
        Shared::start(&self.shared);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn new(function: Function, capacity: usize) -> Self {
        let (queue, changed) = (Mutex::default(), Condvar::new());
        let (function, clock) = (Mutex::new(function), Mutex::default());
        Self { queue, changed, function, clock, capacity }
    }

    // Starts the thread, if there is none yet. If the system starts none, the next event tries again.
    fn start(this: &Arc<Self>) {
        let mut queue = this.queue.lock();
        if queue.has_thread || queue.ready.is_empty() {
            return;
        }
        let shared = Arc::clone(this);
        let builder = thread::Builder::new().name("tidings-observer".into());
        queue.has_thread = builder.spawn(move || shared.run()).is_ok();
    }

    fn run(&self) {
        while let Some(event) = self.next() {
            let mut function = self.function.lock();
            _ = host::call(|| function(&event));
        }
    }

    // Waits for an event. Returns `None` if there will be none.
    fn next(&self) -> Option<Event> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(event) = queue.take() {
                return Some(event);
            }
            if queue.is_closed {
                return None;
            }
            self.changed.wait(&mut queue);
        }
    }
}

impl Queue {
    // Uses a ticket up.
    fn add(&mut self, ticket: u64, mut events: Vec<Event>, capacity: usize) {
        let room = capacity.saturating_sub(self.ready.len() + self.waiting);
        let lagged = events.len().saturating_sub(room) as u64;
        events.truncate(room);
        self.waiting += events.len();
        self.behind.insert(ticket, (events, lagged));
        while let Some((events, lagged)) = self.behind.remove(&self.next_told) {
            self.next_told += 1;
            self.waiting -= events.len();
            for event in events {
                let gap = self.gap();
                self.ready.extend(gap);
                self.ready.push_back(event);
            }
            self.lagged += lagged;
        }
    }

    fn take(&mut self) -> Option<Event> {
        self.ready.pop_front().or_else(|| self.gap())
    }

    // The number of the events that were dropped since the last one.
    fn gap(&mut self) -> Option<Event> {
        let lagged = mem::take(&mut self.lagged);
        (lagged > 0).then_some(Event::Lagged(lagged))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("queue", &self.queue).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(n: i64) -> Event {
        let time = Timestamp::from_millis(n);
        Event::ClockJumped { from: time, to: time }
    }

    #[test]
    fn a_clock_is_compared_with_its_last_reading() {
        let (start, mut last) = (Instant::now(), LastReading::default());
        let mut read = |begun: u64, ended: u64, shown: i64| {
            let [begun, ended] = [begun, ended].map(|ms| start + Duration::from_millis(ms));
            let event = last.follow((begun, ended), Timestamp::from_millis(shown));
            event.map(|event| match event {
                Event::ClockJumped { from, to } => (from.as_millis(), to.as_millis()),
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(read(10_000, 10_000, 50_000), None);
        assert_eq!(read(20_000, 20_100, 62_000), None, "two seconds");
        assert_eq!(read(30_000, 30_101, 99_000), None, "the thread has stopped");
        assert_eq!(read(15_000, 15_000, 10_000), None, "another thread was quicker");
        assert_eq!(read(30_000, 30_000, 74_001), Some((72_000, 74_001)));
        assert_eq!(read(31_000, 31_000, 0), Some((75_001, 0)));
    }

    fn all(queue: &mut Queue) -> Vec<Event> {
        std::iter::from_fn(|| queue.take()).collect()
    }

    #[test]
    fn events_are_told_in_the_order_of_tickets() {
        let mut queue = Queue::default();
        queue.add(2, vec![event(3)], 10);
        queue.add(1, Vec::new(), 10);
        assert_eq!(queue.take(), None);
        queue.add(0, vec![event(1), event(2)], 10);
        assert_eq!(all(&mut queue), [event(1), event(2), event(3)]);
    }

    #[test]
    fn what_has_no_room_is_counted_in_its_place() {
        let mut queue = Queue::default();
        queue.add(0, (1..=5).map(event).collect(), 2);
        assert_eq!(queue.take(), Some(event(1)));
        queue.add(1, vec![event(6)], 2);
        assert_eq!(all(&mut queue), [event(2), Event::Lagged(3), event(6)]);
        queue.add(2, (7..=9).map(event).collect(), 2);
        assert_eq!(all(&mut queue), [event(7), event(8), Event::Lagged(1)]);
    }

    #[test]
    fn what_waits_for_an_earlier_transaction_takes_room() {
        let mut queue = Queue::default();
        for ticket in 1..=5 {
            queue.add(ticket, vec![event(ticket.cast_signed())], 2);
        }
        assert_eq!(queue.waiting, 2);
        assert_eq!(all(&mut queue), []);
        queue.add(0, Vec::new(), 2);
        assert_eq!(all(&mut queue), [event(1), event(2), Event::Lagged(3)]);
        assert_eq!(queue.waiting, 0);
    }
}
