//! Who is how fast: everybody in turn, shape by shape.

use std::time::{Duration, Instant};

use crate::list::oracle::Expected;
use crate::list::sql::Way;
use crate::list::system::{Peer, System};
use crate::sample::quantile;

/// How long each shape is run by each system.
const BUDGET: Duration = Duration::from_millis(400);
/// How long each way to answer a question is tried.
const TRIAL: Duration = Duration::from_millis(60);
/// How many calls a system makes before it is the next one's turn, and how many turns there are.
const TURN: usize = 4;
const TURNS: usize = 1_000;

/// The fastest way for each shape, of those that were found, all of which give the right answer.
pub(crate) fn fastest(peer: &mut dyn Peer, expected: &[Expected], ways: Vec<Vec<Way>>) -> Vec<Way> {
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

/// Panics unless a system finds what it has to.
pub(crate) fn check(system: &mut dyn System, shape: usize, expected: &Expected, name: &str) {
    let found: Vec<_> = system.find(shape).into_iter().map(i64::cast_unsigned).collect();
    assert_eq!(found, expected.page(), "{name} is wrong about {}", expected.shape.name);
}

/// The median time of each system for each shape.
pub(crate) fn medians(
    systems: &mut [(&'static str, Box<dyn System + '_>)],
    expected: &[Expected],
) -> Vec<Vec<Duration>> {
    let of_shape = |(shape, expected): (usize, &Expected)| {
        for (name, system) in systems.iter_mut() {
            check(&mut **system, shape, expected, name);
        }
        in_turns(systems, shape)
    };
    expected.iter().enumerate().map(of_shape).collect()
}

fn in_turns(systems: &mut [(&'static str, Box<dyn System + '_>)], shape: usize) -> Vec<Duration> {
    let mut times = vec![Vec::new(); systems.len()];
    let mut spent = vec![Duration::ZERO; systems.len()];
    for _ in 0..TURNS {
        for ((times, spent), (_, system)) in times.iter_mut().zip(&mut spent).zip(&mut *systems) {
            if *spent < BUDGET {
                times.extend((0..TURN).map(|_| once(&mut **system, shape)));
                *spent = times.iter().sum();
            }
        }
    }
    times.iter_mut().map(|times| quantile(times, 0.5)).collect()
}

/// How long a system takes once.
pub(crate) fn once(system: &mut dyn System, shape: usize) -> Duration {
    let start = Instant::now();
    system.run(shape);
    start.elapsed()
}
