//! Round trips of operations: over a network, they decide how long a call takes.

use testkit::interposed::Interposed;
use testkit::postgres::Server;
use testkit::world::World;
use tidings::message::{MarkAs, MessageQuery};
use tidings::notification::NotificationQuery;
use tidings_store_postgres::PostgresStore;

/// What the operations take at most, if the engine has run for a while.
#[test]
fn operations_take_few_round_trips() {
    let Some(server) = Server::shared() else { return };
    let store = server.place().open();
    let world = World::with(Interposed::over(std::sync::Arc::new(store.clone())), |it| it);
    eprintln!("ready {}", store.round_trips());
    let _ = (&world, count(&store, || ()));
}

fn count(store: &PostgresStore, call: impl FnOnce()) -> u64 {
    let before = store.round_trips();
    call();
    store.round_trips() - before
}
