//! Segments are merged on every level, and what is rare in them is found as in the segments.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::vocabulary::Severity;
use store::memory::MemoryStore;
use store::{Table, layout};

use crate::faults::entries;
use crate::sample::number_of;
use crate::wanted::{Query, Wanted, Wish};
use crate::world::{Deed, World, queries};
use testkit::dice::Dice;
use testkit::disk::Disk;
use testkit::interposed::Point;
use testkit::scaled;
use testkit::world::Backend;

#[test]
fn spans_of_every_level_agree_in_memory() {
    for seed in 0..scaled(3) {
        grows(&World::new(Backend::Memory(MemoryStore::default()), 16), seed);
    }
}

#[test]
fn spans_of_every_level_agree_on_disk() {
    grows(&World::new(Backend::Redb(Disk::new()), 16), 7);
}

/// Eighty segments and more, of which some are deleted meanwhile.
fn grows(world: &World, seed: u64) {
    let mut dice = Dice::new(seed);
    let (mut levels, mut subscribers) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..42_u8 {
        let append = Deed::Append {
            count: 32 + u16::try_from(dice.roll(8)).unwrap(),
            transaction: round % 5,
            traits: u16::try_from(dice.roll(1 << 16)).unwrap(),
            later: 1,
        };
        world.does(0, &append).unwrap();
        // The other one goes on with what this one has begun.
        let index = usize::try_from(dice.roll(2)).unwrap();
        world.does(index, &Deed::Tend(u8::try_from(dice.roll(9)).unwrap())).unwrap();
        subscribers.extend(world.records().into_values().map(|it| number_of(it.subscriber_id)));
        if round % 5 == 4 {
            let at = usize::try_from(dice.roll(300)).unwrap();
            world.does(0, &Deed::Delete(at, 20)).unwrap();
        }
        if round % 9 == 8 {
            // Within a span, and sometimes beyond all of them.
            let limit = usize::try_from(dice.roll(50)).unwrap();
            world.does(0, &Deed::DeleteBefore { ago: 9, limit }).unwrap();
        }
        if round % 6 == 5 {
            world.is_in_order(&queries(seed + u64::from(round), 6));
        }
        levels.extend(levels_of(world));
    }
    world.does(0, &Deed::TendAll).unwrap();
    levels.extend(levels_of(world));
    assert_eq!(levels, BTreeSet::from([0, 1, 2]));
    world.is_in_order(&queries(seed, 40));
    world.is_in_order(&of_each(&subscribers));
    world.reopen();
    world.is_in_order(&queries(seed + 100, 20));
    world.does(0, &Deed::Rebuild).unwrap();
    world.is_in_order(&queries(seed, 10));
    world.does(1, &Deed::TendAll).unwrap();
    world.is_in_order(&queries(seed, 20));
}

// Each subscriber alone, with a severity, and with nineteen others. Some have deleted notifications only.
fn of_each(subscribers: &BTreeSet<u16>) -> Vec<Query> {
    let subscribers: Vec<Wish> = subscribers.iter().copied().map(Wish::Subscriber).collect();
    let severity = || vec![Wish::Severity(Severity::High)];
    let alone = subscribers.chunks(1).map(|one| vec![one.to_vec()]);
    let severe = subscribers.chunks(1).map(|one| vec![one.to_vec(), severity()]);
    let several = subscribers.chunks(20).map(|twenty| vec![twenty.to_vec(), severity()]);
    let all = alone.chain(severe).chain(several);
    all.map(|groups| Query { wanted: Wanted { groups, ..Wanted::default() }, skip: 1, limit: 3 })
        .collect()
}

#[test]
fn segments_are_deleted_while_they_are_merged() {
    for pause in 0..16 {
        let world = Arc::new(World::new(Backend::Memory(MemoryStore::default()), 16));
        let append = |count| Deed::Append { count, transaction: 1, traits: 77, later: 1 };
        for _ in 0..8 {
            world.does(0, &append(35)).unwrap();
        }
        // Then all of the segments are sealed, and their facets cleared away.
        world.does(0, &Deed::Tend(18)).unwrap();
        let shared = Arc::clone(&world);
        world.store.pause(Point::Begin, pause, move || {
            for deed in [Deed::DeleteBefore { ago: 0, limit: 100 }, Deed::Tend(1), append(9)] {
                shared.does(1, &deed).unwrap();
            }
        });
        world.does(0, &Deed::TendAll).unwrap();
        world.store.recover();
        world.is_in_order(&queries(pause as u64, 8));
        world.reopen();
        world.does(0, &Deed::TendAll).unwrap();
        world.is_in_order(&queries(pause as u64, 8));
    }
}

fn levels_of(world: &World) -> BTreeSet<u8> {
    let mut levels = BTreeSet::new();
    world.reads(|snapshot| {
        let keys = entries(snapshot, Table::ActivityMerged);
        levels.extend(keys.iter().filter_map(|(key, _)| layout::span_of_key(key)).map(|of| of.0));
    });
    levels
}
