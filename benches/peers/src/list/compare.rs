//! Who is how fast: everybody in turn, shape by shape.

use std::time::{Duration, Instant};

use crate::list::oracle::Expected;
use crate::list::sql::Way;
use crate::list::system::{Peer, System};
use crate::sample::{self, quantile};

/// How long each way to answer a question is tried.
const TRIAL: Duration = Duration::from_millis(60);
/// The fastest way for each shape, of those that were found, all of which give the right answer.
pub(crate) fn fastest(
    peer: &mut dyn Peer,
    expected: &[Expected],
    ways: Vec<Vec<Way>>,
    check: Check,
) -> Vec<Way> {
    let mut fastest = Vec::new();
    for (expected, ways) in expected.iter().zip(ways) {
        let mut best: Option<(Duration, Way)> = None;
        for way in ways {
            let mut system = peer.prepare(&[&way]);
            check(&mut *system, 0, expected, &way.name);
            let most = best.as_ref().map_or(Duration::MAX, |(best, _)| *best * 5);
            let took = trial(&mut *system, most);
            drop(system);
            if best.as_ref().is_none_or(|(best, _)| took < *best) {
                best = Some((took, way));
            }
        }
        fastest.extend(best.map(|(_, way)| way));
    }
    fastest
}

/// The median of some runs, or one of them if it takes more than that.
pub(crate) fn trial(system: &mut dyn System, most: Duration) -> Duration {
    // The first one finds nothing in memory.
    once(system, 0);
    let first = once(system, 0);
    if first > most {
        return first;
    }
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 5 || start.elapsed() < TRIAL {
        times.push(once(system, 0));
    }
    quantile(&mut times, 0.5)
}

/// Panics unless a system is right about a shape.
pub(crate) type Check = fn(&mut dyn System, usize, &Expected, &str);

/// Panics unless a system counts what matches.
pub(crate) fn check_count(system: &mut dyn System, shape: usize, expected: &Expected, name: &str) {
    let count = system.find(shape).into_iter().map(i64::cast_unsigned);
    assert!(
        count.eq([expected.matches]),
        "{name} is wrong about the count of {}",
        expected.shape.name
    );
}

/// Panics unless a system finds what it has to.
pub(crate) fn check(system: &mut dyn System, shape: usize, expected: &Expected, name: &str) {
    let found: Vec<_> = system.find(shape).into_iter().map(i64::cast_unsigned).collect();
    assert_eq!(found, expected.page(), "{name} is wrong about {}", expected.shape.name);
}

/// The median time of each system for each shape.
pub(crate) fn medians(
    systems: &mut [(&'static str, Box<dyn System + '_>)],
    expected: &[Expected],
    check: Check,
) -> Vec<Vec<Duration>> {
    let of_shape = |(shape, expected): (usize, &Expected)| {
        for (name, system) in systems.iter_mut() {
            check(&mut **system, shape, expected, name);
        }
        in_turns(systems, shape)
    };
    expected.iter().enumerate().map(of_shape).collect()
}

/// The median time of each system for a shape.
pub(crate) fn in_turns(
    systems: &mut [(&'static str, Box<dyn System + '_>)],
    shape: usize,
) -> Vec<Duration> {
    let calls = systems.iter_mut().map(|(_, system)| move || system.run(shape));
    sample::in_turns(&mut calls.collect::<Vec<_>>())
}

/// How long a system takes once.
pub(crate) fn once(system: &mut dyn System, shape: usize) -> Duration {
    let start = Instant::now();
    system.run(shape);
    start.elapsed()
}
