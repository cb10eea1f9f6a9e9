//! Derived rows that cannot be read are made anew where they are needed.
//!
//! The activity index, the rows of outcomes and the index of addresses follow from records. An
//! operation that comes across damage in them makes those of its environment anew, and runs again.

use std::collections::HashMap;
use std::time::Duration;

use domain::ids::EnvironmentId;
use domain::time::Timestamp;
use parking_lot::Mutex;
use store::Table;
use store::layout::{Derived, Role};

use crate::resources::notifications;
use crate::{Engine, Error, Result};

/// Times at which the derived rows of environments were made anew.
#[derive(Debug, Default)]
pub(crate) struct Healing(Mutex<HashMap<EnvironmentId, Timestamp>>);

/// Least time between two attempts, so that damage that comes back costs no more.
const PAUSE: Duration = Duration::from_secs(60);

/// Runs `body`, and once more if it fails for derived rows of the environment, which are made anew
/// before that.
pub(crate) fn healed<T>(
    engine: &Engine,
    environment: EnvironmentId,
    mut body: impl FnMut() -> Result<T>,
) -> Result<T> {
    match body() {
        Err(error) if is_derived(&error) => match heal(engine, environment) {
            Ok(()) => body(),
            Err(_) => Err(error),
        },
        result => result,
    }
}

// Other threads with the same error wait for the first one.
fn heal(engine: &Engine, environment: EnvironmentId) -> Result<()> {
    let now = engine.now();
    let mut healed = engine.parts.healing.0.lock();
    let is_recent = |last: &Timestamp| now.since(*last) < PAUSE;
    if !healed.get(&environment).is_some_and(is_recent) {
        notifications::rebuild(engine, environment)?;
        healed.insert(environment, now);
    }
    Ok(())
}

fn is_derived(error: &Error) -> bool {
    let Error::Store(store::Error::Corrupt { table, .. }) = error else { return false };
    let role = Table::ALL.into_iter().find(|one| one.name() == *table).map(Table::role);
    matches!(role, Some(Role::Derived(Derived::Activity | Derived::Outcomes | Derived::Addresses)))
}
