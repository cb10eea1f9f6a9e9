//! Power cuts among all operations that write, and among rounds of delivery.
//!
//! The operations are those of `testkit::requests`, in a random order. The power fails at a random
//! operation of a simulated disk, which keeps some of the sectors that were not synced, and perhaps
//! once more while the file is opened. Then the store is as it was after the last acknowledged call,
//! or as the call that was under way has left it. `TIDINGS_POWER_CUTS` is the number of power cuts.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::{Value, json};
use store::redb::AppliedBy;
use testkit::dice::Dice;
use testkit::disk::Disk;
use testkit::interposed::Interposed;
use testkit::requests::{Refusal, call, text, writing};
use testkit::seeded;
use testkit::tables::{Entry, check_indexes, dump, load};
use testkit::world::World;
use tidings::{Clock, Delivery, Error};

/// Power cuts of each order of the operations.
const OF_A_COURSE: u64 = 8;

/// Number of power cuts by default.
const CUTS: u64 = 16;

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    let cuts = env::var("TIDINGS_POWER_CUTS").map_or(CUTS, |cuts| cuts.parse().unwrap());
    let mut tally = Tally::default();
    for seed in 0..cuts.div_ceil(OF_A_COURSE) {
        let course = Course::of(seed);
        for cut in 0..OF_A_COURSE {
            let mut dice = Dice::new(seed * OF_A_COURSE + cut);
            let run = course.run(&mut dice, Disk::unplug_after);
            let found = run.reopened(&mut dice);
            check(&course, &run, &found.unwrap_or_else(|error| panic!("{error}")), &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.acknowledged > tally.images && tally.settled > 0, "{tally:?}");
}

/// The control: a disk that lies about its syncs is found out.
#[test]
fn a_disk_that_lies_is_found_out() {
    let course = Course::of(0);
    let is_found_out = |seed: &u64| {
        let mut dice = Dice::new(*seed);
        let run = course.run(&mut dice, |disk, operations| {
            disk.lie();
            disk.unplug_after(operations);
        });
        match run.reopened(&mut dice) {
            Ok(found) => !course.allows(&run, &found),
            Err(_) => true,
        }
    };
    let found_out = (0..8).filter(is_found_out).count();
    assert!(found_out >= 6, "only {found_out} of 8 lies are found out");
}

/// What was seen in all images.
#[derive(Debug, Default)]
struct Tally {
    images: usize,
    acknowledged: usize,
    settled: usize,
    sent_again: usize,
}

/// Steps in their order, and the states of the store in them.
struct Course {
    steps: Vec<Value>,
    /// The states before and after each transaction of a step.
    states: Vec<Vec<u64>>,
    answers: Vec<String>,
    /// Operations on the disk.
    length: u64,
}

/// A run that a power cut has ended.
struct Run {
    disk: Disk,
    /// Number of steps that have returned while the power was on.
    done: usize,
    /// The messages that a round has sent which was acknowledged.
    settled: BTreeMap<String, String>,
    /// The messages of the last round, which may be sent again.
    unsettled: BTreeMap<String, String>,
}

/// A closed file with the seeded world.
static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let disk = Disk::new();
    load(&disk.open_logged(AppliedBy::Callers), seeded::entries());
    disk.bytes()
});

impl Course {
    fn of(seed: u64) -> Self {
        let steps = steps(&mut Dice::new(seed));
        let world = seeded::copy();
        let (mut states, mut answers) = (Vec::new(), Vec::new());
        for step in &steps {
            let (of_step, answer) = world.store.states_of(|| act(&world, step));
            states.push(of_step.iter().map(|state| digest(state)).collect());
            answers.push(answer.unwrap_or_else(|error| panic!("{step}: {error}")));
        }
        let mut course = Self { steps, states, answers, length: u64::MAX };
        let whole = course.run(&mut Dice::new(0), |_, _| {});
        assert_eq!(whole.done, course.steps.len(), "the backends differ");
        course.length = u64::MAX - whole.disk.power_left();
        course
    }

