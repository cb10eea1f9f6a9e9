//! An order and its notification, never one without the other: `cargo run --example outbox`.
//!
//! A host application with a database of its own cannot write into it and into the engine in one
//! transaction. So it writes the trigger as a row of an outbox table, in the transaction that
//! writes the order. A relay hands the rows to the engine, and removes each one behind that:
//!
//! * An order that was committed has its row, so its event is triggered, however often the process
//!   is killed. An order that was rolled back has no row.
//! * A relay that is killed between the trigger and the removal triggers the event again. The row
//!   has the transaction id, so the engine returns the first receipt, and nothing happens twice.
//! * Each event is triggered exactly once. Each message is sent at least once, under one
//!   idempotency key for all attempts.
//! * An event that the engine refuses, such as one of a workflow that is not there, goes to a table of its
//!   own with the reason, and holds up no other one. A failure of the store ends the round.
//!
//! The engine remembers a transaction id for as long as it has notifications of the event. A relay
//! should not be further behind than `delete_before` reaches.
//!
//! The database is redb here. With SQL, the tables are
//! `CREATE TABLE outbox (id INTEGER PRIMARY KEY, trigger TEXT NOT NULL)` and the like.

use redb::{Database, ReadableDatabase, TableDefinition, backends};
use serde_json::json;
use tidings::step::Step;
use tidings::trigger::{Trigger, TriggerReceipt};
use tidings::workflow::WorkflowCreate;
use tidings::{Engine, Scope};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const ORDERS: TableDefinition<'_, u64, &str> = TableDefinition::new("orders");
const OUTBOX: TableDefinition<'_, u64, &str> = TableDefinition::new("outbox");
/// Events that the engine has refused, with the reason.
const REFUSED: TableDefinition<'_, u64, (&str, &str)> = TableDefinition::new("refused");

/// Rows that a relay reads at once.
const PAGE: usize = 100;

/// Takes an order: its row and that of its event are in one transaction of the host's database.
fn order(database: &Database, number: u64, who: &str) -> Result<()> {
    let shipped = Trigger::new("order-shipped", who)?
        .payload(json!({ "order": number }))?
        .transaction_id(format!("order-shipped-{number}"))?;
    let transaction = database.begin_write()?;
    transaction.open_table(ORDERS)?.insert(number, who)?;
    transaction.open_table(OUTBOX)?.insert(number, &*serde_json::to_string(&shipped)?)?;
    Ok(transaction.commit()?)
}

/// Triggers the events of the outbox, and removes their rows. Returns the number of events that were triggered.
/// A host calls this in a loop, from one thread or several.
fn relay(database: &Database, env: &Scope) -> Result<usize> {
    let (mut triggered, mut next) = (0, 0);
    loop {
        let page = waiting(database, next)?;
        let Some((last, _)) = page.last() else { return Ok(triggered) };
        next = last + 1;
        for (number, event) in page {
            match trigger(env, &event) {
                // Killed here, the relay triggers the event again, and nothing happens.
                Ok(receipt) if receipt.is_processed() => {
                    remove(database, number)?;
                    triggered += 1;
                }
                // The event waits while its workflow is inactive.
                Ok(_) => {}
                Err(error @ tidings::Error::Store(_)) => return Err(error.into()),
                Err(refusal) => set_aside(database, number, &refusal.to_string())?,
            }
        }
    }
}

fn trigger(env: &Scope, event: &str) -> tidings::Result<TriggerReceipt> {
    env.events().trigger(&tidings::json::read(event.as_bytes())?)
}

fn waiting(database: &Database, from: u64) -> Result<Vec<(u64, String)>> {
    let outbox = database.begin_read()?.open_table(OUTBOX)?;
    let rows = outbox.range(from..)?.take(PAGE);
    rows.map(|row| row.map(|(number, event)| (number.value(), event.value().into())))
        .collect::<Result<_, _>>()
        .map_err(Into::into)
}

fn remove(database: &Database, number: u64) -> Result<()> {
    let transaction = database.begin_write()?;
    transaction.open_table(OUTBOX)?.remove(number)?;
    Ok(transaction.commit()?)
}

/// Moves an event that was refused to the table that an operator looks at.
fn set_aside(database: &Database, number: u64, reason: &str) -> Result<()> {
    let transaction = database.begin_write()?;
    if let Some(event) = transaction.open_table(OUTBOX)?.remove(number)? {
        transaction.open_table(REFUSED)?.insert(number, (event.value(), reason))?;
    }
    Ok(transaction.commit()?)
}

