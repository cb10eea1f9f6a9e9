//! Turns: whose tasks a claim takes. Lanes of a class take turns, also if a claim is smaller than their
//! number. In a store that runs environments side by side, environments do: a claim of all of them would
//! hold up the writers of each.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

use domain::ids::EnvironmentId;
use domain::task::{Lane, TaskClass};
use domain::time::Timestamp;
use parking_lot::Mutex;
use store::Snapshot;

use super::claim::lanes_of;
use crate::Result;

/// The turns in this process.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    // Number of claims.
    claims: AtomicU32,
    // The environment that has had its turn last.
    environment: Mutex<Option<EnvironmentId>>,
    // The lane of each class that has had its turn last.
    lanes: Mutex<BTreeMap<TaskClass, Lane>>,
}

/// Lanes with due tasks, by class.
#[derive(Debug, Default)]
pub(super) struct Due(Vec<(TaskClass, Vec<DueLane>)>);

/// A lane, and the time at which its first task is due.
type DueLane = (Lane, Timestamp);

/// Number of lanes of a class that share the turns at most: those that have been due for longest.
pub(super) const LANES: usize = 64;

// One claim in so many begins with a task of the last class.
const IN_BACKGROUND: u32 = 16;

/// The lanes with a task that is due at `now`. Returns `None` if an entry leads to no lane. Such an
/// entry may belong to no environment.
pub(super) fn due(snapshot: &dyn Snapshot, now: Timestamp) -> Result<Option<Due>> {
    let mut due = Due::default();
    for class in TaskClass::ALL {
        let found = lanes_of(snapshot, class, now, LANES)?;
        if !found.unreadable.is_empty() {
            return Ok(None);
        }
        due.0.push((class, found.lanes));
    }
    Ok(Some(due))
}

impl Turns {
    /// Returns environments with the lanes that a claim takes tasks of, by class, in the order of
    /// their turns. The first one has its turn. Those with due tasks of a class come before the
    /// others. An environment has its lanes of later classes as well, as far as no other one has
    /// such lanes.
    pub(super) fn take(&self, due: &Due) -> Vec<(EnvironmentId, Vec<(TaskClass, Vec<DueLane>)>)> {
        let mut last = self.environment.lock();
        let mut order = Vec::new();
        for (at, (_, lanes)) in due.0.iter().enumerate() {
            let environments = lanes.iter().map(environment).collect();
            for own in behind(&environments, *last) {
                let classes = due.0.iter().skip(at);
                let until = classes.clone().position(|(_, lanes)| has_other(lanes, own));
                let taken = classes.take(until.unwrap_or(due.0.len()).max(1));
                let taken = taken.map(|(class, lanes)| (*class, lanes_of_one(lanes, own)));
                order.push((own, taken.collect()));
            }
        }
        if let Some((first, _)) = order.first() {
            *last = Some(*first);
        }
        order
    }

    /// Returns `true` if it is the turn of the last class.
    pub(super) fn is_in_background(&self) -> bool {
        self.claims.fetch_add(1, Ordering::Relaxed) % IN_BACKGROUND == IN_BACKGROUND - 1
    }

    /// Returns the first `limit` lanes of a class in the order of their turns.
    pub(super) fn in_turn(
        &self,
        class: TaskClass,
        mut lanes: Vec<DueLane>,
        limit: usize,
    ) -> Vec<DueLane> {
        let last = self.lanes.lock().get(&class).copied();
        lanes.sort_unstable_by_key(|(lane, _)| (Some(*lane) <= last, *lane));
        lanes.truncate(limit);
        lanes
    }

    /// Ends the turns of a claim. `found` are the lanes of the tasks that it has found, in the order of
    /// their turns, and `leased` those of the tasks that it has leased. The first lane without one keeps
    /// its turn.
    pub(super) fn end(&self, found: &[Lane], leased: &HashSet<Lane>) {
        let mut lanes = self.lanes.lock();
        let mut waiting = HashSet::new();
        for lane in found {
            if !leased.contains(lane) {
                waiting.insert(lane.class);
            } else if !waiting.contains(&lane.class) {
                lanes.insert(lane.class, *lane);
            }
        }
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
        let due = Due(classes.map(|(class, of)| (class, lanes(class, of))).collect());
        let counts =
            |lanes: Vec<(TaskClass, Vec<DueLane>)>| lanes.iter().map(|(_, of)| of.len()).collect();
        turns.take(&due).into_iter().map(|(id, lanes)| (id, counts(lanes))).collect()
    }

    /// One row per claim of two: the lanes with due tasks, those that it takes, and those that it leases.
    #[test]
    fn lanes_take_turns_also_if_they_are_more_than_a_claim_takes() {
        let turns = Turns::default();
        let numbered = |lanes: &[DueLane]| -> Vec<u8> {
            let number =
                |lane: &DueLane| *Uuid::from(environment(lane)).as_bytes().first().unwrap();
            lanes.iter().map(number).collect()
        };
        let rows: [(&[u8], &[u8], &[u8]); 8] = [
            (&[3, 1, 2], &[1, 2], &[1, 2]),
            (&[3, 1, 2], &[3, 1], &[3, 1]),
            (&[3, 1, 2], &[2, 3], &[2, 3]),
            // The first one is not leased beside others, and has the next turn.
            (&[1, 2], &[1, 2], &[2]),
            (&[1, 2], &[1, 2], &[1]),
            (&[1, 2, 4], &[2, 4], &[2]),
            (&[1, 4], &[4, 1], &[4]),
            (&[], &[], &[]),
        ];
        for (at, (due, taken, leased)) in rows.into_iter().enumerate() {
            let found = turns.in_turn(TaskClass::Normal, lanes(TaskClass::Normal, due), 2);
            assert_eq!(numbered(&found), taken, "row {at}");
            let lanes_of =
                |of: &[u8]| lanes(TaskClass::Normal, of).into_iter().map(|(lane, _)| lane);
            let found: Vec<_> = found.iter().map(|(lane, _)| *lane).collect();
            turns.end(&found, &lanes_of(leased).collect());
        }
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
