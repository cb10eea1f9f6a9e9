//! Whoever searches while others write sees one moment.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use tidings_activity::Filter;

use crate::sample::environment;
use crate::world::read;
use crate::world::{self, Deed, World, queries};
use store::memory::MemoryStore;
use testkit::dice::Dice;
use testkit::disk::Disk;
use testkit::scaled;
use testkit::world::Backend;

#[test]
fn searches_see_one_moment_in_memory() {
    crowd(Backend::Memory(MemoryStore::default()), scaled(100));
}

#[test]
fn searches_see_one_moment_on_disk() {
    crowd(Backend::Redb(Disk::new()), scaled(40));
}

fn crowd(backend: Backend, rounds: u32) {
    let world = &World::new(backend, 16);
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..3 {
            scope.spawn(move || search(world, reader, is_over));
        }
        scope.spawn(move || {
            // Another one makes it anew all the time.
            while !is_over.load(Relaxed) {
                world.does(0, &Deed::Rebuild).unwrap();
                thread::yield_now();
            }
        });
        // The readers end in any case.
        let writing = scope.spawn(move || write(world, rounds));
        let result = writing.join();
        is_over.store(true, Relaxed);
        result.unwrap();
    });
    world.does(0, &Deed::TendAll).unwrap();
    world.is_in_order(&queries(1, 10));
}

fn write(world: &World, rounds: u32) {
    let mut dice = Dice::new(3);
    for round in 0..rounds {
        let count = 1 + u16::try_from(dice.roll(12)).unwrap();
        let traits = u16::try_from(dice.roll(1 << 16)).unwrap();
        let append = Deed::Append { count, transaction: 1, traits, later: 1 };
        world.does(0, &append).unwrap();
        world.does(0, &Deed::Tend(1)).unwrap();
        match round % 8 {
            3 => world.does(0, &Deed::Delete(4, 3)).unwrap(),
            7 => world.does(0, &Deed::DeleteBefore { ago: 15, limit: 100 }).unwrap(),
            _ => {}
        }
    }
}

fn search(world: &World, reader: u64, is_over: &AtomicBool) {
    let index = world.index(0);
    let mut newest = None;
    for round in 0.. {
        world.reads(|snapshot| {
            let records = read(snapshot);
            world::agrees(&index, snapshot, &records, &queries(reader * 1_000 + round % 50, 2));
        });
        let mut found = Vec::new();
        world.reads(|snapshot| {
            found = index.find(snapshot, environment(), &Filter::default(), 0, 5).unwrap();
        });
        assert!(found.is_sorted_by(|one, next| one > next), "a page is not in order: {found:?}");
        assert!(found.first().copied() >= newest, "something that was found is there no more");
        newest = if found.is_empty() { newest } else { found.first().copied().max(newest) };
        if is_over.load(Relaxed) {
            break;
        }
    }
}
