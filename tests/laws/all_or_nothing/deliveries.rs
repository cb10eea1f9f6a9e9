//! Deliveries that fail.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::message::DeletedMessage;
use domain::task::{SendWork, Task, Work};
use testkit::interposed::{Interposed, Point};
use testkit::tables::{dump, records};
use testkit::world::World;
use tidings::Delivery;
use tidings::ids::{JobId, SendId};
use tidings::job::{Job, JobStatus};
use tidings::message::{Message, MessageQuery};
use tidings::notification::{Notification, NotificationQuery};
use tidings::page::PageQuery;

use super::faults::{all_fail, assert_is_fault, one_of};
use crate::seeded;

/// Checks that a job waits if and only if it has a task, and that the message of a job is there if
/// and only if the job names it: a settlement changes all three.
#[track_caller]
fn assert_whole(world: &World) {
    let notifications = records::<Notification>(&world.store);
    let jobs = || notifications.iter().flat_map(|notification| &notification.jobs);
    let waits = |job: &&Job| matches!(job.status, JobStatus::Queued { .. });
    let waiting: BTreeSet<JobId> = jobs().filter(waits).map(|job| job.id).collect();
    let known: BTreeSet<JobId> = jobs().map(|job| job.id).collect();
    let sends = records::<Task>(&world.store).into_iter().filter_map(|task| match task.work {
        Work::Send(SendWork { job_id, .. }) | Work::Call { job_id, .. } => Some(job_id),
        _ => None,
    });
    let sends: BTreeSet<JobId> = sends.filter(|job| known.contains(job)).collect();
    assert_eq!(sends, waiting);
    let messages = records::<Message>(&world.store);
    let deleted = records::<DeletedMessage>(&world.store).into_iter().map(|one| one.message_id);
    let ids: BTreeSet<_> = messages.iter().map(|message| message.id).chain(deleted).collect();
    let of_sends = |job: &Job| job.sends.iter().filter_map(|send| send.message_id).collect();
    let of_sends = jobs().flat_map(|job| -> Vec<_> { of_sends(job) });
    let named: BTreeSet<_> = jobs().filter_map(|job| job.message_id).chain(of_sends).collect();
    assert!(named.is_subset(&ids), "a message is missing");
    let there: BTreeSet<_> = notifications.iter().map(|notification| notification.id).collect();
    let of_known = messages.iter().filter(|message| there.contains(&message.notification_id));
    assert!(of_known.map(|message| message.id).all(|id| named.contains(&id)), "nobody names it");
}

/// Claiming and settling are transactions of their own. Each happens as a whole or not at all, and
/// when the fault is over, everything is delivered just as if nothing had been. One of four calls fails.
#[test]
fn deliveries() {
    fail_deliveries(one_of(4), seeded::copy);
}

/// The same by claims of one environment.
#[test]
fn deliveries_in_turn() {
    let store = || Interposed::default().side_by_side();
    fail_deliveries(one_of(13), || seeded::copy_in(store(), |builder| builder));
}

// Each `of_calls`th call fails, and each commit.
fn fail_deliveries(of_calls: usize, copy: impl Fn() -> World) {
    let sound = copy();
    let run = || sound.engine.delivery().run_due(usize::MAX);
    let (states, report) = sound.store.states_of(run);
    report.unwrap();
    let expected = Outcome::of(&sound);
    assert!(expected.sent.len() > 3, "there is too little to deliver");

    let mut known = Vec::new();
    for (point, stride) in [(Point::Call, of_calls), (Point::Commit, 1)] {
        for after in (0..).step_by(stride) {
            let world = copy();
            world.store.fail(point, after);
            let result = world.engine.delivery().run_due(usize::MAX);
            if !world.store.recover() {
                result.unwrap();
                break;
            }
            assert_is_fault(&result);
            // What was done before the fault is settled apart from the rest of its claim.
            if !states.contains(&dump(&world.store)) {
                assert_eq!(world.engine.check().unwrap().findings, [], "{point:?} {after}");
                assert_whole(&world);
            }
            world.engine.delivery().run_due(usize::MAX).unwrap();
            let sent = world.recorder.sent();
            let keys: BTreeSet<_> = sent.iter().map(Delivery::idempotency_key).collect();
            assert_eq!(
                keys.len(),
                sent.len(),
                "{point:?} {after}: sent again before the lease is over"
            );
            // Most calls read, and leave a state that was there before.
            let state = (dump(&world.store), sent.iter().map(sent_message).collect::<Vec<_>>());
            if point == Point::Call && known.contains(&state) && !all_fail() {
                continue;
            }
            assert_eq!(Outcome::of(&world), expected, "{point:?} {after} is not made up for");
            known.push(state);
        }
    }
}

/// What has come of all that there was to deliver, whatever it took.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// Each message that went out, by its idempotency key.
    sent: BTreeMap<SendId, String>,
    jobs: BTreeSet<String>,
    messages: Vec<String>,
}

impl Outcome {
    /// Delivers what is left, what has a lease when that is over, and what waits for an opening.
    fn of(world: &World) -> Self {
        for wait in [1_000; 4].into_iter().chain([24 * 3_600; 4]) {
            world.engine.delivery().run_due(usize::MAX).unwrap();
            world.clock.advance(Duration::from_secs(wait));
        }
        let sent = world.recorder.sent();
        let everything = NotificationQuery::default().limit(50);
        let notifications = world.env.notifications().list(&everything).unwrap().data;
        let jobs = notifications.iter().flat_map(|notification| &notification.jobs);
        let left: Vec<_> = jobs.clone().filter(|job| !job.status.has_ended()).collect();
        assert!(left.is_empty(), "{left:?} are left");
        let jobs = jobs.map(|job| format!("{} {:?}", job.id, job.status)).collect();
        Self { sent: sent.iter().map(sent_message).collect(), jobs, messages: messages(world) }
    }
}

fn sent_message(delivery: &Delivery) -> (SendId, String) {
    let message = format!("{:?} {:?}", delivery.address, delivery.message.content);
    (delivery.idempotency_key(), message)
}

// What is in each message besides its id and the times.
fn messages(world: &World) -> Vec<String> {
    let page = PageQuery::default().limit(100);
    let query = MessageQuery::default().page(page);
    let of = |who: &str| world.env.messages().list(who, &query).unwrap().data;
    let all = ["ada", "bob", "cyd"].into_iter().flat_map(of);
    let shown = all.map(|message| {
        let name = (message.notification_id, message.content_id, message.channel);
        format!("{name:?} {:?} {:?}", message.content, message.status)
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort();
    shown
}
