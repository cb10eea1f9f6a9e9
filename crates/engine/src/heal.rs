//! Derived rows that cannot be read are made anew where they are needed.
//!
//! The activity index, the rows of outcomes and the index of addresses follow from records. An
//! operation that comes across damage in one of them makes that one anew in its environment, and runs
//! again.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use domain::ids::EnvironmentId;
use domain::time::Timestamp;
use parking_lot::Mutex;
use store::layout::{Derived, Role};
use store::{Table, addresses, outcomes};

use crate::resources::notifications;
use crate::{Engine, Error, Result};

/// Times at which the derived rows of environments were made anew.
#[derive(Debug, Default)]
pub(crate) struct Healing(Mutex<HashMap<(EnvironmentId, Derived), Timestamp>>);

/// Least time between two attempts, so that damage that comes back costs no more.
const PAUSE: Duration = Duration::from_secs(60);

/// Runs `body`. If it fails for derived rows of the environment, these are made anew, and it runs
/// once more: once for each kind of rows.
pub(crate) fn healed<T>(
    engine: &Engine,
    environment: EnvironmentId,
    mut body: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut healed = Vec::new();
    loop {
        let result = body();
        let damaged = result.as_ref().err().and_then(damaged);
        match damaged.filter(|rows| !healed.contains(rows)) {
            Some(rows) if heal(engine, environment, rows).is_ok() => healed.push(rows),
            _ => return result,
        }
    }
}

// Other threads with the same error wait for the first one.
fn heal(engine: &Engine, environment: EnvironmentId, rows: Derived) -> Result<()> {
    let now = engine.now();
    let mut healed = engine.parts.healing.0.lock();
    // The clock may have gone back.
    let is_recent = |last: &Timestamp| *last <= now && now.since(*last) < PAUSE;
    if !healed.get(&(environment, rows)).is_some_and(is_recent) {
        let (store, goes_on) = (engine.store(), &mut |_, _| ControlFlow::Continue(()));
        let _ = match rows {
            Derived::Addresses => addresses::rebuild(store, environment, goes_on)?,
            Derived::Outcomes => outcomes::rebuild(store, environment, goes_on)?,
            Derived::Activity => notifications::rebuild_activity(engine, environment, goes_on)?,
            // A repair makes these anew.
            Derived::Counters | Derived::Lanes => ControlFlow::Continue(()),
        };
        healed.insert((environment, rows), now);
    }
    Ok(())
}

// The derived rows that an error is about, of those that an operation makes anew.
fn damaged(error: &Error) -> Option<Derived> {
    let Error::Store(store::Error::Corrupt { table, .. }) = error else { return None };
    let role = Table::ALL.into_iter().find(|one| one.name() == *table).map(Table::role);
    let Some(Role::Derived(rows)) = role else { return None };
    match rows {
        Derived::Activity | Derived::Outcomes | Derived::Addresses => Some(rows),
        Derived::Counters | Derived::Lanes => None,
    }
}
