//! Steps through records and through index entries.

use std::collections::BTreeMap;

use domain::ids::EnvironmentId;
use domain::message::Signature;
use domain::quarantine::Unreadable;

use super::{Fix, Homes, PassStep, Problem, ROWS};
use crate::batch::Row;
use crate::layout::{self, Derived, Role, Target};
use crate::record::if_readable;
use crate::{Codec, Error, ReadRecords, Result, Snapshot, Table};

/// Returns `true` if the entries of the table are records.
pub(crate) fn has_records(table: Table) -> bool {
    table.role() == Role::Records
}

/// Returns whether the entry under `key` of a table is a record that can be read. Returns `None` if
/// the table has no records.
pub(crate) fn is_readable(
    codec: Codec<'_>,
    table: Table,
    key: &[u8],
    value: &[u8],
) -> Option<bool> {
    table.entries_of_row(codec, (key, value)).map(|entries| entries.is_ok())
}

/// Looks at records, and looks up each entry that one has.
pub(super) fn records(
    snapshot: &dyn Snapshot,
    table: Table,
    behind: Option<&[u8]>,
) -> Result<PassStep> {
    let (mut step, rows) = PassStep::begin(snapshot, table, behind, ROWS)?;
    for Row { key, value } in rows {
        match table.entries_of_row(snapshot.codec(), (&key, &value)) {
            None => {}
            Some(Ok(entries)) => {
                for entry in entries {
                    look_up(snapshot, (table, &key, &value), entry, &mut step)?;
                }
            }
            Some(Err(Error::Corrupt { source, .. })) => {
                let reason = source.to_string();
                let problem = Problem::Unreadable { reason: reason.clone() };
                // Without the mark of a key, an engine without that key is not refused.
                if snapshot.codec().lacks_key_of(&value) {
                    step.found_only(table, &key, problem);
                } else {
                    let (name, place) = (table.name(), key.clone());
                    let unreadable = Unreadable { table: name, key, value, reason };
                    step.found(table, &place, problem, Fix::PutAside(table, unreadable));
                }
            }
            Some(Err(other)) => return Err(other),
        }
    }
    Ok(step)
}

// Looks up an entry of a record. If another record has the entry, this record goes into quarantine.
fn look_up(
    snapshot: &dyn Snapshot,
    (table, key, value): (Table, &[u8], &[u8]),
    (index, entry, signature): (Table, Vec<u8>, Option<Signature>),
    step: &mut PassStep,
) -> Result<()> {
    let mut there = None;
    snapshot.get(index, &entry, &mut |value| there = Some(value.to_vec()))?;
    let there = there.as_deref().map(|value| Target::read(index, value));
    let entry_value = || Some(Target { key, signature }.to_bytes().into_owned());
    if let Some(there) = there.filter(|there| there.key == key) {
        // An entry without a signature leads to its message as well.
        if there.signature.is_some() && there.signature != signature {
            step.found_row(index, &entry, Problem::WrongSignature, entry_value());
        }
        return Ok(());
    }
    let is_contested = match there {
        Some(other) => has_entry(snapshot, table, other.key, (index, &entry))?,
        None => false,
    };
    if is_contested {
        let reason = format!("another record has its entry in `{}`", index.name());
        let (name, key, value) = (table.name(), key.to_vec(), value.to_vec());
        let unreadable = Unreadable { table: name, key, value, reason };
        step.found(index, &entry, Problem::Contested, Fix::PutAside(table, unreadable));
    } else {
        step.found_row(index, &entry, Problem::Missing, entry_value());
    }
    Ok(())
}

// Returns whether the record under `key` can be read, and has an entry.
fn has_entry(
    snapshot: &dyn Snapshot,
    table: Table,
    key: &[u8],
    (index, entry): (Table, &[u8]),
) -> Result<bool> {
    let codec = snapshot.codec();
    let mut entries = None;
    snapshot.get(table, key, &mut |value| entries = table.entries_of_row(codec, (key, value)))?;
    let entries = entries.map_or(Ok(None), if_readable)?.unwrap_or_default();
    Ok(entries.iter().any(|(of, key, _)| *of == index && key == entry))
}

// Returns whether the record under `key` is sealed with a key that is not there.
fn is_locked(snapshot: &dyn Snapshot, table: Table, key: &[u8]) -> Result<bool> {
    let (codec, mut is_locked) = (snapshot.codec(), false);
    snapshot.get(table, key, &mut |value| is_locked = codec.lacks_key_of(value))?;
    Ok(is_locked)
}

/// Looks at index entries, and looks up the record that each of them leads to.
pub(super) fn index(
    snapshot: &dyn Snapshot,
    table: Table,
    behind: Option<&[u8]>,
) -> Result<PassStep> {
    let (mut step, rows) = PassStep::begin(snapshot, table, behind, ROWS)?;
    let Role::IndexOf(of) = table.role() else { return Ok(step) };
    for row in rows {
        let target = row.target(table).key;
        let is_extra = !has_entry(snapshot, of, target, (table, &row.key))?;
        if is_extra && !is_locked(snapshot, of, target)? {
            step.found_row(table, &row.key, Problem::Extra, None);
        }
    }
    Ok(step)
}

/// Looks at the keys of derived rows. Finds those that no derived row can have, and those of environments
/// without the source of the rows.
pub(super) fn keys(
    snapshot: &dyn Snapshot,
    table: Table,
    behind: Option<&[u8]>,
    homes: &Homes,
) -> Result<PassStep> {
    let (mut step, rows) = PassStep::begin(snapshot, table, behind, ROWS)?;
    let mut known: BTreeMap<EnvironmentId, bool> = BTreeMap::new();
    for Row { key, .. } in rows {
        let environment = layout::environment_of(table, &key);
        let environment = environment.filter(|_| layout::is_derived_key(table, &key));
        if let Some(environment) = environment.filter(|one| !known.contains_key(one)) {
            known.insert(environment, is_source_there(snapshot, table, environment, homes)?);
        }
        let is_possible =
            environment.is_some_and(|environment| known.get(&environment) == Some(&true));
        if !is_possible {
            step.found_row(table, &key, Problem::Extra, None);
        }
    }
    Ok(step)
}

// Returns `true` if an environment has the source of derived rows. The indexes of texts and the head of the
// activity index stay while the environment has its record.
fn is_source_there(
    snapshot: &dyn Snapshot,
    table: Table,
    environment: EnvironmentId,
    homes: &Homes,
) -> Result<bool> {
    if matches!(table.role(), Role::Derived(Derived::Texts(_))) || table == Table::ActivityHeads {
        return homes.has_record(snapshot, environment);
    }
    let is_any = snapshot.has_any(&layout::notifications(environment).range())?;
    Ok(is_any || snapshot.contains(&layout::activity_head(environment))?)
}
