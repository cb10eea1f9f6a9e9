//! Deletion of environments, with everything in them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use domain::api_key::ApiKey;
use domain::convert::IntoChecked;
use domain::environment::{Environment, Home};
use domain::ids::{EnvironmentId, OrganizationId};
use serde::Serialize;
use store::removal::{self, RemovalPlace};
use store::{
    OnProgress, OnRows, Order, ReadRecords, Snapshot, Table, WriteRecords, WriteScope, if_readable,
    layout,
};

use crate::check::summed;
use crate::tx::Draft;
use crate::{Engine, Entity, Error, Organization, Progress, Result, trace};

/// Largest number of rows that one transaction looks at.
const AT_A_TIME: usize = 1_024;

/// Largest number of times that all tables are gone through. Work that was claimed before may add rows
/// behind the place that a deletion has come to.
const PASSES: u32 = 8;

/// Result of a deletion of environments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[must_use = "it says whether the deletion is finished"]
pub struct Deletion {
    /// Number of environments that are gone.
    pub environments: u64,
    /// Number of rows that were removed: records, index entries and other derived rows.
    pub rows: u64,
    /// `true` if nothing is left; `false` if `progress` has ended the deletion.
    pub is_finished: bool,
}

impl Organization {
    /// Deletes an environment with everything in it: subscribers, workflows, notifications, messages,
    /// what is waiting, keys. Nothing in it can be used from the first transaction on: its keys are
    /// unknown, [`Engine::environment`] does not find it, its name is free, and a [`Scope`](crate::Scope)
    /// that is open refuses changes. What a provider has at that moment may still be sent. Environments
    /// that derive from it have no parent any more.
    ///
    /// The records are removed in many small transactions. Other operations continue meanwhile. After an
    /// interruption the environment is listed with the time of the call as `deleted_at`, and another
    /// call goes on. `Development` and `Production` are created again when they are asked for.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::environment::EnvironmentCreate;
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// let acme = engine.organization("acme")?;
    /// let qa = acme.environments().create(&EnvironmentCreate::new("QA")?)?;
    ///
    /// let deletion = acme.delete_environment(qa.id)?;
    /// assert!(deletion.is_finished);
    /// assert!(engine.environment(qa.id).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if the organization has no such environment.
    pub fn delete_environment(&self, id: impl IntoChecked<EnvironmentId>) -> Result<Deletion> {
        self.delete_environment_with(id, |_| ControlFlow::Continue(()))
    }

