//! Preparations in their transaction: whether what they were made from is still as it was read. If another
//! call has changed it since, the event is prepared again, from what the transaction sees.

use std::sync::Arc;

use domain::context::ContextKey;
use domain::ids::SubscriberId;
use domain::trigger::TriggerStatus;
use foldhash::HashSet;
use store::{Kept, Key, ReadKept, Record, Snapshot, layout};

use super::planned::{PlannedTrigger, Prepared, ReadContext};
use super::prepare::{Preparation, Request};
use super::trigger::accepted_before;
use crate::Result;
use crate::resources::{subscribers, workflows};
use crate::tx::{Reading, Tx, View};

/// Records that the events of a transaction name so far. What is read of them in the transaction is not what
/// was read before it, as these events have changed them.
#[derive(Debug)]
pub(crate) struct NamedRecords {
    /// The stamp of the transaction before the first event, if it had one.
    stamp: Option<u64>,
    subscribers: HashSet<SubscriberId>,
    contexts: HashSet<ContextKey>,
    /// `true` if an event was prepared again. Those behind it were prepared to come after what it was before.
    was_replanned: bool,
    /// Number of the notifications that the events have created, and the bytes of their content.
    size: (usize, usize),
}

impl NamedRecords {
    /// The records that events name in a transaction: none, before the first event.
    pub(crate) fn before_events(tx: &Tx<'_>) -> Self {
        Self {
            stamp: tx.stamp(),
            subscribers: HashSet::default(),
            contexts: HashSet::default(),
            was_replanned: false,
            size: (0, 0),
        }
    }

    /// Returns `true` if an event has named a subscriber.
    pub(crate) fn has(&self, id: &SubscriberId) -> bool {
        self.subscribers.contains(id)
    }

    /// Returns `true` if an event has named a context.
    pub(crate) fn has_context(&self, key: &ContextKey) -> bool {
        self.contexts.contains(key)
    }

    /// Number of the notifications that the events have created, and the bytes of their content.
    pub(crate) fn size(&self) -> (usize, usize) {
        self.size
    }

    /// Notes the records that an event names, and what it has created.
    pub(crate) fn add(&mut self, planned: &PlannedTrigger) {
        let (notifications, content) = planned.size();
        self.size.0 += notifications;
        self.size.1 += content;
        let direct = planned.direct.iter().map(|(direct, _)| &direct.recipient);
        let all = direct.chain(planned.actor.iter().map(|(actor, _)| actor));
        self.subscribers.extend(all.map(|recipient| recipient.subscriber_id().clone()));
        self.contexts.extend(planned.contexts.iter().map(|context| context.named.key.clone()));
    }
}

/// Returns another preparation of an event, if the first one is not that of the transaction.
pub(crate) fn prepare_again(
    tx: &Tx<'_>,
    request: Request<'_>,
    prepared: &Prepared,
    named: &mut NamedRecords,
) -> Result<Option<Prepared>> {
    if let Prepared::Planned(planned) = prepared
        && !named.was_replanned
        && planned.stamp.is_some()
        && planned.stamp == named.stamp
    {
        // The transaction has begun with what the preparation has seen, which has taken the events in front of
        // this one into account: there is nothing to compare.
        return Ok(None);
    }
    let (id, may_be_known) = match prepared {
        Prepared::Refused(_) => return Ok(None),
        // It has no effect, and so no record.
        Prepared::NothingToDo(receipt) if receipt.status != TriggerStatus::Processed => {
            return Ok(None);
        }
        Prepared::NothingToDo(receipt) => (&receipt.transaction_id, true),
        Prepared::Repeated(id) => (id, true),
        Prepared::Planned(planned) => (&planned.receipt.transaction_id, planned.may_be_known),
    };
    if may_be_known && let Some(earlier) = accepted_before(tx, id, &request.trigger.workflow)? {
        named.was_replanned |= matches!(prepared, Prepared::Planned(_));
        return Ok(Some(earlier));
    }
    if let Prepared::Planned(planned) = prepared
        && !named.was_replanned
        && is_current(tx, planned, named)?
    {
        return Ok(None);
    }
    named.was_replanned = true;
    let view = Reading { engine: tx.draft.engine, home: tx.home, snapshot: &*tx.draft.writer };
    Preparation::new(&view, tx.draft.random, tx.now()).prepare(request, Some(id)).map(Some)
}

// Returns `true` if the records that a plan was made from, and that its transaction changes or shows, are as
// they were read.
fn is_current(tx: &Tx<'_>, planned: &PlannedTrigger, named: &NamedRecords) -> Result<bool> {
    if !workflows::is_as_read(tx, &planned.workflow)? {
        return Ok(false);
    }
    let direct = planned.direct.iter().map(|(direct, read)| (&direct.recipient, read));
    let actor = planned.actor.iter().map(|(actor, read)| (actor, read));
    for (recipient, read) in direct.chain(actor) {
        let id = recipient.subscriber_id();
        let key = layout::subscriber(tx.environment_id(), id);
        if !named.has(id) && !is_as_read(tx, &key, read.as_deref())? {
            return Ok(false);
        }
    }
    for ReadContext { named: context, read } in &planned.contexts {
        let key = layout::context(tx.environment_id(), &context.key);
        if !named.has_context(&context.key) && !is_as_read(tx, &key, read.as_deref())? {
            return Ok(false);
        }
    }
    for (member, _) in planned.others.planned() {
        let id = &member.subscriber_id;
        if !named.has(id) && subscribers::find(tx, id)?.as_ref() != Some(member) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_as_read<R: Record>(tx: &Tx<'_>, key: &Key<R>, read: Option<&Kept<R>>) -> Result<bool> {
    let found = tx.find_again(key, read)?;
    Ok(match (found, read) {
        (Some(found), Some(read)) => Arc::ptr_eq(&found, read.record()),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    })
}
