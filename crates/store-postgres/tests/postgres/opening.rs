//! Opening a store.

use std::net::{TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use store::{Decision, Error, Store, Table, Transaction};
use testkit::postgres::Server;
use testkit::proxy::Proxy;
use tidings::Engine;
use tidings::subscriber::{SubscriberCreate, SubscriberQuery};
use tidings_store_postgres::{PostgresOptions, PostgresStore};

/// A role that may do anything in its schema, and create none.
#[test]
fn a_schema_that_is_there_needs_no_right_to_create_one() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let schema = place.schema();
    server
        .query(&format!("CREATE ROLE clerk LOGIN; CREATE SCHEMA \"{schema}\" AUTHORIZATION clerk"));
    let url = place.url().replace("user=postgres", "user=clerk");
    let put = |store: &PostgresStore| {
        store.write(&mut |tx| tx.put(Table::Topics, b"key", b"value").map(|()| Decision::Commit))
    };
    for _ in 0..2 {
        put(&place.clone().through(&url).open()).unwrap();
    }
    let elsewhere = PostgresStore::open_with(&url, &PostgresOptions::default());
    assert!(matches!(elsewhere, Err(Error::Refused { .. })), "{elsewhere:?}");
}

/// The server would take another schema, or none.
#[test]
fn a_name_that_is_no_schema_is_refused() {
    let Some(server) = Server::shared() else { return };
    let open = |name: &str| {
        let options = PostgresOptions::default().schema(name).patience(Duration::ZERO);
        PostgresStore::open_with(server.place().url(), &options)
    };
    for name in ["", "$user", "a\0b", &"x".repeat(64), &"ß".repeat(32)] {
        let refused = open(name);
        let is_named = |error: &Error| error.to_string().contains("the name of a schema");
        assert!(refused.is_err_and(|error| is_named(&error)), "{name:?}");
    }
    for name in ["$users", "a\"b.c; --", &"x".repeat(63), &format!("{}x", "ß".repeat(31))] {
        assert!(open(name).is_ok(), "{name:?}");
    }
}

/// Another try does not help.
#[test]
fn a_connection_string_that_lacks_a_host_is_refused_at_once() {
    let options = PostgresOptions::default().patience(Duration::from_secs(60));
    let refused = PostgresStore::open_with("user=postgres dbname=postgres", &options);
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
}

/// The text of an error says what the server says.
#[test]
fn an_error_has_the_message_of_the_server() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let text = |url: &str| {
        let options = PostgresOptions::default().patience(Duration::ZERO);
        PostgresStore::open_with(url, &options).unwrap_err().to_string()
    };
    let unknown = text(&place.url().replace("user=postgres", "user=nobody-of-that-name"));
    assert!(unknown.contains("nobody-of-that-name"), "{unknown}");
    let nowhere = text("host=/nowhere user=postgres");
    assert!(nowhere.contains("No such file"), "{nowhere}");
    let store = place.open();
    server.query(&format!("ALTER TABLE \"{}\".tidings_heads RENAME TO gone", place.schema()));
    let write =
        store.write(&mut |tx| tx.put(Table::Topics, b"key", b"value").map(|()| Decision::Commit));
    let error = write.unwrap_err().to_string();
    assert!(error.contains("tidings_heads") && error.contains("42P01"), "{error}");
}

/// The server counts milliseconds, by 32 bits.
#[test]
fn a_timeout_may_be_of_any_length() {
    let Some(server) = Server::shared() else { return };
    for timeout in [Duration::from_secs(3 << 20), Duration::from_secs(u64::MAX)] {
        let place = server.place().with(|options| {
            options.timeout = timeout;
            options.patience = Duration::ZERO;
        });
        assert!(place.open().read(&mut |_| Ok(())).is_ok(), "{timeout:?}");
    }
}

/// Processes that start together on an empty database: each of them creates what it does not find.
#[test]
fn processes_create_a_schema_together() {
    const PROCESSES: usize = 6;

    let Some(server) = Server::shared() else { return };
    for _ in 0..5 {
        let (place, begin) = (server.place(), Barrier::new(PROCESSES));
        thread::scope(|scope| {
            for number in 0..PROCESSES {
                let (place, begin) = (&place, &begin);
                scope.spawn(move || {
                    begin.wait();
                    let engine = Engine::builder().build(place.open());
                    let organization = engine.organization(format!("o{number}")).unwrap();
                    organization.development().unwrap();
                });
            }
        });
        let engine = Engine::builder().build(place.open());
        assert_eq!(engine.organizations(None).unwrap().data.len(), PROCESSES);
    }
}

