//! Rows that records of an older format lack.

use std::ops::ControlFlow;

use store::backfill::{is_pending, step};

use crate::{Engine, Result};

/// Largest number of steps that an operation does on its way.
const STEPS: usize = 16;

/// Puts some of these rows, or all of those that are left. A store that takes no writes goes without
/// them.
pub(crate) fn some(engine: &Engine) -> Result<()> {
    if engine.read(|snapshot| Ok(is_pending(snapshot)?))? {
        let mut steps = (0..STEPS).map(|_| next(engine));
        _ = steps.find(|next| !matches!(next, Ok(ControlFlow::Continue(()))));
    }
    Ok(())
}

/// Puts the next of these rows. Breaks if none are left.
pub(crate) fn next(engine: &Engine) -> Result<ControlFlow<()>> {
    store::write(engine.store(), |txn| Ok(step(txn)?))
}
