//! Preparation of triggers: their recipients and plans, decided on a snapshot before the
//! transaction.

mod changes;
mod first_turns;

use std::sync::Arc;

use domain::context::{Context, ContextSet, NamedContext};
use domain::event::Event;
use domain::ids::{TopicKey, TransactionId};
use domain::subscriber::Subscriber;
use domain::time::Timestamp;
use domain::trigger::{
    Audience, Crowd, SubscriberRecipient, TopicCounts, Trigger, TriggerReceipt, TriggerStatus,
};
use domain::workflow::Workflow;
use foldhash::HashSet;
use store::{Snapshot, layout};

use self::changes::{Changed, Changes};
pub(crate) use self::first_turns::FirstTurns;
use crate::entropy::TxRandom;
use crate::idempotency::StoredRefusal;
use crate::pipeline::crowd::{CrowdRange, CrowdSource, Member};
use crate::pipeline::planned::{
    NamedRecipient, Others, PlannedRecipient, PlannedTrigger, Prepared, ReadContext,
};
use crate::pipeline::trigger::accepted_before;
use crate::resources::{contexts, workflows};
use crate::tx::{Reading, View};
use crate::{Error, Result, Scope};

/// Preparation of the triggers of one call, in their order. Each one sees the subscribers and the
/// contexts as those before it are going to leave them.
pub(crate) struct Preparation<'r> {
    view: &'r Reading<'r>,
    random: &'r TxRandom<'r>,
    now: Timestamp,
    changes: Changes<'r>,
    /// Transaction ids of the events before this one that are going to happen.
    taken: HashSet<TransactionId>,
    /// Bytes that the notifications of the trigger have so far.
    content: usize,
}

/// Trigger of an event, and the subscribers that it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'t> {
    pub(crate) trigger: &'t Trigger,
    reach: Reach,
}

#[derive(Clone, Copy, Debug)]
enum Reach {
    // The recipients of the trigger.
    Recipients,
    // All subscribers of the environment: the trigger is that of a broadcast.
    Everybody,
}

// An event that is going to happen.
struct Upcoming<'t> {
    trigger: &'t Trigger,
    // Size of the trigger, in bytes.
    size: usize,
    audience: Audience<'t>,
    crowd: Crowd,
    workflow: Arc<Workflow>,
    receipt: TriggerReceipt,
    // `true` if the event has an id that was not made for it.
    may_be_known: bool,
}

// The records that an event names, as it leaves them.
struct Found {
    contexts: Vec<Context>,
    contexts_read: Vec<ReadContext>,
    context_keys: ContextSet,
    actor: Option<Changed<Subscriber>>,
    recipients: Vec<Changed<Subscriber>>,
}

impl<'t> Request<'t> {
    /// Returns the request for the recipients of a trigger.
    pub(crate) const fn for_recipients(trigger: &'t Trigger) -> Self {
        Self { trigger, reach: Reach::Recipients }
    }

    /// Returns the request for all subscribers of the environment.
    pub(crate) const fn for_everybody(trigger: &'t Trigger) -> Self {
        Self { trigger, reach: Reach::Everybody }
    }
}

impl Scope {
    /// Prepares the triggers of a call, which happens at `now`, on one snapshot.
    pub(crate) fn prepare<T>(
        &self,
        now: Timestamp,
        mut body: impl FnMut(&mut Preparation<'_>) -> Result<T>,
    ) -> Result<T> {
        let seed = self.engine.parts.seeds.draw(now);
        self.view(|view| body(&mut Preparation::new(view, &seed.start(), now)))
    }
}

impl<'r> Preparation<'r> {
    pub(crate) fn new(view: &'r Reading<'r>, random: &'r TxRandom<'r>, now: Timestamp) -> Self {
        let (changes, taken) = (Changes::new(view, random, now), HashSet::default());
        Self { view, random, now, changes, taken, content: 0 }
    }

    /// Prepares an event. `id` is its transaction id if it comes without one.
    ///
    /// # Errors
    ///
    /// A refusal is a result of the preparation. Other errors, such as those of the store, fail the
    /// call.
    pub(crate) fn prepare(
        &mut self,
        request: Request<'_>,
        id: Option<&TransactionId>,
    ) -> Result<Prepared> {
        let named = request.trigger.transaction_id.as_ref();
        if let Some(repeated) = named.filter(|id| self.taken.contains(*id)) {
            return Ok(Prepared::Repeated(repeated.clone()));
        }
        let planned = self.plan(request, id);
        if !matches!(planned, Ok(Prepared::Planned(_))) {
            self.changes.forget();
        }
        match planned {
            Ok(Prepared::Planned(planned)) => {
                self.changes.keep();
                self.taken.insert(planned.receipt.transaction_id.clone());
                Ok(Prepared::Planned(planned))
            }
            Ok(prepared) => Ok(prepared),
            // An event that was accepted before is not refused.
            Err(error) => match self.earlier(request.trigger, named.or(id))? {
                Some(Prepared::NothingToDo(receipt)) => Ok(Prepared::NothingToDo(receipt)),
                Some(_) | None => Ok(Prepared::Refused(StoredRefusal::of(&error).ok_or(error)?)),
            },
        }
    }