    /// Makes the steps until the power fails.
    fn run(&self, dice: &mut Dice, unplug: impl FnOnce(&Disk, u64)) -> Run {
        let disk = Disk::holding(FILE.clone());
        let store = Arc::new(disk.open_logged(AppliedBy::Callers));
        let world = seeded::reopened(Interposed::over(store), &[], 1);
        unplug(&disk, dice.roll(self.length));
        let (mut settled, mut unsettled) = (BTreeMap::new(), BTreeMap::new());
        let mut done = 0;
        for (step, expected) in self.steps.iter().zip(&self.answers) {
            let known = world.recorder.sent().len();
            let answer = act(&world, step);
            let sent = sent(&world.recorder.sent()[known..]);
            match answer {
                Ok(answer) if disk.power_left() > 0 => {
                    assert_eq!(answer, *expected, "{step}");
                    settled.extend(sent);
                    done += 1;
                }
                _ => {
                    unsettled = sent;
                    break;
                }
            }
        }
        Run { disk, done, settled, unsettled }
    }

    /// Whether a store may be in this state after the run.
    fn allows(&self, run: &Run, found: &[Entry]) -> bool {
        let found = digest(found);
        let last = run.done.checked_sub(1).and_then(|last| self.states.get(last)?.last());
        let under_way = self.states.get(run.done).into_iter().flatten();
        last.into_iter().chain(under_way).any(|state| *state == found)
    }
}

impl Run {
    /// The store after the power cut, and perhaps another one.
    fn reopened(&self, dice: &mut Dice) -> Result<Vec<Entry>, store::Error> {
        let mut disk = self.disk.after_power_cut(dice);
        if dice.roll(2) == 0 {
            disk.unplug_after(dice.roll(150));
            drop(disk.try_open_logged(AppliedBy::Callers));
            disk = disk.after_power_cut(dice);
        }
        let store = disk.try_open_logged(AppliedBy::Callers)?;
        testkit::tables::try_dump(&store)
    }
}

#[track_caller]
fn check(course: &Course, run: &Run, found: &[Entry], tally: &mut Tally) {
    let step = course.steps.get(run.done);
    assert!(course.allows(run, found), "{} steps, and then {step:?}", run.done);
    let world = seeded::reopened(Interposed::default(), found, 2);
    check_indexes(&world.store);
    let check = world.env.notifications().check_index().unwrap();
    assert!(check.disagreements.is_empty(), "{check:?}");
    // So late that all leases are over.
    world.clock.set(world.clock.now().after(Duration::from_secs(24 * 3_600)));
    world.engine.delivery().run_due(usize::MAX).unwrap();
    let again = sent(&world.recorder.sent());
    let settled: BTreeSet<_> = again.keys().filter(|key| run.settled.contains_key(*key)).collect();
    assert!(settled.is_empty(), "{settled:?} are sent again");
    for (key, message) in &run.unsettled {
        if let Some(again) = again.get(key) {
            assert_eq!(again, message, "{key} has two contents");
            tally.sent_again += 1;
        }
    }
    check_indexes(&world.store);
    tally.images += 1;
    tally.acknowledged += run.done;
    tally.settled += run.settled.len();
}

/// All requests that write in a random order, with rounds of delivery between them. Time passes.
fn steps(dice: &mut Dice) -> Vec<Value> {
    let mut requests: Vec<Value> = writing().cloned().collect();
    let mut steps = Vec::new();
    while !requests.is_empty() {
        steps.push(requests.swap_remove(dice.below(requests.len())));
        match dice.roll(4) {
            0 => steps.push(json!(["delivery.run_due", 16])),
            1 => steps.push(json!(["pass", dice.roll(90)])),
            _ => {}
        }
    }
    steps
}

/// Makes a step. A refusal by a rule is an answer.
fn act(world: &World, step: &Value) -> Result<String, String> {
    if step[0] == "pass" {
        world.clock.advance(Duration::from_secs(step[1].as_u64().unwrap_or_default()));
        return Ok(String::new());
    }
    let answer = call(&world.engine, &world.env, step);
    match &answer {
        Err(Refusal::By(Error::Store(error))) => Err(error.to_string()),
        _ => Ok(text(&answer)),
    }
}

fn sent(deliveries: &[Delivery]) -> BTreeMap<String, String> {
    let text = |delivery: &Delivery| delivery.message.text().unwrap_or_default().to_owned();
    let deliveries = deliveries.iter();
    deliveries.map(|delivery| (delivery.idempotency_key().to_string(), text(delivery))).collect()
}

fn digest(entries: &[Entry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (table, key, value) in entries {
        (table.name(), key, value).hash(&mut hasher);
    }
    hasher.finish()
}

/// The control of the list: all groups of operations are among the steps.
#[test]
fn the_steps_are_all_operations_that_write() {
    let steps = steps(&mut Dice::new(0));
    assert!(writing().all(|request| steps.contains(request)));
    assert!(dump(&seeded::world().store) == seeded::entries());
}
