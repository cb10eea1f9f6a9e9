//! Networks that lose what is said, and do not say so.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use store::{Decision, Store, Table};
use testkit::postgres::Server;
use testkit::proxy::Proxy;

use crate::{wait_until, wait_until_free};

/// Number of connections that nobody uses.
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
    let all = Barrier::new(IDLE);
    thread::scope(|scope| {
        for _ in 0..IDLE {
            scope.spawn(|| {
                let read = store.read(&mut |_| {
                    all.wait();
                    Ok(())
                });
                read.unwrap();
            });
        }
    });
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
