//! Whichever task is lost, a check names the record that waits for it, and a repair lets it go on.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use domain::quarantine::{Quarantined, Unreadable};
use domain::task::{Task, Work};
use domain::trigger::FanOut;
use serde_json::{Value, json};
use store::layout::{self, Role};
use store::{Table, WriteRecords};
use testkit::interposed::Point;
use testkit::tables::{Entry, dump, put};
use testkit::world::{World, email, in_app, on_both_with, only, with};
use tidings::check::{Finding, Problem};
use tidings::dead_letter::{DeadLetterQuery, DeadLetterReason};
use tidings::message::Message;
use tidings::notification::Notification;
use tidings::trigger::ProgressStatus;
use tidings::vocabulary::Channel;
use tidings::{Builder, Call, SendError};

use crate::parsed;

const HOUR: Duration = Duration::from_secs(3_600);

fn builder(builder: Builder) -> Builder {
    builder.handler("charge", |_: &Call| Ok(None))
}

/// A world in which a task of each kind waits.
fn set_up(world: &World) {
    world.active_integration("email", "ses");
    let fcm = world.active_integration("push", "fcm");
    let twilio = world.active_integration("sms", "twilio");
    let later = json!({ "type": "regular", "amount": 1, "unit": "hours" });
    let delay = json!({ "type": "delay", "metadata": later });
    let digest = json!({ "type": "digest", "metadata": later });
    let push = json!({ "type": "push", "template": { "title": "Hi", "body": "Hi" } });
    let sms = json!({ "type": "sms", "template": { "body": "Hi" } });
    let call = json!({ "type": "custom", "metadata": { "handler": "charge" } });
    let of_email = json!({ "type": "email", "template": { "subject": "Hi", "body": "Hi" } });
    let awaited = with(of_email, json!({ "name": "mail" }));
    let is_decided = json!({ "!=": [{ "var": "steps.mail.status" }, null] });
    let behind = with(in_app(), json!({ "runIf": is_decided }));
    let of = |name: &str, steps: &[Value]| world.workflow_of(name, steps);
    of("delayed", &[delay.clone(), in_app()]);
    of("delayed-twice", &[delay.clone(), in_app(), delay, email()]);
    of("digest", &[digest, in_app()]);
    of("mail", &[awaited, behind]);
    of("push", &[push]);
    of("held", &[sms]);
    of("call", &[call, in_app()]);
    of("paused", &[in_app()]);
    of("inbox", &[in_app()]);
    world.subscriber(json!({
        "subscriberId": "ada", "email": "ada@example.org", "phone": "+4912345",
        "channels": [{
            "providerId": "fcm",
            "_integrationId": fcm.id,
            "credentials": { "deviceTokens": ["one", "two"] },
        }],
    }));
    world.env.integrations().pause(twilio.id).unwrap();
    world.env.workflows().pause("paused").unwrap();
    let sent = world.notify("push", "ada");
    world.run_due();
    // The push goes to two devices, one of which is busy, and the text is held.
    for name in ["push", "held"] {
        world.notify(name, "ada");
    }
    world.recorder.refuse_next(SendError::retryable("busy"));
    world.run_due();
    // Both devices have it, and get it again.
    world.env.notifications().resend(sent, "0").unwrap();
    for name in ["delayed", "delayed-twice", "digest", "digest", "mail", "call", "paused", "inbox"]
    {
        world.notify(name, "ada");
    }
    let asleep = only(world.inbox("ada").into_iter().take(1)).id;
    world.env.inbox("ada").unwrap().snooze([asleep], world.now().after(HOUR)).unwrap();
    // Tasks tell more than a hundred.
    for number in 0..100 {
        world.bare_subscriber(&format!("s{number}"));
    }
    let broadcast = json!({ "name": "inbox", "transactionId": "everybody" });
    world.env.events().broadcast(&parsed(broadcast)).unwrap();
}

