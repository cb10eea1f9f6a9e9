//! Every call of the store fails once, in everything that the index does.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use store::memory::MemoryStore;
use store::{Error, Order, Snapshot, Store, Table, layout};

use crate::sample::environment;
use crate::world::{Deed, Records, World, past, queries};
use testkit::interposed::{Lie, Point};
use testkit::scaled;
use testkit::world::Backend;

const APPEND: Deed = Deed::Append { count: 20, transaction: 1, traits: 77, later: 1 };

#[test]
fn a_fault_while_notifications_are_taken_in() {
    fails_everywhere(&[APPEND]);
}

#[test]
fn a_fault_while_segments_are_sealed_and_facets_are_cleared_away() {
    fails_everywhere(&[Deed::TendAll]);
}

#[test]
fn a_fault_while_spans_are_merged_into_a_larger_one() {
    let full = full(5);
    let append = Deed::Append { count: 200, transaction: 1, traits: 77, later: 1 };
    // Then all of the segments are sealed, and a part of the spans is merged.
    for deed in [Deed::TendAll, append, Deed::Tend(15)] {
        full.world.does(0, &deed).unwrap();
    }
    for fault in [Point::Call, Point::Committed] {
        let mut calls = 0;
        while {
            let world = after(&full);
            let failed = world.fails(&Deed::TendAll, calls, fault);
            world.is_in_order(&queries(calls as u64, 2));
            world.reopen();
            world.does(1, &Deed::TendAll).unwrap();
            world.is_in_order(&queries(calls as u64, 2));
            world.reads(|snapshot| is_tidy(snapshot, &world.records()));
            failed
        } {
            calls += 7;
        }
        assert!(calls > 0);
    }
}

#[test]
fn a_span_that_is_not_merged_after_its_merging_is_refused() {
    let full = full(3);
    let append = Deed::Append { count: 64, transaction: 1, traits: 77, later: 1 };
    // Then four segments are sealed, and their facets cleared away.
    for deed in [Deed::TendAll, append, Deed::Tend(5)] {
        full.world.does(0, &deed).unwrap();
    }
    let world = after(&full);
    let _ = world.store.clone().discarding();
    let refused = is_corrupt(&world, "activity_heads", &Deed::TendAll);
    assert!(format!("{refused:?}").contains("a merged span"), "{refused:?}");
}

#[test]
fn a_fault_while_a_notification_is_deleted() {
    fails_everywhere(&[Deed::Delete(40, 1), Deed::TendAll]);
}

#[test]
fn a_fault_while_old_notifications_are_deleted() {
    fails_everywhere(&[Deed::DeleteBefore { ago: 8, limit: 50 }, Deed::TendAll]);
}

#[test]
fn a_fault_while_the_index_is_made_anew() {
    fails_everywhere(&[Deed::Rebuild, Deed::TendAll]);
}

#[test]
fn a_fault_while_the_index_is_made_anew_and_notifications_are_deleted() {
    let others =
        [Deed::Delete(60, 1), Deed::Delete(0, 1), APPEND, Deed::Delete(3, 1), Deed::Tend(2)];
    let full = full(7);
    let mut calls = 0;
    while {
        let world = Arc::new(after(&full));
        let (shared, others) = (Arc::clone(&world), others.clone());
        // It is about to put the last part in place.
        world.store.pause(Point::Begin, calls % 4 + 12, move || {
            // Only the one that is made anew fails.
            shared.store.undisturbed(|| {
                for deed in &others {
                    shared.does(1, deed).unwrap();
                }
            });
        });
        let failed = world.fails(&Deed::Rebuild, calls, Point::Call);
        world.store.recover();
        comes_to_rest(&world);
        failed
    } {
        calls += 1;
    }
}

/// The process is killed at any call of a rebuild, or the store fails until the call has ended.
#[test]
fn the_next_upkeep_removes_what_an_interrupted_rebuild_has_left() {
    let full = full(7);
    for is_killed in [true, false] {
        let mut calls = 0;
        while {
            let world = after(&full);
            world.store.stop(Point::Call, calls);
            let result = world.does(0, &Deed::Rebuild);
            let has_failed = world.store.recover();
            assert!(has_failed || result.is_ok(), "{result:?}");
            if is_killed {
                world.reopen();
            }
            world.does(0, &Deed::TendAll).unwrap();
            world.is_in_order(&queries(calls as u64, 2));
            world.reads(|snapshot| is_tidy(snapshot, &world.records()));
            has_failed
        } {
            calls += 1;
        }
        assert!(calls > 10);
    }
}

/// The first upkeep of another process takes a rebuild for one that was interrupted.
#[test]
fn a_rebuild_that_another_process_has_removed_starts_anew() {
    let full = full(7);
    for begins in 1..40 {
        let world = Arc::new(after(&full));
        let shared = Arc::clone(&world);
        world.store.pause(Point::Begin, begins, move || {
            shared.does(1, &Deed::TendAll).unwrap();
        });
        world.does(0, &Deed::Rebuild).unwrap();
        world.does(0, &Deed::TendAll).unwrap();
        world.is_in_order(&queries(begins as u64, 2));
        world.reads(|snapshot| is_tidy(snapshot, &world.records()));
    }
}

/// A damaged file may show entries that are not found by their keys, and so cannot be removed.
#[test]
fn upkeep_that_removes_nothing_is_refused() {
    let world = after(&full(3));
    world.does(0, &APPEND).unwrap();
    world.store.tell(Lie::Undeleted);
    is_corrupt(&world, "activity_facets", &Deed::TendAll);
}

