//! The clock and the entropy of a host may call the engine, whatever the engine does meanwhile.

use std::cell::Cell;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use store::Table;
use testkit::interposed::Interposed;
use testkit::tables::{dump, load};
use testkit::world::World;
use testkit::{requests, seeded};
use tidings::time::Timestamp;
use tidings::{Clock, Engine, Entropy, ManualClock, Scope, SeededEntropy};

/// Time in which a request is done. It takes a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

thread_local! {
    // The engine asks for the time of this call as well.
    static IS_CALLING: Cell<bool> = const { Cell::new(false) };
}

/// Code of the host that makes a request whenever the engine calls it.
#[derive(Clone, Debug)]
struct Caller {
    clock: ManualClock,
    entropy: Arc<SeededEntropy>,
    called: Arc<Mutex<Option<(Engine, Scope)>>>,
    request: Value,
}

impl Caller {
    fn new(request: Value) -> Self {
        let (clock, entropy) = (ManualClock::at(seeded::world().now()), SeededEntropy::new(70));
        Self { clock, entropy: Arc::new(entropy), called: Arc::default(), request }
    }

    /// Runs `deed` in a copy of the seeded world whose clock and entropy are this.
    fn within(&self, deed: impl FnOnce(&World)) {
        let store = Interposed::new(seeded::store());
        let world = World::with(store, |builder| builder.clock(self.clone()).entropy(self.clone()));
        *self.called.lock().unwrap() = Some((world.engine.clone(), world.env.clone()));
        deed(&world);
        *self.called.lock().unwrap() = None;
    }

    fn call(&self) {
        let called = self.called.lock().unwrap().clone();
        let Some((engine, env)) = called.filter(|_| !IS_CALLING.replace(true)) else { return };
        let _ = requests::call(&engine, &env, &self.request);
        IS_CALLING.set(false);
    }
}

impl Clock for Caller {
    fn now(&self) -> Timestamp {
        self.call();
        self.clock.now()
    }
}

impl Entropy for Caller {
    fn fill(&self, bytes: &mut [u8]) {
        self.call();
        self.entropy.fill(bytes);
    }
}

/// Fails if `deeds` do not end. `told` says what they do.
fn ends(deeds: impl FnOnce(&dyn Fn(&Value)) + Send + 'static) {
    let (doing, done) = mpsc::channel();
    let thread = thread::spawn(move || deeds(&|deed| doing.send(deed.clone()).unwrap()));
    let mut last = Value::Null;
    loop {
        match done.recv_timeout(PATIENCE) {
            Ok(deed) => last = deed,
            Err(RecvTimeoutError::Disconnected) => return thread.join().unwrap(),
            Err(RecvTimeoutError::Timeout) => panic!("{last} does not end"),
        }
    }
}

#[test]
fn every_operation_ends_if_the_clock_and_the_entropy_write() {
    ends(|tell| {
        let caller = Caller::new(json!(["subscribers.upsert", { "subscriberId": "host" }]));
        caller.within(|world| {
            let deliver = [json!(["delivery.run_due", 200])];
            for request in requests::sound().iter().chain(&deliver) {
                tell(request);
                let _ = requests::call(&world.engine, &world.env, request);
            }
        });
    });
}

/// Damage that the operation has found is found by the clock, too.
#[test]
fn an_index_is_made_anew_if_the_clock_finds_it_damaged() {
    ends(|tell| {
        let request = json!(["notifications.list", {}]);
        Caller::new(request.clone()).within(|world| {
            let mut heads = dump(&world.store);
            heads.retain(|(table, ..)| *table == Table::ActivityHeads);
            for (_, _, head) in &mut heads {
                head.clear();
            }
            load(&world.store, &heads);
            tell(&request);
            requests::call(&world.engine, &world.env, &request).unwrap();
        });
    });
}
