//! Servers that lose commits: a replica that was behind takes over, or a backup is put back. Here, a
//! server gets back the files of an earlier time.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::Duration;

use store::{Decision, HostTransaction, Snapshot, Store, Table, Transaction, WriteScope};
use testkit::postgres::{Place, Server};
use tidings::notification::NotificationQuery;
use tidings::step::Step;
use tidings::trigger::Trigger;
use tidings::workflow::WorkflowCreate;
use tidings::{Engine, Scope};
use tidings_store_postgres::PostgresStore;
use tokio::runtime::Builder;
use tokio_postgres::NoTls;
use uuid::Uuid;

const TABLE: Table = Table::Subscribers;
const ENVIRONMENT: u128 = 7;

/// Number of commits that the server keeps, and of those that it loses.
const KEPT: u64 = 10;
const LOST: u64 = 6;

/// How a process writes behind it.
#[derive(Clone, Copy, Debug)]
enum Way {
    Own,
    InTransactionOfHost,
}

/// The process that has made the commits forgets them, and so does one that has seen them, however many
/// commits the server has got since.
#[test]
fn lost_commits_are_forgotten() {
    let Some(mut server) = Server::start() else { return };
    let place = server.place().with(|options| options.poll = Duration::from_secs(3_600));
    let first = place.open();
    (0..KEPT).for_each(|_| increment(&first, "count"));
    server.crash();
    server.keep();
    server.run();
    for (way, others) in [
        (Way::Own, 0),
        (Way::Own, LOST),
        (Way::Own, LOST + 3),
        (Way::InTransactionOfHost, LOST + 3),
    ] {
        let [writer, reader, pure] = [(); 3].map(|()| place.open());
        (0..LOST).for_each(|_| increment(&writer, "count"));
        assert_eq!([count(&reader), count_purely(&pure)], [KEPT + LOST; 2]);
        server.crash();
        server.put_back();
        server.run();
        let there = place.open();
        (0..others).for_each(|_| increment(&there, "other"));
        let seen = [count(&reader), count_purely(&pure)];
        assert_eq!(seen, [KEPT; 2], "{way:?} {others}");
        match way {
            Way::Own => increment(&writer, "count"),
            Way::InTransactionOfHost => increment_within(&place, &writer),
        }
        for store in [&writer, &reader, &there] {
            assert_eq!(count(store), KEPT + 1, "{way:?} {others}");
        }
        server.crash();
        server.put_back();
        server.run();
    }
}

/// A dump is put back while processes run, so that only the counts tell.
#[test]
fn a_count_that_goes_back_is_followed() {
    let Some(server) = Server::shared() else { return };
    for way in [Way::Own, Way::InTransactionOfHost] {
        let place = server.place();
        let tables = ["heads", "commits", "entries"];
        let each = |statement: &str| {
            let [own, kept] = [place.schema().to_owned(), format!("kept {}", place.schema())];
            let fill = |name: &&str| {
                let own = format!("\"{own}\".tidings_{name}");
                let kept = format!("\"{kept}\".tidings_{name}");
                statement.replace("OWN", &own).replace("KEPT", &kept)
            };
            tables.iter().map(fill).collect::<String>()
        };
        let first = place.open();
        (0..KEPT).for_each(|_| increment(&first, "count"));
        server.query(&format!("CREATE SCHEMA \"kept {}\"", place.schema()));
        server.query(&each("CREATE TABLE KEPT AS TABLE OWN;"));
        let [writer, reader, pure, heard] = [(); 4].map(|()| place.open());
        (0..LOST).for_each(|_| increment(&writer, "count"));
        let seen = [count(&reader), count_purely(&pure), count(&heard)];
        assert_eq!(seen, [KEPT + LOST; 3]);
        let (tell, told) = mpsc::channel();
        heard.listen(Box::new(move |keys| {
            tell.send(keys.is_none()).unwrap();
            ControlFlow::Continue(())
        }));
        server.query(&each("DELETE FROM OWN; INSERT INTO OWN SELECT * FROM KEPT;"));
        assert_eq!([count(&reader), count_purely(&pure)], [KEPT; 2], "{way:?}");
        let forgotten = || told.recv_timeout(Duration::from_secs(60)).unwrap();
        while !forgotten() {}
        match way {
            Way::Own => increment(&writer, "count"),
            Way::InTransactionOfHost => increment_within(&place, &writer),
        }
        for store in [&writer, &reader, &heard] {
            assert_eq!(count(store), KEPT + 1, "{way:?}");
        }
    }
}

