//! Events in transactions of the host: an order and its notification, never one without the other.
//! `TIDINGS_KILLS` sets how often the process is killed.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use store::{Decision, HostTransaction, Store, Table, Transaction, WriteScope};
use testkit::interposed::Interposed;
use testkit::kill::{acknowledge, file_of_child, work_until_killed};
use testkit::postgres::{Place, Server};
use testkit::proxy::Proxy;
use testkit::tables::dump;
use testkit::wait_until;
use testkit::world::{World, email, in_app, parsed};
use tidings::notification::NotificationQuery;
use tidings::sealing::{Keyring, SealingKey};
use tidings::trigger::{Trigger, TriggerReceipt};
use tidings::{Builder, Engine, Error, OsEntropy, Scope, SystemClock};
use tidings_store_postgres::{HostConnection, HostError, PostgresStore, TypedParams};
use tokio::runtime::{self, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, IsolationLevel, NoTls, Row};

/// The test that the other process runs.
const CHILD: &str = "join::child";

#[test]
fn an_event_shares_the_fate_of_the_order() {
    let Some(server) = Server::shared() else { return };
    for seals in [false, true] {
        let shop = Shop::open(&server.place(), seals);
        assert!(shop.order("first", Fate::Committed).is_ok());
        assert!(shop.order("second", Fate::RolledBack).is_ok());
        assert_eq!(shop.told(), ["first"]);
        // What was rolled back has left nothing, neither in the database nor in memory.
        shop.env.events().trigger(&ordered("third")).unwrap();
        assert!(shop.order("fourth", Fate::Committed).is_ok());
        assert!(shop.order("second", Fate::Committed).is_ok());
        assert_eq!(shop.told(), ["first", "fourth", "second", "third"]);
        assert_eq!(shop.orders(), ["first", "fourth", "second"]);
        assert!(shop.engine.check().unwrap().findings.is_empty());
    }
}

/// The refusal of an event leaves the transaction of the host as it is.
#[test]
fn a_refusal_leaves_the_order_to_the_host() {
    let Some(server) = Server::shared() else { return };
    let shop = Shop::open(&server.place(), false);
    let refused = shop.ordered_by("nobody", Fate::Committed, "unknown");
    assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    assert_eq!(shop.orders(), ["nobody"]);
    assert!(shop.told().is_empty());
}

/// Two events of one transaction, and a repeated one.
#[test]
fn a_transaction_takes_several_events() {
    let Some(server) = Server::shared() else { return };
    let shop = Shop::open(&server.place(), false);
    shop.runtime.block_on(async {
        let mut client = shop.client().await;
        let transaction = client.transaction().await.unwrap();
        for id in ["one", "two", "one"] {
            let env = shop.env.clone();
            let told = shop
                .store
                .within(&transaction, move |joined| env.events().trigger_in(joined, &ordered(id)));
            told.await.unwrap();
        }
        transaction.commit().await.unwrap();
    });
    assert_eq!(shop.told(), ["one", "two"]);
    assert!(shop.engine.check().unwrap().findings.is_empty());
}

/// An event with an idempotency key happens once, whether its transaction is one of the host or its own.
#[test]
fn a_key_makes_an_event_once_in_all_transactions() {
    let Some(server) = Server::shared() else { return };
    let all = [Own::Its, Own::Host(Fate::Committed)];
    for (first, second) in all.into_iter().flat_map(|one| all.map(|other| (one, other))) {
        let shop = Shop::open(&server.place(), false);
        shop.once("k", Own::Host(Fate::RolledBack), "rolled-back").unwrap();
        assert!(shop.told().is_empty(), "what was rolled back takes the key");
        let receipt = shop.once("k", first, "event").unwrap();
        assert_eq!(shop.once("k", second, "event").unwrap(), receipt, "{first:?} {second:?}");
        assert_eq!(shop.once("k", second, "other").unwrap_err().status(), 409);
        assert_eq!(shop.told(), ["event"], "{first:?} {second:?}");
        // Nothing is kept in memory of what the host has rolled back.
        shop.once("l", Own::Host(Fate::RolledBack), "later").unwrap();
        shop.once("l", second, "last-one").unwrap();
        assert_eq!(shop.told(), ["event", "last-one"], "{first:?} {second:?}");
        assert!(shop.engine.check().unwrap().findings.is_empty());
    }
}

