//! Four processes on one schema, each of which is killed again and again while it triggers and
//! delivers. `TIDINGS_KILLS` sets how often.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, thread};

use serde_json::json;
use testkit::kill::{acknowledge, file_of_child, work_until_killed};
use testkit::postgres::{Place, Server};
use testkit::wait_until;
use testkit::world::{email, parsed};
use tidings::integration::IntegrationCreate;
use tidings::message::MessageQuery;
use tidings::notification::NotificationQuery;
use tidings::vocabulary::Channel;
use tidings::{Delivery, Engine, Provider, ProviderReceipt, Scope, SendError};

/// The test that the other processes run.
const CHILD: &str = "cluster::child";

/// What each of the processes triggers, one after the other.
const WORKFLOWS: [&str; 2] = ["mail", "collect"];

#[test]
fn processes_that_are_killed_lose_nothing_and_tell_nobody_twice() {
    let Some(server) = Server::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (place, path) = (server.place(), folder.path().join("place"));
    place.write(&path);
    let engine = engine(&place, &path);
    let env = prepare(&engine);
    let kills = env::var("TIDINGS_KILLS").map_or(1, |kills| kills.parse().unwrap());

    let acknowledged: Vec<String> = thread::scope(|scope| {
        let lives = |at: usize| {
            let path = &path;
            let spans = (0..kills).map(move |kill| 500 + (at as u64 * 700 + kill * 450) % 2_000);
            spans.flat_map(|span| work_until_killed(CHILD, path, Duration::from_millis(span)))
        };
        let workers = [0, 1, 2, 3].map(|at| scope.spawn(move || lives(at).collect::<Vec<_>>()));
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    finish(&engine);
    check(&env, &acknowledged, &path);
    assert!(engine.check().unwrap().findings.is_empty());
}

/// Not a test, but what the other processes do.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Some(path) = file_of_child() else { return };
    let place = Place::read(Path::new(&path));
    let engine = engine(&place, Path::new(&path));
    let env = engine.organization("acme").unwrap().development().unwrap();
    let _worker = engine.worker().start().unwrap();
    for number in 0.. {
        for workflow in WORKFLOWS {
            let id = format!("{workflow}-{}-{number}", std::process::id());
            let to = format!("subscriber-{}", number % 3);
            let trigger = json!({ "name": workflow, "to": to, "transactionId": id });
            env.events().trigger(&parsed(trigger)).unwrap();
            acknowledge(id);
        }
    }
}

/// Lets a worker do what the killed processes have left. Their leases end first.
fn finish(engine: &Engine) {
    let worker = engine.worker().start().unwrap();
    wait_until(|| engine.delivery().stats().unwrap().lanes.is_empty());
    assert_eq!(worker.stop(Duration::from_secs(60)).errors, 0);
}

fn check(env: &Scope, acknowledged: &[String], path: &Path) {
    // A process that is killed may have triggered one event more.
    let told = |workflow: &str| {
        let query = NotificationQuery::default().workflows([workflow]);
        env.notifications().count(&query).unwrap()
    };
    for id in acknowledged {
        let query = NotificationQuery::default().transaction_id(id.as_str()).unwrap();
        assert_eq!(env.notifications().count(&query).unwrap(), 1, "{id}");
    }

    let mut messages = BTreeMap::new();
    for line in fs::read_to_string(sent(path)).unwrap().lines() {
        let (id, key) = line.split_once(' ').unwrap();
        assert_eq!(*messages.entry(id.to_owned()).or_insert(key.to_owned()), key);
    }
    let keys: BTreeSet<_> = messages.values().collect();
    assert_eq!(keys.len() as u64, told("mail"), "each message is sent, with a key of its own");

    let collected: u64 = (0..3).map(|number| collected(env, &format!("subscriber-{number}"))).sum();
    assert_eq!(collected, told("collect"), "each event is in one digest");
}

/// Number of the events in all digests of a subscriber.
fn collected(env: &Scope, subscriber: &str) -> u64 {
    let inbox = env.inbox(subscriber).unwrap();
    let mut query = MessageQuery::default().limit(100);
    let mut sum = 0;
    loop {
        let page = inbox.list(&query).unwrap();
        let counts = page.data.iter().map(|it| it.text().unwrap().parse::<u64>().unwrap());
        sum += counts.sum::<u64>();
        let Some(next) = page.next else { return sum };
        query.page.after = Some(next);
    }
}

/// A provider that notes in a file what it sends.
#[derive(Debug)]
struct Notebook(File);

impl Provider for Notebook {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let line = format!("{} {}\n", delivery.notification.id, delivery.idempotency_key());
        (&self.0).write_all(line.as_bytes()).map_err(|_| SendError::retryable("no paper"))?;
        Ok(ProviderReceipt::default())
    }
}

fn engine(place: &Place, path: &Path) -> Engine {
    let file = OpenOptions::new().create(true).append(true).open(sent(path)).unwrap();
    let builder = Engine::builder().lease(Duration::from_secs(2)).default_provider(Notebook(file));
    builder.build(place.open())
}

fn sent(path: &Path) -> PathBuf {
    path.with_extension("sent")
}

fn prepare(engine: &Engine) -> Scope {
    let env = engine.organization("acme").unwrap().development().unwrap();
    env.integrations().create(&IntegrationCreate::new("mail", Channel::Email).unwrap()).unwrap();
    let digest = json!({ "type": "digest", "metadata": { "type": "regular", "amount": 1, "unit": "seconds" } });
    let count = json!({ "type": "in_app", "template": { "body": "{{ total_count }}" } });
    for (workflow, steps) in [("mail", json!([email()])), ("collect", json!([digest, count]))] {
        let create = json!({ "workflowId": workflow, "name": workflow, "steps": steps });
        env.workflows().create(&parsed(create)).unwrap();
    }
    for number in 0..3 {
        let id = format!("subscriber-{number}");
        let create = json!({ "subscriberId": id, "email": "someone@example.org" });
        env.subscribers().create(&parsed(create)).unwrap();
    }
    env
}
