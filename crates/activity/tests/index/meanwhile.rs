//! Whatever others do while the index is made anew or the upkeep is done, and whenever they do it.

use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use tidings_activity::Tended;

use store::memory::MemoryStore;
use store::{Table, layout};

use crate::faults::{entries, is_tidy};
use crate::sample;
use crate::world::{Deed, World, past, queries};
use testkit::interposed::Point;
use testkit::world::Backend;

#[test]
fn others_go_on_while_the_index_is_made_anew() {
    let append = |count| Deed::Append { count, transaction: 1, traits: 7, later: 1 };
    let others = [
        // Another index of the same store is made anew as well.
        vec![Deed::Rebuild, Deed::TendAll],
        vec![Deed::Delete(3, 30), Deed::Rebuild, append(40), Deed::TendAll],
        vec![Deed::DeleteBefore { ago: 4, limit: 1_000 }, Deed::TendAll],
        vec![append(1), Deed::Delete(0, 1), Deed::TendAll, append(50)],
    ];
    for others in &others {
        for pause in 0..24 {
            let world = Arc::new(World::new(Backend::Memory(MemoryStore::default()), 16));
            past(&world, 3);
            let (shared, others) = (Arc::clone(&world), others.clone());
            world.store.pause(Point::Begin, pause, move || {
                for deed in &others {
                    shared.does(1, deed).unwrap();
                }
            });
            world.does(0, &Deed::Rebuild).unwrap();
            world.store.recover();
            world.is_in_order(&queries(1, 5));
            for deed in [append(20), Deed::TendAll] {
                world.does(0, &deed).unwrap();
            }
            world.reopen();
            world.is_in_order(&queries(2, 5));
        }
    }
}

/// Each time a process has read the head, another one does the next step of the upkeep.
#[test]
fn two_processes_do_the_upkeep_of_one_store() {
    let world = Arc::new(World::new(Backend::Memory(MemoryStore::default()), 16));
    past(&world, 3);
    let append = Deed::Append { count: 400, transaction: 1, traits: 7, later: 1 };
    world.does(0, &append).unwrap();
    for _ in 0..400 {
        let shared = Arc::clone(&world);
        world.store.pause(Point::Called, 0, move || shared.does(1, &Deed::Tend(1)).unwrap());
        world.does(0, &Deed::Tend(1)).unwrap();
    }
    let index = world.index(0);
    assert_eq!(index.tend(&world.store, sample::environment()).ok(), Some(Tended::Nothing));
    world.is_in_order(&queries(1, 5));
}

/// A rebuild goes on while the upkeep of another process removes its generation: that is older than the
/// one in use, or taken for one that was interrupted.
#[test]
fn upkeep_removes_the_generation_of_a_rebuild_that_goes_on() {
    for is_overtaken in [true, false] {
        for (steps, begins) in (1..9).flat_map(|steps| (0..4).map(move |begins| (steps, begins))) {
            removes_a_generation(is_overtaken, steps, begins);
        }
    }
}

fn removes_a_generation(is_overtaken: bool, steps: usize, begins: usize) {
    let world = Arc::new(World::new(Backend::Memory(MemoryStore::default()), 16));
    past(&world, 3);
    world.does(0, &Deed::TendAll).unwrap();
    world.reopen();
    let (done, is_done) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let other = Arc::clone(&world);
    let rebuild = thread::spawn(move || {
        let step = &mut |_, _| {
            // At the end it goes on by itself.
            done.send(()).ok();
            may_go.recv().ok();
            ControlFlow::Continue(())
        };
        other.index(1).rebuild(&other.store, sample::environment(), step).unwrap()
    });
    is_done.recv().unwrap();
    let turns = Arc::new(Steps { go, is_done: Mutex::new(is_done) });
    (1..steps).for_each(|_| turns.take());
    if is_overtaken {
        world.does(0, &Deed::Rebuild).unwrap();
    }
    turns.take_at_each(&world, begins);
    world.does(0, &Deed::TendAll).unwrap();
    world.store.recover();
    drop(turns);
    assert_eq!(rebuild.join().unwrap(), ControlFlow::Continue(()));
    world.does(0, &Deed::TendAll).unwrap();
    world.is_in_order(&queries(1, 2));
    world.reads(|snapshot| {
        is_tidy(snapshot, &world.records());
        let segments = entries(snapshot, Table::ActivitySegments);
        let generation = segments.first().and_then(|(key, _)| layout::activity_generation(key));
        // What has overtaken it was begun later, and stays.
        assert!(!is_overtaken || generation == Some(2), "{generation:?}");
    });
}

/// The steps of a rebuild in another thread, which waits behind each of them.
struct Steps {
    go: Sender<()>,
    is_done: Mutex<Receiver<()>>,
}

impl Steps {
    fn take(&self) {
        if self.go.send(()).is_ok() {
            self.is_done.lock().unwrap().recv().ok();
        }
    }

    /// Takes a step when so many transactions have begun, again and again.
    fn take_at_each(self: &Arc<Self>, world: &Arc<World>, begins: usize) {
        let (own, shared) = (Arc::clone(self), Arc::clone(world));
        world.store.pause(Point::Begin, begins, move || {
            own.take();
            own.take_at_each(&shared, begins);
        });
    }
}

/// Callers beside the one that does the upkeep do not wait for the store.
#[test]
fn a_thread_reads_nothing_while_another_one_does_the_upkeep() {
    let world = Arc::new(World::new(Backend::Memory(MemoryStore::default()), 16));
    past(&world, 3);
    let shared = Arc::clone(&world);
    world.store.pause(Point::Begin, 0, move || {
        let tend = || shared.index(0).tend(&shared.store, sample::environment());
        let (calls, tended) = shared.store.calls_of(tend);
        assert_eq!((calls, tended.ok()), (Vec::new(), Some(Tended::Elsewhere)));
    });
    world.does(0, &Deed::Tend(1)).unwrap();
}
