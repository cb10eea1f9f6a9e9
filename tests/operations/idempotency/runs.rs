//! The runs of a transaction's body: none calls code of the host, and a second one changes nothing.

use serde_json::{Value, json};
use testkit::interposed::Interposed;
use testkit::sealed::in_common;
use tidings::time::Timestamp;
use tidings::{Builder, Clock, Entropy, ManualClock, SeededEntropy, SendError};

use super::writes::{self, Args, WRITES};
use crate::world::{Dump, START, World, email, parsed, wire};

type Other = fn(&World) -> Value;

/// Whatever writes without being an operation of a scope.
const OTHERS: &[(&str, Other)] = &[
    ("organization.production", |world| {
        wire(world.organization.environments().production().unwrap())
    }),
    ("organization.environments.create", |world| {
        let create = parsed(json!({ "name": "QA", "color": "#fff" }));
        wire(world.organization.environments().create(&create).unwrap())
    }),
    // Claims, a retry with its jitter, and a message that is sent.
    ("delivery.run_due", |world| {
        world.subscriber(json!({ "subscriberId": "cyd", "email": "cyd@example.org" }));
        world.active_integration("email", "sendgrid");
        world.workflow_of("letter", &[email()]);
        let id = world.notify("letter", "cyd");
        world.recorder.refuse_next(SendError::retryable("busy"));
        assert_eq!(world.run_due().retried, 1);
        world.pass(std::time::Duration::from_secs(600));
        assert_eq!(world.run_due().sent, 1);
        wire(world.notification(id))
    }),
];

/// A store with optimistic concurrency runs a body again.
#[test]
fn a_body_that_runs_twice_leaves_what_one_run_leaves() {
    for name in names() {
        let once = run(name, &World::in_memory());
        let twice = run(name, &World::with(Interposed::default().repeating(), |builder| builder));
        assert_eq!(once.0, twice.0, "{name} answers otherwise");
        assert!(once.1 == twice.1, "{name} leaves something else behind");
    }
}

/// Randomness and the time come from code of the host, which may take its time.
#[test]
fn neither_entropy_nor_clock_is_called_while_the_writer_is_held() {
    for name in names() {
        let (store, clock) = (Interposed::default(), ManualClock::at(parsed(json!(START))));
        let entropy = Watchful { below: SeededEntropy::new(7), store: store.clone() };
        let watched = Watchful { below: clock.clone(), store: store.clone() };
        let with_both = |builder: Builder| builder.entropy(entropy).clock(watched);
        run(name, &World { clock, ..World::with(store, with_both) });
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    WRITES.iter().map(|(name, _)| *name).chain(OTHERS.iter().map(|(name, _)| *name))
}

// The answer of an operation in `world`, and everything that it leaves behind.
fn run(name: &str, world: &World) -> (Value, Dump) {
    let answer = match WRITES.iter().find(|(other, _)| *other == name) {
        Some((_, write)) => {
            let known = writes::known(world);
            write(&world.env, &known, Args::These).unwrap_or_else(|e| panic!("{name}: {e}"))
        }
        None => OTHERS.iter().find(|(other, _)| *other == name).unwrap().1(world),
    };
    (answer, in_common(world.dump()))
}

#[derive(Debug)]
struct Watchful<T> {
    below: T,
    store: Interposed,
}

impl Clock for Watchful<ManualClock> {
    fn now(&self) -> Timestamp {
        assert!(!self.store.is_writing(), "the writer waits for the clock");
        self.below.now()
    }
}

impl Entropy for Watchful<SeededEntropy> {
    fn fill(&self, bytes: &mut [u8]) {
        assert!(!self.store.is_writing(), "the writer waits for the entropy");
        self.below.fill(bytes);
    }
}