fn open(engine: &Engine) -> Result<(Database, Scope)> {
    let database = Database::builder().create_with_backend(backends::InMemoryBackend::new())?;
    let transaction = database.begin_write()?;
    transaction.open_table(ORDERS)?;
    transaction.open_table(OUTBOX)?;
    transaction.open_table(REFUSED)?;
    transaction.commit()?;
    let env = engine.organization("shop")?.development()?;
    let text = "Order {{ payload.order }} is on its way.";
    let shipped = WorkflowCreate::new("order-shipped", "Order shipped")?.step(Step::in_app(text)?);
    env.workflows().create(&shipped)?;
    Ok((database, env))
}

fn main() -> Result<()> {
    let (database, env) = open(&Engine::in_memory())?;
    order(&database, 1001, "ada")?;
    order(&database, 1002, "bob")?;
    println!("{} events were triggered.", relay(&database, &env)?);
    println!("{} are left.", waiting(&database, 0)?.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use testkit::interposed::Interposed;
    use tidings::message::MessageQuery;
    use tidings::workflow::WorkflowUpdate;

    use super::*;

    fn told(env: &Scope, who: &str) -> usize {
        let Ok(inbox) = env.inbox(who).unwrap().list(&MessageQuery::default()) else { return 0 };
        inbox.data.len()
    }

    // At most a page.
    fn left(database: &Database) -> usize {
        waiting(database, 0).unwrap().len()
    }

    #[test]
    fn runs() {
        main().unwrap();
    }

    #[test]
    fn an_order_that_is_rolled_back_has_no_event() {
        let (database, env) = open(&Engine::in_memory()).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(OUTBOX).unwrap().insert(1, "{}").unwrap();
        transaction.abort().unwrap();
        assert_eq!(relay(&database, &env).unwrap(), 0);
    }

    #[test]
    fn a_relay_that_is_killed_before_it_removes_a_row_tells_nobody_twice() {
        let (database, env) = open(&Engine::in_memory()).unwrap();
        order(&database, 1, "ada").unwrap();
        for (_, event) in waiting(&database, 0).unwrap() {
            trigger(&env, &event).unwrap();
        }
        assert_eq!((told(&env, "ada"), left(&database)), (1, 1));

        assert_eq!(relay(&database, &env).unwrap(), 1);

        assert_eq!((told(&env, "ada"), left(&database)), (1, 0));
        assert_eq!(relay(&database, &env).unwrap(), 0);
    }

    #[test]
    fn an_event_that_is_refused_holds_up_no_other_one() {
        let (database, env) = open(&Engine::in_memory()).unwrap();
        let write = |number, event: &Trigger| {
            let transaction = database.begin_write().unwrap();
            let text = serde_json::to_string(event).unwrap();
            transaction.open_table(OUTBOX).unwrap().insert(number, &*text).unwrap();
            transaction.commit().unwrap();
        };
        let update = WorkflowUpdate::default().active(false);
        env.workflows().create(&WorkflowCreate::new("paused", "Paused").unwrap()).unwrap();
        env.workflows().update("paused", &update).unwrap();
        for number in 0..150 {
            write(number, &Trigger::new("paused", "ada").unwrap());
        }
        write(150, &Trigger::new("order-shiped", "ada").unwrap());
        order(&database, 1_001, "ada").unwrap();

        assert_eq!(relay(&database, &env).unwrap(), 1);

        assert_eq!((told(&env, "ada"), left(&database)), (1, PAGE));
        let refused = database.begin_read().unwrap().open_table(REFUSED).unwrap();
        let row = refused.get(150).unwrap().unwrap();
        assert!(row.value().1.contains("order-shiped"), "{}", row.value().1);
    }

    /// Also one after which the store has to be opened again, which no call outlives.
    #[test]
    fn a_failure_of_the_store_is_no_refusal() {
        let store = Interposed::default();
        let (database, env) = open(&Engine::builder().build(store.clone())).unwrap();
        for number in [1, 2] {
            order(&database, number, "ada").unwrap();
        }

        store.kill();
        relay(&database, &env).unwrap_err();

        assert_eq!(left(&database), 2);
        assert!(store.recover());
        assert_eq!(relay(&database, &env).unwrap(), 2);
    }
}
