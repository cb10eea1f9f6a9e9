//! What the rows of each table are: records, entries that lead to records, or rows that are made
//! from other rows.

use domain::environment::{Environment, Home};
use domain::ids::{EnvironmentId, OrganizationId, WorkflowId};
use domain::message::ListPlace;
use domain::subscriber::Subscriber;
use domain::task::TaskClass;
use uuid::Uuid;

use super::{
    ACTIVITY_DELETED, ACTIVITY_FACETS, ACTIVITY_HEADS, ACTIVITY_MERGED, ACTIVITY_SEGMENTS,
    ENVIRONMENTS, MESSAGE_CHANGES, MESSAGE_LISTS, SUBSCRIBERS, SearchedField, Table, WORKFLOWS,
    outcome_of_row,
};
use crate::key::{Bytes, Prefix, Range, TableOf, parts};

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Records.
    Records,
    /// Index entries, which lead to the records of a table.
    IndexOf(Table),
    /// Rows that are made from records, and lead to none.
    Derived(Derived),
    /// Marks of sealing keys, and of records of older formats.
    Marks,
}

/// What derived rows are a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Derived {
    /// An index of texts.
    Texts(SearchedField),
    /// Counters of messages.
    Counters,
    /// Numbers of records in lists.
    ListCounts,
    /// Lanes of tasks.
    Lanes,
    /// The rows of outcomes.
    Outcomes,
    /// The activity index.
    Activity,
}

/// The environment of a row, from its key. Returns `None` if the key has none.
pub fn environment_of(table: Table, key: &[u8]) -> Option<EnvironmentId> {
    let id = match table {
        Table::Environments => key.last_chunk(),
        _ => prefix_of_environment(table, key)?.last_chunk(),
    };
    id.map(|id| Uuid::from_bytes(*id).into())
}

/// The bytes that the keys of an environment begin with, in tables whose keys begin with an environment.
pub(crate) fn environment_prefix(environment: EnvironmentId) -> [u8; 16] {
    Uuid::from(environment).into_bytes()
}

/// The bytes up to the end of the environment, which a key starts with. Returns `None` if keys of
/// other environments lie between those of one.
pub fn prefix_of_environment(table: Table, key: &[u8]) -> Option<&[u8]> {
    // Length of the class of a task, of a time, and of an id.
    const CLASS: usize = 1;
    const TIME: usize = 8;
    const ID: usize = 16;
    match table {
        Table::Environments
        | Table::Quarantine
        | Table::ApiKeys
        | Table::Seals
        | Table::Backfills => None,
        Table::Due | Table::LaneHeads | Table::HeldLanes => key.get(..CLASS + ID),
        Table::Lanes => key.get(..CLASS + TIME + ID),
        _ => key.get(..ID),
    }
}

/// Tables of many environments whose keys do not begin with one.
pub const SHARED: [Table; 3] = [Table::ApiKeys, Table::Quarantine, Table::Lanes];

/// The ranges that have all rows of an environment but for its own record, those of the delivery queue
/// first, and the numbers of records before the records, so that none is wrong meanwhile. In a
/// [shared](SHARED) table they have the rows of others as well.
pub fn ranges_of(environment: EnvironmentId) -> Vec<Range<Bytes>> {
    let first = [
        Table::Lanes,
        Table::LaneHeads,
        Table::HeldLanes,
        Table::Due,
        Table::Held,
        Table::Tasks,
        Table::ListCounts,
    ];
    let others = Table::ALL.into_iter().filter(|table| !first.contains(table));
    let tables = first.into_iter().chain(others);
    tables.flat_map(|table| ranges_in(table, environment)).collect()
}

fn ranges_in(table: Table, environment: EnvironmentId) -> Vec<Range<Bytes>> {
    let prefixes = match table {
        Table::Environments | Table::EnvironmentIds | Table::Seals | Table::Backfills => {
            return Vec::new();
        }
        _ if SHARED.contains(&table) => return vec![Range::of_table(table, None)],
        Table::Due | Table::LaneHeads | Table::HeldLanes => {
            let keys = TableOf::<Bytes, parts![TaskClass, EnvironmentId]>::new(table);
            TaskClass::ALL.map(|class| keys.all().then(class).then(environment).open()).to_vec()
        }
        _ => {
            let keys = TableOf::<Bytes, parts![EnvironmentId]>::new(table);
            vec![keys.within(environment).open()]
        }
    };
    prefixes.iter().map(Prefix::range).collect()
}

/// Returns `true` if a derived row can have this key.
pub fn is_derived_key(table: Table, key: &[u8]) -> bool {
    match table {
        Table::ActivityHeads => ACTIVITY_HEADS.read(key).is_some(),
        Table::ActivityFacets => ACTIVITY_FACETS.read(key).is_some(),
        Table::ActivitySegments => ACTIVITY_SEGMENTS.read(key).is_some(),
        Table::ActivityMerged => ACTIVITY_MERGED.read(key).is_some(),
        Table::ActivityDeleted => ACTIVITY_DELETED.read(key).is_some(),
        Table::EmailIndex => SearchedField::Email.read(key).is_some(),
        Table::NameIndex => SearchedField::Name.read(key).is_some(),
        Table::NotificationOutcomes => {
            outcome_of_row(key).is_some_and(|(_, row)| crate::outcomes::is_possible(row))
        }
        _ => true,
    }
}

/// The environment and the id of a workflow, from its key.
pub fn workflow_of(key: &[u8]) -> Option<(EnvironmentId, WorkflowId)> {
    let (environment, (id, ())) = WORKFLOWS.read(key)?;
    Some((environment, id))
}

/// The subscribers of an environment, by the names that the host gave them.
pub fn all_subscribers(environment: EnvironmentId) -> Prefix<Subscriber> {
    SUBSCRIBERS.within(environment).open()
}

/// The environment of a record in [`ENVIRONMENTS`], with its organization, from its key. Returns
/// `None` if it is no key of an environment.
pub fn home_of(key: &[u8]) -> Option<Home> {
    let (organization_id, (environment_id, ())) = ENVIRONMENTS.read(key)?;
    Some(Home { organization_id, environment_id })
}

/// The environments of all organizations behind `organization`, or of all.
pub fn environments_behind(organization: Option<&OrganizationId>) -> Range<Environment> {
    ENVIRONMENTS.all().behind_or_all(organization)
}

/// The number of a change. Returns `None` if it is no key of a changed message.
pub fn change_of(entry: &[u8]) -> Option<u64> {
    let (_, (_, (change, _))) = MESSAGE_CHANGES.read(entry)?;
    Some(change)
}

/// The place of an entry in lists of messages. Returns `None` if it is no key of such a list.
pub fn place_in_list(entry: &[u8]) -> Option<ListPlace> {
    let (_, (_, (_, (place, ())))) = MESSAGE_LISTS.read(entry)?;
    Some(place)
}
