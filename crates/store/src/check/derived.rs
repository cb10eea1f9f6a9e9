//! Steps through rows that are made from records.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};

use domain::ids::{EnvironmentId, WorkflowId};
use domain::message::MessageCounters;
use domain::subscriber::Subscriber;
use domain::task::Lane;
use domain::time::Timestamp;
use domain::workflow::Workflow;
use uuid::Uuid;

use super::{Fix, Problem, Step};
use crate::layout;
use crate::record::if_readable;
use crate::{
    KeyRange, Order, Prefix, ReadRecords, Record, Result, Snapshot, Table, addresses, counters,
    outcomes,
};

// Length of an environment at the start of a key, and of a subscriber behind it.
const ENVIRONMENT: usize = 16;
const OWNER: usize = 32;

// The first key of a table that is not below the successor of `prefix`.
fn next_key(
    snapshot: &dyn Snapshot,
    table: Table,
    prefix: Option<&[u8]>,
) -> Result<Option<Vec<u8>>> {
    let start = match prefix.map(crate::key::upper_bound) {
        None => Bound::Unbounded,
        Some(Some(start)) => Bound::Included(start),
        Some(None) => return Ok(None),
    };
    let range: KeyRange = (start, Bound::Unbounded);
    let mut found = None;
    snapshot.scan(table, &range, Order::Ascending, Some(1), &mut |key, _| {
        found = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    // A damaged table may show a key that was passed.
    Ok(found.filter(|key| prefix.is_none_or(|prefix| key.as_slice() > prefix)))
}

/// Adds the environments at the start of the keys of a table.
pub(super) fn environments(
    snapshot: &dyn Snapshot,
    table: Table,
    found: &mut BTreeSet<EnvironmentId>,
) -> Result<()> {
    let mut last: Option<Vec<u8>> = None;
    while let Some(key) = next_key(snapshot, table, last.as_deref())? {
        let prefix = key.get(..ENVIRONMENT).unwrap_or(&key).to_vec();
        found.extend(layout::environment_of(table, &prefix));
        last = Some(prefix);
    }
    Ok(())
}

// The first environment behind `behind` in one of `tables`.
fn next_environment(
    snapshot: &dyn Snapshot,
    tables: &[Table],
    behind: Option<&[u8]>,
) -> Result<Option<EnvironmentId>> {
    let mut next: Option<EnvironmentId> = None;
    for table in tables {
        let mut last = behind.map(<[u8]>::to_vec);
        while let Some(key) = next_key(snapshot, *table, last.as_deref())? {
            let prefix = key.get(..ENVIRONMENT).unwrap_or(&key).to_vec();
            if let Some(environment) = layout::environment_of(*table, &prefix) {
                next = next.into_iter().chain([environment]).min();
                break;
            }
            last = Some(prefix);
        }
    }
    Ok(next)
}

fn bytes_of(environment: EnvironmentId) -> [u8; ENVIRONMENT] {
    Uuid::from(environment).into_bytes()
}

/// Compares rows of counters with the messages.
pub(super) fn counters(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<Step> {
    // Counting a large inbox takes some time.
    const ROWS: usize = 8;
    let start = behind.map_or(Bound::Unbounded, |key| Bound::Excluded(key.to_vec()));
    let mut rows = Vec::new();
    let table = Table::MessageCounters;
    let range = (start, Bound::Unbounded);
    snapshot.scan(table, &range, Order::Ascending, Some(ROWS), &mut |key, value| {
        rows.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    let next = rows.last().filter(|_| rows.len() == ROWS).map(|(key, _)| key.clone());
    let mut step = Step { rows: rows.len() as u64, next, ..Step::default() };
    for (key, value) in rows {
        let Some(expected) = if_readable(counters::recount(snapshot, &key))? else {
            let fix = Fix::Remove(table, key.clone());
            step.found(table, &key, Problem::Miscounted, fix);
            continue;
        };
        let there = if_readable(counters::read(&key, &value))?;
        let has_owner = !expected.is_empty() || counters::has_owner(snapshot, &key)?;
        if has_owner && there.is_some_and(|counters| counters.agree_with(&expected)) {
            continue;
        }
        let fix = counters_fix(&key, expected, has_owner)?;
        step.found(table, &key, Problem::Miscounted, fix);
    }
    Ok(step)
}

fn counters_fix(key: &[u8], expected: MessageCounters, has_owner: bool) -> Result<Fix> {
    if !has_owner {
        return Ok(Fix::Remove(Table::MessageCounters, key.to_vec()));
    }
    let value = counters::written(key, &counters::mended(expected))?;
    Ok(Fix::Put(Table::MessageCounters, key.to_vec(), value))
}

/// Looks for the row of counters of each subscriber in a table that begins with its owner.
pub(super) fn counted(
    snapshot: &dyn Snapshot,
    table: Table,
    behind: Option<&[u8]>,
) -> Result<Step> {
    const OWNERS: usize = 64;
    let mut step = Step::default();
    let mut last = behind.map(<[u8]>::to_vec);
    for _ in 0..OWNERS {
        let Some(key) = next_key(snapshot, table, last.as_deref())? else { return Ok(step) };
        let owner = key.get(..OWNER).unwrap_or(&key).to_vec();
        let mut is_there = false;
        snapshot.get(Table::MessageCounters, &owner, &mut |_| is_there = true)?;
        if !is_there && let Some(expected) = if_readable(counters::recount(snapshot, &owner))? {
            let fix = counters_fix(&owner, expected, true)?;
            step.found(Table::MessageCounters, &owner, Problem::Miscounted, fix);
        }
        last = Some(owner);
    }
    step.next = last;
    Ok(step)
}

// A row of a table.
type Line = (Table, Vec<u8>, Vec<u8>);

/// Compares the lanes with the entries of tasks that are due, and with paused workflows. The lanes of
/// a workflow that cannot be read may be held.
pub(super) fn lanes(snapshot: &dyn Snapshot) -> Result<Step> {
    const AT_A_TIME: usize = 512;
    let (mut expected, unknown) = expected_lanes(snapshot)?;
    let mut step = Step::default();
    let all = (Bound::Unbounded, Bound::Unbounded);
    for table in [Table::Lanes, Table::LaneHeads, Table::HeldLanes] {
        snapshot.scan(table, &all, Order::Ascending, None, &mut |key, value| {
            step.rows += 1;
            let is_right = expected.remove(&(table, key.to_vec(), value.to_vec()));
            if !is_right && !is_unknown(table, key, &unknown) {
                let fix = Fix::Remove(table, key.to_vec());
                step.found(table, key, Problem::Misplaced, fix);
            }
            ControlFlow::Continue(())
        })?;
    }
    for (table, key, value) in expected {
        if !is_unknown(table, &key, &unknown) {
            let fix = Fix::Put(table, key.clone(), value);
            step.found(table, &key, Problem::Misplaced, fix);
        }
    }
    step.next = (step.found.len() > AT_A_TIME).then(Vec::new);
    Ok(step)
}

// A workflow of an environment.
type Whose = (EnvironmentId, WorkflowId);

fn is_unknown(table: Table, key: &[u8], unknown: &BTreeSet<Whose>) -> bool {
    let lane = match table {
        Table::Lanes => layout::lane_of(key).map(|(lane, _)| lane),
        Table::LaneHeads => layout::lane_of_head(key),
        _ => layout::held_lane_of(key),
    };
    let whose = lane.and_then(|lane| Some((lane.environment_id, lane.workflow_id?)));
    whose.is_some_and(|whose| unknown.contains(&whose))
}

// The rows of all lanes, and the workflows that cannot be read.
fn expected_lanes(snapshot: &dyn Snapshot) -> Result<(BTreeSet<Line>, BTreeSet<Whose>)> {
    let (mut standing, mut unknown) = (BTreeSet::<Lane>::new(), BTreeSet::new());
    let codec = snapshot.codec();
    let all = Prefix::<Workflow>::of_all().range();
    snapshot.scan_bytes(&all, Order::Ascending, None, &mut |key, value| {
        match codec.decode::<Workflow>(key, value) {
            Ok(workflow) if workflow.is_paused() => standing.extend(workflow.lanes()),
            Ok(_) => {}
            Err(_) => unknown.extend(layout::workflow_of(key)),
        }
        ControlFlow::Continue(())
    })?;
    let moving = first_tasks(snapshot)?.into_iter().filter(|(lane, _)| !standing.contains(lane));
    let moving = moving.map(|(lane, due_at)| (lane, layout::lane_entry(&lane, due_at)));
    let moving: Vec<_> = moving.collect();
    let standing = standing.iter().map(|lane| (*lane, layout::held_lane(lane)));
    let rows = moving.into_iter().chain(standing).flat_map(|(lane, entry)| {
        let (table, entry) = (entry.table(), entry.as_bytes().to_vec());
        let head = layout::lane_head(&lane).as_bytes().to_vec();
        [(table, entry.clone(), head.clone()), (Table::LaneHeads, head, entry)]
    });
    Ok((rows.collect(), unknown))
}

// The time of the first task of each lane. A lane is passed with one look-up.
fn first_tasks(snapshot: &dyn Snapshot) -> Result<BTreeMap<Lane, Timestamp>> {
    let mut firsts = BTreeMap::new();
    let mut start = Bound::Unbounded;
    loop {
        let mut first = None;
        let range = (start, Bound::Unbounded);
        snapshot.scan(Table::Due, &range, Order::Ascending, Some(1), &mut |key, _| {
            first = Some(key.to_vec());
            ControlFlow::Break(())
        })?;
        let Some(key) = first else { return Ok(firsts) };
        start = match layout::lane_of_due(&key) {
            Some((lane, due_at)) => {
                if firsts.insert(lane, due_at).is_some() {
                    return Err(crate::record::misplaced(Table::Due));
                }
                layout::lane(&lane).range().bytes().1.clone().into_start()
            }
            None => Bound::Excluded(key),
        };
    }
}

// The bound from which a range goes on that ends with this one.
trait IntoStart {
    fn into_start(self) -> Self;
}

impl IntoStart for Bound<Vec<u8>> {
    fn into_start(self) -> Self {
        match self {
            Bound::Included(end) => Bound::Excluded(end),
            Bound::Excluded(end) => Bound::Included(end),
            Bound::Unbounded => Bound::Unbounded,
        }
    }
}

/// Compares the rows of outcomes of 1,024 notifications with these. A notification that cannot be
/// read has no known outcomes, so that its rows are not compared.
pub(super) fn outcomes(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<Step> {
    let mut step = Step::default();
    let last = behind.and_then(|last| last.split_at_checked(ENVIRONMENT));
    let last = last.and_then(|(id, number)| {
        let environment = layout::environment_of(Table::Notifications, id)?;
        Some((environment, u32::from_be_bytes(number.try_into().ok()?)))
    });
    let mut next = match last {
        Some((environment, number)) => {
            let next = number.checked_add(1);
            let next =
                next.map_or(Ok(None), |from| outcomes::first(snapshot, environment, from))?;
            next.map(|number| (environment, number))
        }
        None => None,
    };
    let mut passed = last.map(|(environment, _)| bytes_of(environment));
    while next.is_none() {
        let tables = [Table::Notifications, Table::NotificationOutcomes];
        let found = next_environment(snapshot, &tables, passed.as_ref().map(<[u8; 16]>::as_slice))?;
        let Some(environment) = found else { return Ok(step) };
        let number = outcomes::first(snapshot, environment, 0)?;
        next = number.map(|number| (environment, number));
        passed = Some(bytes_of(environment));
    }
    let Some((environment, number)) = next else { return Ok(step) };
    for (key, value) in outcomes::compare(snapshot, environment, number)? {
        let table = Table::NotificationOutcomes;
        let fix = match value {
            Some(value) => Fix::Put(table, key.clone(), value),
            None => Fix::Remove(table, key.clone()),
        };
        step.found(table, &key, Problem::Outdated, fix);
    }
    step.rows = 1;
    step.next = Some([bytes_of(environment).as_slice(), &number.to_be_bytes()].concat());
    Ok(step)
}

/// Compares the index of addresses of the next environment with its subscribers. A subscriber that
/// cannot be read has no known address, so that no address is one too many then.
pub(super) fn addresses(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<Step> {
    let mut step = Step::default();
    let tables = [Table::Subscribers, Table::Addresses];
    let Some(environment) = next_environment(snapshot, &tables, behind)? else { return Ok(step) };
    let (mut expected, mut keys, mut is_known) = (BTreeSet::new(), BTreeMap::new(), true);
    let (codec, all) = (snapshot.codec(), layout::all_subscribers(environment).range());
    snapshot.scan_bytes(&all, Order::Ascending, None, &mut |key, value| {
        match codec.decode::<Subscriber>(key, value).map(|subscriber| subscriber.address()) {
            Ok(Some(address)) => {
                expected.insert(address.clone());
                keys.insert(address, key.to_vec());
            }
            Ok(None) => {}
            Err(_) => is_known = false,
        }
        ControlFlow::Continue(())
    })?;
    let fix = Fix::Addresses(environment);
    let missing = addresses::compare(snapshot, environment, expected, &mut |key, problem| {
        if is_known || problem != Problem::Extra {
            step.found(Table::Addresses, key, problem, Fix::None);
        }
    })?;
    for key in missing.iter().filter_map(|address| keys.get(address)) {
        step.found(Table::Addresses, key, Problem::Missing, Fix::None);
    }
    // The index is made anew once.
    if let Some((_, first)) = step.found.first_mut() {
        *first = fix;
    }
    step.rows = keys.len() as u64;
    step.next = Some(bytes_of(environment).to_vec());
    Ok(step)
}
