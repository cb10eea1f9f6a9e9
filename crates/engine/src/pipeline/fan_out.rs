//! Chunks of a fan-out: the next recipients of an event are planned on a snapshot and notified in a
//! transaction, which moves the cursor. So each of them is notified once, whatever fails between.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::context::Context;
use domain::environment::Home;
use domain::event::Event;
use domain::ids::TransactionId;
use domain::subscriber::Subscriber;
use domain::task::{Task, TaskState};
use domain::time::Timestamp;
use domain::trigger::{AcceptedTrigger, Audience, FanOut, FanOutState, Visited};
use domain::workflow::Workflow;
use store::{ReadRecords, Snapshot, WriteRecords, layout};

use crate::pipeline::crowd::{CrowdRange, CrowdSource, Members};
use crate::pipeline::delivery::RECHECK_DELAY;
use crate::pipeline::facts::is_canceled;
use crate::pipeline::notify::notify;
use crate::pipeline::planned::PlannedRecipient;
use crate::pipeline::prepare::FirstTurns;
use crate::pipeline::trigger::find_receipt;
use crate::resources::{contexts, subscribers, workflows};
use crate::tx::{MAX_TRANSACTION_CONTENT, Reading, Tx, View};
use crate::{Engine, Result};

// Decision about the next recipients of an event.
enum Planned {
    Chunk(Box<Chunk>),
    // The workflow is paused.
    Paused,
    // The event is over.
    Over,
}

/// Next recipients of an event, planned on a snapshot.
struct Chunk {
    state: FanOutState,
    fan_out: FanOut,
    // `None` if the workflow was deleted.
    next: Option<Next>,
}

struct Next {
    named: Named,
    recipients: Vec<(Subscriber, PlannedRecipient)>,
    visited: Visited,
}

// The records that an event names, as they are now.
struct Named {
    workflow: Arc<Workflow>,
    contexts: Vec<Context>,
    actor: Option<Subscriber>,
}

/// Tells the next recipients of an event, and leaves a task for the others. Returns the number of
/// notifications, and `None` if the workflow is paused. Does nothing if the attempt was superseded.
pub(crate) fn step(engine: &Engine, leased: &Task, id: &TransactionId) -> Result<Option<usize>> {
    let (home, environment) = (leased.home(), leased.environment_id);
    let now = engine.now();
    let planned = engine.read_pure(|snapshot| {
        let view = Reading { engine, home: &home, snapshot };
        let state = view.find(&layout::fan_out_state(environment, id))?;
        let fan_out = view.find(&layout::fan_out(environment, id))?;
        let planned = state.zip(fan_out).map(|(state, fan_out)| plan(&view, state, fan_out, now));
        planned.unwrap_or(Ok(Planned::Over))
    })?;
    let chunk = match planned {
        Planned::Chunk(chunk) => Some(chunk),
        Planned::Over => None,
        Planned::Paused => return Ok(None),
    };
    // What is done under a manual clock depends on no other one.
    let is_timed = engine.parts.clock.as_manual().is_none();
    // The time of the plan is that of the transaction, so that a delay begins when its job says.
    let created = engine.write_in(&home, now, |tx| {
        let Some(task) = tx.claimed(leased)? else { return Ok(0) };
        let Some(state) = tx.find(&layout::fan_out_state(environment, id))? else {
            tx.remove(&task)?;
            end_lost(tx, id)?;
            return Ok(0);
        };
        // Two repairs at once may have left two tasks.
        let chunk = chunk.as_ref().filter(|chunk| chunk.state == state);
        if let Some(chunk) = chunk
            && chunk.has_changed(tx)?
        {
            return plan_again(tx, &task).map(|()| 0);
        }
        tx.remove(&task)?;
        chunk.map_or(Ok(0), |chunk| chunk.notify(tx, is_timed))
    })?;
    engine.tend_after_trigger(environment);
    Ok(Some(created))
}