/// The activity list of an engine that goes on, by an index that is in memory.
#[test]
fn the_activity_list_goes_back() {
    let Some(mut server) = Server::start() else { return };
    let place = server.place();
    let engine = || Engine::builder().build(place.open());
    let trigger = |env: &Scope, recipient: &str| {
        env.events().trigger(&Trigger::new("greeting", recipient).unwrap()).unwrap();
    };
    let found = |env: &Scope, recipient: &str| {
        let query = NotificationQuery::default().subscriber_ids([recipient]).unwrap();
        env.notifications().list(&query.limit(50)).unwrap().data.len() as u64
    };
    let env = engine().organization("acme").unwrap().development().unwrap();
    let greeting = WorkflowCreate::new("greeting", "Greeting").unwrap();
    env.workflows().create(&greeting.step(Step::in_app("Hello!").unwrap())).unwrap();
    (0..KEPT).for_each(|_| trigger(&env, "ada"));
    server.crash();
    server.keep();
    server.run();
    (0..LOST).for_each(|_| trigger(&env, "bob"));
    assert_eq!(["ada", "bob"].map(|one| found(&env, one)), [KEPT, LOST]);
    server.crash();
    server.put_back();
    server.run();
    // Others get the places of those that are lost.
    let there = engine().organization("acme").unwrap().development().unwrap();
    (0..LOST).for_each(|_| trigger(&there, "cyd"));
    for env in [&there, &env] {
        assert_eq!(["ada", "bob", "cyd"].map(|one| found(env, one)), [KEPT, 0, LOST]);
    }
    (0..LOST).for_each(|_| trigger(&env, "bob"));
    assert_eq!(["ada", "bob", "cyd"].map(|one| found(&there, one)), [KEPT, LOST, LOST]);
}

/// A body has asked for the era before it reads, when another reader finds out that commits are lost.
#[test]
fn a_body_is_of_the_era_of_what_it_reads() {
    let Some(mut server) = Server::start() else { return };
    let place = server.place().with(|options| options.patience = Duration::from_secs(60));
    let store = place.open();
    (0..KEPT).for_each(|_| increment(&store, "count"));
    server.crash();
    server.keep();
    server.run();
    (0..KEPT).for_each(|_| increment(&store, "count"));
    let (mut runs, mut eras) = (0, [0; 2]);
    let written = store.write_within(scope(), &mut |tx| {
        let before = tx.era();
        if runs == 0 {
            server.crash();
            server.put_back();
            server.run();
            assert_eq!(count(&store), KEPT);
        }
        runs += 1;
        add(tx, "count")?;
        eras = [before, tx.era()];
        Ok(Decision::Commit)
    });
    written.unwrap();
    let mut now = 0;
    let read = store.read(&mut |view| {
        now = view.era();
        Ok(())
    });
    read.unwrap();
    assert_eq!((runs, eras, count(&store)), (2, [now; 2], KEPT + 1));
}

fn increment(store: &PostgresStore, name: &str) {
    store.write_within(scope(), &mut |tx| add(tx, name)).unwrap();
}

fn increment_within(place: &Place, store: &PostgresStore) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut client, connection) = tokio_postgres::connect(place.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let transaction = client.transaction().await.unwrap();
        let added = store.within(&transaction, |joined| {
            joined.write_within(scope(), &mut |tx| add(tx, "count"))
        });
        added.await.unwrap();
        transaction.commit().await.unwrap();
    });
}

fn count(store: &PostgresStore) -> u64 {
    let mut count = 0;
    let read = store.read(&mut |view| {
        count = number(view, "count")?;
        Ok(())
    });
    read.unwrap();
    count
}

fn count_purely(store: &PostgresStore) -> u64 {
    let mut count = 0;
    let read = store.read_pure(&mut |view| {
        count = number(view, "count")?;
        Ok(())
    });
    read.unwrap();
    count
}

fn number(view: &(impl Snapshot + ?Sized), name: &str) -> store::Result<u64> {
    let mut number = 0;
    view.get(TABLE, &key(name), &mut |bytes| {
        number = u64::from_be_bytes(bytes.try_into().unwrap());
    })?;
    Ok(number)
}

fn add(tx: &mut dyn Transaction, name: &str) -> store::Result<Decision> {
    let more = number(tx, name)? + 1;
    tx.put(TABLE, &key(name), &more.to_be_bytes()).map(|()| Decision::Commit)
}

fn scope() -> WriteScope {
    WriteScope::Environment(Uuid::from_u128(ENVIRONMENT).into())
}

fn key(name: &str) -> Vec<u8> {
    [&ENVIRONMENT.to_be_bytes()[..], name.as_bytes()].concat()
}
