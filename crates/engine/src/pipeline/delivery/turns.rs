//! Turns of environments: whose tasks a claim takes, in a store that runs environments side by side.
//! A claim of all of them would hold up the writers of each.

use std::collections::BTreeSet;

use domain::ids::EnvironmentId;
use domain::task::{Lane, TaskClass};
use domain::time::Timestamp;
use parking_lot::Mutex;
use store::Snapshot;

use super::claim::lanes_of;
use crate::Result;

/// The environment that has had its turn last, in this process.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Option<EnvironmentId>>);

/// Lanes with due tasks, by class.
#[derive(Debug, Default)]
pub(super) struct Due(Vec<Vec<DueLane>>);

/// A lane, and the time at which its first task is due.
type DueLane = (Lane, Timestamp);

/// Number of lanes of a class that share the turns at most: those that have been due for longest.
const LANES: usize = 64;

/// The lanes with a task that is due at `now`. Returns `None` if an entry leads to no lane. Such an
/// entry may belong to no environment.
pub(super) fn due(snapshot: &dyn Snapshot, now: Timestamp) -> Result<Option<Due>> {
    let mut due = Due::default();
    for class in TaskClass::ALL {
        let found = lanes_of(snapshot, class, now, LANES)?;
        if !found.unreadable.is_empty() {
            return Ok(None);
        }
        due.0.push(found.lanes);
    }
    Ok(Some(due))
}

impl Turns {
    /// Returns environments with the lanes that a claim takes tasks of, by class, in the order of
    /// their turns. The first one has its turn. Those with due tasks of a class come before the
    /// others. An environment has its lanes of later classes as well, as far as no other one has
    /// such lanes.
    pub(super) fn take(&self, due: &Due) -> Vec<(EnvironmentId, Vec<Vec<DueLane>>)> {
        let mut last = self.0.lock();
        let mut order = Vec::new();
        for (at, lanes) in due.0.iter().enumerate() {
            let environments = lanes.iter().map(environment).collect();
            for own in behind(&environments, *last) {
                let classes = due.0.iter().skip(at);
                let until = classes.clone().position(|lanes| has_other(lanes, own));
                let taken = classes.take(until.unwrap_or(due.0.len()).max(1));
                order.push((own, taken.map(|lanes| lanes_of_one(lanes, own)).collect()));
            }
        }
        if let Some((first, _)) = order.first() {
            *last = Some(*first);
        }
        order
    }
}

fn environment((lane, _): &DueLane) -> EnvironmentId {
    lane.environment_id
}

fn has_other(lanes: &[DueLane], own: EnvironmentId) -> bool {
    lanes.iter().any(|lane| environment(lane) != own)
}

fn lanes_of_one(lanes: &[DueLane], own: EnvironmentId) -> Vec<DueLane> {
    lanes.iter().filter(|lane| environment(lane) == own).copied().collect()
}

/// The environments behind the last one, and then the others.
fn behind(
    environments: &BTreeSet<EnvironmentId>,
    last: Option<EnvironmentId>,
) -> impl Iterator<Item = EnvironmentId> {
    let is_behind = move |id: &EnvironmentId| last.is_none_or(|last| *id > last);
    let later = environments.iter().copied().filter(move |id| is_behind(id));
    later.chain(environments.iter().copied().filter(move |id| !is_behind(id)))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn id(number: u8) -> EnvironmentId {
        Uuid::from_bytes([number; 16]).into()
    }

    fn lanes(class: TaskClass, environments: &[u8]) -> Vec<DueLane> {
        let lane = |number: &u8| Lane { class, environment_id: id(*number), workflow_id: None };
        environments.iter().map(|number| (lane(number), Timestamp::MAX)).collect()
    }

    /// Environments with due tasks, by class, and the order of their turns.
    type Row<'r> = ([&'r [u8]; 3], Vec<(u8, Vec<usize>)>);

    /// The order of turns: environments, and the number of their lanes by class.
    fn taken(turns: &Turns, by_class: [&[u8]; 3]) -> Vec<(EnvironmentId, Vec<usize>)> {
        let classes = TaskClass::ALL.into_iter().zip(by_class);
        let due = Due(classes.map(|(class, of)| lanes(class, of)).collect());
        let counts = |lanes: Vec<Vec<DueLane>>| lanes.iter().map(Vec::len).collect();
        turns.take(&due).into_iter().map(|(id, lanes)| (id, counts(lanes))).collect()
    }

    #[test]
    fn environments_take_turns() {
        let turns = Turns::default();
        let rows: [Row<'_>; 7] = [
            ([&[], &[3, 1, 2], &[]], vec![(1, vec![1]), (2, vec![1]), (3, vec![1])]),
            ([&[], &[3, 1, 2], &[]], vec![(2, vec![1]), (3, vec![1]), (1, vec![1])]),
            ([&[], &[1, 2], &[]], vec![(1, vec![1]), (2, vec![1])]),
            // Two lanes of one environment, and one of a later class.
            ([&[], &[2, 2], &[2]], vec![(2, vec![2, 1]), (2, vec![1])]),
            // Urgent tasks come first, and other environments before what is not urgent.
            ([&[1], &[3, 1], &[3]], vec![(1, vec![1]), (3, vec![1]), (1, vec![1]), (3, vec![1])]),
            ([&[3], &[], &[3, 4]], vec![(3, vec![1, 0]), (3, vec![1]), (4, vec![1])]),
            ([&[], &[], &[]], Vec::new()),
        ];
        for (at, (due, expected)) in rows.into_iter().enumerate() {
            let expected: Vec<_> =
                expected.into_iter().map(|(of, lanes)| (id(of), lanes)).collect();
            assert_eq!(taken(&turns, due), expected, "row {at}");
        }
    }
}
