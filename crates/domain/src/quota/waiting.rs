//! Messages that wait for calls of a provider, and the order in which their lanes take turns.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::Caller;
use super::rounds::RoundCounts;
use crate::task::{Lane, TaskClass};
use crate::time::Timestamp;

// Time for which a call is kept for a message that is expected. Messages may be canceled silently.
const RESERVATION: Duration = Duration::from_secs(1);

// Time after which no message of a lane is expected if none has come.
const GONE: Duration = Duration::from_secs(5);

// Time ahead of which a message is expected.
const SOON: Duration = Duration::from_millis(20);

// Number of turns that a lane catches up with at most.
const CREDIT: u64 = 4;

// Number of messages that are expected at most. Beyond it, no call is kept for a message.
const KNOWN: usize = 100_000;

/// Messages that wait, by class.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    classes: BTreeMap<TaskClass, Class>,
    // The lanes of messages that come at these times.
    later: BTreeMap<Timestamp, Vec<Lane>>,
    // The lanes of messages that should be there since these times, also of those that have come since.
    due: VecDeque<(Timestamp, Lane)>,
    // Number of messages that are known.
    known: usize,
}

// The lanes of a class with messages that wait, or that have had a turn of the present round.
#[derive(Debug, Default)]
struct Class {
    lanes: HashMap<Lane, LaneQueue>,
    // Lanes with messages that should be there, in the order of their turns.
    order: BTreeSet<(u64, Lane)>,
    rounds: RoundCounts,
    // Number of the present round.
    round: u64,
    // Lanes that have had a turn of the present round.
    served: Vec<Lane>,
    // Number of messages that wait.
    waiting: usize,
    // Number of those that should be there.
    due: usize,
}

// The messages of a lane that wait, and its turns.
#[derive(Debug, Default)]
struct LaneQueue {
    // Round of the next turn.
    round: u64,
    // Times of the messages that come later, in their order.
    later: VecDeque<Timestamp>,
    // Times since which messages should be there that have not come, in their order.
    due: VecDeque<Timestamp>,
    // Time since which messages have not come in time: others wait for none of this lane until one has come.
    absent_since: Option<Timestamp>,
}

impl Waiting {
    /// Notes that messages should be there at `now`, and that others have not come in time.
    pub(super) fn pass(&mut self, now: Timestamp) {
        let soon = now.after(SOON);
        while let Some(entry) = self.later.first_entry().filter(|entry| *entry.key() <= soon) {
            let (time, lanes) = entry.remove_entry();
            for lane in lanes {
                self.due.push_back((time, lane));
                self.class(lane).expect(lane, time);
            }
        }
        while let Some(&(time, lane)) = self.due.front()
            && time.after(RESERVATION) <= now
        {
            self.due.pop_front();
            self.known = self.known.saturating_sub(1);
            self.class(lane).give_up(lane, time);
        }
    }

    /// Notes that a message has come. Returns `true` if it has waited until it was due.
    pub(super) fn come(&mut self, caller: Caller) -> bool {
        self.class(caller.lane).come(caller)
    }

    /// Returns the number of the expected messages before one of `lane` that has come, `most` at most. Those
    /// of its lane are before it if it is new, and has not waited.
    pub(super) fn ahead(&self, lane: Lane, is_new: bool, most: usize) -> usize {
        let urgent: usize = self.classes.range(..lane.class).map(|(_, class)| class.due).sum();
        let Some(class) = self.classes.get(&lane.class) else { return urgent.min(most) };
        (urgent + class.ahead(lane, is_new, most.saturating_sub(urgent))).min(most)
    }

    /// Returns the number of the messages before a further one of `lane`, if all lanes take turns: it has the
    /// first turn of the lane at whose time, as `time_of` says by that number, none of its messages comes.
    pub(super) fn place(&self, lane: Lane, time_of: impl Fn(usize) -> Timestamp) -> usize {
        let urgent: usize = self.classes.range(..lane.class).map(|(_, class)| class.waiting).sum();
        let class = self.classes.get(&lane.class);
        class.map_or(urgent, |class| class.place(lane, |place| time_of(urgent + place)) + urgent)
    }

    /// Returns the number of the messages that come until `end`, `most` at most.
    pub(super) fn known_until(&self, end: Timestamp, most: usize) -> usize {
        let mut known: usize = self.classes.values().map(|class| class.due).sum();
        for lanes in self.later.range(..=end).map(|(_, lanes)| lanes) {
            if known >= most {
                break;
            }
            known += lanes.len();
        }
        known.min(most)
    }

    /// Returns the number of lanes that have a turn before the next one of `lane`.
    pub(super) fn before(&self, lane: Lane) -> usize {
        self.classes.get(&lane.class).map_or(0, |class| class.before(lane))
    }

    /// Notes a call for a message of a lane.
    pub(super) fn called(&mut self, lane: Lane) {
        self.class(lane).called(lane);
    }

    /// Notes that a message of a lane waits until `time`.
    pub(super) fn wait(&mut self, lane: Lane, time: Timestamp) {
        if self.known < KNOWN {
            self.known += 1;
            self.later.entry(time).or_default().push(lane);
            self.class(lane).wait(lane, time);
        }
    }

    fn class(&mut self, lane: Lane) -> &mut Class {
        self.classes.entry(lane.class).or_default()
    }
}

