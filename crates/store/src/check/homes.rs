//! Steps through the environments, to find those whose own record or key of unsubscribe links is gone.

use std::ops::{Bound, ControlFlow};

use domain::environment::Home;
use domain::ids::{EnvironmentId, OrganizationId};

use super::derived::{bytes_of, next_environment};
use super::rows::some_rows;
use super::{Fix, PassStep, Problem};
use crate::layout::{self, Role, Target};
use crate::{Order, ReadRecords, Result, Snapshot, Table};

/// Looks for the record of each environment that has records of other kinds, or an entry that says where
/// its record was.
pub(super) fn homes(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<PassStep> {
    const ENVIRONMENTS: usize = 64;
    let of_records: Vec<Table> = Table::ALL.into_iter().filter(has_records_within).collect();
    let (mut step, mut passed) = (PassStep::default(), behind.map(<[u8]>::to_vec));
    for _ in 0..ENVIRONMENTS {
        let by_records = next_environment(snapshot, &of_records, passed.as_deref())?;
        let by_id = next_environment(snapshot, &[Table::EnvironmentIds], passed.as_deref())?;
        let Some(id) = by_records.into_iter().chain(by_id).min() else { return Ok(step) };
        if !has_record(snapshot, id)? {
            let lost = || Home { organization_id: OrganizationId::repaired(), environment_id: id };
            let home = home_by_id(snapshot, id)?;
            if let Some(home) = home.or_else(|| (by_records == Some(id)).then(lost)) {
                let key = layout::environment(&home.organization_id, id).as_bytes().to_vec();
                step.found(Table::Environments, &key.clone(), Problem::Gone, Fix::StandIn(key));
            }
        }
        passed = Some(bytes_of(id).to_vec());
    }
    step.next = passed;
    Ok(step)
}

/// Looks for the key of the unsubscribe links of each environment.
pub(super) fn link_keys(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<PassStep> {
    let (rows, next) = some_rows(snapshot, Table::Environments, behind)?;
    let mut step = PassStep { rows: rows.len() as u64, next, ..PassStep::default() };
    for home in rows.iter().filter_map(|row| layout::home_of(&row.key)) {
        let key = layout::link_key(home.environment_id);
        if !snapshot.contains(&key)? {
            let fix = Fix::LinkKey(home.environment_id);
            step.found(key.table(), key.as_bytes(), Problem::Gone, fix);
        }
    }
    Ok(step)
}

// Returns `true` if the keys of the table begin with an environment, and lead to records in it.
fn has_records_within(table: &Table) -> bool {
    let id = bytes_of(EnvironmentId::from(uuid::Uuid::nil()));
    let begins = layout::prefix_of_environment(*table, &id).is_some();
    table.role() == Role::Records && begins
}

// Where the record is by the index of environments. Returns `None` if its entry is missing or damaged.
fn home_by_id(snapshot: &dyn Snapshot, id: EnvironmentId) -> Result<Option<Home>> {
    let (entry, mut home) = (layout::environment_id(id), None);
    snapshot.get(entry.table(), entry.as_bytes(), &mut |value| {
        home = layout::home_of(Target::read(entry.table(), value).key);
    })?;
    Ok(home.filter(|home| home.environment_id == id))
}

/// Returns `true` if an environment has a record of its own, readable or not. Without its entry, the record
/// is looked for among all.
pub(super) fn has_record(snapshot: &dyn Snapshot, id: EnvironmentId) -> Result<bool> {
    let mut is_there = false;
    if let Some(home) = home_by_id(snapshot, id)? {
        let key = layout::environment(&home.organization_id, id);
        snapshot.get(key.table(), key.as_bytes(), &mut |_| is_there = true)?;
    }
    if !is_there {
        let everything = (Bound::Unbounded, Bound::Unbounded);
        let each = &mut |key: &[u8], _: &[u8]| {
            is_there = layout::home_of(key).is_some_and(|home| home.environment_id == id);
            if is_there { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        snapshot.scan(Table::Environments, &everything, Order::Ascending, None, each)?;
    }
    Ok(is_there)
}