/// A fault before any statement and behind it: when the host has rolled back, nothing is left, and the
/// event can be made again.
#[test]
fn a_fault_leaves_nothing_of_an_event() {
    let Some(server) = Server::shared() else { return };
    let shop = Shop::open(&server.place(), false);
    let env = shop.env.idempotent("k").unwrap();
    let before = dump(&shop.store);
    for fault in [Fault::Before, Fault::Behind, Fault::OfTheServer] {
        for left in 0.. {
            let mut host = Host::begin(&shop, fault, left);
            let mut joined = shop.store.join(&mut host);
            let told = env.events().trigger_in(&mut joined, &ordered("event"));
            let has_failed = host.left.is_none();
            assert_eq!(told.is_err(), has_failed, "{fault:?} {left}: {told:?}");
            if let Err(Error::Store(error)) = told {
                let is_away = matches!(error, store::Error::Unavailable { .. });
                assert_eq!(is_away, fault != Fault::OfTheServer, "{fault:?} {left}: {error:?}");
            }
            host.run("ROLLBACK");
            assert!(dump(&shop.store) == before, "{fault:?} {left} leaves something behind");
            if !has_failed {
                assert!(left > 5, "there are few statements: {left}");
                break;
            }
        }
    }
    let mut host = Host::begin(&shop, Fault::Before, usize::MAX);
    env.events().trigger_in(&mut shop.store.join(&mut host), &ordered("event")).unwrap();
    host.run("COMMIT");
    assert_eq!(shop.told(), ["event"]);
    assert!(shop.engine.check().unwrap().findings.is_empty());
}

/// The host commits although a statement of an operation has failed: what it puts and what it deletes
/// are there together.
#[test]
fn an_operation_is_in_the_transaction_as_a_whole() {
    let Some(server) = Server::shared() else { return };
    let shop = Shop::open(&server.place(), false);
    let set = |tx: &mut dyn Transaction, old: &[u8], new: &[u8]| {
        tx.put(Table::Topics, new, b"value")?;
        tx.delete(Table::Topics, old).map(|()| Decision::Commit)
    };
    shop.store.write(&mut |tx| set(tx, b"new", b"old")).unwrap();
    for fault in [Fault::Before, Fault::Behind] {
        for left in 0..6 {
            let mut host = Host::begin(&shop, fault, left);
            let mut joined = shop.store.join(&mut host);
            drop(joined.write_within(WriteScope::Everything, &mut |tx| set(tx, b"old", b"new")));
            host.run("COMMIT");
            let mut is_there = [false; 2];
            let read = shop.store.read(&mut |snapshot| {
                for (is_there, key) in is_there.iter_mut().zip([b"old", b"new"]) {
                    *is_there = snapshot.get(Table::Topics, key, &mut |_| ())?;
                }
                Ok(())
            });
            read.unwrap();
            assert_ne!(is_there[0], is_there[1], "{fault:?} {left}");
            shop.store.write(&mut |tx| set(tx, b"new", b"old")).unwrap();
        }
    }
}

/// Nobody else commits.
#[test]
fn the_keys_of_old_commits_are_removed() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let shop = Shop::open(&place, false);
    let host = &mut Host::begin(&shop, Fault::Before, usize::MAX);
    host.run("COMMIT");
    for number in 0..1_400_u32 {
        host.run("BEGIN");
        let mut joined = shop.store.join(host);
        let write = joined.write_within(WriteScope::Everything, &mut |tx| {
            let key = number.to_be_bytes();
            tx.put(Table::Topics, &key, b"value").map(|()| Decision::Commit)
        });
        write.unwrap();
        host.run("COMMIT");
    }
    let schema = place.schema();
    let kept = server.query(&format!(
        "SELECT head FROM \"{schema}\".tidings_commits GROUP BY head HAVING count(*) > 1024 + 256"
    ));
    assert_eq!(kept.len(), 0);
}

