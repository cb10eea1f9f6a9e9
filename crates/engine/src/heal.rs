//! Derived rows that cannot be read are made anew where they are needed.
//!
//! The activity index, the rows of outcomes and the indexes of texts follow from records. An
//! operation that comes across damage in one of them makes that one anew in its environment, and runs
//! again.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::ids::EnvironmentId;
use domain::time::Timestamp;
use parking_lot::Mutex;
use store::layout::{Derived, Role, TextIndex};
use store::{Table, backfill as fill, outcomes, text_index};

use crate::guarded::guarded;
use crate::resources::notifications;
use crate::{Engine, Error, Result};

/// What an engine knows of rows that are missing or damaged.
#[derive(Debug, Default)]
pub(crate) struct Healing {
    /// Times at which the derived rows of environments were made anew.
    healed: Mutex<HashMap<(EnvironmentId, Derived), Timestamp>>,
    /// `true` if no record lacks rows that an older format did not have.
    is_filled: AtomicBool,
    /// Held while these rows are put.
    filling: Mutex<()>,
}

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

/// Returns `true` if no record lacks rows that an older format did not have. Puts these rows, if the
/// store takes writes.
pub(crate) fn is_filled(engine: &Engine) -> Result<bool> {
    Ok(!is_pending(engine)? || backfill(engine).is_ok())
}

/// Puts the rows that records of an older format lack. Other threads wait for the first one.
pub(crate) fn backfill(engine: &Engine) -> Result<()> {
    let _filling = engine.parts.healing.filling.lock();
    if is_pending(engine)? {
        while engine.write(engine.now(), |draft| Ok(fill::step(draft.writer)?))?.is_continue() {}
    }
    Ok(())
}

fn is_pending(engine: &Engine) -> Result<bool> {
    let is_filled = &engine.parts.healing.is_filled;
    if is_filled.load(Ordering::Relaxed) {
        return Ok(false);
    }
    let is_pending = engine.read(|snapshot| Ok(fill::is_pending(snapshot)?))?;
    is_filled.store(!is_pending, Ordering::Relaxed);
    Ok(is_pending)
}

// Other threads with the same error wait for the first one.
fn heal(engine: &Engine, environment: EnvironmentId, rows: Derived) -> Result<()> {
    let now = engine.now();
    let mut healed = engine.parts.healing.healed.lock();
    // The clock may have gone back.
    let is_recent = |last: &Timestamp| *last <= now && now.since(*last) < PAUSE;
    if !healed.get(&(environment, rows)).is_some_and(is_recent) {
        let goes_on = &mut |_, _| ControlFlow::Continue(());
        let _ = match rows {
            Derived::Texts(field) => guarded(engine, environment, |store| {
                text_index::rebuild(store, TextIndex { field, environment }, goes_on)
            })?,
            Derived::Outcomes => guarded(engine, environment, |store| {
                outcomes::rebuild(store, environment, goes_on)
            })?,
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
        Derived::Activity | Derived::Outcomes | Derived::Texts(_) => Some(rows),
        Derived::Counters | Derived::Lanes => None,
    }
}
