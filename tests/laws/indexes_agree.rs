//! Every index agrees with the records: nothing missing, nothing left over, nothing dangling.

use std::collections::BTreeSet;

use domain::task::{SendWork, Task, Work};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use testkit::facade::{Op, Process};
use testkit::tables::{check_indexes, records};
use testkit::world::{Backend, World};
use tidings::ids::{JobId, MessageId};
use tidings::job::JobStatus;
use tidings::message::{InboxCounts, Message, MessageQuery};
use tidings::notification::{Notification, NotificationOutcome, NotificationQuery};
use tidings::page::{PageQuery, Total};
use tidings::subscriber::Subscriber;
use tidings::vocabulary::{Channel, Severity};
use tidings::{Engine, Inbox};

use crate::{beginning, cases, op, parsed};

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn after_any_history(ops in vec(op(), 0..60)) {
        check(Process::in_memory(), &ops);
    }
}

proptest! {
    #![proptest_config(cases(6))]

    #[test]
    fn on_a_server_after_any_history(ops in vec(op(), 0..60)) {
        if let Some(backend) = Backend::on_a_server() {
            check(Process::on(backend), &ops);
        }
    }
}

#[track_caller]
fn check(mut process: Process, ops: &[Op]) {
    for op in beginning().iter().chain(ops) {
        let (store, mut run) = (process.world.store.clone(), || process.run(*op));
        let (touched, _) = store.touched_by(&mut run);
        // What writes nothing leaves what has been checked.
        if !touched.is_empty() {
            check_indexes(&store);
        }
    }
    check_counts(&process.world);
    check_tasks(&process.world);
    check_found(&process.world);
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
        let open = in_inbox.clone().filter(|message| message.snoozed_until.is_none());
        let stages: Vec<_> = open.clone().map(|message| message.stage).collect();
        let unseen = stages.iter().filter(|stage| !stage.is_seen()).count();
        let unread = stages.iter().filter(|stage| !stage.is_read()).count();
        let expected = InboxCounts::new(unseen, unread);
        let who = subscriber.subscriber_id;
        let inbox = world.env.inbox(&who).unwrap();
        assert_eq!(inbox.counts().unwrap(), expected, "{who} has {stages:?}");
        let waiting = |is: &dyn Fn(&Message) -> bool| {
            let of = open.clone().filter(|message| is(message)).map(|message| message.stage);
            let unseen = of.clone().filter(|stage| !stage.is_seen()).count();
            InboxCounts::new(unseen, of.filter(|stage| !stage.is_read()).count())
        };
        let tagged = waiting(&|message| message.tags.iter().any(|tag| tag == "tag"));
        assert_eq!(inbox.counts_of_tag("tag").unwrap(), tagged, "{who}");
        for severity in Severity::ALL {
            let of_severity = waiting(&|message| message.severity == *severity);
            assert_eq!(inbox.counts_of_severity(*severity).unwrap(), of_severity, "{who}");
        }
        check_queries(&inbox, &in_inbox.collect::<Vec<_>>());
    }
}

/// A query of an inbox finds and counts the messages that it matches.
#[track_caller]
fn check_queries(inbox: &Inbox<'_>, messages: &[&Message]) {
    for query in [
        json!({}),
        json!({ "archived": true }),
        json!({ "snoozed": true, "seen": false }),
        json!({ "read": false, "tags": "tag" }),
        json!({ "severity": "high", "seen": false }),
        json!({ "tags": "tag", "severity": ["high", "none"] }),
        json!({ "contextKeys": ["tenant:acme"], "archived": true }),
    ] {
        let asked = MessageQuery::default().limit(100);
        let asked = MessageQuery::page(parsed(query.clone()), asked.page);
        let is_in = |message: &&&Message| asked.in_inbox().matches(**message);
        let mut expected: Vec<_> = messages.iter().filter(is_in).collect();
        expected.sort_by_key(|message| std::cmp::Reverse(message.list_place()));
        let page = inbox.list(&asked).unwrap();
        let ids = |ids: Vec<MessageId>| ids;
        let found = ids(page.data.iter().map(|message| message.id).collect());
        assert_eq!(found, ids(expected.iter().map(|one| one.id).collect()), "{query}");
        let all = asked.page(PageQuery::default());
        assert_eq!(inbox.count(&all).unwrap(), Total::Exactly(expected.len()), "{query}");
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
    let mut wakes = BTreeSet::new();
    for task in records::<Task>(&world.store) {
        match task.work {
            Work::Send(SendWork { notification_id, job_id, target, .. })
                if is_there(notification_id) =>
            {
                let is_new = sends.insert(job_id);
                assert!(is_new || target.is_some(), "{job_id} has two tasks");
            }
            Work::Wake { message_id } => {
                wakes.insert((message_id, task.state.due_at().unwrap()));
            }
            Work::Send(_)
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
    let snoozed = records::<Message>(&world.store).into_iter();
    let snoozed = snoozed.filter_map(|one| Some((one.id, one.snoozed_until?)));
    assert_eq!(wakes, snoozed.collect());
}