/// Removes a task, with its entries in indexes.
fn lose(world: &World, task: &Task) {
    let key = layout::task(task.environment_id, task.id).into_parts().1;
    for (table, entry, value) in dump(&world.store) {
        let leads = matches!(table.role(), Role::IndexOf(Table::Tasks)) && value == key;
        if leads || (table == Table::Tasks && entry == key) {
            put(&world.store, table, &entry, None);
        }
    }
}

/// The records that wait for a task which is missing.
fn stalled(world: &World) -> BTreeSet<(&'static str, Vec<u8>)> {
    let findings = world.engine.check().unwrap().findings;
    let stalled = |finding| match finding {
        Finding::Table(found) => (found.problem == Problem::Stalled).then_some(found),
        _ => None,
    };
    findings.into_iter().filter_map(stalled).map(|found| (found.table, found.key)).collect()
}

/// Does everything that waits. Returns the number of messages in inboxes and of those that were sent.
fn end(world: &World) -> (usize, usize) {
    world.env.workflows().resume("paused").unwrap();
    let integrations = world.env.integrations();
    for integration in integrations.list().unwrap() {
        integrations.resume(integration.id).unwrap();
    }
    for _ in 0..4 {
        world.run_due();
        world.pass(HOUR);
    }
    assert_eq!(world.engine.check().unwrap().findings, []);
    let all = world.records::<Notification>();
    let waiting = all.iter().filter(|one| one.ended_at().is_none());
    assert_eq!(waiting.collect::<Vec<_>>(), Vec::<&Notification>::new());
    assert_eq!(world.records::<FanOut>(), []);
    let messages = world.records::<Message>();
    assert!(messages.iter().all(|message| message.snoozed_until.is_none()));
    let inbox = messages.iter().filter(|message| message.channel == Channel::InApp).count();
    (inbox, world.recorder.sent().len())
}

#[test]
fn whichever_task_is_lost_the_record_that_waits_for_it_goes_on() {
    let whole = Cell::new(None);
    let mut kinds = BTreeSet::new();
    let mut number = 0;
    loop {
        let is_last = Cell::new(false);
        let kind = Cell::new(None);
        on_both_with(builder, |world| {
            set_up(&world);
            assert_eq!(stalled(&world), BTreeSet::new());
            let mut tasks = world.records::<Task>();
            if number == tasks.len() {
                is_last.set(true);
                whole.set(Some(end(&world)));
                return;
            }
            let task = tasks.swap_remove(number);
            lose(&world, &task);
            kind.set(Some(check_resumed(&world, &task)));
            let ended = end(&world);
            let letters = world.env.dead_letters();
            for letter in letters.list(&DeadLetterQuery::default()).unwrap().data {
                assert_eq!(letter.reason, DeadLetterReason::AnswerLost);
                assert!(task.send_work().is_some());
                letters.redrive(letter.id).unwrap();
            }
            world.run_due();
            let after = (ended.0, world.recorder.sent().len());
            let expected = whole.replace(None).unwrap_or(after);
            whole.set(Some(expected));
            assert_eq!(after, expected, "without {:?}", task.work);
        });
        if is_last.get() {
            break;
        }
        kinds.extend(kind.take());
        number += 1;
    }
    let all = ["call", "close", "fan_out", "send", "turn", "wake"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all);
}

/// Checks that the record that waits for a task is found, and that a repair resumes it. Returns the kind
/// of the task.
fn check_resumed(world: &World, task: &Task) -> String {
    assert_eq!(stalled(world).len(), 1, "{:?}", task.work);
    assert_eq!(world.engine.repair().unwrap().resumed, 1, "{:?}", task.work);
    assert_eq!(world.engine.check().unwrap().findings, [], "{:?}", task.work);
    assert_eq!(world.engine.repair().unwrap().resumed, 0);
    serde_json::to_value(&task.work).unwrap()["type"].as_str().unwrap().to_owned()
}

