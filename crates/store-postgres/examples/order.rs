//! An order and its notification are committed together, in the database of a shop:
//!
//! ```sh
//! cargo run -p tidings-store-postgres --example order -- 'host=/var/run/postgresql user=postgres'
//! ```

use std::env;
use std::error::Error;

use tidings::message::MessageQuery;
use tidings::step::Step;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::Trigger;
use tidings::workflow::WorkflowCreate;
use tidings::{Engine, Scope};
use tidings_store_postgres::PostgresStore;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).ok_or("the argument is a connection string")?;
    let store = PostgresStore::open(&url)?;
    let shop = Engine::builder().build(store.clone()).organization("shop")?.production()?;
    let ordered = WorkflowCreate::new("ordered", "Ordered")?.step(Step::in_app("Thank you!")?);
    shop.workflows().upsert(&ordered)?;
    shop.subscribers().upsert(&SubscriberCreate::new("ada")?)?;
    Runtime::new()?.block_on(sell(&url, &store, &shop))
}

async fn sell(url: &str, store: &PostgresStore, shop: &Scope) -> Result<(), Box<dyn Error>> {
    let (mut client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    let orders = "CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, customer text)";
    client.batch_execute(orders).await?;
    let id = order(&mut client, store, shop, "ada").await?;
    println!(
        "order {id}: {} messages for ada",
        shop.inbox("ada")?.list(&MessageQuery::default())?.data.len()
    );
    Ok(())
}

/// Neither is there without the other, whatever fails.
async fn order(
    client: &mut Client,
    store: &PostgresStore,
    shop: &Scope,
    customer: &str,
) -> Result<i32, Box<dyn Error>> {
    let transaction = client.transaction().await?;
    let insert = "INSERT INTO orders (customer) VALUES ($1) RETURNING id";
    let id: i32 = transaction.query_one(insert, &[&customer]).await?.try_get(0)?;
    let event = format!("order-{id}");
    let ordered = Trigger::new("ordered", customer)?.transaction_id(event.as_str())?;
    // Last, because other writers of the environment wait from here on.
    let shop = shop.clone();
    store.within(&transaction, move |joined| shop.events().trigger_in(joined, &ordered)).await?;
    transaction.commit().await?;
    Ok(id)
}
