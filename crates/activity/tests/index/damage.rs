//! Whatever is wrong with a row of the index, nobody panics, no notification is lost, and the index
//! can be made anew.

use std::ops::ControlFlow;

use store::memory::MemoryStore;
use store::{Store, Table, layout};

use crate::faults::{entries, is_tidy};
use crate::sample::environment;
use crate::world::{Deed, World, past, queries};
use testkit::dice::Dice;
use testkit::scaled;
use testkit::world::Backend;

const TABLES: [Table; 5] = [
    Table::ActivityHeads,
    Table::ActivityFacets,
    Table::ActivitySegments,
    Table::ActivityMerged,
    Table::ActivityDeleted,
];

#[test]
fn damaged_rows_are_survived_and_made_anew() {
    for table in TABLES {
        for seed in 0..scaled(20) {
            let mut dice = Dice::new(seed);
            let store = MemoryStore::default();
            let world = World::new(Backend::Memory(store.clone()), 16);
            past(&world, seed % 8);
            if table == Table::ActivityMerged {
                world.does(0, &Deed::TendAll).unwrap();
            }
            let damage = format!("{table:?} {seed}: {}", damage(&store, table, &mut dice));
            world.reopen();
            // Shown if the test fails.
            println!("{damage}");
            if is_clean(&world) {
                world.agrees(&queries(seed, 12));
            }
            survives(&world, &damage);
            world.does(0, &Deed::Rebuild).unwrap();
            world.is_in_order(&queries(seed, 3));
            world.reopen();
            world.does(1, &Deed::TendAll).unwrap();
            world.is_in_order(&queries(seed, 3));
        }
    }
}

/// As many segments as a rebuild compares at once have rows of deletions, up to the last one that a key can name.
#[test]
fn deletions_in_segments_that_are_not_there_are_passed_over() {
    let store = MemoryStore::default();
    let world = World::new(Backend::Memory(store.clone()), 16);
    past(&world, 3);
    store::write(&store, |txn| {
        for (key, _) in entries(&*txn, Table::ActivityDeleted) {
            txn.delete(Table::ActivityDeleted, &key)?;
        }
        (0..64).try_for_each(|number| {
            let key = layout::activity_deleted(environment(), 0, u32::MAX - number);
            txn.put(key.table(), key.as_bytes(), b"damaged")
        })
    })
    .unwrap();
    assert!(!is_clean(&world));
    world.does(0, &Deed::Rebuild).unwrap();
    world.is_in_order(&queries(1, 3));
}

/// The generation of an index without rows starts anew, so it is older than that in memory.
#[test]
fn an_index_that_starts_anew_is_sealed() {
    for which in [0, 1] {
        let store = MemoryStore::default();
        let world = World::new(Backend::Memory(store.clone()), 16);
        past(&world, 3);
        for deed in [Deed::Rebuild, Deed::Rebuild, Deed::TendAll] {
            world.does(0, &deed).unwrap();
        }
        world.is_in_order(&queries(1, 3));
        store::write(&store, |txn| {
            TABLES.into_iter().try_for_each(|table| {
                let rows = entries(&*txn, table);
                rows.iter().try_for_each(|(key, _)| txn.delete(table, key))
            })
        })
        .unwrap();
        world.does(which, &Deed::Rebuild).unwrap();
        world.is_in_order(&queries(2, 3));
        let append = Deed::Append { count: 40, transaction: 2, traits: 99, later: 1 };
        for deed in [append, Deed::TendAll] {
            world.does(0, &deed).unwrap();
        }
        world.is_in_order(&queries(3, 3));
        world.reads(|snapshot| is_tidy(snapshot, &world.records()));
    }
}

/// The number of deletions is larger than that of the places then, unless it is bounded.
#[test]
fn notifications_are_created_where_the_rows_of_deletions_are_lost() {
    let retention = Deed::DeleteBefore { ago: 0, limit: 4 };
    for last in [retention, Deed::Delete(0, 4)] {
        let store = MemoryStore::default();
        let world = World::new(Backend::Memory(store.clone()), 16);
        let append = Deed::Append { count: 10, transaction: 2, traits: 99, later: 1 };
        world.does(0, &append).unwrap();
        world.does(0, &Deed::Delete(2, 6)).unwrap();
        store::write(&store, |txn| {
            let table = Table::ActivityDeleted;
            let rows = entries(&*txn, table);
            rows.iter().try_for_each(|(key, _)| txn.delete(table, key))
        })
        .unwrap();
        world.does(0, &last).unwrap();
        world.does(0, &append).unwrap();
        world.does(0, &Deed::DeleteBefore { ago: -1, limit: 16 }).unwrap();
        world.does(0, &append).unwrap();
        world.does(0, &Deed::Rebuild).unwrap();
        world.is_in_order(&queries(1, 3));
    }
}

/// Whether the check finds nothing wrong. Then there is nothing wrong.
fn is_clean(world: &World) -> bool {
    let mut is_clean = false;
    world.reads(|snapshot| {
        let check =
            world.index(0).check(snapshot, environment(), &mut |_, _| ControlFlow::Continue(()));
        is_clean = check.is_ok_and(|check| check.disagreements.is_empty());
    });
    is_clean
}

/// Uses the index, which may say anything or refuse to, and says what it said.
fn survives(world: &World, damage: &str) {
    let index = world.index(0);
    world.reads(|snapshot| {
        for query in queries(1, 8) {
            let (filter, limit) = (query.wanted.filter(), query.limit.min(1_000));
            let _ = index.find(snapshot, environment(), &filter, query.skip, limit);
            let _ = index.count(snapshot, environment(), &filter);
        }
        let _ = index.check(snapshot, environment(), &mut |_, _| ControlFlow::Continue(()));
    });
    let append = Deed::Append { count: 20, transaction: 2, traits: 99, later: 1 };
    for deed in [append.clone(), Deed::Tend(9), append, Deed::Delete(5, 1)] {
        let _ = world.does(0, &deed);
        world.settle(damage);
    }
    let _ = world.index(1).tend_all(&world.store, environment());
}

/// Does something to one or two rows of `table`, and says what.
fn damage(store: &MemoryStore, table: Table, dice: &mut Dice) -> String {
    let rows =
        store::read(store, |snapshot| Ok::<_, store::Error>(entries(snapshot, table))).unwrap();
    assert!(!rows.is_empty(), "{table:?} is empty");
    let mut pick = || {
        let at = usize::try_from(dice.roll(rows.len() as u64)).unwrap();
        (at, dice.roll(5), dice.roll(1 << 20))
    };
    let picked: Vec<_> = (0..2).map(|_| pick()).collect();
    let mut told = Vec::new();
    for (at, kind, how) in picked {
        let (key, mut value) = rows[at].clone();
        let how = usize::try_from(how).unwrap();
        let what = match kind {
            0 => "is removed",
            1 => {
                value.truncate(how % (value.len() + 1));
                "is cut short"
            }
            2 => {
                value.extend(how.to_be_bytes());
                "goes on"
            }
            _ => {
                let len = value.len().max(1);
                if let Some(byte) = value.get_mut(how % len) {
                    *byte ^= 1 << (how / len % 8);
                }
                "has a wrong bit"
            }
        };
        told.push(format!("row {at} {what} ({how})"));
        store
            .write(&mut |txn| {
                match kind {
                    0 => txn.delete(table, &key)?,
                    _ => txn.put(table, &key, &value)?,
                }
                Ok(store::Decision::Commit)
            })
            .unwrap();
    }
    told.join("; ")
}
