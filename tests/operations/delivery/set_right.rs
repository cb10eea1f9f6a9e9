//! A clock that is set right while a batch is under way: what is left of the batch was claimed under the
//! wrong time, and what was planned under it is not settled yet.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::interposed::Point;
use tidings::time::Timestamp;
use tidings::{Clock, Delivery, Engine, ManualClock, Provider, ProviderReceipt, SendError};

use crate::world::{Blip, Counts, World, email, in_app, on_both, parsed, time};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// Another thread asks for what is due meanwhile.
#[test]
fn a_message_that_a_provider_has_is_not_sent_again() {
    on_both(|world| {
        let (sent, report) = send_to(world, &["ada"], SECOND * 299);

        assert_eq!(sent, ["ada"]);
        assert_eq!((report.sent, report.superseded), (1, 0));
    });
}

/// The first message of a batch takes longer than a lease. The others are claimed anew before they are
/// sent, so that the other thread finds none of them due meanwhile.
#[test]
fn a_batch_does_not_go_on_with_leases_of_a_clock_that_was_ahead() {
    on_both(|world| {
        let (sent, _) = send_to(world, &["ada", "bob", "cleo"], SECOND * 301);

        assert_eq!(sent, ["ada", "bob", "cleo"]);
    });
}

/// The delay was over under the clock that was ahead only.
#[test]
fn a_delay_whose_turn_is_given_back_ends_when_it_should() {
    let kinds = ["delay", "digest"].into_iter();
    for (kind, is_asked) in kinds.flat_map(|kind| [(kind, false), (kind, true)]) {
        on_both(|world| {
            people(&world);
            world.workflow_of("late", &[waits(kind, 1, "hours"), in_app()]);
            world.notify("late", "ada");
            let right = world.now();
            world.clock.set(ahead());
            let engine = is_asked.then(|| world.another_engine());
            behind_the_claim(&world, move |clock| {
                clock.set(right);
                if let Some(engine) = &engine {
                    engine.delivery().run_due(10).unwrap();
                }
            });

            world.run_due();

            comes_after(&world, 3_600, kind);
        });
    }
}

/// It began and ended under the clock that was ahead.
#[test]
fn a_delay_that_was_over_under_a_clock_that_was_ahead_is_over() {
    let kinds = ["delay", "digest"].into_iter();
    for (kind, is_asked) in kinds.flat_map(|kind| [(kind, false), (kind, true)]) {
        on_both(|mut world| {
            people(&world);
            world.workflow_of("late", &[waits(kind, 1, "hours"), in_app()]);
            let right = world.now();
            world.notify("mail", "ada");
            world.clock.set(ahead());
            world.notify("late", "ada");
            world.clock.advance(HOUR);
            let engine = is_asked.then(|| world.engine.clone());
            during_a_call(&mut world, move |clock| {
                clock.set(right);
                if let Some(engine) = &engine {
                    engine.delivery().run_due(10).unwrap();
                }
            });

            assert_eq!(world.run_due().sent, 1, "{kind} {is_asked}");

            assert_eq!(world.inbox("ada").len(), 1, "{kind} {is_asked}");
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
        });
    }
}

/// The workflow is paused while the end of its delay is claimed, and resumed a little before that end: the
/// clock has gone back by seconds.
#[test]
fn a_delay_whose_turn_was_held_ends_when_it_should() {
    for kind in ["delay", "digest"] {
        on_both(|world| {
            people(&world);
            world.workflow_of("late", &[waits(kind, 1, "hours"), in_app()]);
            world.notify("late", "ada");
            world.clock.advance(HOUR);
            let (end, env) = (world.now(), world.env.clone());
            behind_the_claim(&world, move |clock| {
                clock.set(end.before(SECOND * 5));
                env.workflows().pause("late").unwrap();
            });

            world.run_due();
            world.clock.advance(SECOND);
            world.env.workflows().resume("late").unwrap();

            comes_after(&world, 4, kind);
        });
    }
}