    /// [`delete_environment`](Self::delete_environment) that calls `progress` after each transaction,
    /// which looks at 1,024 rows at most, and ends if `progress` breaks. The next call goes on.
    ///
    /// # Errors
    ///
    /// As [`delete_environment`](Self::delete_environment).
    pub fn delete_environment_with(
        &self,
        id: impl IntoChecked<EnvironmentId>,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Deletion> {
        let id = id.into_checked()?;
        trace::operation("organization.delete_environment", Some(id), || {
            delete(self, &|_| Ok(BTreeSet::from([id])), &mut progress)
        })
    }

    /// Deletes all environments of the organization as
    /// [`delete_environment`](Self::delete_environment) does. Returns `0` environments if it has none.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = tidings::Engine::in_memory();
    /// let acme = engine.organization("acme")?;
    /// acme.production()?;
    /// acme.development()?;
    ///
    /// assert_eq!(acme.delete()?.environments, 2);
    /// assert_eq!(engine.organizations(None)?.data, []);
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete(&self) -> Result<Deletion> {
        self.delete_with(|_| ControlFlow::Continue(()))
    }

    /// [`delete`](Self::delete) that calls `progress` after each transaction, which looks at 1,024 rows
    /// at most, and ends if `progress` breaks. The next call goes on.
    pub fn delete_with(
        &self,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Deletion> {
        trace::operation("organization.delete", None, || {
            delete(self, &|snapshot| all(snapshot, self.id()), &mut progress)
        })
    }
}

// The environments of an organization, also those whose records cannot be read. A damaged table may show
// those of others.
fn all(snapshot: &dyn Snapshot, of: &OrganizationId) -> Result<BTreeSet<EnvironmentId>> {
    let (range, mut ids) = (layout::environments(of).range(), BTreeSet::new());
    snapshot.scan_bytes(&range, Order::Ascending, None, &mut |key, _| {
        let home = layout::home_of(key).filter(|home| home.organization_id == *of);
        ids.extend(home.map(|home| home.environment_id));
        ControlFlow::Continue(())
    })?;
    Ok(ids)
}

// All environments are closed before the rows of the first one are removed.
fn delete(
    organization: &Organization,
    which: &dyn Fn(&dyn Snapshot) -> Result<BTreeSet<EnvironmentId>>,
    progress: &mut OnProgress<'_>,
) -> Result<Deletion> {
    let (engine, id) = (organization.engine(), organization.id());
    let ids = engine.write(engine.now(), |draft| {
        let ids = which(&*draft.writer)?;
        close(draft, id, &ids)?;
        Ok(ids)
    })?;
    let (mut deletion, mut seen) = (Deletion::default(), 0);
    let mut told = summed(&mut seen, progress);
    for id in &ids {
        let home = organization.home(*id);
        if clear(engine, &home, &mut deletion.rows, &mut told)?.is_break() {
            return Ok(deletion);
        }
        deletion.environments += 1;
    }
    Ok(Deletion { is_finished: true, ..deletion })
}

// Ends the use of environments.
fn close(
    draft: &mut Draft<'_>,
    organization: &OrganizationId,
    ids: &BTreeSet<EnvironmentId>,
) -> Result<()> {
    for id in ids {
        close_one(draft, &Home { organization_id: organization.clone(), environment_id: *id })?;
    }
    let all = layout::environments(organization).range();
    for other in draft.writer.readable::<Environment>(&all, Order::Ascending, usize::MAX)? {
        if other.parent_id.is_some_and(|parent| ids.contains(&parent)) {
            draft.writer.replace(&other, &other.without_parent())?;
        }
    }
    Ok(())
}

fn close_one(draft: &mut Draft<'_>, home: &Home) -> Result<()> {
    let id = home.environment_id;
    match if_readable(draft.writer.find(&layout::environment(&home.organization_id, id)))? {
        Some(None) => return Err(Error::not_found(Entity::Environment, id)),
        Some(Some(closed)) if closed.is_deleted() => return Ok(()),
        Some(Some(before)) => draft.writer.replace(&before, &before.deleted(draft.now))?,
        None => {
            let stand_in = Environment::stand_in(home, draft.random.text(12), draft.now);
            draft.writer.insert(&stand_in.deleted(draft.now))?;
        }
    }
    let keys = layout::environment_keys(id).range();
    for key in draft.writer.readable::<ApiKey>(&keys, Order::Ascending, usize::MAX)? {
        draft.writer.remove(&key)?;
    }
    Ok(())
}

// Removes the rows of a closed environment, and its record. Another caller may do the same.
fn clear(
    engine: &Engine,
    home: &Home,
    removed: &mut u64,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    let cleared = clear_rows(engine, home, removed, progress);
    // The rows go as they are, so their commits wake no future that waits for one. All are
    // woken, also if rows are left.
    engine.parts.watches.wake_all();
    cleared
}

fn clear_rows(
    engine: &Engine,
    home: &Home,
    removed: &mut u64,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    let (id, now) = (home.environment_id, engine.now());
    let mut left = None;
    for _ in 0..PASSES {
        let mut place = Some(RemovalPlace::default());
        while let Some(from) = place {
            let scope = WriteScope::Environment(id);
            let step = engine.write_within(scope, now, |draft| {
                Ok(removal::step(draft.writer, id, &from, AT_A_TIME)?)
            })?;
            *removed += step.removed;
            if progress(step.table, step.rows).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            place = step.next;
        }
        // Another call goes on while the record is there.
        engine.store().forget_history(WriteScope::Environment(id))?;
        left = engine.write(now, |draft| end(draft, home))?;
        if left.is_none() {
            engine.activity().forget(id);
            engine.parts.circuits.forget_environment(id);
            return Ok(ControlFlow::Continue(()));
        }
    }
    let table = left.unwrap_or(Table::Environments).name();
    Err(store::Error::Corrupt { table, source: "a removed row is still there".into() }.into())
}

// Removes the record of an environment without rows. Returns a table that has some.
fn end(draft: &mut Draft<'_>, home: &Home) -> Result<Option<Table>> {
    let left = removal::first_left(&*draft.writer, home.environment_id)?;
    if left.is_none() {
        let key = layout::environment(&home.organization_id, home.environment_id);
        if let Some(environment) = draft.writer.find::<Environment>(&key)? {
            draft.writer.remove(&environment)?;
        }
    }
    Ok(left)
}
