//! Opening a store.

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