    // What the event comes to if one was accepted under this id. Returns `None` if there is none.
    fn earlier(&self, trigger: &Trigger, id: Option<&TransactionId>) -> Result<Option<Prepared>> {
        id.map_or(Ok(None), |id| accepted_before(self.view, id, &trigger.workflow))
    }

    fn plan(&mut self, request: Request<'_>, id: Option<&TransactionId>) -> Result<Prepared> {
        let trigger = request.trigger;
        let id = trigger.transaction_id.as_ref().or(id);
        let (audience, crowd) = audience(request)?;
        trigger.check_overrides()?;
        let size = self.view.engine.parts.settings.limits.check_trigger(trigger)?;
        let named = contexts::named(trigger.context.as_ref())?;
        let workflow = workflows::get_by_identifier(self.view, &trigger.workflow)?;
        workflow.check_payload(&trigger.payload)?;
        trigger.check_overridden_steps(&workflow)?;
        let transaction_id = id.cloned().map_or_else(|| transaction_id(self.random), Ok)?;
        let receipt = TriggerReceipt::of(&workflow, transaction_id);
        if receipt.status != TriggerStatus::Processed {
            return Ok(self.earlier(trigger, id)?.unwrap_or(Prepared::NothingToDo(receipt)));
        }
        let context_keys = contexts::keys(&named);
        let (contexts_read, contexts) = self.contexts(named)?;
        let found = Found {
            contexts,
            contexts_read,
            context_keys,
            actor: self.actor(trigger)?,
            recipients: self.subscribers(trigger, &audience.subscribers)?,
        };
        let ids = found.recipients.iter().map(|recipient| recipient.after.id);
        first_turns::prefetch(self.view, ids, &found.context_keys, workflow.id)?;
        // A store on a server reads these rows in the round trip of this look-up.
        if let Some(earlier) = self.earlier(trigger, id)? {
            return Ok(earlier);
        }
        let may_be_known = id.is_some();
        let upcoming = Upcoming { trigger, size, audience, crowd, workflow, receipt, may_be_known };
        self.plan_notifications(upcoming, found)
    }

    fn plan_notifications(&mut self, upcoming: Upcoming<'_>, found: Found) -> Result<Prepared> {
        let Upcoming { trigger, size, audience, crowd, workflow, mut receipt, may_be_known } =
            upcoming;
        let event = Event {
            home: self.view.home,
            trigger,
            transaction_id: &receipt.transaction_id,
            workflow: &workflow,
            contexts: &found.contexts,
            actor: found.actor.as_ref().map(|actor| &*actor.after),
            context_keys: &found.context_keys,
            now: self.now,
        };
        let turns = FirstTurns::of(&event, size);
        self.content = 0;
        let mut counted = Counted::default();
        let direct = self.direct(&audience.subscribers, found.recipients, &turns)?;
        let others = self.others(&turns, &audience, crowd, &mut counted)?;
        receipt.continues = matches!(others, Others::Crowd(_));
        (receipt.topics, receipt.missing_topics) = (counted.counts, counted.missing);
        Ok(Prepared::Planned(Box::new(PlannedTrigger {
            receipt,
            stamp: self.view.stamp(),
            may_be_known,
            workflow,
            contexts: found.contexts_read,
            context_keys: found.context_keys,
            direct,
            others,
            actor: trigger.actor.clone().zip(found.actor.map(|actor| actor.read)),
            content: self.content,
        })))
    }

    // Plans the notifications of the subscribers that the trigger names.
    fn direct(
        &mut self,
        recipients: &[&SubscriberRecipient],
        reached: Vec<Changed<Subscriber>>,
        turns: &FirstTurns<'_>,
    ) -> Result<Vec<NamedRecipient>> {
        let direct = recipients.iter().zip(reached).map(|(recipient, subscriber)| {
            let first = turns.plan(self.view, &subscriber.after)?;
            let recipient = (*recipient).clone();
            let planned = PlannedRecipient { recipient, topics: Vec::new(), first };
            self.count(turns.size_of(&planned))?;
            Ok((planned, subscriber.read))
        });
        direct.collect()
    }

