//! Steps through rows that are made from records.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use domain::ids::EnvironmentId;
use domain::subscriber::Subscriber;

use super::{PassStep, Problem, Rebuild};
use crate::batch::{Row, next_key};
use crate::layout::{self, CountedList, SearchedField, TextIndex, environment_prefix};
use crate::list_counts::{self, Count};
use crate::record::if_readable;
use crate::{Order, ReadRecords, Record, Result, Snapshot, Table, counters, outcomes, text_index};

// Length of an environment at the start of a key, and of a subscriber behind it.
const ENVIRONMENT: usize = 16;
const OWNER: usize = 32;

/// Adds the environments at the start of the keys of a table.
pub(super) fn environments(
    snapshot: &dyn Snapshot,
    table: Table,
    found: &mut BTreeSet<EnvironmentId>,
) -> Result<()> {
    let mut last: Option<Vec<u8>> = None;
    while let Some(environment) = next_environment(snapshot, &[table], last.as_deref())? {
        found.insert(environment);
        last = Some(environment_prefix(environment).to_vec());
    }
    Ok(())
}

// The first environment behind `behind` in one of `tables`.
pub(super) fn next_environment(
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

/// Compares rows of counters with the messages.
pub(super) fn counters(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<PassStep> {
    // Counting a large inbox takes some time.
    const ROWS: usize = 8;
    let table = Table::MessageCounters;
    let (mut step, rows) = PassStep::begin(snapshot, table, behind, ROWS)?;
    for Row { key, value } in rows {
        if !is_counted(snapshot, &key, &value)? {
            let fix = Rebuild::Counters(key.clone());
            step.found(table, &key, Problem::Miscounted, fix);
        }
    }
    Ok(step)
}

// Returns `true` if a row has the counters of the messages.
fn is_counted(snapshot: &dyn Snapshot, key: &[u8], value: &[u8]) -> Result<bool> {
    let Some(expected) = if_readable(counters::recount(snapshot, key))? else { return Ok(false) };
    let Some(known) = if_readable(counters::read(key, value))? else { return Ok(false) };
    let has_owner = !expected.is_empty() || counters::has_owner(snapshot, key)?;
    Ok(has_owner && known.until.is_none() && known.counters.agree_with(&expected))
}

/// Looks for the row of counters of each subscriber in a table that begins with its owner.
pub(super) fn counted(
    snapshot: &dyn Snapshot,
    table: Table,
    behind: Option<&[u8]>,
) -> Result<PassStep> {
    const OWNERS: usize = 64;
    let mut step = PassStep::default();
    let mut last = behind.map(<[u8]>::to_vec);
    for _ in 0..OWNERS {
        let Some(key) = next_key(snapshot, table, last.as_deref())? else { return Ok(step) };
        let owner = key.get(..OWNER).unwrap_or(&key).to_vec();
        let is_there = snapshot.get(Table::MessageCounters, &owner, &mut |_| {})?;
        if !is_there && layout::counted_subscriber(&owner).is_some() {
            let fix = Rebuild::Counters(owner.clone());
            step.found(Table::MessageCounters, &owner, Problem::Miscounted, fix);
        }
        last = Some(owner);
    }
    step.next = last;
    Ok(step)
}

/// Compares rows of numbers with the entries of their lists. A row that does not go to the end of its list
/// yet is missing.
pub(super) fn list_counts(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<PassStep> {
    // Counting a long list takes some time.
    const ROWS: usize = 8;
    let table = Table::ListCounts;
    let (mut step, rows) = PassStep::begin(snapshot, table, behind, ROWS)?;
    for Row { key, value } in rows {
        let Some(list) = CountedList::read(&key) else {
            step.found_row(table, &key, Problem::Extra, None);
            continue;
        };
        let is_right = |count: &Count| {
            let is_right = if_readable(count.is_right(snapshot, list))?;
            // A list without records has no row.
            let may_be = count.records > 0 || count.until.is_some();
            Ok::<_, crate::Error>(may_be && is_right == Some(true))
        };
        let problem = match Count::read(&key, &value) {
            Some(count) if is_right(&count)? => count.until.map(|_| Problem::Missing),
            Some(_) | None => Some(Problem::Miscounted),
        };
        if let Some(problem) = problem {
            step.found(table, &key, problem, Rebuild::ListCount(list));
        }
    }
    Ok(step)
}

/// Looks for the row of each list that has entries.
pub(super) fn lists(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<PassStep> {
    const LISTS: usize = 64;
    let mut step = PassStep::default();
    let mut passed = behind.and_then(CountedList::read);
    for _ in 0..LISTS {
        let Some(list) = list_counts::next(snapshot, passed)? else { return Ok(step) };
        if !snapshot.contains(&list.key())? {
            let key = list.key();
            step.found(key.table(), key.as_bytes(), Problem::Missing, Rebuild::ListCount(list));
        }
        passed = Some(list);
    }
    step.next = passed.map(|list| list.key().as_bytes().to_vec());
    Ok(step)
}

/// Compares the rows of outcomes of 1,024 notifications with these. A notification that cannot be
/// read has no known outcomes, so that its rows are not compared.
pub(super) fn outcomes(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<PassStep> {
    let mut step = PassStep::default();
    let last = behind.and_then(|last| last.split_at_checked(ENVIRONMENT));
    let last = last.and_then(|(id, number)| {
        let environment = layout::environment_of(Table::Notifications, id)?;
        Some((environment, u32::from_be_bytes(number.try_into().ok()?)))
    });
    let Some((environment, number)) = next_outcomes(snapshot, last)? else { return Ok(step) };
    for (key, value) in outcomes::compare(snapshot, environment, number)? {
        step.found_row(Table::NotificationOutcomes, &key, Problem::Outdated, value);
    }
    step.rows = 1;
    step.next = Some([environment_prefix(environment).as_slice(), &number.to_be_bytes()].concat());
    Ok(step)
}

// The environment and the number of the first rows of outcomes behind `last` that there are, or that
// notifications are in.
fn next_outcomes(
    snapshot: &dyn Snapshot,
    last: Option<(EnvironmentId, u32)>,
) -> Result<Option<(EnvironmentId, u32)>> {
    if let Some((environment, number)) = last
        && let Some(from) = number.checked_add(1)
        && let Some(next) = outcomes::first(snapshot, environment, from)?
    {
        return Ok(Some((environment, next)));
    }
    let tables = [Table::Notifications, Table::NotificationOutcomes];
    let mut passed = last.map(|(environment, _)| environment_prefix(environment));
    while let Some(environment) =
        next_environment(snapshot, &tables, passed.as_ref().map(<[u8; ENVIRONMENT]>::as_slice))?
    {
        if let Some(first) = outcomes::first(snapshot, environment, 0)? {
            return Ok(Some((environment, first)));
        }
        passed = Some(environment_prefix(environment));
    }
    Ok(None)
}

/// Compares the index of a field of the next environment with its subscribers. If a subscriber cannot be
/// read, its texts are not known, and extra texts are not reported.
pub(super) fn texts(
    snapshot: &dyn Snapshot,
    field: SearchedField,
    behind: Option<&[u8]>,
) -> Result<PassStep> {
    let mut step = PassStep::default();
    let table = field.table();
    let environment = next_environment(snapshot, &[Table::Subscribers, table], behind)?;
    let Some(environment) = environment else { return Ok(step) };
    let index = TextIndex { field, environment };
    let (mut expected, mut keys, mut is_known) = (BTreeSet::new(), BTreeMap::new(), true);
    let (codec, all) = (snapshot.codec(), layout::all_subscribers(environment).range());
    snapshot.scan_bytes(&all, Order::Ascending, None, &mut |key, value| {
        match codec.decode::<Subscriber>(key, value) {
            Ok(subscriber) => {
                for text in subscriber.texts().into_iter().filter(|text| text.is_of(index)) {
                    expected.insert(text.clone());
                    keys.insert(text, key.to_vec());
                }
            }
            Err(_) => is_known = false,
        }
        ControlFlow::Continue(())
    })?;
    let missing = text_index::compare(snapshot, index, expected, &mut |key, problem| {
        if is_known || problem != Problem::Extra {
            step.found_only(table, key, problem);
        }
    })?;
    for key in missing.iter().filter_map(|text| keys.get(text)) {
        step.found_only(table, key, Problem::Missing);
    }
    // The index is rebuilt once.
    if let Some((_, first)) = step.found.first_mut() {
        *first = Some(Rebuild::Texts(index).into());
    }
    step.rows = keys.len() as u64;
    step.next = Some(environment_prefix(environment).to_vec());
    Ok(step)
}
