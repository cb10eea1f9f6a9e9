//! Fair scheduling: the lanes and environments whose tasks a claim takes. Lanes of a class take turns, also if a
//! claim is smaller than their number. In a store that runs environments side by side, environments do: a
//! claim of all of them would hold up the writers of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

use domain::ids::EnvironmentId;
use domain::task::{Lane, TaskClass};
use domain::time::Timestamp;
use foldhash::HashMap;
use parking_lot::Mutex;
use store::Snapshot;

use super::due::lanes_of;
use crate::Result;

/// Scheduler of the claims in this process.
#[derive(Debug, Default)]
pub(crate) struct FairScheduler {
    // Number of claims for which no earlier claim has passed over a task.
    claims: AtomicU32,
    // Class of a task that a claim has passed over.
    owed: Mutex<Option<TaskClass>>,
    // The environment that has had its turn last, by class.
    environments: Mutex<BTreeMap<TaskClass, EnvironmentId>>,
    lanes: Mutex<LaneHistory>,
}

// Lanes that have had turns.
#[derive(Debug, Default)]
struct LaneHistory {
    claims: u64,
    lanes: HashMap<Lane, LaneService>,
}

// The turns of a lane.
#[derive(Clone, Copy, Debug, Default)]
struct LaneService {
    // Number of the claim with which the last one has ended.
    ended: u64,
    // Number of tasks in the present one.
    tasks: usize,
}

/// Lanes with due tasks, by class.
#[derive(Debug, Default)]
pub(super) struct Due(Vec<Vec<DueLane>>);

/// A lane, and the time at which its first task is due.
type DueLane = (Lane, Timestamp);

/// Number of lanes of a class that share the turns at most: those that have been due for longest.
pub(super) const LANES: usize = 1_024;

// Number of tasks with which the turn of a lane ends. A smaller claim leaves the lane its turn.
const QUANTUM: usize = 8;

// Number of lanes whose last turn is known, at least.
const KNOWN: usize = 4 * LANES;

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
        due.0.push(found.lanes);
    }
    Ok(Some(due))
}

impl FairScheduler {
    /// Returns environments with the lanes that a claim takes tasks of, by class, in the order of
    /// their turns. The first one has its turn. Those with due tasks of a class come before the
    /// others. An environment has its lanes of later classes as well, as far as no other one has
    /// such lanes.
    pub(super) fn environments_in_turn(
        &self,
        due: &Due,
    ) -> Vec<(EnvironmentId, Vec<Vec<DueLane>>)> {
        let mut last = self.environments.lock();
        let (mut order, mut first) = (Vec::new(), None);
        for (at, (class, lanes)) in TaskClass::ALL.into_iter().zip(&due.0).enumerate() {
            let environments = lanes.iter().map(environment).collect();
            for own in behind(&environments, last.get(&class).copied()) {
                first.get_or_insert((class, own));
                let classes = due.0.iter().skip(at);
                let until = classes.clone().position(|lanes| has_other(lanes, own));
                let taken = classes.take(until.unwrap_or(due.0.len()).max(1));
                order.push((own, taken.map(|lanes| lanes_of_one(lanes, own)).collect()));
            }
        }
        last.extend(first);
        order
    }

    /// Returns the class that the next claim begins with: that of a task which the last one has passed
    /// over, or the last class in some claims, because tasks of the others may be due all the time.
    /// Returns `None` if the claim begins with the first class that has due tasks.
    pub(super) fn next_class(&self) -> Option<TaskClass> {
        let owed = self.owed.lock().take();
        let is_last = || {
            let claims = self.claims.fetch_add(1, Ordering::Relaxed);
            claims % IN_BACKGROUND == IN_BACKGROUND - 1
        };
        owed.or_else(|| is_last().then_some(TaskClass::Background))
    }

    /// Returns the first `limit` of some lanes in the order of their turns: those first whose last turn is
    /// the longest ago, and as they were among those without one.
    pub(super) fn in_turn(&self, mut lanes: Vec<DueLane>, limit: usize) -> Vec<DueLane> {
        let served = self.lanes.lock();
        lanes.sort_by_key(|(lane, _)| served.lanes.get(lane).map_or(0, |turn| turn.ended));
        lanes.truncate(limit);
        lanes
    }

    /// Returns `true` if it is known that a claim has taken tasks of a lane.
    pub(super) fn has_served(&self, lane: &Lane) -> bool {
        self.lanes.lock().lanes.contains_key(lane)
    }