    // Plans the notifications of a small crowd.
    fn others(
        &mut self,
        turns: &FirstTurns<'_>,
        audience: &Audience<'_>,
        crowd: Crowd,
        counted: &mut Counted,
    ) -> Result<Others> {
        let source = match &crowd {
            Crowd::Topics { keys } => {
                let (source, missing) = CrowdSource::topics(self.view, keys)?;
                counted.missing = missing;
                source
            }
            Crowd::Everybody => CrowdSource::Everybody,
        };
        let event = turns.event;
        let Some(members) = small_crowd(self.view, &source)? else {
            return Ok(Others::Crowd(crowd));
        };
        let ids = members.iter().map(|member| member.subscriber.id);
        turns.prefetch(self.view, ids)?;
        let mut planned_members = Vec::new();
        for member in members.into_iter().filter(|member| !member.is_excluded(audience)) {
            let read = member.subscriber.clone();
            let known = self.changes.subscriber(&member.subscriber.subscriber_id);
            let member = member.changed(known.map(|known| &*known.after));
            let Some(topics) = member.admitted(event) else {
                counted.counts.filtered += 1;
                if let Some(evidence) = self.view.engine.parts.evidence() {
                    evidence.note_filtered(|| member.filtered(event));
                }
                continue;
            };
            let first = turns.plan(self.view, &member.subscriber)?;
            let recipient = member.subscriber.subscriber_id.clone().into();
            let planned = PlannedRecipient { recipient, topics, first };
            self.count(turns.size_of(&planned))?;
            planned_members.push((read, planned));
        }
        counted.counts.created = planned_members.len();
        Ok(Others::Planned(planned_members))
    }

    // Adds the content of a notification to that of the trigger.
    fn count(&mut self, notification: usize) -> Result<()> {
        self.content += notification;
        Ok(self.view.engine.parts.settings.limits.check_content(self.content)?)
    }

    fn actor(&mut self, trigger: &Trigger) -> Result<Option<Changed<Subscriber>>> {
        let actor = trigger.actor.as_ref().map(|actor| self.changes.reach(actor));
        actor.transpose().map_err(|error| error.within("actor"))
    }

    // Returns the subscribers of recipients.
    fn subscribers(
        &mut self,
        trigger: &Trigger,
        recipients: &[&SubscriberRecipient],
    ) -> Result<Vec<Changed<Subscriber>>> {
        let environment = self.view.environment_id();
        let ids = recipients.iter().map(|recipient| recipient.subscriber_id());
        let mut keys = ids.map(|id| layout::subscriber(environment, id).into_parts());
        self.view.prefetch(&mut keys)?;
        let subscribers = recipients.iter().map(|recipient| {
            let placed = |error: Error| error.within(trigger.to.path_of(recipient));
            self.changes.reach(recipient).map_err(placed)
        });
        subscribers.collect()
    }

    // Returns the contexts that the trigger names, as they were read, and as it leaves them.
    fn contexts(&mut self, named: Vec<NamedContext>) -> Result<(Vec<ReadContext>, Vec<Context>)> {
        let contexts = named.into_iter().map(|named| {
            let changed = self.changes.name(&named)?;
            let after = Arc::unwrap_or_clone(changed.after);
            Ok((ReadContext { named, read: changed.read }, after))
        });
        contexts.collect()
    }
}

// What the receipt says about subscribers that the trigger does not name.
#[derive(Default)]
struct Counted {
    counts: TopicCounts,
    missing: Vec<TopicKey>,
}

// Returns the recipients that a trigger names, and the crowd that its event reaches besides.
fn audience(Request { trigger, reach }: Request<'_>) -> Result<(Audience<'_>, Crowd)> {
    match reach {
        Reach::Recipients => {
            let audience = trigger.audience()?;
            let keys = audience.topic_keys().cloned().collect();
            Ok((audience, Crowd::Topics { keys }))
        }
        Reach::Everybody => Ok((trigger.accepted_audience()?, Crowd::Everybody)),
    }
}

/// A new transaction id.
pub(crate) fn transaction_id(random: &TxRandom<'_>) -> Result<TransactionId> {
    Ok(TransactionId::new(format!("txn_{}", random.text(24)))?)
}

// The members of a crowd. Returns `None` if they are too many to be notified at once.
fn small_crowd(view: &dyn View, source: &CrowdSource) -> Result<Option<Vec<Member>>> {
    let mut members = Vec::new();
    if source.is_empty() {
        return Ok(Some(members));
    }
    let mut behind = None;
    loop {
        let limit = Trigger::MAX_AT_ONCE + 1 - members.len();
        let part = source.members(view, CrowdRange { behind, before: None, limit })?;
        members.extend(part.found);
        if members.len() > Trigger::MAX_AT_ONCE {
            return Ok(None);
        }
        if part.all {
            return Ok(Some(members));
        }
        behind = part.behind;
    }
}
