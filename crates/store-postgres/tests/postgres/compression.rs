//! Compression of large values on the server.

use std::sync::Arc;

use serde_json::{Value, json};
use testkit::interposed::Interposed;
use testkit::postgres::Server;
use testkit::world::World;
use tokio::runtime::Builder;
use tokio_postgres::NoTls;

/// A server that knows lz4 compresses by nothing else. `pg_column_compression` says so of each value.
const METHODS: &str = "
    SELECT DISTINCT pg_column_compression(value) FROM (
        SELECT value FROM tidings_entries
        UNION ALL SELECT batch FROM tidings_commits
        UNION ALL SELECT keys FROM tidings_commits
    ) AS stored WHERE pg_column_compression(value) IS NOT NULL";
const KNOWS_LZ4: &str =
    "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'";

#[test]
fn large_values_are_compressed_by_lz4() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let world = World::with(Interposed::over(Arc::new(place.open())), |it| it);
    world.in_app_workflow("order");
    let crowd: Value = (0..100).map(|number| format!("s{number}")).collect();
    world.trigger(json!({ "name": "order", "to": crowd }));

    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (knows_lz4, methods) = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(place.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let set = format!("SET search_path = \"{}\"", place.schema());
        client.batch_execute(&set).await.unwrap();
        let knows_lz4: bool = client.query_one(KNOWS_LZ4, &[]).await.unwrap().get(0);
        let rows = client.query(METHODS, &[]).await.unwrap();
        (knows_lz4, rows.iter().map(|row| row.get(0)).collect::<Vec<String>>())
    });
    assert_eq!(methods, [if knows_lz4 { "lz4" } else { "pglz" }]);
}
