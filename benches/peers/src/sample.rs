//! Times of calls.

use std::time::{Duration, Instant};

/// How long each system is called.
const BUDGET: Duration = Duration::from_millis(400);
/// How many calls a system makes before it is the next one's turn, and how many turns there are.
const TURN: usize = 4;
const TURNS: usize = 1_000;

/// Calls the systems in turns. Returns the median time of each.
pub(crate) fn in_turns(systems: &mut [impl FnMut()]) -> Vec<Duration> {
    let mut times = vec![Vec::new(); systems.len()];
    let mut spent = vec![Duration::ZERO; systems.len()];
    for _ in 0..TURNS {
        for ((times, spent), system) in times.iter_mut().zip(&mut spent).zip(&mut *systems) {
            if *spent < BUDGET {
                times.extend((0..TURN).map(|_| once(&mut *system)));
                *spent = times.iter().sum();
            }
        }
    }
    times.iter_mut().map(|times| quantile(times, 0.5)).collect()
}

/// Calls `run` with the systems in turns, each with the number of the call. Returns the median time of each.
pub(crate) fn of_systems<S: Copy>(systems: &[S], run: impl Fn(S, u64)) -> Vec<Duration> {
    let mut calls: Vec<_> = systems
        .iter()
        .map(|&system| {
            let (run, mut call) = (&run, 0);
            move || {
                run(system, call);
                call += 1;
            }
        })
        .collect();
    in_turns(&mut calls)
}

fn once(mut call: impl FnMut()) -> Duration {
    let start = Instant::now();
    call();
    start.elapsed()
}

/// Returns the time that this share of all times does not exceed.
pub(crate) fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    #[expect(clippy::cast_possible_truncation, reason = "it is the place of one of them")]
    #[expect(clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "there are few")]
    let at = ((times.len() - 1) as f64 * share).round() as usize;
    times[at]
}
