//! Derived rows that cannot be read are rebuilt where they are needed.
//!
//! The activity index, the rows of outcomes and the indexes of texts follow from records. An
//! operation that comes across damage in one of them makes that one anew in its environment, and runs
//! again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::EnvironmentId;
use domain::time::Timestamp;
use parking_lot::{Mutex, ReentrantMutex};
use store::layout::{Derived, Role, TextIndex};
use store::{Table, outcomes, text_index};

use crate::guarded::guarded;
use crate::resources::notifications;
use crate::{Engine, Error, Result};

/// What an engine knows of the derived rows of environments.
#[derive(Debug, Default)]
pub(crate) struct Healing(Mutex<HashMap<EnvironmentId, Arc<Healed>>>);

/// Times of the last attempts to make the derived rows of an environment anew. A thread that makes rows anew locks it
/// first, and the activity index after it, so that two threads cannot wait for each other. The lock is
/// reentrant, because a callback of that thread may find damage as well.
pub(crate) type Healed = ReentrantMutex<RefCell<HashMap<Derived, Timestamp>>>;

impl Healing {
    /// What is known of an environment.
    pub(crate) fn of(&self, environment: EnvironmentId) -> Arc<Healed> {
        Arc::clone(self.0.lock().entry(environment).or_default())
    }
}

/// Least time between two attempts, so that damage that comes back costs no more.
const PAUSE: Duration = Duration::from_secs(60);

/// Runs `body`. If it fails for derived rows of the environment, these are rebuilt, and it runs
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
    let known = engine.parts.healing.of(environment);
    let healed = known.lock();
    // The clock may have gone back.
    let is_recent = |last: &Timestamp| *last <= now && now.since(*last) < PAUSE;
    let was_recent = healed.borrow().get(&rows).is_some_and(is_recent);
    if !was_recent {
        // An attempt that fails costs as much as one that does not.
        healed.borrow_mut().insert(rows, now);
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
            Derived::Counters | Derived::ListCounts | Derived::Lanes => ControlFlow::Continue(()),
        };
    }
    Ok(())
}

// The derived rows that an error is about, of those that an operation makes anew.
fn damaged(error: &Error) -> Option<Derived> {
    let (table, _) = error.corruption()?;
    let role = Table::named(table).map(Table::role);
    let Some(Role::Derived(rows)) = role else { return None };
    match rows {
        Derived::Activity | Derived::Outcomes | Derived::Texts(_) => Some(rows),
        Derived::Counters | Derived::ListCounts | Derived::Lanes => None,
    }
}
