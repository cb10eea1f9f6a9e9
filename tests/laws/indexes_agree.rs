//! Every index agrees with the records: nothing missing, nothing left over, nothing dangling.

use std::collections::BTreeSet;

use domain::task::{Task, Work};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use testkit::facade::Process;
use testkit::tables::{check_indexes, records};
use testkit::world::World;
use tidings::Engine;
use tidings::ids::JobId;
use tidings::job::JobStatus;
use tidings::message::{InboxCounts, Message};
use tidings::notification::{Notification, NotificationOutcome, NotificationQuery};
use tidings::subscriber::Subscriber;
use tidings::vocabulary::Channel;

use crate::{beginning, cases, op, parsed};

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn after_any_history(ops in vec(op(), 0..60)) {
        let mut process = Process::in_memory();
        for op in beginning().iter().chain(&ops) {
            process.run(*op);
            check_indexes(&process.world.store);
        }
        check_counts(&process.world);
        check_tasks(&process.world);
        check_found(&process.world);
    }
}

/// Every notification is found by what it says, in an engine that has seen all of the history and
/// in one that has seen none.
#[track_caller]
fn check_found(world: &World) {
    let mut all = records::<Notification>(&world.store);
    all.retain(|notification| notification.environment_id == world.env.environment_id());
    all.reverse();
    let newcomer = Engine::builder().build(world.store.clone());
    let scopes = [world.env.clone(), newcomer.environment(world.env.environment_id()).unwrap()];
    let middle = all.get(all.len() / 2).map(|notification| notification.created_at);
    let mut queries = vec![
        json!({}),
        json!({ "channels": ["email", "push"], "severity": ["none"] }),
        json!({ "severity": ["high"] }),
        json!({ "topicKey": "news" }),
        json!({ "contextKeys": ["tenant:acme", "app:web"] }),
        json!({ "contextKeys": [], "channels": "in_app" }),
        json!({ "transactionId": "transaction 1" }),
    ];
    let words: Vec<_> = NotificationOutcome::ALL.iter().map(ToString::to_string).collect();
    queries.extend(words.iter().map(|word| json!({ "outcomes": word })));
    queries.extend(words.iter().map(|word| json!({ "outcomes": ["delivered", word] })));
    queries.extend(words.iter().map(|word| json!({ "outcomes": word, "channels": "email" })));
    queries.push(json!({ "outcomes": words }));
    queries.extend(middle.map(|time| json!({ "after": time, "outcomes": ["waiting", "failed"] })));
    queries.extend(middle.map(|time| json!({ "after": time })));
    queries.extend(middle.map(|time| json!({ "before": time, "severity": "none" })));
    for query in queries.into_iter().map(parsed::<NotificationQuery>) {
        let shown: Vec<_> = all.iter().filter(|found| query.matches(found)).collect();
        let newest: Vec<_> = shown.iter().take(50).map(|found| found.id).collect();
        for scope in &scopes {
            let notifications = scope.notifications();
            assert_eq!(notifications.count(&query).unwrap(), shown.len() as u64, "{query:?}");
            let page = query.clone().limit(50);
            let found: Vec<_> =
                notifications.list(&page).unwrap().data.iter().map(|found| found.id).collect();
            assert_eq!(found, newest, "{query:?}");
        }
    }
}

/// What the inbox counts is what the messages say.
#[track_caller]
fn check_counts(world: &World) {
    let messages = records::<Message>(&world.store);
    for subscriber in records::<Subscriber>(&world.store) {
        let in_inbox = messages.iter().filter(|message| {
            message.subscriber_id == subscriber.id && message.channel == Channel::InApp
        });
        let stages: Vec<_> = in_inbox.map(|message| message.stage).collect();
        let unseen = stages.iter().filter(|stage| !stage.is_seen()).count();
        let unread = stages.iter().filter(|stage| !stage.is_read()).count();
        let expected = InboxCounts::new(unseen, unread);
        let who = subscriber.subscriber_id;
        assert_eq!(
            world.env.inbox(&who).unwrap().counts().unwrap(),
            expected,
            "{who} has {stages:?}"
        );
    }
}

/// Each job that waits for an attempt has a task, and no other job has one. Tasks of deleted
/// notifications are dropped by their claim.
#[track_caller]
fn check_tasks(world: &World) {
    let notifications = records::<Notification>(&world.store);
    let is_there = |id| notifications.iter().any(|notification| notification.id == id);
    let jobs = notifications.iter().flat_map(|notification| &notification.jobs);
    let waiting = jobs.filter(|job| matches!(job.status, JobStatus::Queued { .. }));
    let waiting: BTreeSet<JobId> = waiting.map(|job| job.id).collect();
    let mut sends = BTreeSet::new();
    for task in records::<Task>(&world.store) {
        match task.work {
            Work::Send { notification_id, job_id, target, .. } if is_there(notification_id) => {
                let is_new = sends.insert(job_id);
                assert!(is_new || target.is_some(), "{job_id} has two tasks");
            }
            Work::Send { .. }
            | Work::Turn { .. }
            | Work::Close { .. }
            | Work::Call { .. }
            | Work::Sweep { .. }
            | Work::FanOut { .. }
            | Work::Cancel { .. }
            | Work::Release { .. } => {}
        }
    }
    assert_eq!(sends, waiting);
}