/// A store of the first format has no entries of telephone numbers and names. Lists go without them: to put
/// them locks all environments.
#[test]
fn a_store_of_the_first_format_gets_what_it_lacks() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let engine = Engine::builder().build(place.open());
    let env = engine.organization("acme").unwrap().development().unwrap();
    let ada = SubscriberCreate::new("ada").unwrap().first_name("Ada").phone("+1");
    env.subscribers().create(&ada).unwrap();
    drop((env, engine));
    let of = |name: &str| format!("\"{}\".tidings_{name}", place.schema());
    let (entries, tables, format) = (of("entries"), of("tables"), of("format"));
    server.query(&format!(
        "DELETE FROM {entries} USING {tables} WHERE tbl = id
            AND name IN ('subscriber_phones', 'names');
        DELETE FROM {tables} WHERE name IN ('subscriber_phones', 'names', 'backfills');
        UPDATE {format} SET format = 1"
    ));
    let processes = [(); 2].map(|()| Engine::builder().build(place.open()));
    for engine in &processes {
        let env = engine.organization("acme").unwrap().development().unwrap();
        let query = SubscriberQuery::default();
        for query in [query.clone().phone("+1"), query.name("AD")] {
            assert_eq!(env.subscribers().list(&query).unwrap().data.len(), 1);
        }
        assert_eq!(engine.check().unwrap().findings, []);
    }
    assert_eq!(server.query(&format!("SELECT format FROM {format}")), ["2"]);
    let lacking =
        format!("SELECT count(*) FROM {entries}, {tables} WHERE tbl = id AND name = 'backfills'");
    for (repairs, expected) in [(false, "1"), (true, "0")] {
        if repairs {
            assert!(processes[0].repair().unwrap().is_finished);
        }
        assert_eq!(server.query(&lacking), [expected]);
    }
    for engine in &processes {
        let env = engine.organization("acme").unwrap().development().unwrap();
        let query = SubscriberQuery::default().name("AD");
        assert_eq!(env.subscribers().list(&query).unwrap().data.len(), 1);
        assert_eq!(engine.check().unwrap().findings, []);
    }
}

/// A newer version may have other entries.
#[test]
fn a_store_of_a_newer_format_is_refused() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    drop(place.open());
    server.query(&format!("UPDATE \"{}\".tidings_format SET format = 99", place.schema()));
    let opened = PostgresStore::open_with(place.url(), place.options());
    assert!(matches!(opened, Err(Error::NewerFormat { found: 99, .. })), "{opened:?}");
}

/// A pooler that gives each transaction another connection loses the search path. The relations would be in
/// a schema of others.
#[test]
fn a_connection_without_its_settings_is_refused() {
    let Some(server) = Server::shared() else { return };
    let proxy = Proxy::before(server.folder());
    let place = server.place().through(&proxy.url());
    proxy.lose_settings();
    let opened = PostgresStore::open_with(place.url(), place.options());
    let error = opened.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(why.contains("pooler"), "{why}");
    let elsewhere = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(server.query(elsewhere), [""; 0]);
}

/// An address that drops what comes takes its share of the time, and then the next one is asked.
#[test]
fn an_address_that_does_not_answer_is_passed() {
    let Some(server) = Server::shared() else { return };
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = deaf.local_addr().unwrap();
    // Nobody accepts them, and there is no room for more.
    let mut waiting = Vec::new();
    while let Ok(client) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        waiting.push(client);
    }
    let folder = server.folder().display();
    let url = format!(
        "host=127.0.0.1,{folder} port={},5432 user=postgres dbname=postgres",
        address.port()
    );
    let place = server.place().with(|options| options.timeout = Duration::from_secs(3));
    let store = place.through(&url).open();
    let put = |tx: &mut dyn Transaction| tx.put(Table::Topics, b"key", b"value");
    store.write(&mut |tx| put(tx).map(|()| Decision::Commit)).unwrap();
}
