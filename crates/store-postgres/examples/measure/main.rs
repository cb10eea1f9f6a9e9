//! What PostgreSQL costs as a store, on a server that this program starts in a temporary folder:
//!
//! ```sh
//! cargo run --release -p tidings-store-postgres --example measure
//! ```
//!
//! Triggers in a second of one and of four processes, on one environment and on one for each, with the
//! share of the server. Triggers in a second of many callers of one process, on several environments,
//! of which another process holds some: the argument `callers` measures nothing else. Then the time of single calls over its socket, beside a file of redb, beside the
//! rows of the call written by hand, and beside the tables of a host that writes its own.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what fails in a measurement shall be seen"
)]
#![expect(clippy::cast_precision_loss, reason = "a table has few digits")]

mod by_hand;
mod callers;
mod latency;
mod same_rows;
mod throughput;

use std::env;

use testkit::postgres::Server;
use tidings::step::Step;
use tidings::subscriber::SubscriberCreate;
use tidings::workflow::WorkflowCreate;
use tidings::{Engine, Scope};

fn main() {
    let argument = env::args().nth(1);
    if let Some(path) = argument.as_ref().filter(|argument| *argument != "callers") {
        return throughput::work(path);
    }
    let server = Server::start().expect("PostgreSQL is installed");
    if argument.is_some() {
        return callers::measure(&server);
    }
    throughput::measure(&server);
    callers::measure(&server);
    latency::measure(&server);
}

/// The environment of an organization, with a workflow and subscribers.
fn prepare(engine: &Engine, organization: &str) -> Scope {
    let env = engine.organization(organization).unwrap().production().unwrap();
    for number in 0..20 {
        let name = format!("workflow-{number}");
        let step = Step::in_app("Your order {{ payload.order }} is on its way").unwrap();
        let create = WorkflowCreate::new(name.as_str(), name.as_str()).unwrap().step(step);
        env.workflows().upsert(&create).unwrap();
    }
    for number in 0..100 {
        let create = SubscriberCreate::new(subscriber(number).as_str()).unwrap();
        env.subscribers().upsert(&create).unwrap();
    }
    env
}

fn subscriber(number: u64) -> String {
    format!("subscriber-{}", number % 100)
}
