//! Claims: due tasks are leased, from all lanes in turn.

use std::cell::Cell;

use domain::task::{Lane, Task, TaskClass, TaskState};
use store::{ReadKept, ReadRecords, Table, WriteRecords, WriteScope, layout};

use super::claim_size::ClaimSize;
use super::lease::Leased;
use super::{due, fairness};
use crate::tx::Draft;
use crate::{Engine, Error, Result};

/// Tasks that were claimed together.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    /// The tasks, leased.
    pub(super) leased: Vec<Leased>,
    /// Lanes of tasks that were not leased, because they are leased alone.
    passed: Vec<Lane>,
    /// Number of tasks and of entries that were taken out of the queue, because they cannot be read.
    pub(super) quarantined: usize,
    /// First entry of the queue that the claim has read.
    pub(super) first: Option<Vec<u8>>,
}

/// Leases tasks that are due, no more than `size` has. A task whose last attempt has no outcome is leased
/// alone: it may end the process, and the attempts of others would count. What cannot be read is taken out
/// of the queue.
pub(super) fn claim(engine: &Engine, size: ClaimSize) -> Result<Claimed> {
    due::ensure_tasks(engine)?;
    let first = engine.parts.scheduler.next_class();
    if engine.store().runs_side_by_side() {
        claim_side_by_side(engine, size, first)
    } else {
        claim_of_all(engine, size, first)
    }
}

/// Leases a task of the class `first`, if there is one, and then tasks of one environment.
pub(super) fn claim_side_by_side(
    engine: &Engine,
    size: ClaimSize,
    first: Option<TaskClass>,
) -> Result<Claimed> {
    let first = match first {
        Some(class) => claim_first(engine, class, size)?,
        None => Claimed::default(),
    };
    let left = size.behind(&first);
    if left.tasks == 0 || first.leased.iter().any(Leased::is_alone) {
        return Ok(first);
    }
    // What is leased is done also if the others cannot be claimed.
    match claim_others(engine, left) {
        Ok(others) => Ok(first.and(others)),
        Err(error) if first.leased.is_empty() => Err(error),
        Err(_) => Ok(first),
    }
}

/// Leases at most `limit` due tasks of any kind, of all environments, in the order of their classes.
pub(super) fn claim_at_once(engine: &Engine, limit: usize) -> Result<Claimed> {
    due::ensure_tasks(engine)?;
    claim_of_all(engine, ClaimSize::new(limit, limit), None)
}

// One task of a class.
fn claim_first(engine: &Engine, class: TaskClass, size: ClaimSize) -> Result<Claimed> {
    let now = engine.now();
    if size.tasks == 0 {
        return Ok(Claimed::default());
    }
    let lanes = engine
        .read_pure(|snapshot| Ok(due::lanes_of(snapshot, class, now, fairness::LANES)?.lanes))?;
    let Some(lane) = engine.parts.scheduler.in_turn(lanes, 1).pop() else {
        return Ok(Claimed::default());
    };
    let scope = WriteScope::Environment(lane.0.environment_id);
    claim_within(engine, scope, size, |draft, claimed| due::tasks_in(draft, &[lane], 1, claimed))
}

fn claim_others(engine: &Engine, size: ClaimSize) -> Result<Claimed> {
    let now = engine.now();
    match engine.read_pure(|snapshot| fairness::due(snapshot, now))? {
        Some(due) => claim_in_turn(engine, &due, size),
        None => claim_of_all(engine, size, None),
    }
}

// From all environments, in one transaction.
fn claim_of_all(engine: &Engine, size: ClaimSize, first: Option<TaskClass>) -> Result<Claimed> {
    claim_within(engine, WriteScope::Everything, size, |draft, claimed| {
        due::tasks(draft, size.tasks, first, claimed)
    })
}