/// Two repairs at once may put two tasks in the place of one, and two processes do them at once.
#[test]
fn a_broadcast_with_two_tasks_tells_everybody_once() {
    on_both_with(builder, |world| {
        world.in_app_workflow("inbox");
        for number in 0..150 {
            world.bare_subscriber(&format!("s{number}"));
        }
        let broadcast = json!({ "name": "inbox", "transactionId": "everybody" });
        world.env.events().broadcast(&parsed(broadcast)).unwrap();
        let id = parsed(json!("00000000-0000-7000-8000-000000000001"));
        let second = Task { id, ..only(world.records::<Task>()) };
        store::write(&world.opened(), |tx| tx.insert(&second)).unwrap();
        assert_eq!(world.engine.repair().unwrap().resumed, 0);
        // Behind the claim and the plan of the one, the other one is done.
        let other = world.another_engine();
        let meanwhile = move || _ = other.delivery().run_due(1).unwrap();
        world.store.pause(Point::Write, 1, meanwhile);

        world.engine.delivery().run_due(1).unwrap();
        world.run_due();

        assert_eq!(world.records::<Notification>().len(), 150);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// A task in quarantine waits for the operator, who may discard it.
#[test]
fn a_record_whose_task_is_in_quarantine_is_stalled_once_that_is_discarded() {
    on_both_with(builder, |world| {
        set_up(&world);
        let tasks = world.records::<Task>();
        let turn = tasks.iter().find(|task| matches!(task.work, Work::Turn { .. })).unwrap();
        lose(&world, turn);
        let id = parsed(json!("00000000-0000-7000-8000-000000000001"));
        let unreadable = Unreadable {
            table: "notifications",
            key: Vec::new(),
            value: Vec::new(),
            reason: "damaged".to_owned(),
        };
        let json = serde_json::to_value(turn).unwrap();
        let home = turn.environment_id;
        let entry = Quarantined::new((id, world.now()), home, &unreadable, Some(json));
        store::write(&world.opened(), |tx| tx.insert(&entry)).unwrap();
        assert_eq!(stalled(&world), BTreeSet::new());

        world.engine.quarantine().discard(id).unwrap();

        assert_eq!(stalled(&world).len(), 1);
        assert_eq!(world.engine.repair().unwrap().resumed, 1);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// An event whose state is lost ends: who was told is not known, and nobody is told twice.
#[test]
fn a_broadcast_whose_state_is_lost_ends() {
    for is_repaired in [false, true] {
        on_both_with(builder, |world| {
            world.in_app_workflow("inbox");
            for number in 0..150 {
                world.bare_subscriber(&format!("s{number}"));
            }
            let broadcast = json!({ "name": "inbox", "transactionId": "everybody" });
            world.env.events().broadcast(&parsed(broadcast)).unwrap();
            world.engine.delivery().run_due(1).unwrap();
            let told = world.records::<Notification>().len();
            assert!((1..150).contains(&told));
            let (table, key, _) = only(dump(&world.store).into_iter().filter(is_state));
            put(&world.store, table, &key, is_repaired.then_some(b"damaged"));
            if is_repaired {
                lose(&world, &only(world.records::<Task>().into_iter().filter(is_fan_out)));
                assert_eq!(world.engine.repair().unwrap().put_aside, 1);
            }

            world.run_due();

            assert_eq!(world.records::<Notification>().len(), told);
            let progress = world.env.events().progress("everybody").unwrap();
            assert_eq!(progress.status, ProgressStatus::Canceled);
            assert_eq!(world.records::<FanOut>(), []);
            assert_eq!(world.engine.check().unwrap().findings, []);
            assert_eq!(world.engine.repair().unwrap().resumed, 0);
        });
    }
}

fn is_state((table, ..): &Entry) -> bool {
    *table == Table::FanOutStates
}

fn is_fan_out(task: &Task) -> bool {
    matches!(task.work, Work::FanOut { .. })
}
