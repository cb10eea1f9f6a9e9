//! Where all of a segment was deleted one by one, what lies around it is still found by its time.

use crate::wanted::{Query, Wanted};
use crate::world::{Deed, World};
use store::memory::MemoryStore;
use testkit::world::Backend;

#[test]
fn times_are_in_order_around_what_is_gone() {
    for (at, count) in [(16, 16), (0, 20), (10, 40), (32, 48), (5, 30), (64, 16), (1, 79)] {
        for sealed in [true, false] {
            let world = World::new(Backend::Memory(MemoryStore::default()), 16);
            for round in 0..16 {
                let traits = round * 77;
                world
                    .does(0, &Deed::Append { count: 5, transaction: 1, traits, later: 2 })
                    .unwrap();
            }
            if sealed {
                world.does(0, &Deed::TendAll).unwrap();
            }
            world.does(0, &Deed::Delete(at, count)).unwrap();
            let queries: Vec<Query> = (-1..35).flat_map(around).collect();
            world.is_in_order(&queries);
            world.does(0, &Deed::Rebuild).unwrap();
            world.is_in_order(&queries);
            world.does(0, &Deed::TendAll).unwrap();
            world.is_in_order(&queries);
        }
    }
}

/// A repair that is ended has removed notifications, and not rebuilt the index.
#[test]
fn what_is_deleted_stays_so_behind_notifications_that_are_lost() {
    let world = World::new(Backend::Memory(MemoryStore::default()), 16);
    for _ in 0..8 {
        let append = Deed::Append { count: 5, transaction: 1, traits: 77, later: 2 };
        world.does(0, &append).unwrap();
    }
    world.does(0, &Deed::Delete(0, 3)).unwrap();
    world.does(0, &Deed::Delete(30, 2)).unwrap();
    world.loses(12);
    world.does(0, &Deed::DeleteBefore { ago: 7, limit: 1_000 }).unwrap();
    world.is_in_order(&(-1..17).flat_map(around).collect::<Vec<_>>());
}

/// What was created until a time, and what since.
fn around(time: i64) -> [Query; 2] {
    let after = Wanted { after: Some(time), ..Wanted::default() };
    let before = Wanted { before: Some(time), ..Wanted::default() };
    [after, before].map(|wanted| Query { wanted, skip: 0, limit: 1_000 })
}
