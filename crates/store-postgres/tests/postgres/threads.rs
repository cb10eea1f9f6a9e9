//! Transactions of a host whose runtime has few threads that may block.

use std::time::Duration;

use serde_json::json;
use testkit::postgres::Server;
use testkit::wait_until;
use testkit::world::{in_app, parsed};
use tidings::{Engine, Scope};
use tidings_store_postgres::PostgresStore;
use tokio::runtime;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, NoTls, Transaction};

/// Transactions that wait for the first one.
const WAITING: usize = 3;

/// The first transaction has the environment, and triggers again, while others wait for its commit. They
/// have no thread that it needs.
#[test]
fn transactions_that_wait_leave_threads_to_the_one_that_they_wait_for() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let store = place.open();
    let engine = Engine::builder().build(store.clone());
    let env = engine.organization("acme").unwrap().development().unwrap();
    let create = json!({ "workflowId": "ordered", "name": "Ordered", "steps": [in_app()] });
    env.workflows().create(&parsed(create)).unwrap();
    for threads in [1, 2] {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(threads)
            .enable_all()
            .build()
            .unwrap();
        let url = format!("{} application_name=threads{threads}", place.url());
        runtime.block_on(async {
            let mut client = connect(&url).await;
            let first = client.transaction().await.unwrap();
            trigger(&store, &first, &env).await;
            let others: Vec<_> =
                (0..WAITING).map(|_| order(url.clone(), store.clone(), env.clone())).collect();
            let waiting = format!(
                "SELECT count(*) > 0 FROM pg_stat_activity \
                 WHERE application_name = 'threads{threads}' AND wait_event_type = 'Lock'"
            );
            wait_until(|| server.query(&waiting) == ["t"]);
            // So that all that may have a thread have one.
            sleep(Duration::from_millis(200)).await;
            let again = trigger(&store, &first, &env);
            let again = timeout(Duration::from_secs(20), again).await;
            // Otherwise the runtime would wait for its threads.
            first.commit().await.unwrap();
            assert!(again.is_ok(), "{threads}");
            for other in others {
                other.await.unwrap();
            }
        });
    }
}

fn order(url: String, store: PostgresStore, env: Scope) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut client = connect(&url).await;
        let transaction = client.transaction().await.unwrap();
        trigger(&store, &transaction, &env).await;
        transaction.commit().await.unwrap();
    })
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn trigger(store: &PostgresStore, transaction: &Transaction<'_>, env: &Scope) {
    let (env, ordered) = (env.clone(), parsed(json!({ "name": "ordered", "to": "ada" })));
    let told = store.within(transaction, move |joined| env.events().trigger_in(joined, &ordered));
    told.await.unwrap();
}