fn plan(
    view: &Reading<'_>,
    state: FanOutState,
    fan_out: FanOut,
    now: Timestamp,
) -> Result<Planned> {
    let Some(workflow) = workflows::find_by_id(view, fan_out.workflow_id)? else {
        return Ok(Planned::Chunk(Box::new(Chunk { state, fan_out, next: None })));
    };
    if workflow.is_paused() {
        return Ok(Planned::Paused);
    }
    let contexts = contexts::known(view, &fan_out.context_keys)?;
    let actor = fan_out.actor_id.map_or(Ok(None), |id| subscribers::find_by_id(view, id))?;
    let source = CrowdSource::of(view, &fan_out.crowd)?;
    let part =
        CrowdRange { behind: state.behind, before: Some(fan_out.before), limit: state.chunk };
    let members = source.members(view, part)?;
    let audience = fan_out.trigger.accepted_audience()?;
    let named = Named { workflow, contexts, actor };
    let event = named.event(&fan_out, view.home, now);
    let (recipients, visited) = plan_members(view, members, &audience, &event)?;
    let next = Some(Next { named, recipients, visited });
    Ok(Planned::Chunk(Box::new(Chunk { state, fan_out, next })))
}

// Plans the notifications of members, up to the largest content of a chunk.
fn plan_members(
    view: &Reading<'_>,
    members: Members,
    audience: &Audience<'_>,
    event: &Event<'_>,
) -> Result<(Vec<(Subscriber, PlannedRecipient)>, Visited)> {
    let turns = FirstTurns::of(event, event.trigger.size());
    let mut visited = Visited { behind: members.behind, created: 0, filtered: 0, all: members.all };
    let ids = members.found.iter().map(|member| member.subscriber.id);
    turns.prefetch(view, ids)?;
    let mut recipients = Vec::with_capacity(members.found.len());
    let (mut content, mut last) = (0, None);
    for member in members.found {
        if content > MAX_TRANSACTION_CONTENT {
            (visited.behind, visited.all) = (last, false);
            break;
        }
        last = Some(member.subscriber.id);
        if member.is_excluded(audience) {
            continue;
        }
        let Some(topics) = member.admitted(event) else {
            visited.filtered += 1;
            continue;
        };
        let subscriber = member.subscriber;
        let first = turns.plan(view, &subscriber)?;
        let recipient = subscriber.subscriber_id.clone().into();
        let planned = PlannedRecipient { recipient, topics, first };
        content += turns.size_of(&planned);
        recipients.push((subscriber, planned));
    }
    Ok((recipients, visited))
}

// Leaves a task for another plan. Its attempt does not count.
fn plan_again(tx: &mut Tx<'_>, task: &Task) -> Result<()> {
    let TaskState::Leased { attempts, .. } = task.state else { return Ok(()) };
    let waiting = task.state.given_back(attempts, tx.now().after(RECHECK_DELAY));
    let Some(waiting) = waiting else { return Ok(()) };
    Ok(tx.replace(task, &task.with(waiting))?)
}

impl Chunk {
    // Returns `true` if a person was erased from the event since it was read, as the plan may contain the name,
    // or if its workflow is another one, which may be paused.
    fn has_changed(&self, tx: &Tx<'_>) -> Result<bool> {
        if let Some(next) = &self.next
            && !workflows::is_as_read(tx, &next.named.workflow)?
        {
            return Ok(true);
        }
        let key = layout::fan_out(self.fan_out.environment_id, &self.fan_out.transaction_id);
        Ok(tx.find(&key)?.is_some_and(|stored| stored != self.fan_out))
    }

    // Notifies the recipients of the chunk, unless the event was canceled, and stores how far it has got.
    fn notify(&self, tx: &mut Tx<'_>, is_timed: bool) -> Result<usize> {
        let begun_at = Instant::now();
        let (state, id) = (&self.state, &self.fan_out.transaction_id);
        let next = match &self.next {
            Some(next) if !is_canceled(tx, id)? => next,
            Some(_) | None => return self.end(tx, &state.canceled(tx.now())),
        };
        let mut visited = next.visited;
        visited.created = self.create_notifications(tx, next)?;
        let held = if is_timed { begun_at.elapsed() } else { Duration::ZERO };
        let after = state.behind(visited, held, tx.now());
        let created = usize::try_from(visited.created).unwrap_or_default();
        if visited.all {
            self.end(tx, &after)?;
            return Ok(created);
        }
        tx.replace(state, &after)?;
        let task = task(tx, &self.fan_out, Some(&next.named.workflow));
        tx.insert(&task)?;
        Ok(created)
    }