// Leases tasks that `find` finds in a transaction.
fn claim_within(
    engine: &Engine,
    scope: WriteScope,
    size: ClaimSize,
    mut find: impl FnMut(&mut Draft<'_>, &mut Claimed) -> Result<Vec<Task>>,
) -> Result<Claimed> {
    let claimed = engine.write_within(scope, engine.now(), |draft| {
        let mut claimed = Claimed::default();
        let tasks = find(draft, &mut claimed)?;
        lease_all(draft, tasks, size, &mut claimed)?;
        Ok(claimed)
    })?;
    let leased = claimed.leased.iter().map(|leased| leased.task.lane());
    engine.parts.scheduler.note(leased, &claimed.passed);
    Ok(claimed)
}

// From the first environment that still has due tasks: another process may have taken them.
fn claim_in_turn(engine: &Engine, due: &fairness::Due, size: ClaimSize) -> Result<Claimed> {
    for (environment, classes) in engine.parts.scheduler.environments_in_turn(due) {
        let scope = WriteScope::Environment(environment);
        let claimed = claim_within(engine, scope, size, |draft, claimed| {
            let mut tasks = Vec::new();
            for lanes in &classes {
                let left = size.tasks.saturating_sub(tasks.len());
                let lanes = engine.parts.scheduler.in_turn(lanes.clone(), left);
                tasks.extend(due::tasks_in(draft, &lanes, left, claimed)?);
            }
            Ok(tasks)
        })?;
        if claimed.first.is_some() {
            return Ok(claimed);
        }
    }
    Ok(Claimed::default())
}

fn lease_all(
    draft: &mut Draft<'_>,
    tasks: Vec<Task>,
    size: ClaimSize,
    claimed: &mut Claimed,
) -> Result<()> {
    let mut long = 0;
    for task in tasks {
        let alone = task.state.is_leased();
        // It is the first one of the next claim, and holds up no other one until then.
        if alone && !(size.alone && claimed.leased.is_empty()) {
            claimed.passed.push(task.lane());
            continue;
        }
        // What is short does not wait behind more tasks that are not.
        let is_long = !task.work.is_short();
        if is_long && long >= size.long {
            continue;
        }
        long += usize::from(is_long);
        claimed.leased.push(lease(draft, &task)?);
        if alone {
            break;
        }
    }
    Ok(())
}

/// Returns `true` if the store has the lease of a claim.
pub(super) fn is_kept(engine: &Engine, leased: &Leased) -> Result<bool> {
    let key = layout::task(leased.task.environment_id, leased.task.id);
    engine.read(|snapshot| Ok(snapshot.find::<Task>(&key)?.as_ref() == Some(&*leased.task)))
}

/// The error of an index of due tasks that contradicts the tasks.
pub(super) fn corrupt(what: &'static str) -> Error {
    let (table, source) = (Table::Due.name(), what.into());
    store::Error::Corrupt { table, source }.into()
}

impl Claimed {
    fn and(mut self, others: Self) -> Self {
        self.leased.extend(others.leased);
        self.quarantined += others.quarantined;
        self.first = self.first.or(others.first);
        self
    }

    pub(super) fn took_out(&mut self, entry: &[u8]) {
        self.quarantined += 1;
        self.first.get_or_insert_with(|| entry.to_vec());
    }
}

fn lease(draft: &mut Draft<'_>, before: &Task) -> Result<Leased> {
    let parts = &draft.engine.parts;
    let claim = before.state.claim(before.work.attempts(&parts.settings.retry), draft.now);
    let claim = claim.ok_or_else(|| corrupt("a task is not due"))?;
    let since = draft.now;
    let until = since.after(parts.settings.lease);
    let task = before.with(TaskState::Leased { until, attempts: claim.number() });
    draft.writer.replace(before, &task)?;
    let task = draft.writer.keep(task)?;
    let due_at = before.state.due_at().unwrap_or(since);
    Ok(Leased { task, claim, due_at, since, until, seen: Cell::new(since) })
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use domain::integration::IntegrationCreate;
    use domain::step::{Delay, Step};
    use domain::subscriber::SubscriberCreate;
    use domain::trigger::Trigger;
    use domain::vocabulary::{Channel, TimeUnit};
    use domain::workflow::WorkflowCreate;
    use store::memory::MemoryStore;

    use super::super::claim_size::BATCH;
    use super::*;
    use crate::{ManualClock, RecordingProvider};

    /// Behind a slow provider, a claim takes one message. The lane of the messages comes first.
    #[test]
    fn short_tasks_are_claimed_behind_more_long_ones_than_fit() {
        let (engine, _) = mailing();
        let env = engine.organization("acme").unwrap().development().unwrap();
        let notify = |workflow| {
            env.events().trigger(&Trigger::new(workflow, "ada").unwrap()).unwrap();
        };
        (0..4).for_each(|_| notify("mail"));
        let late = WorkflowCreate::new("late", "Late").unwrap();
        let late = late
            .step(Step::delay(Delay::lasting(1, TimeUnit::Minutes)))
            .step(Step::in_app("Hello").unwrap());
        env.workflows().create(&late).unwrap();
        (0..2).for_each(|_| notify("late"));
        engine.parts.clock.as_manual().unwrap().advance(Duration::from_secs(60));

        let claimed = claim(&engine, ClaimSize::new(BATCH, 1)).unwrap();

        let works = claimed.leased.iter().map(|leased| leased.task.work.is_short());
        assert_eq!(works.collect::<Vec<_>>(), [false, true, true]);
    }

    /// Environments are claimed one by one, behind the lane that has its turn.
    #[test]
    fn a_message_without_an_outcome_is_claimed_alone_side_by_side() {
        let (engine, _) = mailing();
        let env = engine.organization("acme").unwrap().development().unwrap();
        let size = ClaimSize::first();
        let claim = |first| claim_side_by_side(&engine, size, first).unwrap().leased;
        assert_eq!(claim(None).len(), 1);
        let other = WorkflowCreate::new("other", "Other").unwrap();
        let other = other.step(Step::email("Hello", "Hello").unwrap());
        env.workflows().create(&other).unwrap();
        env.events().trigger(&Trigger::new("other", "ada").unwrap()).unwrap();
        let lease = engine.parts.settings.lease;
        engine.parts.clock.as_manual().unwrap().advance(lease);

        let alone = |leased: Vec<Leased>| leased.iter().map(Leased::is_alone).collect::<Vec<_>>();
        assert_eq!(alone(claim(Some(TaskClass::Normal))), [false]);
        assert_eq!(alone(claim(engine.parts.scheduler.next_class())), [true]);
    }

    /// An engine with an e-mail that is due.
    pub(in crate::pipeline::delivery) fn mailing() -> (Engine, RecordingProvider) {
        let recorder = RecordingProvider::default();
        let builder = Engine::builder().clock(ManualClock::default());
        let engine = builder.default_provider(recorder.clone()).build(MemoryStore::default());
        let env = engine.organization("acme").unwrap().development().unwrap();
        env.integrations().create(&IntegrationCreate::new("ses", Channel::Email).unwrap()).unwrap();
        let mail = WorkflowCreate::new("mail", "Mail").unwrap();
        env.workflows().create(&mail.step(Step::email("Hello", "Hello").unwrap())).unwrap();
        let ada = SubscriberCreate::new("ada").unwrap().email("ada@example.org").unwrap();
        env.events().trigger(&Trigger::new("mail", ada).unwrap()).unwrap();
        (engine, recorder)
    }
}
