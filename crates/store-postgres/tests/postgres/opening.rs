//! Opening a store.

use std::time::Duration;

use store::{Decision, Error, Store, Table};
use testkit::postgres::Server;
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
    assert!(matches!(elsewhere, Err(Error::Backend { .. })), "{elsewhere:?}");
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
