//! Messages that wait for an open circuit are due as soon as an integration takes them.

use domain::task::Work;
use store::{Entry, FirstEntries, Limit, WriteRecords, WriteScope, layout};

use super::circuits::{Released, Slot};
use crate::tx::MAX_TRANSACTION_CONTENT;
use crate::{Engine, Result};

// What one transaction looks at.
const AT_A_TIME: Limit = Limit { rows: 200, bytes: MAX_TRANSACTION_CONTENT };

// Number of transactions that look for messages to make due, before a claim.
const MOST_STEPS: usize = 32;

// Effect of a transaction.
struct Step {
    /// Number of messages that are due now.
    brought: usize,
    /// The last entry that was looked at, if there are others.
    next: Option<Vec<u8>>,
}

/// Makes some of the messages due that need not wait any more. If the store fails, they go on waiting until it
/// does not, and other tasks are not held up. Returns `true` if messages are due, or others may be left.
pub(super) fn bring_forward(engine: &Engine) -> bool {
    let circuits = &engine.parts.circuits;
    for _ in 0..MOST_STEPS {
        let Some((slot, released)) = circuits.take_released(engine.now()) else { return false };
        let Step { brought, next } = match step(engine, slot, &released.behind) {
            Ok(step) => step,
            Err(error) if error.is_retryable() => {
                circuits.put_back(slot, released);
                return false;
            }
            // What is damaged does not hold up the others. These messages are due later.
            Err(_) => continue,
        };
        if let Some(behind) = next {
            circuits.put_back(slot, Released { behind, ..released });
        }
        if brought > 0 {
            engine.parts.work_signal.notify();
            return true;
        }
    }
    true
}

fn step(engine: &Engine, slot: Slot, behind: &[u8]) -> Result<Step> {
    let range = layout::due_at_once(&slot.lane, slot.due_at).resumed(behind);
    let scope = WriteScope::Environment(slot.lane.environment_id);
    engine.write_within(scope, engine.now(), |draft| {
        let first = store::first_entries(draft.writer, &range, AT_A_TIME, layout::task_of)?;
        let FirstEntries { entries, next } = first;
        let mut brought = 0;
        for task in entries.into_iter().filter_map(Entry::record) {
            // A lease that ends then may be one whose provider is called.
            let state = task.state.brought_forward(slot.due_at, draft.now);
            if let (Work::Send(_), Some(state)) = (&task.work, state) {
                draft.writer.replace(&task, &task.with(state))?;
                brought += 1;
            }
        }
        Ok(Step { brought, next })
    })
}
