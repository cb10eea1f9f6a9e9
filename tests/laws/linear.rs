//! Concurrent calls have the answers that they would have one after the other.

use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;
use testkit::dice::Dice;
use testkit::interposed::{Interposed, Lie};
use testkit::linear::{History, Model};
use testkit::scaled;
use testkit::world::{Backend, World};
use tidings::ids::MessageId;
use tidings::message::{MarkAs, MessageQuery};
use tidings::{Error, Scope};

use crate::parsed;

const THREADS: u64 = 4;
const CALLS: usize = 10;

/// A subscriber that is created, changed and deleted. The state is its first name.
#[derive(Debug)]
struct One;

#[derive(Debug)]
enum OfOne {
    Create(u64),
    Get,
    Update(u64),
    Delete,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Named(u64),
    Missing,
    Taken,
    Deleted,
}

impl Model for One {
    type State = Option<u64>;
    type Call = OfOne;
    type Answer = Answer;

    fn answer(state: &mut Option<u64>, call: &OfOne) -> Answer {
        match (call, *state) {
            (OfOne::Create(_), Some(_)) => Answer::Taken,
            (OfOne::Get | OfOne::Update(_) | OfOne::Delete, None) => Answer::Missing,
            (OfOne::Get, Some(name)) => Answer::Named(name),
            (OfOne::Create(name), None) | (OfOne::Update(name), Some(_)) => {
                *state = Some(*name);
                Answer::Named(*name)
            }
            (OfOne::Delete, Some(_)) => {
                *state = None;
                Answer::Deleted
            }
        }
    }
}

impl OfOne {
    fn any(dice: &mut Dice) -> Self {
        match dice.below(5) {
            0 => Self::Create(dice.roll(1_000)),
            1 => Self::Update(dice.roll(1_000)),
            2 => Self::Delete,
            _ => Self::Get,
        }
    }

