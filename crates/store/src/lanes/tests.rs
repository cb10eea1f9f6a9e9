use std::collections::BTreeMap;

use domain::task::{TaskClass, TaskState, Work};
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::memory::MemoryStore;
use crate::{ChangeKind, Error, Record, WriteRecords, read, write};

/// Something that a transaction does. Tasks with an even number are in one lane, the others in another.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Puts a task that is due at this time, or that is held, in place of the one with its number.
    Put(u8, Option<i64>),
    Remove(u8),
    Hold(u8),
    Release(u8),
}

fn deed() -> impl Strategy<Value = Deed> {
    // Few numbers and times, so that tasks are changed twice and due at the same time.
    let due_at = prop::option::weighted(0.9, 0_i64..5);
    prop_oneof![
        6 => (0_u8..8, due_at).prop_map(|(number, due_at)| Deed::Put(number, due_at)),
        4 => (0_u8..8).prop_map(Deed::Remove),
        1 => (0_u8..2).prop_map(Deed::Hold),
        1 => (0_u8..2).prop_map(Deed::Release),
    ]
}

fn task(number: u8, due_at: Option<i64>) -> Task {
    let integration_id = Uuid::from_u128(3).into();
    let state = match due_at.map(Timestamp::from_millis) {
        Some(due_at) => TaskState::Waiting { due_at, attempts: 0 },
        None => TaskState::Held { integration_id, attempts: 0 },
    };
    Task {
        id: Uuid::from_u128(number.into()).into(),
        environment_id: Uuid::from_u128(1).into(),
        organization_id: "acme".parse().unwrap(),
        workflow_id: Some(Uuid::from_u128((2 + number % 2).into()).into()),
        class: TaskClass::Normal,
        restarted_at: None,
        state,
        work: Work::Release { integration_id },
    }
}

fn change(
    transaction: &mut dyn Transaction,
    before: Option<&Task>,
    after: Option<&Task>,
) -> Result<Option<Change>> {
    let kind = match (before, after) {
        (None, Some(after)) => transaction.insert(after).map(|()| ChangeKind::Inserted)?,
        (Some(before), Some(after)) => {
            transaction.replace(before, after).map(|()| ChangeKind::Replaced)?
        }
        (Some(before), None) => transaction.remove(before).map(|()| ChangeKind::Removed)?,
        (None, None) => return Ok(None),
    };
    let key = before.or(after).map(Record::key);
    Ok(key.map(|key| Change::new(kind, &key).of(before, after)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_lane_is_where_its_first_task_is(
        transactions in prop::collection::vec(prop::collection::vec(deed(), 1..6), 1..20),
    ) {
        let (store, mut tasks) = (MemoryStore::default(), BTreeMap::<u8, Task>::new());
        let mut held = [false; 2];
        for deeds in transactions {
            write(&store, |transaction| {
                let mut changes = Vec::new();
                for deed in &deeds {
                    match *deed {
                        Deed::Put(number, due_at) => {
                            let after = task(number, due_at);
                            let before = tasks.insert(number, after.clone());
                            changes.extend(change(transaction, before.as_ref(), Some(&after))?);
                        }
                        Deed::Remove(number) => {
                            let before = tasks.remove(&number);
                            changes.extend(change(transaction, before.as_ref(), None)?);
                        }
                        Deed::Hold(lane) => {
                            held[usize::from(lane)] = true;
                            hold(transaction, &task(lane, None).lane())?;
                        }
                        Deed::Release(lane) => {
                            held[usize::from(lane)] = false;
                            release(transaction, &task(lane, None).lane())?;
                        }
                    }
                }
                move_changed(transaction, &changes)
            })
            .unwrap();
            for (number, is_held) in (0..2).zip(held) {
                let lane = task(number, None).lane();
                let of_lane = tasks.values().filter(|task| task.lane() == lane);
                let first = of_lane.filter_map(|task| task.state.due_at()).min();
                let expected = if is_held { State::Held } else { State::of(first) };
                let found = read(&store, |snapshot| state(snapshot, &lane));
                prop_assert_eq!(found.unwrap(), expected);
                let sorted = read(&store, |snapshot| {
                    let mut sorted = Vec::new();
                    let all = layout::lanes_until(TaskClass::Normal, Timestamp::MAX);
                    snapshot.scan_bytes(&all, Order::Ascending, None, &mut |entry, _| {
                        sorted.extend(layout::lane_of(entry).filter(|(named, _)| *named == lane));
                        std::ops::ControlFlow::Continue(())
                    })?;
                    Ok::<_, Error>(sorted)
                });
                let expected = first.filter(|_| !is_held).map(|first| (lane, first));
                prop_assert_eq!(sorted.unwrap(), Vec::from_iter(expected));
            }
        }
    }
}
