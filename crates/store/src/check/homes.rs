//! Steps through the environments, to find those whose own record or key of unsubscribe links is gone.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use domain::environment::{Environment, Home};
use domain::ids::{EnvironmentId, OrganizationId};

use super::derived::next_environment;
use super::{Fix, PassStep, Problem, ROWS};
use crate::layout::{self, Role, Target, environment_prefix};
use crate::range::EVERYTHING;
use crate::record::{if_readable, misplaced};
use crate::{Key, Order, ReadRecords, Result, Snapshot, Table};

/// Looks for the record of each environment that has records of other kinds, or an entry that says where
/// its record was.
pub(super) fn homes(
    snapshot: &dyn Snapshot,
    behind: Option<&[u8]>,
    homes: &Homes,
) -> Result<PassStep> {
    const ENVIRONMENTS: usize = 64;
    let of_records: Vec<Table> = Table::ALL.into_iter().filter(has_records_within).collect();
    let (mut step, mut passed) = (PassStep::default(), behind.map(<[u8]>::to_vec));
    for _ in 0..ENVIRONMENTS {
        let by_records = next_environment(snapshot, &of_records, passed.as_deref())?;
        let by_id = next_environment(snapshot, &[Table::EnvironmentIds], passed.as_deref())?;
        let Some(id) = by_records.into_iter().chain(by_id).min() else { return Ok(step) };
        if !homes.has_record(snapshot, id)? {
            let lost = || Home { organization_id: OrganizationId::repaired(), environment_id: id };
            let home = home_by_id(snapshot, id)?;
            if let Some(home) = home.or_else(|| (by_records == Some(id)).then(lost)) {
                let key = layout::environment(&home.organization_id, id).as_bytes().to_vec();
                step.found(Table::Environments, &key.clone(), Problem::Gone, Fix::StandIn(key));
            }
        }
        passed = Some(environment_prefix(id).to_vec());
    }
    step.next = passed;
    Ok(step)
}

/// Looks for the key of the unsubscribe links of each environment.
pub(super) fn link_keys(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<PassStep> {
    let (mut step, rows) = PassStep::begin(snapshot, Table::Environments, behind, ROWS)?;
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
    let id = environment_prefix(uuid::Uuid::nil().into());
    let begins = layout::prefix_of_environment(*table, &id).is_some();
    table.role() == Role::Records && begins
}

/// Keys of the records of environments. A look-up reads the index of environments. If that leads to no record,
/// it scans all records, once.
#[derive(Debug, Default)]
pub struct Homes {
    scanned: OnceCell<Scanned>,
    is_settled: bool,
}

/// The environments with a record, readable or not.
#[derive(Debug)]
struct Scanned {
    records: BTreeMap<EnvironmentId, OrganizationId>,
    /// `false` if those behind a damaged page are not known.
    is_whole: bool,
}

impl Homes {
    /// Returns the same for a transaction, which is too small for a scan of all records: what is not known
    /// stays unknown.
    #[must_use]
    pub fn settled(self) -> Self {
        Self { is_settled: true, ..self }
    }

    /// Returns `true` if an environment has a record of its own, readable or not, or if that is not known.
    pub(super) fn has_record(&self, snapshot: &dyn Snapshot, id: EnvironmentId) -> Result<bool> {
        if self.key(snapshot, id)?.is_some() {
            return Ok(true);
        }
        match self.scanned.get() {
            Some(Scanned { is_whole: false, .. }) => Err(misplaced(Table::Environments)),
            Some(Scanned { is_whole: true, .. }) => Ok(false),
            None => Ok(true),
        }
    }

    /// Returns `true` if an environment is being deleted. One whose record cannot be read is not.
    pub(super) fn is_deleted(&self, snapshot: &dyn Snapshot, id: EnvironmentId) -> Result<bool> {
        let Some(key) = self.key(snapshot, id)? else { return Ok(false) };
        let record = if_readable(snapshot.find(&key))?.flatten();
        Ok(record.is_some_and(|record| record.is_deleted()))
    }

    // The key of the record of an environment, if one is known to be there.
    fn key(&self, snapshot: &dyn Snapshot, id: EnvironmentId) -> Result<Option<Key<Environment>>> {
        if let Some(home) = home_by_id(snapshot, id)? {
            let key = layout::environment(&home.organization_id, id);
            if snapshot.contains(&key)? {
                return Ok(Some(key));
            }
        }
        if self.scanned.get().is_none() && !self.is_settled {
            drop(self.scanned.set(Scanned::of(snapshot)?));
        }
        let Some(organization) = self.scanned.get().and_then(|all| all.records.get(&id)) else {
            return Ok(None);
        };
        let key = layout::environment(organization, id);
        Ok(snapshot.contains(&key)?.then_some(key))
    }
}

impl Scanned {
    fn of(snapshot: &dyn Snapshot) -> Result<Self> {
        let mut records = BTreeMap::new();
        let each = &mut |key: &[u8], _: &[u8]| {
            let home = layout::home_of(key);
            records.extend(home.map(|home| (home.environment_id, home.organization_id)));
            ControlFlow::Continue(())
        };
        let scan = snapshot.scan(Table::Environments, &EVERYTHING, Order::Ascending, None, each);
        let is_whole = if_readable(scan)?.is_some();
        Ok(Self { records, is_whole })
    }
}

// Where the record is by the index of environments. Returns `None` if its entry is missing or damaged.
fn home_by_id(snapshot: &dyn Snapshot, id: EnvironmentId) -> Result<Option<Home>> {
    let (entry, mut home) = (layout::environment_id(id), None);
    snapshot.get(entry.table(), entry.as_bytes(), &mut |value| {
        home = layout::home_of(Target::read(entry.table(), value).key);
    })?;
    Ok(home.filter(|home| home.environment_id == id))
}
