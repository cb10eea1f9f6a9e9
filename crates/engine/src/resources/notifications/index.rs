//! The indexes of the activity list: comparing them with the notifications, and making them anew.

use std::ops::ControlFlow;

use activity::IndexCheck;
use domain::ids::EnvironmentId;
use store::layout::{SearchedField, TextIndex};
use store::{OnRows, Snapshot, letters, outcomes, text_index};

use super::Notifications;
use crate::check::{IndexRebuild, summed};
use crate::guarded::guarded;
use crate::resources::environments;
use crate::{Engine, Entity, Error, Progress, Result};

impl Notifications<'_> {
    /// Compares the index of the activity list with all notifications, on one snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], if a part of the index or a notification cannot be read at all: in the first case
    /// [`rebuild_index`](Self::rebuild_index) helps. [`Error::NotFound`], if the environment is deleted.
    pub fn check_index(&self) -> Result<IndexCheck> {
        self.check_index_with(|_| ControlFlow::Continue(()))
    }

    /// [`check_index`](Self::check_index) that calls `progress` after each 61,440 notifications at most,
    /// and ends if `progress` breaks. The disagreements are those so far.
    ///
    /// # Errors
    ///
    /// As [`check_index`](Self::check_index).
    pub fn check_index_with(
        &self,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<IndexCheck> {
        let (engine, environment) = (&self.scope.engine, self.scope.environment_id());
        let check = |snapshot: &dyn Snapshot| {
            if !environments::is_there(engine, snapshot, &self.scope.home)? {
                return Err(Error::not_found(Entity::Environment, environment));
            }
            let mut rows = 0;
            let mut told = summed(&mut rows, &mut progress);
            Ok(engine.activity().check(snapshot, environment, &mut told)?)
        };
        self.scope.operation("notifications.check_index", || engine.read(check))
    }

    /// Rebuilds the index of the activity list from the notifications. Lists use the old index
    /// meanwhile, and triggers continue. The index of e-mail addresses, for searches by a part of one, is
    /// rebuilt in transactions of 500 subscribers, the rows of outcomes in one for each 1,024
    /// notifications, and the index of dead letters in one for each 500.
    /// [`repair`](Engine::repair) rebuilds the index of names.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], if a notification cannot be read; [`Error::NotFound`], if the environment is
    /// deleted.
    pub fn rebuild_index(&self) -> Result<IndexRebuild> {
        self.rebuild_index_with(|_| ControlFlow::Continue(()))
    }

    /// [`rebuild_index`](Self::rebuild_index) that calls `progress` after each transaction, in the index of
    /// the activity list after each 61,440 notifications at most, and ends if `progress` breaks. Lists go
    /// on with the old index then, and the next call begins anew.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::ops::ControlFlow;
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// let rebuild = env.notifications().rebuild_index_with(|at| {
    ///     println!("{} {}", at.table, at.rows);
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert!(rebuild.is_finished);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`rebuild_index`](Self::rebuild_index).
    pub fn rebuild_index_with(
        &self,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<IndexRebuild> {
        let (engine, environment) = (&self.scope.engine, self.scope.environment_id());
        self.scope.operation("notifications.rebuild_index", || {
            self.scope.view(|view| environments::check_there(view))?;
            let mut rows = 0;
            let next = rebuild(engine, environment, &mut summed(&mut rows, &mut progress))?;
            Ok(IndexRebuild { rows, is_finished: next.is_continue() })
        })
    }
}

/// Makes the indexes of the activity list of an environment anew.
pub(crate) fn rebuild(
    engine: &Engine,
    environment: EnvironmentId,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    // Damage that `progress` finds is mended on this thread.
    let healed = engine.parts.healing.of(environment);
    let _turn = healed.lock();
    let emails = TextIndex { field: SearchedField::Email, environment };
    let next = guarded(engine, environment, |store| {
        if text_index::rebuild(store, emails, progress)?.is_break()
            || outcomes::rebuild(store, environment, progress)?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        letters::rebuild(store, environment, progress)
    });
    if next?.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    rebuild_activity(engine, environment, progress)
}

/// Makes the activity index of an environment anew.
pub(crate) fn rebuild_activity(
    engine: &Engine,
    environment: EnvironmentId,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    guarded(engine, environment, |store| {
        let next = engine.activity().rebuild(store, environment, progress);
        // Removes what a rebuild that was ended or has failed has left. If the index that stays in use is
        // damaged, this may fail, and the next upkeep removes the remainder.
        let tended = engine.activity().tend_all(store, environment);
        if next.as_ref().is_ok_and(ControlFlow::is_continue) {
            tended?;
        }
        next
    })
}
