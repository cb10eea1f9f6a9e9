//! Nothing that was acknowledged is lost when the process is killed, and nothing is half there.

mod child;
mod notes;
mod pipeline;
mod upkeep;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::json;
use store::Table;
use tempfile::tempdir;
use testkit::interposed::Interposed;
use testkit::kill::{
    acknowledge, exit_on_panic, file_of_child, open, place_in, prepared, work_until_killed,
};
use testkit::postgres::Server;
use testkit::scaled;
use testkit::tables::{check_indexes, dump, records};
use tidings::ids::SubscriberId;
use tidings::job::JobStatus;
use tidings::message::{MarkAs, Message, MessageQuery};
use tidings::notification::Notification;
use tidings::trigger::{AcceptedTrigger, Trigger};
use tidings::{Clock, Engine, ManualClock, RecordingProvider, Scope, SystemClock};

use crate::parsed;
use crate::seeded::{ada, email, inbox};

/// How often a process is killed that works on the same file.
const ROUNDS: u32 = 3;

#[test]
fn what_was_acknowledged_survives_a_kill() {
    is_not_lost(None);
}

#[test]
fn on_a_server_what_was_acknowledged_survives_a_kill() {
    if let Some(server) = Server::wanted() {
        is_not_lost(Some(server));
    }
}

fn is_not_lost(server: Option<&Server>) {
    let mut told = 0;
    for file in 0..scaled(1) {
        let folder = tempdir().unwrap();
        let path = place_in(folder.path(), server);
        let mut acknowledged = Vec::new();
        for round in file * ROUNDS..(file + 1) * ROUNDS {
            // Between the first acknowledgement and some hundred of them.
            let millis = u64::from(round) * 37 % 150;
            let span = Duration::from_millis(millis);
            acknowledged.extend(work_until_killed("kill::child", &path, span));
            check_left(&path, &acknowledged);
        }
        assert!(!acknowledged.is_empty(), "nothing was acknowledged");
        told += acknowledged.len();
    }
    println!("{} kills among {told} acknowledged events lost none", scaled(ROUNDS));
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Some(file) = file_of_child() else { return };
    exit_on_panic();
    let builder =
        Engine::builder().default_provider(RecordingProvider::default()).activity_segments(16);
    let engine = builder.build(open(Path::new(&file)));
    let env = &prepared(&engine, "both", &[inbox(), email()]);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(move || {
                loop {
                    let receipt = env.events().trigger(&event()).unwrap();
                    acknowledge(receipt.transaction_id);
                }
            });
        }
        scope.spawn(|| {
            loop {
                engine.delivery().run_due(4).unwrap();
            }
        });
        scope.spawn(move || {
            loop {
                mark_all(env, &ada());
            }
        });
        scope.spawn(move || {
            loop {
                assert!(env.notifications().rebuild_index().unwrap().is_finished);
                let check = env.notifications().check_index().unwrap();
                assert_eq!(check.disagreements, []);
                thread::sleep(Duration::from_millis(10));
            }
        });
    });
}

fn event() -> Trigger {
    let inline = |id: &str| json!({ "subscriberId": id, "email": format!("{id}@example.org") });
    parsed(json!({ "name": "both", "to": [inline("ada"), inline("bob")], "payload": { "n": 1 } }))
}

fn mark_all(env: &Scope, who: &SubscriberId) {
    let Ok(page) = env.inbox(who).unwrap().list(&MessageQuery::default()) else { return };
    let ids: Vec<_> = page.data.iter().map(|message| message.id).collect();
    if !ids.is_empty() {
        env.messages().mark(who, &ids, MarkAs::Read).unwrap();
    }
}

/// Checks that everything is there that was acknowledged, that nothing contradicts it, and that
/// what was under way comes to its end.
#[track_caller]
fn check_left(path: &Path, acknowledged: &[String]) {
    let store = Interposed::over(open(path));
    check_indexes(&store);
    check_whole(&store, acknowledged);
    // So late that all leases are over.
    let clock = ManualClock::at(SystemClock.now().after(Duration::from_secs(3_600)));
    let recorder = RecordingProvider::default();
    let engine = Engine::builder().clock(clock).default_provider(recorder).build(store.clone());
    engine.delivery().run_due(usize::MAX).unwrap();
    check_indexes(&store);
    check_whole(&store, acknowledged);
    assert!(!dump(&store).iter().any(|(table, ..)| *table == Table::Due), "work is left");
}

/// Checks that every trigger is there with a notification for each of its recipients, and every
/// message with a job that it came of; and that those that were acknowledged are among them.
#[track_caller]
fn check_whole(store: &Interposed, acknowledged: &[String]) {
    let mut notifications = BTreeMap::<_, usize>::new();
    let mut of_jobs = BTreeSet::new();
    for notification in records::<Notification>(store) {
        *notifications.entry(notification.transaction_id.to_string()).or_default() += 1;
        let [in_app, email] = notification.jobs.as_slice() else { panic!("{notification:?}") };
        assert_eq!(in_app.status, JobStatus::Completed);
        of_jobs.extend(in_app.message_id.into_iter().chain(email.message_id));
    }
    let messages = records::<Message>(store).into_iter().map(|message| message.id);
    assert_eq!(messages.collect::<BTreeSet<_>>(), of_jobs);

    let triggers = records::<AcceptedTrigger>(store).into_iter();
    let expected = triggers.map(|accepted| (accepted.receipt.transaction_id.to_string(), 2));
    assert_eq!(notifications, expected.collect());
    let lost: Vec<_> = acknowledged.iter().filter(|id| !notifications.contains_key(*id)).collect();
    assert!(lost.is_empty(), "lost {lost:?}");
}