    // Returns the number of notifications.
    fn create_notifications(&self, tx: &mut Tx<'_>, next: &Next) -> Result<u64> {
        let event = next.named.event(&self.fan_out, tx.home, tx.now());
        let mut activity = tx.engine().activity().append(tx, tx.environment_id())?;
        let ids = next.recipients.iter().map(|(subscriber, _)| subscriber.id);
        let environment = tx.environment_id();
        let there = ids.clone().map(|id| layout::subscriber_id(environment, id).into_parts());
        let counters = ids.map(|id| layout::message_counters(environment, id).into_parts());
        tx.prefetch(&mut there.chain(counters))?;
        let mut created = 0;
        for (subscriber, planned) in &next.recipients {
            // A subscriber that was deleted since the plan gets nothing.
            if tx.contains(&layout::subscriber_id(tx.environment_id(), subscriber.id))? {
                notify(tx, &mut activity, &event, subscriber, planned)?;
                created += 1;
            }
        }
        if created > 0 {
            let id = self.fan_out.transaction_id.clone();
            let accepted = AcceptedTrigger::bare(tx.environment_id(), tx.now(), id);
            activity.finish(tx, accepted)?;
        }
        Ok(created)
    }

    fn end(&self, tx: &mut Tx<'_>, after: &FanOutState) -> Result<usize> {
        let (environment, id) = (self.fan_out.environment_id, &self.fan_out.transaction_id);
        tx.remove(&self.fan_out)?;
        tx.replace(&self.state, after)?;
        // Sweeps remove the records of events by age, also of those without notifications.
        if tx.engine().parts.settings.retention.receipts_before(tx.now()).is_some() {
            return Ok(0);
        }
        // Its notifications may have been deleted meanwhile. If there are many runs, another task goes on.
        if activity::clear_runs(tx.draft.writer, environment, id, &[])?.is_some() {
            tx.insert(&self.fan_out)?;
            let task =
                task(tx, &self.fan_out, self.next.as_ref().map(|next| &*next.named.workflow));
            tx.insert(&task)?;
        } else {
            activity::forget_if_gone(tx.draft.writer, environment, id)?;
        }
        Ok(0)
    }
}

impl Named {
    fn event<'a>(&'a self, fan_out: &'a FanOut, home: &'a Home, now: Timestamp) -> Event<'a> {
        Event {
            home,
            trigger: &fan_out.trigger,
            transaction_id: &fan_out.transaction_id,
            workflow: &self.workflow,
            contexts: &self.contexts,
            actor: self.actor.as_ref(),
            context_keys: &fan_out.context_keys,
            now,
        }
    }
}

/// Leaves a task that notifies the recipients of an event.
pub(crate) fn begin(
    tx: &mut Tx<'_>,
    fan_out: &FanOut,
    workflow: &Workflow,
    state: &FanOutState,
) -> Result<()> {
    tx.insert(fan_out)?;
    tx.insert(state)?;
    let task = task(tx, fan_out, Some(workflow));
    Ok(tx.insert(&task)?)
}

/// Ends an event whose state is lost. It is not known which recipients were notified, and none is notified
/// twice.
pub(super) fn end_lost(tx: &mut Tx<'_>, id: &TransactionId) -> Result<()> {
    let Some(fan_out) = tx.find::<FanOut>(&layout::fan_out(tx.environment_id(), id))? else {
        return Ok(());
    };
    let receipt = find_receipt(tx, id)?;
    tx.remove(&fan_out)?;
    tx.insert(&FanOutState::lost(&fan_out, receipt.as_ref(), tx.now()))?;
    Ok(())
}

/// Returns a task that notifies the next recipients of an event.
pub(super) fn task(tx: &Tx<'_>, fan_out: &FanOut, workflow: Option<&Workflow>) -> Task {
    Task::fan_out(tx.home(), (fan_out, workflow), tx.id(), tx.now())
}