/// A statement of an event takes one round trip.
#[test]
fn an_event_takes_a_round_trip_for_each_statement() {
    let Some(server) = Server::shared() else { return };
    let proxy = Proxy::before(server.folder());
    let shop = Shop::open(&server.place(), false);
    let mut host = Host::begin(&shop, Fault::Before, usize::MAX);
    let told = shop.env.events().trigger_in(&mut shop.store.join(&mut host), &ordered("one"));
    told.unwrap();
    host.run("COMMIT");
    let statements = (usize::MAX - host.left.unwrap()) as u64;
    // The first event looks for what is left of a list without a head.
    assert_eq!(statements, 7);
    let taken = shop.runtime.block_on(async {
        let mut client = shop.client_by(&proxy.url()).await;
        let transaction = client.transaction().await.unwrap();
        let before = proxy.sent();
        let env = shop.env.clone();
        let told = shop
            .store
            .within(&transaction, move |joined| env.events().trigger_in(joined, &ordered("two")));
        told.await.unwrap();
        let taken = proxy.sent() - before;
        transaction.commit().await.unwrap();
        taken
    });
    assert!(taken <= statements, "{taken} round trips for {statements} statements");
    assert_eq!(shop.told(), ["one", "two"]);
}

/// A transaction that sees the environment as it was does not overwrite what others have changed.
#[test]
fn a_serializable_transaction_is_tried_again() {
    let Some(server) = Server::shared() else { return };
    let shop = Shop::open(&server.place(), false);
    let refused = shop.runtime.block_on(async {
        let mut client = shop.client().await;
        let begin = client.build_transaction().isolation_level(IsolationLevel::Serializable);
        let transaction = begin.start().await.unwrap();
        transaction.execute("SELECT count(*) FROM orders", &[]).await.unwrap();
        shop.env.events().trigger(&ordered("meanwhile")).unwrap();
        let env = shop.env.clone();
        let told = shop
            .store
            .within(&transaction, move |joined| env.events().trigger_in(joined, &ordered("late")));
        told.await
    });
    assert!(refused.is_err_and(|error| error.is_retryable()));
    assert_eq!(shop.told(), ["meanwhile"]);
}

/// A worker hears of the event after the commit of the host, and not before.
#[test]
fn a_worker_delivers_what_the_host_has_committed() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let store = Interposed::over(Arc::new(place.open()));
    let world = World::with(store, |it| it.entropy(OsEntropy).clock(SystemClock));
    world.workflow_of("ordered", &[email()]);
    world.active_integration("email", "mail");
    world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
    let worker = world.engine.worker().start().unwrap();

    let shop = Shop { env: world.env.clone(), ..Shop::open(&place, false) };
    shop.order("first", Fate::RolledBack).unwrap();
    shop.order("second", Fate::Committed).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while world.recorder.sent().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(worker.stop(Duration::from_secs(10)));
    assert_eq!(world.recorder.sent().len(), 1);
}

/// The engine does not see the commits of the host. Workers do the upkeep of the activity index, or calls of
/// `run_due` where there is none.
#[test]
fn the_index_of_events_is_kept_up() {
    let Some(server) = Server::shared() else { return };
    let segments = |shop: &Shop| {
        dump(&shop.store).iter().filter(|(table, ..)| *table == Table::ActivitySegments).count()
    };
    for has_worker in [false, true] {
        let place = server.place();
        let shop = Shop::of(&place, Engine::builder().activity_segments(16));
        let worker = has_worker.then(|| shop.engine.worker().start().unwrap());
        for number in 0..80 {
            let own = Own::Host(Fate::Committed);
            shop.once(&format!("k{number}"), own, &format!("event-{number}")).unwrap();
        }
        wait_until(|| {
            if !has_worker {
                shop.engine.delivery().run_due(1).unwrap();
            }
            segments(&shop) > 0
        });
        drop(worker);
        assert_eq!(shop.told().len(), 80);
        assert!(shop.engine.check().unwrap().findings.is_empty());
    }
}