#[test]
fn a_segment_that_is_not_sealed_after_its_sealing_is_refused() {
    let world = after(&full(3));
    world.does(0, &APPEND).unwrap();
    let _ = world.store.clone().discarding();
    is_corrupt(&world, "activity_heads", &Deed::TendAll);
}

#[test]
fn a_rebuild_that_comes_no_further_is_refused() {
    let world = Arc::new(after(&full(3)));
    let shared = Arc::clone(&world);
    world.store.tell(Lie::Stale);
    // The rebuild has begun, and reads do not show it what comes now.
    world.store.pause(Point::Begin, 2, move || {
        let append = Deed::Append { count: 2_000, transaction: 1, traits: 77, later: 1 };
        shared.does(1, &append).unwrap();
    });
    is_corrupt(&world, "notifications", &Deed::Rebuild);
}

#[track_caller]
fn is_corrupt(world: &World, expected: &str, deed: &Deed) -> Error {
    // It ends long before that.
    world.store.stop(Point::Write, 1_000);
    let refused = world.does(0, deed).unwrap_err();
    let is_corrupt = matches!(refused, Error::Corrupt { table, .. } if table == expected);
    assert!(is_corrupt, "{refused:?}");
    refused
}

/// A store in which there is something to do, and what must be in it.
struct Full {
    store: MemoryStore,
    world: World,
}

fn full(seed: u64) -> Full {
    let store = MemoryStore::default();
    let world = World::new(Backend::Memory(store.clone()), 16);
    past(&world, seed);
    Full { store, world }
}

/// A copy of it.
fn after(full: &Full) -> World {
    let copy = MemoryStore::default();
    copy_of(&full.store, &copy);
    full.world.with(Backend::Memory(copy))
}

fn copy_of(from: &dyn Store, to: &dyn Store) {
    let entries = dump(from);
    store::write(to, |txn| {
        entries.iter().try_for_each(|(table, key, value)| txn.put(*table, key, value))
    })
    .unwrap();
}

fn fails_everywhere(deeds: &[Deed]) {
    for seed in 0..scaled(1) {
        let full = full(seed);
        for deed in deeds {
            for fault in [Point::Call, Point::Committed] {
                let mut calls = 0;
                while {
                    let world = after(&full);
                    let failed = world.fails(deed, calls, fault);
                    world.agrees(&queries(calls as u64, 2));
                    comes_to_rest(&world);
                    failed
                } {
                    calls += 1;
                }
                assert!(calls > 0 || fault == Point::Committed, "nothing was called");
            }
            full.world.does(0, deed).unwrap();
        }
    }
}

/// After whatever has happened, everything that is to be done gets done, here and after a restart.
fn comes_to_rest(world: &World) {
    world.reopen();
    world.is_in_order(&queries(1, 2));
    for deed in [APPEND, Deed::TendAll, Deed::Delete(12, 40), Deed::Rebuild, Deed::TendAll] {
        world.does(0, &deed).unwrap();
    }
    world.is_in_order(&queries(2, 2));
    world.reads(|snapshot| is_tidy(snapshot, &world.records()));
}

/// There is one generation, and in it nothing that is over.
pub(crate) fn is_tidy(snapshot: &dyn Snapshot, records: &Records) {
    let mut generations = BTreeSet::new();
    for table in layout::ACTIVITY {
        for (key, _) in entries(snapshot, table) {
            generations.insert(layout::activity_generation(&key).unwrap());
        }
    }
    assert_eq!(generations.len(), 1, "a generation that is over is still there");
    let spans = entries(snapshot, Table::ActivityMerged);
    let spans: BTreeSet<_> = spans.iter().filter_map(|(key, _)| layout::span_of_key(key)).collect();
    let merged =
        |level: u8| spans.iter().filter(move |(other, _)| *other == level).map(|(_, end)| *end);
    for level in 0..2 {
        let above = merged(level + 1).max().unwrap_or_default();
        assert!(merged(level).all(|end| end > above), "a span that is part of another: {spans:?}");
    }
    let rows = entries(snapshot, Table::ActivityFacets).len();
    assert!(rows <= 1, "{rows} rows of facets are there for less than a segment");
    let first = records.first_key_value().map_or(0, |(ordinal, _)| ordinal / 16);
    let lowest = entries(snapshot, Table::ActivitySegments)
        .first()
        .map(|(key, _)| u32::from_be_bytes(*key[20..].first_chunk().unwrap()));
    assert!(lowest.is_none_or(|lowest| u64::from(lowest) >= first), "a segment that is over");
    assert!(spans.iter().all(|(_, end)| u64::from(*end) > first), "a span that is over");
}

pub(crate) fn entries(snapshot: &dyn Snapshot, table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    let [range, ..] = layout::activity_generations(environment());
    let mut visit = |key: &[u8], value: &[u8]| {
        entries.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    snapshot.scan(table, range.bytes(), Order::Ascending, None, &mut visit).unwrap();
    entries
}

fn dump(store: &dyn Store) -> Vec<(Table, Vec<u8>, Vec<u8>)> {
    store::read(store, |snapshot| {
        let of = |table| {
            entries(snapshot, table).into_iter().map(move |(key, value)| (table, key, value))
        };
        Ok::<_, store::Error>(Table::ALL.iter().flat_map(|table| of(*table)).collect())
    })
    .unwrap()
}
