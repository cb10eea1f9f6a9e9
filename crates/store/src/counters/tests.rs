use domain::message::{Edit, MarkAs};
use domain::time::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::memory::MemoryStore;
use crate::sample::{self, at, own};
use crate::{ChangeKind, Error, WriteRecords, read, write};

fn key() -> Key<Bytes> {
    let (environment, subscriber) = own();
    layout::message_counters(environment, subscriber)
}

fn message(number: u64) -> Message {
    sample::message(number, if number.is_multiple_of(2) { "even" } else { "odd" })
}

fn now() -> Timestamp {
    at(500_000)
}

fn change(
    txn: &mut dyn Transaction,
    read: ReadCounters,
    before: Option<&Message>,
    after: Option<&Message>,
) -> Result<()> {
    match (before, after) {
        (None, Some(after)) => txn.insert(after)?,
        (Some(before), Some(after)) => txn.replace(before, after)?,
        (Some(before), None) => txn.remove(before)?,
        (None, None) => return Ok(()),
    }
    let key = after.or(before).unwrap().key();
    count(txn, read, &[Change::new(ChangeKind::Replaced, &key).of(before, after)])
}

/// What happens to an inbox.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Add,
    Edit(usize, Edit),
    Delete(usize),
    Damage,
    Begin,
    GoOn,
}

fn deed() -> impl Strategy<Value = Deed> {
    let edit = prop::sample::select(vec![
        Edit::Mark(MarkAs::Read),
        Edit::Mark(MarkAs::Unseen),
        Edit::Archive,
        Edit::Unarchive,
        Edit::Snooze(at(1_000_000)),
    ]);
    prop_oneof![
        3 => Just(Deed::Add),
        3 => (any::<usize>(), edit).prop_map(|(which, edit)| Deed::Edit(which, edit)),
        1 => any::<usize>().prop_map(Deed::Delete),
        1 => Just(Deed::Damage),
        1 => Just(Deed::Begin),
        2 => Just(Deed::GoOn),
    ]
}

/// An inbox in a store, and its messages.
struct World {
    store: MemoryStore,
    messages: Vec<Message>,
    added: u64,
}

impl World {
    fn of(messages: u64) -> Self {
        let mut world = Self { store: MemoryStore::default(), messages: Vec::new(), added: 0 };
        (0..messages).for_each(|_| world.does(Deed::Add));
        world
    }

    // A transaction as that of an operation: its change, and what follows from it.
    fn does(&mut self, deed: Deed) {
        let at = |which: usize| which % self.messages.len().max(1);
        let (before, edit) = match deed {
            Deed::Add => (None, None),
            Deed::Edit(which, edit) => (self.messages.get(at(which)).cloned(), Some(edit)),
            Deed::Delete(which) => (self.messages.get(at(which)).cloned(), None),
            Deed::Damage => return self.write(|txn| txn.put_bytes(&key(), b"damaged")),
            Deed::Begin => return self.write(|txn| begin(txn, key().as_bytes()).map(drop)),
            Deed::GoOn => return self.write(|txn| go_on(txn, key().as_bytes()).map(drop)),
        };
        if before.is_none() && !matches!(deed, Deed::Add) {
            return;
        }
        let mut after = edit.zip(before.as_ref()).map(|(edit, before)| before.edited(edit, now()));
        if before.is_none() {
            self.added += 1;
            after = Some(message(self.added));
        }
        self.write(|txn| {
            let mut read = ReadCounters::default();
            if let Some(after) = after.as_mut().filter(|_| before.is_some()) {
                after.last_change = Some(read.order(&*txn, &key())?.next_change());
            }
            change(txn, read, before.as_ref(), after.as_ref())
        });
        self.messages.retain(|one| before.as_ref().is_none_or(|before| before.id != one.id));
        self.messages.extend(after);
    }

    fn write(&self, mut body: impl FnMut(&mut dyn Transaction) -> Result<()>) {
        write(&self.store, |txn| body(txn)).unwrap();
    }

    fn is_complete(&self) -> bool {
        let known = read(&self.store, |snapshot| CountersUntil::find(snapshot, key().as_bytes()));
        known.unwrap().until.is_none()
    }

    #[track_caller]
    fn agrees(&self) {
        read(&self.store, |snapshot| {
            let found = find(snapshot, &key())?;
            let mut expected = MessageCounters::default();
            for message in &self.messages {
                expected.add(&message.counted_part());
            }
            assert!(found.agree_with(&expected), "{found:?} in place of {expected:?}");
            let mut read = ReadCounters::default();
            let order = read.order(snapshot, &key())?;
            let parts = |of: &MessageCounters| (of.newest, of.sent, of.changes, of.forgotten);
            assert_eq!(parts(order), parts(&found));
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn counters_are_right_at_each_step_and_whatever_changes_meanwhile(
        messages in 0_u64..20,
        deeds in prop::collection::vec(deed(), 0..30),
    ) {
        let mut world = World::of(messages);
        for deed in deeds {
            world.does(deed);
            world.agrees();
        }
    }
}

#[test]
fn messages_are_counted_anew_in_steps_which_other_operations_do_as_well() {
    let mut world = World::of(10);
    world.does(Deed::Damage);
    let mut steps = 0;
    while !world.is_complete() {
        world.does(if steps % 2 == 0 { Deed::GoOn } else { Deed::Edit(0, Edit::Archive) });
        world.agrees();
        steps += 1;
    }
    assert!((4..=6).contains(&steps), "{steps} steps");
}

/// A transaction that changes many inboxes whose counters are lost counts the messages of some of them.
#[test]
fn a_transaction_counts_some_of_many_inboxes() {
    let store = MemoryStore::default();
    let (environment, _) = own();
    let subscriber = |inbox: u64| InternalSubscriberId::from(Uuid::from_u128(inbox.into()));
    let key = |inbox| layout::message_counters(environment, subscriber(inbox));
    let add = |number: u64| {
        let inboxes = (1..=5).map(|inbox| {
            let mut message = message(inbox * 10 + number);
            message.subscriber_id = subscriber(inbox);
            message
        });
        let inboxes: Vec<_> = inboxes.collect();
        let change =
            |one: &Message| Change::new(ChangeKind::Inserted, &one.key()).of(None, Some(one));
        let changes: Vec<_> = inboxes.iter().map(change).collect();
        let put = |txn: &mut dyn Transaction| {
            inboxes.iter().try_for_each(|one| txn.insert(one))?;
            count(txn, ReadCounters::default(), &changes)
        };
        write(&store, put).unwrap();
    };
    let complete = || {
        let known = |inbox| {
            read(&store, |snapshot| CountersUntil::find(snapshot, key(inbox).as_bytes())).unwrap()
        };
        (1..=5).filter(|inbox| known(*inbox).until.is_none()).count()
    };
    add(1);
    assert_eq!(complete(), 5);
    for inbox in 1..=5 {
        write(&store, |txn| txn.put_bytes(&key(inbox), b"damaged")).unwrap();
    }

    add(2);

    assert_eq!(complete(), 2);
    for inbox in 1..=5 {
        let found = read(&store, |snapshot| find(snapshot, &key(inbox))).unwrap();
        assert_eq!(found.shelves.iter().sum::<u32>(), 2);
    }
    // A step that reads as many messages as it may does not know whether others are behind them.
    (3..=4).for_each(add);
    assert_eq!(complete(), 4);
}