/// The clock goes back by hours, which is less than a day, and the workflow of a claimed message is paused
/// and resumed meanwhile.
#[test]
fn a_message_that_was_held_does_not_wait_for_a_wrong_clock() {
    on_both(|mut world| {
        people(&world);
        for workflow in ["held", "last"] {
            world.workflow_of(workflow, &[email()]);
        }
        let right = world.now();
        world.clock.advance(HOUR * 10);
        for workflow in ["mail", "held", "last"] {
            world.notify(workflow, "ada");
            world.tick();
        }
        let env = world.env.clone();
        during_each_call(&mut world, move |clock, is_first| {
            if is_first {
                env.workflows().pause("held").unwrap();
            } else {
                clock.set(right);
                env.workflows().resume("held").unwrap();
            }
        });

        assert_eq!(world.run_due().sent, 2);
        world.pass(SECOND);

        assert_eq!(world.run_due().sent, 1);
    });
}

/// The first delay was over, and the second one begins under the right clock, which is set right at each point
/// between the claim and the settlement.
#[test]
fn a_turn_that_was_planned_under_a_clock_that_was_ahead_is_planned_again() {
    for kind in ["delay", "digest"] {
        for calls in 0.. {
            let world = World::in_memory();
            people(&world);
            let steps = [waits("delay", 1, "minutes"), waits(kind, 1, "hours"), in_app()];
            world.workflow_of("late", &steps);
            world.notify("late", "ada");
            world.clock.advance(SECOND * 90);
            let (right, clock) = (world.now(), world.clock.clone());
            world.clock.set(ahead());
            let (tell, told) = mpsc::channel();
            world.store.pause(Point::Begin, calls, move || {
                clock.set(right);
                tell.send(()).unwrap();
            });

            world.run_due();

            if told.try_recv().is_err() {
                assert!(calls > 2, "the claim, the plan and the settlement begin");
                break;
            }
            comes_after(&world, 3_600, &format!("{kind} before call {calls}"));
        }
    }
}

/// It is a Friday noon, and a Thursday under the clock that is ahead. On Thursdays, the quiet hours of Bob
/// begin at six.
#[test]
fn quiet_hours_of_a_clock_that_was_ahead_put_nothing_off() {
    on_both(|mut world| {
        people(&world);
        let all_day = json!([{ "start": "12:00 AM", "end": "11:59 PM" }]);
        let friday = json!({ "friday": { "isEnabled": true, "hours": all_day } });
        let schedule = json!({ "schedule": { "isEnabled": true, "weeklySchedule": friday } });
        world.env.preferences("bob").unwrap().update_global(&parsed(schedule)).unwrap();
        world.notify("mail", "bob");
        world.notify("mail", "ada");
        let right = world.now();
        world.clock.set(ahead());
        during_a_call(&mut world, move |clock| clock.set(right));

        let first = world.run_due();
        let then = world.run_due();

        assert_eq!(first.sent + then.sent, 2, "{first:?} {then:?}");
        assert_eq!(world.engine.delivery().next_due().unwrap(), None);
    });
}

/// The process dies under the clock that is ahead while the end of the snooze is claimed, or the clock is
/// set right meanwhile.
#[test]
fn a_snoozed_message_is_asleep_until_its_time() {
    for dies in [false, true] {
        on_both(|mut world| {
            people(&world);
            world.workflow_of("in-app", &[in_app()]);
            world.notify("in-app", "ada");
            let message = world.inbox("ada").remove(0);
            let right = world.now();
            world.env.inbox("ada").unwrap().snooze([message.id], right.after(HOUR)).unwrap();
            world.clock.set(ahead());
            if dies {
                // The claim is stored, and nothing behind it.
                assert!(world.interrupted(1, || world.engine.delivery().run_due(10)).is_err());
                world.clock.set(right);
                world.restart_with(|builder| builder);
            } else {
                behind_the_claim(&world, move |clock| clock.set(right));
            }
            world.run_due();

            comes_after(&world, 3_600, "snoozed");
        });
    }
}

