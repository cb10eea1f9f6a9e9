//! Four processes on one server, of which one is killed every few seconds, while they trigger events
//! with a mail and a digest. At the end each event has happened once, each mail has one key, and each
//! event is in one digest:
//!
//! ```sh
//! cargo run --release -p tidings-store-postgres --example cluster -- 20000
//! ```
//!
//! The program starts a server in a temporary folder.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what fails here shall be seen")]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use serde_json::json;
use testkit::postgres::{Place, Server};
use testkit::world::{email, parsed};
use tidings::integration::IntegrationCreate;
use tidings::message::MessageQuery;
use tidings::notification::NotificationQuery;
use tidings::vocabulary::Channel;
use tidings::{Delivery, Engine, Provider, ProviderReceipt, Scope, SendError};

const PROCESSES: u64 = 4;
const SUBSCRIBERS: u64 = 20;

/// Time between two kills.
const LIFE: Duration = Duration::from_secs(3);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [path, process, first, last] => {
            work(Path::new(path), process, first.parse().unwrap()..last.parse().unwrap());
        }
        [events] => run(events.parse().unwrap()),
        _ => run(20_000),
    }
}

fn run(events: u64) {
    let server = Server::start().expect("PostgreSQL is installed");
    let folder = tempfile::tempdir().unwrap();
    let (place, path) = (server.place(), folder.path().join("place"));
    place.write(&path);
    let engine = engine(&place, &path);
    let env = prepare(&engine);
    let (start, kills) = (Instant::now(), AtomicU64::new(0));
    thread::scope(|scope| {
        for process in 0..PROCESSES {
            let (path, kills) = (&path, &kills);
            scope.spawn(move || live(path, process, (events / PROCESSES, kills)));
        }
    });
    let (took, kills) = (start.elapsed(), kills.into_inner());
    println!("{events} events, {kills} kills, {:.1} s", took.as_secs_f64());
    finish(&engine);
    check(&env, &path, events / PROCESSES * PROCESSES);
    assert!(engine.check().unwrap().findings.is_empty());
    println!("each event once, each mail with one key, each event in one digest");
}

/// Starts a process again and again, each time behind what it has acknowledged.
fn live(path: &Path, process: u64, (events, kills): (u64, &AtomicU64)) {
    let mut done = 0;
    // One process is killed at a time.
    let mut next = LIFE * u32::try_from(process + 1).unwrap();
    while done < events {
        let mut child = start(path, process, done..events);
        let output = BufReader::new(child.stdout.take().unwrap());
        let over = Instant::now() + next;
        next = LIFE * u32::try_from(PROCESSES).unwrap();
        for line in output.lines().map_while(Result::ok) {
            if let Some(Ok(number)) = line.strip_prefix("done ").map(str::parse::<u64>) {
                done = number + 1;
            }
            if Instant::now() >= over && done < events {
                child.kill().unwrap();
                kills.fetch_add(1, Ordering::Relaxed);
                break;
            }
        }
        drop(child.wait());
    }
}

fn start(path: &Path, process: u64, left: std::ops::Range<u64>) -> Child {
    Command::new(env::current_exe().unwrap())
        .arg(path)
        .args([process, left.start, left.end].map(|number| number.to_string()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What each process does. An event that was triggered before is not triggered again.
fn work(path: &Path, process: &str, left: std::ops::Range<u64>) {
    let engine = engine(&Place::read(path), path);
    let env = engine.organization("acme").unwrap().development().unwrap();
    let _worker = engine.worker().start().unwrap();
    for number in left {
        let (id, to) = (format!("{process}-{number}"), subscriber(number % SUBSCRIBERS));
        let trigger = json!({ "name": "order", "to": to, "transactionId": id });
        env.events().trigger(&parsed(trigger)).unwrap();
        println!("done {number}");
    }
}

/// Lets a worker do what the processes have left. The leases of killed ones end first.
fn finish(engine: &Engine) {
    let worker = engine.worker().start().unwrap();
    while !engine.delivery().stats().unwrap().lanes.is_empty() {
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(worker.stop(Duration::from_secs(60)).errors, 0);
}

fn check(env: &Scope, path: &Path, events: u64) {
    assert_eq!(env.notifications().count(&NotificationQuery::default()).unwrap(), events);
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    let (mut calls, sent) = (0, fs::read_to_string(sent(path)).unwrap());
    for line in sent.lines() {
        let (id, key) = line.split_once(' ').unwrap();
        assert_eq!(keys.entry(id.to_owned()).or_insert(key.to_owned()), key);
        calls += 1;
    }
    assert_eq!(keys.len() as u64, events, "each event has a mail");
    println!("{calls} calls of the provider, {} messages", keys.len());
    let collected: u64 = (0..SUBSCRIBERS).map(|number| collected(env, number)).sum();
    assert_eq!(collected, events, "each event is in one digest");
}

/// Number of the events in all digests of a subscriber.
fn collected(env: &Scope, number: u64) -> u64 {
    let inbox = env.inbox(subscriber(number).as_str()).unwrap();
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
    let builder = Engine::builder().lease(Duration::from_secs(5)).default_provider(Notebook(file));
    builder.build(place.open())
}

fn sent(path: &Path) -> PathBuf {
    path.with_extension("sent")
}

fn prepare(engine: &Engine) -> Scope {
    let env = engine.organization("acme").unwrap().development().unwrap();
    env.integrations().create(&IntegrationCreate::new("mail", Channel::Email).unwrap()).unwrap();
    let window = json!({ "type": "regular", "amount": 2, "unit": "seconds" });
    let digest = json!({ "type": "digest", "metadata": window });
    let count = json!({ "type": "in_app", "template": { "body": "{{ total_count }}" } });
    let steps = json!([email(), digest, count]);
    let create = json!({ "workflowId": "order", "name": "Order", "steps": steps });
    env.workflows().create(&parsed(create)).unwrap();
    for number in 0..SUBSCRIBERS {
        let create = json!({ "subscriberId": subscriber(number), "email": "someone@example.org" });
        env.subscribers().create(&parsed(create)).unwrap();
    }
    env
}

fn subscriber(number: u64) -> String {
    format!("subscriber-{number}")
}
