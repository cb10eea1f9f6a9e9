//! Deletion of a subscriber with what belongs to it.

use domain::ids::{EnvironmentId, InternalSubscriberId, StepId, SubscriberId, WorkflowId};
use store::{ReadRecords, Step, WriteRecords, layout};

use super::find;
use crate::Result;
use crate::resources::cascade::{Cascade, Damaged, Removed};
use crate::resources::{integrations, messages, suppressions};
use crate::tx::{Tx, View};

/// Removes the subscriber of an id with its dependents, up to the limit of one transaction: those under
/// the id and those under the ids that the engine gave, also if there is no record. A subscriber that is
/// left is marked. Returns `false` at the end if nothing was there.
pub(crate) fn removal(
    tx: &mut Tx<'_>,
    id: &SubscriberId,
    own: &[InternalSubscriberId],
    before: &Removed,
    damaged: Damaged,
) -> Result<Step<Removed, bool>> {
    let environment = tx.environment_id();
    let integrations = integrations::with_channels(tx)?;
    let steps = Steps::with_rows(tx)?;
    let mut cascade = Cascade::new(tx, before).with(damaged);
    for own in own {
        remove_own(&mut cascade, environment, *own, &steps)?;
    }
    for integration in integrations {
        integrations::remove_dependents(&mut cascade, environment, integration, Some(id))?;
    }
    let had_dependents = cascade.has_removed();
    let step = cascade.then(|tx| {
        for own in own {
            tx.delete_key(&layout::message_counters(environment, *own))?;
        }
        let Some(subscriber) = find(tx, id)? else { return Ok(had_dependents) };
        tx.remove(&subscriber)?;
        // An erasure has left hashes of them in the same transaction.
        suppressions::note(tx, id, subscriber.profile.addresses())?;
        Ok(true)
    })?;
    if step.is_more() {
        mark(tx, id)?;
    }
    Ok(step)
}

/// Marks a subscriber that is left: its preferences or its exclusions may be gone, so nothing is sent to it
/// any more.
pub(crate) fn mark(tx: &mut Tx<'_>, id: &SubscriberId) -> Result<()> {
    match find(tx, id)? {
        Some(before) => Ok(tx.replace(&before, &before.deleted(tx.now()))?),
        None => Ok(()),
    }
}

// Steps of workflows that have rows of subscribers.
struct Steps {
    buckets: Vec<(WorkflowId, StepId)>,
    slots: Vec<(WorkflowId, StepId)>,
}

impl Steps {
    // A step may have been removed from its workflow, so the rows are looked at.
    fn with_rows(view: &dyn View) -> Result<Self> {
        let environment = view.environment_id();
        let buckets = layout::digest_buckets(environment).range();
        let buckets = view.distinct(buckets, layout::step_of_bucket, |step| {
            layout::buckets_behind(environment, step)
        })?;
        let slots = layout::all_throttle_slots(environment).range();
        let slots = view.distinct(slots, layout::step_of_slot, |step| {
            layout::slots_behind(environment, step)
        })?;
        Ok(Self { buckets, slots })
    }
}

// Removes the messages, preferences and subscriptions under an id that the engine gave, and the rows of steps
// that collect events or count them.
fn remove_own(
    cascade: &mut Cascade<'_, '_>,
    environment: EnvironmentId,
    own: InternalSubscriberId,
    steps: &Steps,
) -> Result<()> {
    cascade.remove_by(&layout::message_lists(environment, own), messages::remove)?;
    // The entries of messages that could not be read.
    cascade.remove_by(&layout::message_changes(environment, own).open(), messages::remove)?;
    cascade.remove(&layout::deleted_messages(environment, own).open())?;
    cascade.remove(&layout::preferences(environment, own))?;
    cascade.remove(&layout::subscriber_subscriptions(environment, own))?;
    for (workflow, step) in &steps.buckets {
        cascade.remove(&layout::subscriber_buckets((environment, *workflow, *step), own))?;
    }
    for (workflow, step) in &steps.slots {
        cascade.remove(&layout::subscriber_slots((environment, *workflow, *step), own))?;
    }
    Ok(())
}