    /// Notes a claim, with the lane of each task that it has leased, and the lanes of those that it has
    /// passed over. These have the next turns of their classes.
    pub(super) fn note(&self, leased: impl Iterator<Item = Lane>, passed: &[Lane]) {
        if let Some(lane) = passed.first() {
            *self.owed.lock() = Some(lane.class);
        }
        let served = &mut *self.lanes.lock();
        served.claims += 1;
        for lane in leased.filter(|lane| !passed.contains(lane)) {
            let turn = served.lanes.entry(lane).or_default();
            turn.tasks += 1;
            if turn.tasks >= QUANTUM {
                *turn = LaneService { ended: served.claims, tasks: 0 };
            }
        }
        if served.lanes.len() > 2 * KNOWN {
            let mut ends: Vec<_> = served.lanes.values().map(|turn| turn.ended).collect();
            ends.sort_unstable();
            let oldest = ends.get(ends.len() - KNOWN).copied().unwrap_or_default();
            served.lanes.retain(|_, turn| turn.ended > oldest);
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
    fn taken(scheduler: &FairScheduler, by_class: [&[u8]; 3]) -> Vec<(EnvironmentId, Vec<usize>)> {
        let classes = TaskClass::ALL.into_iter().zip(by_class);
        let due = Due(classes.map(|(class, of)| lanes(class, of)).collect());
        let counts = |lanes: Vec<Vec<DueLane>>| lanes.iter().map(Vec::len).collect();
        scheduler
            .environments_in_turn(&due)
            .into_iter()
            .map(|(id, lanes)| (id, counts(lanes)))
            .collect()
    }

    /// One row per claim of two: the lanes with due tasks, those that it takes, and those whose turns end.
    #[test]
    fn lanes_take_turns_also_if_they_are_more_than_a_claim_takes() {
        let scheduler = FairScheduler::default();
        let rows: [(&[u8], &[u8], &[u8]); 7] = [
            (&[3, 1, 2], &[3, 1], &[3, 1]),
            (&[3, 1, 2], &[2, 3], &[2, 3]),
            (&[3, 1, 2, 4], &[4, 1], &[4, 1]),
            // One that is not leased beside others has the next turn.
            (&[3, 2], &[3, 2], &[2]),
            (&[2, 3], &[3, 2], &[3]),
            (&[1, 2, 5], &[5, 1], &[5, 1]),
            (&[], &[], &[]),
        ];
        for (at, (due, taken, leased)) in rows.into_iter().enumerate() {
            let [due, taken, leased] = [due, taken, leased].map(|of| lanes(TaskClass::Normal, of));
            assert_eq!(scheduler.in_turn(due, 2), taken, "row {at}");
            let leased = leased.iter().flat_map(|(lane, _)| [*lane; QUANTUM]);
            scheduler.note(leased, &[]);
        }
    }

    #[test]
    fn lanes_that_had_their_turns_long_ago_are_forgotten() {
        let scheduler = FairScheduler::default();
        let lane = |number: u128| Lane {
            class: TaskClass::Normal,
            environment_id: Uuid::from_u128(number).into(),
            workflow_id: None,
        };
        (0..10_000).for_each(|number| scheduler.note([lane(number); QUANTUM].into_iter(), &[]));
        assert!(scheduler.lanes.lock().lanes.len() <= 2 * KNOWN);
        let due = vec![(lane(9_999), Timestamp::MAX), (lane(0), Timestamp::MAX)];
        assert_eq!(scheduler.in_turn(due, 1), [(lane(0), Timestamp::MAX)]);
    }

    /// The class that a claim begins with.
    #[test]
    fn what_was_passed_over_is_in_the_next_claim() {
        let scheduler = FairScheduler::default();
        let firsts = |count| (0..count).map(|_| scheduler.next_class()).collect::<Vec<_>>();
        assert_eq!(firsts(15), [None; 15]);
        let due = lanes(TaskClass::Normal, &[1, 2]);
        let [passed, other] = [due[0].0, due[1].0];
        scheduler.note([passed, other].into_iter().flat_map(|lane| [lane; QUANTUM]), &[passed]);
        assert_eq!(scheduler.in_turn(due.clone(), 2), due);
        assert_eq!(firsts(3), [Some(TaskClass::Normal), Some(TaskClass::Background), None]);
    }

    #[test]
    fn environments_take_turns() {
        let scheduler = FairScheduler::default();
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
            assert_eq!(taken(&scheduler, due), expected, "row {at}");
        }
    }
}