/// A clock that is ahead for some readings, and right from then on.
#[derive(Clone, Debug)]
struct Corrected {
    right: ManualClock,
    left: Arc<AtomicUsize>,
}

impl Clock for Corrected {
    fn now(&self) -> Timestamp {
        let is_ahead = |left: usize| left.checked_sub(1);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_ahead) {
            Ok(_) => ahead(),
            Err(_) => self.right.now(),
        }
    }
}

/// A process that sends the message has a lease of the right clock. Under the one that was ahead, that is
/// over, and another process claims the message.
#[test]
fn a_message_that_another_process_may_send_still_is_not_sent_behind_a_wrong_clock() {
    let mut given_back = 0;
    for readings in 1..20 {
        let mut world = World::in_memory();
        people(&world);
        world.notify("mail", "ada");
        let killed = world.mortal_engine(|builder| builder, |_| {});
        assert!(killed.delivery().run_due(1).is_err());
        let left = Arc::new(AtomicUsize::new(readings));
        let clock = Corrected { right: world.clock.clone(), left: left.clone() };
        world.restart_with(|builder| builder.clock(clock));
        let sent_ahead = world.run_due().sent;
        let is_right = left.swap(0, Ordering::Relaxed) == 0;

        if sent_ahead == 0 && is_right {
            given_back += 1;
            world.pass(SECOND * 298);
            assert_eq!(world.run_due().sent, 0, "{readings} readings");
            world.pass(SECOND * 2);
            assert_eq!(world.run_due().sent, 1, "{readings} readings");
        }
    }
    assert!(given_back > 3, "{given_back}");
}

/// Whichever reading it is, a delay ends when it should, also one that begins then.
#[test]
fn a_delay_ends_when_it_should_whenever_the_clock_is_ahead() {
    let broadcast = |world: &World| {
        (0..101).for_each(|number| _ = world.bare_subscriber(&format!("s{number}")));
        world.workflow_of("crowd", &[waits("delay", 1, "hours"), in_app()]);
        let broadcast = parsed(json!({ "name": "crowd" }));
        world.env.events().broadcast(&broadcast).unwrap();
    };
    let two_delays = |world: &World| {
        let steps = [waits("delay", 1, "minutes"), waits("delay", 1, "hours"), in_app()];
        world.workflow_of("late", &steps);
        world.notify("late", "ada");
        world.clock.advance(SECOND * 60);
    };
    for set_up in [&broadcast as &dyn Fn(&World), &two_delays] {
        for readings in 0..30 {
            let mut world = World::in_memory();
            people(&world);
            set_up(&world);
            let clock = Blip::behind(readings, &world.clock);
            world.restart_with(|builder| builder.clock(clock));

            comes_after(&world, 3_600, &format!("ahead in reading {readings}"));
        }
    }
}

/// The clock goes back by hours, which is less than a day, while the first of two messages is sent.
#[test]
fn a_message_that_a_provider_takes_later_does_not_wait_for_a_wrong_clock() {
    on_both(|mut world| {
        people(&world);
        let right = world.now();
        world.clock.advance(HOUR * 10);
        for to in ["ada", "bob"] {
            world.notify("mail", to);
        }
        let clock = world.clock.clone();
        let act = move |is_first| {
            if is_first {
                clock.set(right);
            }
        };
        let provider = Interrupted { sent: Arc::default(), act: Box::new(act) };
        world.restart_with(|builder| builder.default_provider(provider).per_second("ses", 1));

        assert_eq!(world.run_due().sent, 1);

        // The call counts as made when the clock has gone back.
        let mut sent = 0;
        for _ in 0..2 {
            world.pass(SECOND);
            sent += world.run_due().sent;
        }
        assert_eq!(sent, 1);
    });
}

