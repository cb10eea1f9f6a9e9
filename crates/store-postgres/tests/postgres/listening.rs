//! The connection that listens, on a network that goes silent.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use store::{Decision, Store, Table};
use testkit::postgres::Server;
use testkit::proxy::Proxy;
use tidings_store_postgres::PostgresStore;

/// Time within which a process hears of the commits of others again: the silence is found out, and there is
/// another connection.
const DEADLINE: Duration = Duration::from_secs(60);

/// A silent network closes no connection. The store asks on the one that listens, and makes another one.
#[test]
fn a_silent_network_ends_the_connection_that_listens() {
    let Some(server) = Server::shared() else { return };
    let proxy = Proxy::before(server.folder());
    let place = server.place().with(|options| {
        options.poll = Duration::from_secs(3_600);
        options.timeout = Duration::from_secs(2);
    });
    let (here, there) = (place.clone().through(&proxy.url()).open(), place.open());
    let (tell, told) = mpsc::channel();
    here.listen(Box::new(move |_| {
        tell.send(()).unwrap();
        ControlFlow::Continue(())
    }));
    // The store calls others if it listens.
    there.listen(Box::new(|_| ControlFlow::Continue(())));
    let is_heard = || {
        let until = Instant::now() + DEADLINE;
        loop {
            commit(&there);
            if told.recv_timeout(Duration::from_millis(200)).is_ok() {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
        }
    };
    assert!(is_heard(), "no call is heard");
    // Nothing that was said before arrives later.
    while told.recv_timeout(Duration::from_secs(1)).is_ok() {}
    proxy.silence();
    assert!(is_heard(), "the store still listens on a silent connection");
}

fn commit(store: &PostgresStore) {
    let put =
        store.write(&mut |tx| tx.put(Table::Topics, b"key", b"value").map(|()| Decision::Commit));
    put.unwrap();
}
