//! A process whose clock is wrong. `libfaketime` (Debian package `faketime`) makes it so. Where it is
//! not installed, the test says that it is skipped.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::json;
use store::Store;
use testkit::child;
use testkit::postgres::{Place, Server};
use testkit::wait_until;
use testkit::world::{email, parsed};
use tidings::integration::IntegrationCreate;
use tidings::vocabulary::Channel;
use tidings::{Delivery, Engine, Provider, ProviderReceipt, SendError};

/// The test that the other process runs, and the variable with its file.
const CHILD: &str = "clocks::child";
const FILE: &str = "TIDINGS_AHEAD";

const MINUTE: Duration = Duration::from_secs(60);

/// A lease is not over for the process that is ten minutes ahead.
#[test]
fn a_process_with_a_wrong_clock_takes_no_lease() {
    let Some(server) = Server::shared() else { return };
    let Some(library) = faketime() else {
        eprintln!("SKIPPED: libfaketime is not installed");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (place, path) = (server.place(), folder.path().join("place"));
    place.write(&path);
    let (told, begun) = mpsc::channel();
    let (go_on, waits) = mpsc::channel();
    let provider = Slow { begun: told.into(), waits: waits.into() };
    let engine = Engine::builder().default_provider(provider).build(place.open());
    trigger(&engine);
    thread::scope(|scope| {
        let delivery = scope.spawn(|| engine.delivery().run_due(10).unwrap());
        begun.recv().unwrap();
        let other = child::run(
            child::command(CHILD)
                .env("LD_PRELOAD", &library)
                .env(FILE, &path)
                .envs([("FAKETIME", "+10m"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]),
        );
        go_on.send(()).unwrap();
        let [said, _] = other.unwrap();
        assert!(said.contains("ahead by 10 minutes, sent 0"), "{said}");
        assert_eq!(delivery.join().unwrap().sent, 1);
    });
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Some(path) = env::var_os(FILE) else { return };
    let store = Place::read(Path::new(&path)).open();
    let ahead = SystemTime::now().duration_since(store.now().unwrap()).unwrap_or_default();
    let engine = Engine::builder().default_provider(Quick).build(store);
    let sent = engine.delivery().run_due(10).unwrap().sent;
    println!("ahead by {} minutes, sent {sent}", (ahead + MINUTE / 2).as_secs() / 60);
}

/// An engine of another process reads the same time.
#[test]
fn the_time_is_that_of_the_server() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let (one, other) = (place.open(), place.open());
    let times = [one.now(), other.now(), Some(SystemTime::now())].map(Option::unwrap);
    let span = times.iter().max().unwrap().duration_since(*times.iter().min().unwrap());
    assert!(span.unwrap() < Duration::from_secs(5), "{times:?}");
}

/// A store that does not ask for commits, since nothing listens or its poll is long, asks for the time.
#[test]
fn a_time_that_is_old_is_asked_for() {
    let Some(server) = Server::shared() else { return };
    let place = server.place().with(|options| options.poll = 60 * MINUTE);
    let store = place.through(&format!("{} application_name=clock", server.url())).open();
    let asked = || {
        let query = "SELECT max(query_start) FROM pg_stat_activity \
            WHERE application_name = 'clock' AND query = 'SELECT clock_timestamp()'";
        server.query(query)
    };
    let first = asked();
    thread::sleep(Duration::from_millis(1_100));
    let before = store.now().unwrap();
    let round_trips = store.round_trips();
    wait_until(|| asked() > first);
    assert!(store.now().unwrap() >= before);
    // No caller has waited for it.
    assert_eq!(store.round_trips(), round_trips);
}

fn trigger(engine: &Engine) {
    let env = engine.organization("acme").unwrap().development().unwrap();
    env.integrations().create(&IntegrationCreate::new("mail", Channel::Email).unwrap()).unwrap();
    let create = json!({ "workflowId": "mail", "name": "Mail", "steps": [email()] });
    env.workflows().create(&parsed(create)).unwrap();
    let ada = json!({ "subscriberId": "ada", "email": "ada@example.org" });
    env.subscribers().create(&parsed(ada)).unwrap();
    env.events().trigger(&parsed(json!({ "name": "mail", "to": "ada" }))).unwrap();
}

/// A provider that says when it begins, and waits until it may go on.
#[derive(Debug)]
struct Slow {
    begun: parking_lot::Mutex<mpsc::Sender<()>>,
    waits: parking_lot::Mutex<mpsc::Receiver<()>>,
}

impl Provider for Slow {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        self.begun.lock().send(()).unwrap();
        self.waits.lock().recv().unwrap();
        Ok(ProviderReceipt::default())
    }
}

#[derive(Debug)]
struct Quick;

impl Provider for Quick {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        Ok(ProviderReceipt::default())
    }
}

fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten().map(|folder| folder.path());
    let library = |folder: PathBuf| folder.join("faketime/libfaketimeMT.so.1");
    folders.map(library).find(|library| library.exists())
}