// Sends a message to each subscriber under a clock that is ahead. It is set right while the first one is
// sent, which takes `span`, and what is due is asked for in each call. Returns the recipients of all
// attempts, and the first report.
fn send_to(mut world: World, subscribers: &[&str], span: Duration) -> (Vec<String>, Counts) {
    people(&world);
    let right = world.now();
    world.clock.set(ahead());
    let asked: Arc<Mutex<Option<Engine>>> = Arc::default();
    let engine = asked.clone();
    let sent = during_each_call(&mut world, move |clock, is_first| {
        if is_first {
            clock.set(right);
        }
        let engine = engine.lock().unwrap().clone();
        engine.map(|engine| engine.delivery().run_due(10).unwrap());
        if is_first {
            clock.advance(span);
        }
    });
    *asked.lock().unwrap() = Some(world.engine.clone());
    for id in subscribers {
        world.notify("mail", id);
    }
    let report = world.run_due();
    world.pass(SECOND * 301);
    world.run_due();
    *asked.lock().unwrap() = None;
    let sent = sent.lock().unwrap().clone();
    (sent, report)
}

// Subscribers who can get e-mails, and a workflow that sends one.
fn people(world: &World) {
    world.active_integration("email", "ses");
    for id in ["ada", "bob", "cleo"] {
        world.subscriber(json!({ "subscriberId": id, "email": format!("{id}@example.org") }));
    }
    world.workflow_of("mail", &[email()]);
}

fn waits(kind: &str, amount: u32, unit: &str) -> Value {
    json!({ "type": kind, "metadata": { "type": "regular", "amount": amount, "unit": unit } })
}

fn ahead() -> Timestamp {
    time("2099-01-01T00:00:00.000Z")
}

// A message comes into the inbox when so many seconds are over, and not one earlier.
#[track_caller]
fn comes_after(world: &World, seconds: u32, what: &str) {
    // What a clock that is ahead has claimed is given back, and done by the next call.
    let inbox = || {
        world.run_due();
        world.run_due();
        world.inbox("ada").len()
    };
    assert_eq!(inbox(), 0, "{what}");
    world.clock.advance(SECOND * (seconds - 1));
    assert_eq!(inbox(), 0, "{what}");
    world.clock.advance(SECOND);
    assert_eq!(inbox(), 1, "{what}");
    assert_eq!(world.engine.delivery().next_due().unwrap(), None, "{what}");
    assert_eq!(world.engine.check().unwrap().findings, [], "{what}");
}

// Lets `act` happen between the next claim and the work on what it has claimed.
fn behind_the_claim(world: &World, act: impl FnOnce(&ManualClock) + Send + 'static) {
    let clock = world.clock.clone();
    world.store.pause(Point::Committed, 0, move || act(&clock));
}

// Restarts with a provider during whose first call `act` happens.
fn during_a_call(world: &mut World, act: impl Fn(&ManualClock) + Send + Sync + 'static) {
    during_each_call(world, move |clock, is_first| {
        if is_first {
            act(clock);
        }
    });
}

// Restarts with a provider during whose calls `act` happens, which is told the first one of them. Returns
// the recipients, in their order.
fn during_each_call(
    world: &mut World,
    act: impl Fn(&ManualClock, bool) + Send + Sync + 'static,
) -> Arc<Mutex<Vec<String>>> {
    let (clock, sent) = (world.clock.clone(), Arc::<Mutex<Vec<String>>>::default());
    let provider = Interrupted { sent: sent.clone(), act: Box::new(move |is| act(&clock, is)) };
    world.restart_with(|builder| builder.default_provider(provider));
    sent
}

struct Interrupted {
    sent: Arc<Mutex<Vec<String>>>,
    act: Box<dyn Fn(bool) + Send + Sync>,
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupted").finish_non_exhaustive()
    }
}

impl Provider for Interrupted {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let mut sent = self.sent.lock().unwrap();
        let is_first = sent.is_empty();
        sent.push(delivery.subscriber.subscriber_id.to_string());
        drop(sent);
        (self.act)(is_first);
        Ok(ProviderReceipt::default())
    }
}
