//! Rows that records of an older format lack.

use std::sync::atomic::{AtomicBool, Ordering};

use store::Step;
use store::backfill::{is_pending, step};

use crate::{Engine, Result};

/// Largest number of steps that an operation does on its way.
const STEPS: usize = 16;

/// What an engine knows of these rows.
#[derive(Debug, Default)]
pub(crate) struct Backfill {
    /// `true` if none were missing when the engine looked. A reader looks in its own view.
    was_done: AtomicBool,
}

/// Puts some of these rows, or all of those that are left. A store that takes no writes goes without
/// them. So does one that runs bodies of different environments side by side, until a repair: a
/// transaction about all environments would hold them up, and wait for the slowest.
pub(crate) fn put_some(engine: &Engine) -> Result<()> {
    let was_done = &engine.parts.backfill.was_done;
    if was_done.load(Ordering::Relaxed) || engine.store().runs_side_by_side() {
        return Ok(());
    }
    let is_pending = engine.read(|snapshot| Ok(is_pending(snapshot)?))?;
    was_done.store(!is_pending, Ordering::Relaxed);
    for _ in (0..STEPS).filter(|_| is_pending) {
        if !matches!(put_next(engine), Ok(Step::More(()))) {
            break;
        }
    }
    Ok(())
}

/// Puts the next of these rows.
pub(crate) fn put_next(engine: &Engine) -> Result<Step> {
    store::write(engine.store(), |txn| Ok(step(txn)?))
}
