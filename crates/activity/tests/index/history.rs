//! Any history, on memory and on redb.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use store::memory::MemoryStore;

use crate::cases;
use crate::wanted::{Query, query};
use crate::world::{self, Deed, World};
use testkit::disk::Disk;
use testkit::interposed::Point;
use testkit::world::Backend;

/// Something that happens, and with which of the two indexes.
#[derive(Clone, Debug)]
struct Step {
    which: usize,
    event: Event,
    queries: Vec<Query>,
}

#[derive(Clone, Debug)]
enum Event {
    Deed(Deed),
    Reopen,
    /// A call of it fails.
    Fail(Deed, usize, Point),
    /// The others happen in the middle of it, with the other index.
    Meanwhile(Deed, usize, Vec<Deed>),
    /// They happen while somebody has a snapshot.
    Behind(Vec<Deed>),
    /// The store loses what is committed in the middle of it, between two of its calls.
    Lose(Deed, [usize; 2]),
}

fn deed() -> impl Strategy<Value = Deed> {
    // Once in a while somebody sets the clock.
    let later = prop_oneof![3 => Just(0), 6 => 1_i64..6, 1 => -4_i64..0, 1 => -80_i64..80];
    let count = prop_oneof![3 => Just(1), 1 => 1_usize..50];
    let limit = prop_oneof![1 => Just(0), 4 => 1_usize..40, 1 => Just(1_000)];
    prop_oneof![
        8 => (1_u16..=40, 0_u8..5, any::<u16>(), later).prop_map(
            |(count, transaction, traits, later)| Deed::Append { count, transaction, traits, later }
        ),
        3 => (0_u8..6).prop_map(Deed::Tend),
        2 => Just(Deed::TendAll),
        3 => (0_usize..100, count).prop_map(|(at, count)| Deed::Delete(at, count)),
        1 => (-90_i64..90, limit).prop_map(|(ago, limit)| Deed::DeleteBefore { ago, limit }),
        1 => Just(Deed::Rebuild),
        1 => Just(Deed::Keep),
        1 => Just(Deed::Lose),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let fault = prop_oneof![4 => Just(Point::Call), 1 => Just(Point::Committed)];
    prop_oneof![
        12 => deed().prop_map(Event::Deed),
        1 => Just(Event::Reopen),
        2 => (deed(), 0_usize..60, fault).prop_map(|(deed, calls, fault)| {
            let calls = if fault == Point::Committed { calls % 4 } else { calls };
            Event::Fail(deed, calls, fault)
        }),
        2 => (deed(), 0_usize..12, vec(deed(), 1..5))
            .prop_map(|(deed, calls, others)| Event::Meanwhile(deed, calls, others)),
        2 => vec(deed(), 1..6).prop_map(Event::Behind),
        1 => loss(),
    ]
}

fn loss() -> impl Strategy<Value = Event> {
    let upkeep = prop::sample::select(vec![Deed::TendAll, Deed::Rebuild]);
    (upkeep, [0_usize..12, 0..6]).prop_map(|(deed, calls)| Event::Lose(deed, calls))
}

fn history(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (0_usize..8, event(), vec(query(), 0..4)).prop_map(|(which, event, queries)| Step {
        which: which / 7,
        event,
        queries,
    });
    vec(step, 1..steps)
}

fn replay(backend: Backend, segment: u32, history: Vec<Step>) {
    let world = Arc::new(World::new(backend, segment));
    for Step { which, event, queries } in history {
        match event {
            Event::Deed(deed) => world.does(which, &deed).unwrap(),
            Event::Reopen => world.reopen(),
            Event::Fail(deed, calls, fault) => drop(world.fails(&deed, calls, fault)),
            Event::Meanwhile(deed, calls, others) => meanwhile(&world, which, deed, calls, others),
            Event::Behind(deeds) => behind(&world, which, &deeds, &queries),
            Event::Lose(deed, calls) => lose(&world, which, &deed, calls),
        }
        world.agrees(&queries);
    }
    world.is_in_order(&[]);
    world.does(0, &Deed::TendAll).unwrap();
    world.is_in_order(&world::queries(1, 4));
    world.reopen();
    world.is_in_order(&world::queries(2, 4));
}

fn meanwhile(world: &Arc<World>, which: usize, deed: Deed, calls: usize, others: Vec<Deed>) {
    // The model does not know what comes first when a write waits for a pause.
    let is_upkeep = matches!(deed, Deed::Tend(_) | Deed::TendAll | Deed::Rebuild);
    let (other, shared) = (1 - which, Arc::clone(world));
    if is_upkeep {
        world.store.pause(Point::Begin, calls, move || {
            for deed in &others {
                shared.does(other, deed).unwrap();
            }
        });
    }
    world.does(which, &deed).unwrap();
    world.store.recover();
}

fn lose(world: &Arc<World>, which: usize, deed: &Deed, [before, between]: [usize; 2]) {
    let shared = Arc::clone(world);
    world.store.pause(Point::Begin, before, move || {
        shared.does(which, &Deed::Keep).unwrap();
        let world = Arc::clone(&shared);
        shared.store.pause(Point::Begin, between, move || world.does(which, &Deed::Lose).unwrap());
    });
    world.does(which, deed).unwrap();
    world.store.recover();
}

fn behind(world: &World, which: usize, deeds: &[Deed], queries: &[Query]) {
    let records = world.records();
    world.reads(|snapshot| {
        for deed in deeds {
            world.does(which, deed).unwrap();
            // The index is ahead of this snapshot, or it is not there yet.
            world::agrees(&world.index(which), snapshot, &records, queries);
        }
        world::agrees(&world.index(1 - which), snapshot, &records, queries);
        world::is_in_order(&world.index(which), snapshot, &records);
    });
}

fn segment() -> impl Strategy<Value = u32> {
    prop::sample::select(&[16, 16, 32, 48][..])
}

proptest! {
    #![proptest_config(cases(80))]

    #[test]
    fn an_index_in_memory_agrees_with_its_notifications(
        segment in segment(),
        history in history(30),
    ) {
        replay(Backend::Memory(MemoryStore::default()), segment, history);
    }
}

proptest! {
    #![proptest_config(cases(80))]

    /// Upkeep and rebuilds of full segments, one behind the other.
    #[test]
    fn an_index_goes_on_from_an_earlier_state(
        segment in segment(),
        history in vec((vec(deed(), 0..3), loss(), vec(query(), 0..2)), 1..8),
    ) {
        let full = Deed::Append { count: 50, transaction: 1, traits: 7, later: 1 };
        let step = |event| Step { which: 0, event, queries: Vec::new() };
        let history = history.into_iter().flat_map(|(deeds, loss, queries)| {
            let deeds = deeds.into_iter().chain([full.clone()]).map(Event::Deed).map(step);
            deeds.chain([Step { queries, ..step(loss) }])
        });
        replay(Backend::Memory(MemoryStore::default()), segment, history.collect());
    }
}

proptest! {
    #![proptest_config(cases(20))]

    #[test]
    fn an_index_on_disk_agrees_with_its_notifications(
        segment in segment(),
        history in history(25),
    ) {
        replay(Backend::Redb(Disk::new()), segment, history);
    }
}