    fn make(&self, env: &Scope) -> Answer {
        let subscribers = env.subscribers();
        let named = |number: u64| json!({ "subscriberId": "ada", "firstName": number.to_string() });
        let made = match self {
            Self::Create(number) => subscribers.create(&parsed(named(*number))),
            Self::Update(number) => {
                subscribers.update("ada", &parsed(json!({ "firstName": number.to_string() })))
            }
            Self::Get => subscribers.get("ada"),
            Self::Delete => {
                return match subscribers.delete("ada") {
                    Ok(()) => Answer::Deleted,
                    Err(Error::NotFound { .. }) => Answer::Missing,
                    Err(error) => panic!("{error:?}"),
                };
            }
        };
        match made {
            Ok(subscriber) => {
                Answer::Named(subscriber.profile.first_name.unwrap().parse().unwrap())
            }
            Err(Error::NotFound { .. }) => Answer::Missing,
            Err(Error::Conflict { .. }) => Answer::Taken,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Two messages of an inbox that are marked, and counted. The state says which of them are read.
#[derive(Debug)]
struct Marks;

#[derive(Debug)]
enum OfMarks {
    Mark(usize, bool),
    All(bool),
    Unread,
}

impl Model for Marks {
    type State = [bool; 2];
    type Call = OfMarks;
    type Answer = usize;

    fn answer(state: &mut [bool; 2], call: &OfMarks) -> usize {
        let before = *state;
        match call {
            OfMarks::Mark(which, read) => {
                state[*which] = *read;
                return 1;
            }
            OfMarks::All(read) => *state = [*read; 2],
            OfMarks::Unread => return state.iter().filter(|read| !**read).count(),
        }
        before.iter().zip(*state).filter(|(before, after)| **before != *after).count()
    }
}

impl OfMarks {
    fn any(dice: &mut Dice) -> Self {
        match dice.below(5) {
            0 | 1 => Self::Mark(dice.below(2), dice.below(2) == 0),
            2 => Self::All(dice.below(2) == 0),
            _ => Self::Unread,
        }
    }

    fn make(&self, env: &Scope, ids: &[MessageId]) -> usize {
        let inbox = env.inbox("ada").unwrap();
        let mark = |read: bool| if read { MarkAs::Read } else { MarkAs::Unread };
        match self {
            Self::Mark(which, read) => inbox.mark_as([ids[*which]], mark(*read)).unwrap().len(),
            Self::All(read) => usize::try_from(inbox.mark_all(mark(*read)).unwrap()).unwrap(),
            Self::Unread => inbox.counts().unwrap().unread,
        }
    }
}

/// A setting for a channel, which is set and resolved.
#[derive(Debug)]
struct Setting;

impl Model for Setting {
    type State = bool;
    type Call = Option<bool>;
    type Answer = bool;

    fn answer(state: &mut bool, call: &Option<bool>) -> bool {
        *state = call.unwrap_or(*state);
        *state
    }
}

fn set_or_get(env: &Scope, call: Option<bool>) -> bool {
    let preferences = env.preferences("ada").unwrap();
    if let Some(enabled) = call {
        let update = json!({ "preferences": [
            { "workflowId": "news", "channels": { "in_app": enabled } },
        ] });
        preferences.update_bulk(&parsed(update)).unwrap();
        return enabled;
    }
    let shown = preferences.get(&parsed(json!({}))).unwrap();
    let shown = serde_json::to_value(shown).unwrap();
    let news = shown["workflows"].as_array().unwrap();
    news[0]["channels"]["in_app"].as_bool().unwrap()
}

#[test]
fn calls_about_a_subscriber_happen_one_by_one() {
    on_each(|world, seed| {
        let history = subscriber_history(world, seed);
        history.contradiction(None).map(|it| format!("{it:#?}"))
    });
}

#[test]
fn marks_of_messages_happen_one_by_one() {
    on_each(|world, seed| {
        let ids = two_messages(world);
        // They were seen, so that a mark changes one thing.
        let inbox = world.env.inbox("ada").unwrap();
        assert_eq!(inbox.mark_all(MarkAs::Read).unwrap(), 2);
        assert_eq!(inbox.mark_all(MarkAs::Unread).unwrap(), 2);
        let history = History::<Marks>::default();
        at_once(seed, |dice| {
            let call = OfMarks::any(dice);
            history.note(call, |call| call.make(&world.env, &ids));
        });
        history.contradiction([false; 2]).map(|it| format!("{it:#?}"))
    });
}

#[test]
fn settings_happen_one_by_one() {
    on_each(|world, seed| {
        world.bare_subscriber("ada");
        world.in_app_workflow("news");
        let start = set_or_get(&world.env, Some(true));
        let history = History::<Setting>::default();
        at_once(seed, |dice| {
            let call = [None, Some(true), Some(false)][dice.below(3)];
            history.note(call, |call| set_or_get(&world.env, *call));
        });
        history.contradiction(start).map(|it| format!("{it:#?}"))
    });
}

/// Each message is claimed and sent by one of the threads.
#[test]
fn claims_take_each_task_once() {
    on_each(|world, seed| {
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[testkit::world::email()]);
        let to: Vec<_> = (0..20)
            .map(|n| json!({ "subscriberId": format!("s{n}"), "email": "s@example.org" }))
            .collect();
        world.trigger(json!({ "name": "mail", "to": to }));
        let sent = Mutex::new(0);
        at_once(seed, |dice| {
            let limit = dice.below(4);
            *sent.lock().unwrap() += world.engine.delivery().run_due(limit).unwrap().sent;
        });
        *sent.lock().unwrap() += world.run_due().sent;
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for delivery in world.recorder.sent() {
            *times.entry(delivery.idempotency_key().to_string()).or_default() += 1;
        }
        let is_once = times.len() == 20 && times.values().all(|times| *times == 1);
        (!is_once || *sent.lock().unwrap() != 20).then(|| format!("{times:?}"))
    });
}

/// A store whose reads come from a copy of before is caught.
#[test]
fn a_stale_read_is_a_contradiction() {
    let caught = (0..10).filter(|seed| {
        let world = World::in_memory();
        world.store.tell(Lie::Stale);
        let history = subscriber_history(&world, *seed);
        // Threads that overlap all the time hide it.
        for call in [OfOne::Create(7), OfOne::Get] {
            history.note(call, |call| call.make(&world.env));
        }
        history.contradiction(None).is_some()
    });
    assert_eq!(caught.count(), 10);
}

fn subscriber_history(world: &World, seed: u64) -> History<One> {
    let history = History::<One>::default();
    at_once(seed, |dice| history.note(OfOne::any(dice), |call| call.make(&world.env)));
    history
}

/// Makes calls on each of some threads, which begin together.
fn at_once(seed: u64, call: impl Fn(&mut Dice) + Sync) {
    let beginning = Barrier::new(usize::try_from(THREADS).unwrap());
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (beginning, call) = (&beginning, &call);
            scope.spawn(move || {
                let mut dice = Dice::new(seed * THREADS + number);
                beginning.wait();
                for _ in 0..CALLS {
                    call(&mut dice);
                    // On one processor, threads would not meet.
                    if dice.below(3) == 0 {
                        thread::sleep(Duration::from_micros(dice.roll(200)));
                    }
                }
            });
        }
    });
}

fn on_each(contradiction: impl Fn(&World, u64) -> Option<String>) {
    for backend in 0..2 {
        for seed in 0..scaled(20) {
            let store = Interposed::over(Backend::both()[backend].open());
            let world = World::with(store, |builder| builder);
            if let Some(found) = contradiction(&world, seed) {
                panic!("no order explains the history of seed {seed}: {found}");
            }
        }
    }
    println!("an order explains each of {} histories", 2 * scaled(20));
}

fn two_messages(world: &World) -> Vec<MessageId> {
    world.bare_subscriber("ada");
    world.in_app_workflow("news");
    for _ in 0..2 {
        world.notify("news", "ada");
    }
    let inbox = world.env.inbox("ada").unwrap();
    let page = inbox.list(&MessageQuery::default()).unwrap();
    page.data.iter().map(|message| message.id).collect()
}
