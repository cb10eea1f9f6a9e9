//! Networks that lose what is said, and those that break.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;
use store::{Decision, Store, Table};
use testkit::postgres::Server;
use testkit::proxy::Proxy;
use testkit::wait_until;
use testkit::world::{in_app, parsed};
use tidings::Engine;

use crate::{cut_until_over, read_at_once, wait_until_free};

/// Number of idle connections.
const IDLE: usize = 3;

/// All connections are silent, and the system finds that out for the one in use. The others are not tried
/// one by one.
#[test]
fn a_silent_network_fails_one_connection() {
    let Some(server) = Server::shared() else { return };
    let proxy = Proxy::before(server.folder());
    let url = format!("{} application_name=silence", proxy.url());
    let place = server.place().through(&url).with(|options| {
        options.connections = 8;
        options.timeout = Duration::from_secs(1);
        // A second connection that is silent takes six seconds.
        options.patience = Duration::from_secs(5);
    });
    let store = place.open();
    read_at_once(&store, IDLE);
    wait_until_free(server, "silence", IDLE);
    proxy.silence();
    let sent = proxy.sent();
    let written = thread::scope(|scope| {
        let write = scope.spawn(|| {
            store
                .write(&mut |tx| tx.put(Table::Topics, b"key", b"value").map(|()| Decision::Commit))
        });
        wait_until(|| proxy.sent() > sent);
        proxy.cut_last();
        write.join().unwrap()
    });
    assert!(written.is_ok(), "{written:?}");
}

/// Operations go on behind connections that break, wherever they are.
#[test]
fn a_connection_that_breaks_fails_no_call() {
    let Some(server) = Server::start() else { return };
    let place = server.place().with(|options| {
        options.patience = Duration::from_secs(60);
        options.cache_bytes = 0;
    });
    let engine = Engine::builder().build(place.open());
    let env = engine.organization("acme").unwrap().development().unwrap();
    let workflow = json!({ "workflowId": "order", "name": "order", "steps": [in_app()] });
    env.workflows().create(&parsed(workflow)).unwrap();
    let (made, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let count = |()| made.fetch_add(1, Ordering::SeqCst);
    let calls = &|caller: usize| {
        (0..60).try_for_each(|number| {
            let trigger = json!({ "name": "order", "to": [format!("s{caller}-{number}"), "ada"] });
            env.events().trigger(&parsed(trigger)).map(drop).map(count)?;
            env.inbox("ada")?.list(&parsed(json!({}))).map(drop).map(count)?;
            env.notifications().list(&parsed(json!({}))).map(drop).map(count).map(drop)
        })
    };
    thread::scope(|scope| {
        scope.spawn(|| cut_until_over(&made, &is_over, || server.cut_connections()));
        let callers = [0, 1, 2, 3].map(|caller| scope.spawn(move || calls(caller)));
        let called = callers.map(|caller| caller.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        assert!(called.iter().all(Result::is_ok), "{called:?}");
    });
    assert!(engine.check().unwrap().findings.is_empty());
}