/// A process that is killed in the middle of its transactions leaves whole ones.
#[test]
fn a_process_that_is_killed_leaves_orders_with_their_events() {
    let Some(server) = Server::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (place, path) = (server.place(), folder.path().join("place"));
    place.write(&path);
    let shop = Shop::open(&place, false);
    let kills: u64 = env::var("TIDINGS_KILLS").map_or(3, |kills| kills.parse().unwrap());
    let mut acknowledged = BTreeSet::new();
    for kill in 0..kills {
        let span = Duration::from_millis(20 + kill * 37 % 150);
        acknowledged.extend(work_until_killed(CHILD, &path, span));
    }
    // The server may still be about to commit what the last process has asked for.
    drop(shop.order("last", Fate::Committed));
    let orders: BTreeSet<_> = shop.orders().into_iter().collect();
    assert_eq!(orders, shop.told().into_iter().collect());
    assert!(orders.is_superset(&acknowledged));
    assert!(!acknowledged.is_empty());
    assert!(shop.engine.check().unwrap().findings.is_empty());
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Some(path) = file_of_child() else { return };
    let shop = Shop::open(&Place::read(Path::new(&path)), false);
    for number in 0.. {
        let id = format!("order-{}-{number}", std::process::id());
        let fate = if number % 3 == 0 { Fate::RolledBack } else { Fate::Committed };
        shop.order(&id, fate).unwrap();
        if fate == Fate::Committed {
            acknowledge(id);
        }
    }
}

/// What the host does with a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Committed,
    RolledBack,
}

/// The transaction of an event.
#[derive(Clone, Copy, Debug)]
enum Own {
    /// One of the event.
    Its,
    /// One of the host.
    Host(Fate),
}

/// A failure of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It does not get to the server.
    Before,
    /// The answer of the server gets lost.
    Behind,
    /// The server refuses it.
    OfTheServer,
}

/// A connection in a transaction of which a statement fails, and all behind it.
struct Host<'s> {
    shop: &'s Shop,
    client: Client,
    fault: Fault,
    /// Number of statements until the fault. `None` behind it.
    left: Option<usize>,
}

impl<'s> Host<'s> {
    fn begin(shop: &'s Shop, fault: Fault, left: usize) -> Self {
        let client = shop.runtime.block_on(shop.client());
        let host = Self { shop, client, fault, left: Some(left) };
        host.run("BEGIN");
        host
    }

    fn run(&self, statement: &str) {
        self.shop.runtime.block_on(self.client.batch_execute(statement)).unwrap();
    }

    fn ask(&self, statement: &str, params: &TypedParams) -> Result<Vec<Row>, HostError> {
        let params: Vec<_> =
            params.iter().map(|(it, of)| (&**it as &(dyn ToSql + Sync), of.clone())).collect();
        let asked = self.client.query_typed(statement, &params);
        Ok(self.shop.runtime.block_on(asked)?)
    }
}

impl HostConnection for Host<'_> {
    fn query(&mut self, statement: &str, params: TypedParams) -> Result<Vec<Row>, HostError> {
        let lost = || Err("the connection is lost".into());
        let Some(left) = self.left else { return lost() };
        self.left = left.checked_sub(1);
        match (self.left, self.fault) {
            (Some(_), _) => self.ask(statement, &params),
            (None, Fault::Before) => lost(),
            (None, Fault::Behind) => self.ask(statement, &params).and_then(|_| lost()),
            (None, Fault::OfTheServer) => self.ask("SELECT 1 / 0", &Vec::new()),
        }
    }
}

