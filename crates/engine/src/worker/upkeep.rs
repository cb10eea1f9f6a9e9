//! Upkeep of the activity index: by a worker, or by the triggers where there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use activity::Tended;
use domain::ids::EnvironmentId;
use parking_lot::Mutex;

use crate::guarded::guarded;
use crate::heal::healed;
use crate::{Engine, Entity, Error, Result};

// Time for which a worker leaves an environment alone whose upkeep has failed. What has failed may
// have read the whole index.
const REST: Duration = Duration::from_secs(60);

/// The upkeep of the activity index that is left to workers.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    workers: usize,
    // Environments with upkeep to do.
    left: BTreeSet<EnvironmentId>,
    // Environments whose upkeep has failed, and the ends of their rests.
    resting: BTreeMap<EnvironmentId, Instant>,
    error: Option<String>,
}

impl Upkeep {
    /// A worker starts.
    pub(super) fn join(&self) {
        self.state.lock().workers += 1;
    }

    /// A worker stops. The next trigger does the upkeep that is left.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock();
        state.workers = state.workers.saturating_sub(1);
    }

    fn take(&self) -> Option<EnvironmentId> {
        let (mut state, now) = (self.state.lock(), Instant::now());
        state.resting.retain(|_, end| *end > now);
        let next = state.left.iter().find(|one| !state.resting.contains_key(one)).copied()?;
        state.left.remove(&next);
        Some(next)
    }

    pub(crate) fn add(&self, environment: EnvironmentId) {
        self.state.lock().left.insert(environment);
    }

    // What has failed is left to be done, after a rest.
    fn put_off(&self, environment: EnvironmentId) {
        let mut state = self.state.lock();
        state.left.insert(environment);
        state.resting.insert(environment, Instant::now() + REST);
    }

    // Puts the environment of a step back if more is left, and lets it rest if the step has failed.
    fn after(&self, environment: EnvironmentId, tended: &Result<bool>) {
        match tended {
            Ok(true) => self.add(environment),
            Ok(false) => {}
            Err(_) => self.put_off(environment),
        }
    }

    /// Returns the error of the last upkeep, if it failed.
    pub(crate) fn error(&self) -> Option<String> {
        self.state.lock().error.clone()
    }
}

impl Engine {
    /// Does the upkeep of an environment after a trigger, or leaves it to a worker. The trigger is
    /// committed. After a failure the next one does the same work.
    pub(crate) fn tend_after_trigger(&self, environment: EnvironmentId) {
        if !self.activity().is_due(environment) {
            return;
        }
        let mut state = self.parts.upkeep.state.lock();
        let has_worker = state.workers > 0;
        let is_new = has_worker && state.left.insert(environment);
        drop(state);
        if is_new {
            self.parts.work_signal.notify();
        }
        // A trigger helps a worker that cannot keep up.
        if !has_worker || self.activity().is_behind(environment) {
            self.help(environment);
        }
    }

    /// Leaves the upkeep of an environment to a worker, or to
    /// [`tend_without_worker`](Self::tend_without_worker). The trigger is not committed yet, and may never be.
    pub(crate) fn tend_later(&self, environment: EnvironmentId) {
        if self.activity().is_due(environment) {
            self.parts.upkeep.add(environment);
        }
    }

    /// Does a step of the upkeep that is left, if there is no worker. The queue tells of a failure in its
    /// [figures](crate::DeliveryQueue::stats).
    pub(crate) fn tend_without_worker(&self) {
        if self.parts.upkeep.state.lock().workers == 0 {
            _ = self.tend_one();
        }
    }

    // Does the upkeep of an environment until it is not behind any more. A worker that has found this
    // thread at work has dropped the environment from the list, so what is left is put back.
    fn help(&self, environment: EnvironmentId) {
        let tended = loop {
            let tended = self.tend(environment);
            if !matches!(tended, Ok(true)) || !self.activity().is_behind(environment) {
                break tended;
            }
        };
        self.parts.upkeep.after(environment, &tended);
    }

    /// Does a step of the upkeep that is left, and makes a damaged index anew. Returns `false` if
    /// there was none. An environment whose upkeep fails rests, so that it holds up no other one.
    pub(super) fn tend_one(&self) -> Result<bool> {
        let upkeep = &self.parts.upkeep;
        let Some(environment) = upkeep.take() else { return Ok(false) };
        let tended = healed(self, environment, || self.tend(environment));
        upkeep.after(environment, &tended);
        tended.map(|_| true)
    }

    // Does a step of the upkeep of an environment, and keeps its error. Returns `false` if there was
    // none to do.
    fn tend(&self, environment: EnvironmentId) -> Result<bool> {
        let tended = guarded(self, environment, |store| self.activity().tend(store, environment));
        // There is no upkeep of what is deleted.
        let tended = match tended {
            Err(Error::NotFound { entity: Entity::Environment, .. }) => Ok(Tended::Nothing),
            tended => tended,
        };
        let error = tended.as_ref().err().map(ToString::to_string);
        // A call beside the one that does the upkeep knows nothing of its error.
        if !matches!(tended, Ok(Tended::Elsewhere)) {
            self.parts.upkeep.state.lock().error = error;
        }
        Ok(tended? == Tended::Part)
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::SubscriberId;
    use domain::notification::NotificationQuery;
    use domain::step::Step;
    use domain::trigger::{Recipients, Trigger};
    use domain::workflow::WorkflowCreate;
    use store::memory::MemoryStore;

    use super::*;
    use crate::Scope;

    // An environment with so many notifications, whose index is in memory.
    fn filled(engine: &Engine, notifications: usize) -> Scope {
        let env = engine.organization("acme").unwrap().development().unwrap();
        let greeting = WorkflowCreate::new("greeting", "Greeting").unwrap();
        env.workflows().create(&greeting.step(Step::in_app("Hello!").unwrap())).unwrap();
        let recipient = |number| SubscriberId::new(format!("s{number}")).unwrap();
        let mut trigger = Trigger::new("greeting", "ada").unwrap();
        trigger.to =
            Recipients::Many((0..notifications).map(|number| recipient(number).into()).collect());
        env.events().trigger(&trigger).unwrap();
        env.notifications().list(&NotificationQuery::default()).unwrap();
        env
    }

    /// A worker that meets a trigger in its upkeep takes nothing from it, and forgets the environment.
    #[test]
    fn a_trigger_leaves_the_rest_of_the_upkeep_to_a_worker() {
        let engine = Engine::builder().activity_segments(16).build(MemoryStore::default());
        engine.parts.upkeep.join();
        let environment = filled(&engine, 100).environment_id();
        assert!(engine.activity().is_behind(environment));
        assert_eq!(engine.parts.upkeep.take(), Some(environment));

        engine.help(environment);

        assert!(!engine.activity().is_behind(environment));
        assert_eq!(engine.parts.upkeep.take(), Some(environment));
        assert!(engine.tend(environment).unwrap(), "more is left");
        engine.parts.upkeep.add(environment);
        while engine.tend_one().unwrap() {}
        assert_eq!(engine.parts.upkeep.take(), None);
        assert!(!engine.tend(environment).unwrap());
    }
}