impl Class {
    // Changes the queue of a lane. A lane without messages that wait begins with the present round, unless it
    // has had its turn of that. It is forgotten when that round is over.
    fn change<T>(&mut self, lane: Lane, change: impl FnOnce(&mut LaneQueue) -> T) -> T {
        let mut queue = self.lanes.remove(&lane).unwrap_or_default();
        self.order.remove(&(queue.round, lane));
        let (waiting, expected) = (queue.waiting(), queue.expected());
        queue.round = self.round_of(&queue);
        let changed = change(&mut queue);
        self.due = self.due - expected + queue.expected();
        self.waiting = self.waiting - waiting + queue.waiting();
        (waiting..queue.waiting()).for_each(|waiting| self.rounds.add(waiting + 1));
        (queue.waiting()..waiting).for_each(|waiting| self.rounds.take(waiting + 1));
        if queue.expected() > 0 {
            self.order.insert((queue.round, lane));
        }
        if queue.waiting() > 0 || queue.round > self.round {
            self.lanes.insert(lane, queue);
        }
        changed
    }

    fn round_of(&self, queue: &LaneQueue) -> u64 {
        let credit = if queue.waiting() > 0 { CREDIT } else { 0 };
        queue.round.max(self.round.saturating_sub(credit))
    }

    fn wait(&mut self, lane: Lane, time: Timestamp) {
        self.change(lane, |queue| {
            let place = queue.later.partition_point(|at| *at <= time);
            queue.later.insert(place, time);
        });
    }

    // A message should be there since `time`, unless none of the lane is expected any more.
    fn expect(&mut self, lane: Lane, time: Timestamp) {
        self.change(lane, |queue| {
            // A message that is expected may come later than this one.
            let Some(first) = queue.later.front().copied().filter(|first| *first <= time) else {
                return;
            };
            queue.later.pop_front();
            let place = queue.due.partition_point(|at| *at <= first);
            queue.due.insert(place, first);
        });
    }

    fn come(&mut self, Caller { lane, due_at }: Caller) -> bool {
        if !self.lanes.contains_key(&lane) {
            return false;
        }
        self.change(lane, |queue| {
            queue.absent_since = None;
            let place = queue.due.binary_search(&due_at);
            place.is_ok_and(|place| queue.due.remove(place).is_some())
        })
    }

    // The time of a message is over that should have been there since `time`. It may have come meanwhile.
    fn give_up(&mut self, lane: Lane, time: Timestamp) {
        let queue = self.lanes.get(&lane);
        if queue.is_some_and(|queue| queue.due.front().is_some_and(|first| *first <= time)) {
            let present = self.round;
            self.change(lane, |queue| {
                queue.due.pop_front();
                queue.round = queue.round.max(present);
                let since = *queue.absent_since.get_or_insert(time);
                if time.since(since) > GONE {
                    queue.later.clear();
                }
            });
        }
    }

    fn called(&mut self, lane: Lane) {
        let round = self.lanes.get(&lane).map_or(self.round, |queue| self.round_of(queue));
        if round > self.round {
            self.round = round;
            for served in std::mem::take(&mut self.served) {
                self.change(served, |_| ());
            }
        }
        if round == self.round {
            self.served.push(lane);
        }
        self.change(lane, |queue| queue.round = round + 1);
        if self.waiting == 0 {
            self.lanes.clear();
            self.served.clear();
        }
    }

    fn ahead(&self, lane: Lane, is_new: bool, most: usize) -> usize {
        let queue = self.lanes.get(&lane);
        let mut ahead = queue.filter(|_| is_new).map_or(0, LaneQueue::expected);
        // Round of the message. A new message is behind the expected messages of its round, and any other is in front
        // of them.
        let own = queue.map_or(self.round, |queue| self.round_of(queue)) + ahead as u64;
        let end = own + u64::from(is_new);
        for (round, other) in self.order.iter().take_while(|(round, _)| *round < end) {
            if ahead >= most {
                break;
            }
            if *other != lane {
                let queue = usize::try_from(end - round).unwrap_or(usize::MAX);
                ahead += self.lanes.get(other).map_or(0, LaneQueue::expected).min(queue);
            }
        }
        ahead
    }

    fn before(&self, lane: Lane) -> usize {
        let round = self.lanes.get(&lane).map_or(self.round, |queue| self.round_of(queue));
        if round <= self.round { 0 } else { self.rounds.up_to(1).saturating_sub(self.served.len()) }
    }

    fn place(&self, lane: Lane, time_of: impl Fn(usize) -> Timestamp) -> usize {
        let empty = LaneQueue::default();
        let queue = self.lanes.get(&lane).unwrap_or(&empty);
        let last = queue.waiting() + 1;
        let place = |turn: usize| self.rounds.up_to(turn) - usize::from(turn < last);
        let is_free = |turn: usize| {
            let (time, next) = (time_of(place(turn)), time_of(place(turn + 1)));
            queue.until(time.after(next.since(time) / 2)) < turn
        };
        // The turns before `taken` and the one itself are taken, as far as can be seen.
        let (mut taken, mut free) = (0, 1);
        while free < last && !is_free(free) {
            (taken, free) = (free, (free * 2).min(last));
        }
        while free - taken > 1 {
            let middle = taken.midpoint(free);
            if is_free(middle) { free = middle } else { taken = middle }
        }
        place(free)
    }
}

impl LaneQueue {
    // Number of messages that wait.
    fn waiting(&self) -> usize {
        self.later.len() + self.due.len()
    }

    // Number of messages for which others wait.
    fn expected(&self) -> usize {
        if self.absent_since.is_some() { 0 } else { self.due.len() }
    }

    // Number of messages that come until `time`.
    fn until(&self, time: Timestamp) -> usize {
        self.due.len() + self.later.partition_point(|at| *at <= time)
    }
}