/// A host with orders in a table of its own, and a connection whose search path has nothing of the
/// store.
struct Shop {
    place: Place,
    store: PostgresStore,
    engine: Engine,
    env: Scope,
    runtime: Runtime,
}

impl Shop {
    fn open(place: &Place, seals: bool) -> Self {
        let mut builder = Engine::builder();
        if seals {
            builder = builder.sealing(Keyring::new(1, SealingKey::from_bytes([1; 32])));
        }
        Self::of(place, builder)
    }

    fn of(place: &Place, builder: Builder) -> Self {
        let store = place.open();
        let engine = builder.build(store.clone());
        let env = engine.organization("acme").unwrap().development().unwrap();
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let shop = Self { place: place.clone(), store, engine, env, runtime };
        shop.runtime.block_on(async {
            let client = shop.client().await;
            let table = "CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY)";
            client.batch_execute(table).await.unwrap();
        });
        let steps = json!([in_app()]);
        let create = json!({ "workflowId": "ordered", "name": "Ordered", "steps": steps });
        drop(shop.env.workflows().create(&parsed(create)));
        shop.env.subscribers().upsert(&parsed(json!({ "subscriberId": "ada" }))).unwrap();
        shop
    }

    /// A new connection, in a schema of the shop's own.
    async fn client(&self) -> Client {
        self.client_by(self.place.url()).await
    }

    async fn client_by(&self, url: &str) -> Client {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let schema = format!("\"shop of {}\"", self.place.schema());
        let set = format!("CREATE SCHEMA IF NOT EXISTS {schema}; SET search_path = {schema}");
        client.batch_execute(&set).await.unwrap();
        client
    }

    fn order(&self, id: &str, fate: Fate) -> tidings::Result<()> {
        self.ordered_by(id, fate, "ordered")
    }

    fn ordered_by(&self, id: &str, fate: Fate, workflow: &str) -> tidings::Result<()> {
        let create = json!({ "name": workflow, "to": "ada", "transactionId": id });
        self.runtime.block_on(async {
            let mut client = self.client().await;
            let transaction = client.transaction().await.unwrap();
            transaction.execute("INSERT INTO orders VALUES ($1)", &[&id]).await.unwrap();
            let env = self.env.clone();
            let told = self.store.within(&transaction, move |joined| {
                env.events().trigger_in(joined, &parsed(create)).map(drop)
            });
            let told = told.await;
            match fate {
                Fate::Committed => transaction.commit().await.unwrap(),
                Fate::RolledBack => transaction.rollback().await.unwrap(),
            }
            told
        })
    }

    /// Makes an event under an idempotency key.
    fn once(&self, key: &str, own: Own, id: &str) -> tidings::Result<TriggerReceipt> {
        let env = self.env.idempotent(key).unwrap();
        let Own::Host(fate) = own else { return env.events().trigger(&ordered(id)) };
        let mut host = Host::begin(self, Fault::Before, usize::MAX);
        let told = env.events().trigger_in(&mut self.store.join(&mut host), &ordered(id));
        host.run(if fate == Fate::Committed { "COMMIT" } else { "ROLLBACK" });
        told
    }

    fn orders(&self) -> Vec<String> {
        self.runtime.block_on(async {
            let query = "SELECT id FROM orders WHERE id <> 'last' ORDER BY id";
            let rows = self.client().await.query(query, &[]).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect()
        })
    }

    /// The events in the activity list, as those with records.
    fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        for page in 0.. {
            let query: NotificationQuery = parsed(json!({ "limit": 50, "page": page }));
            let list = self.env.notifications().list(&query).unwrap();
            told.extend(list.data.iter().map(|one| one.transaction_id.to_string()));
            if !list.has_more {
                break;
            }
        }
        told.retain(|id| id != "last");
        told.sort();
        told
    }
}

fn ordered(id: &str) -> Trigger {
    parsed(json!({ "name": "ordered", "to": "ada", "transactionId": id }))
}
