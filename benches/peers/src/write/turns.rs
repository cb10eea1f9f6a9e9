//! Systems in turns.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bench_data::Calls;

use crate::write::disk::{self, Meter};
use crate::write::plan::Row;
use crate::write::system::{Call, System};

// Turns of each system, if a row is as long as usual.
const TURNS: usize = 3;

/// What a system did in all of its turns.
#[derive(Default)]
pub(crate) struct Sample {
    /// Time of each call.
    pub(crate) calls: Vec<Duration>,
    /// Time of the turns, until the system was at rest.
    pub(crate) took: Duration,
    pub(crate) notifications: u64,
    pub(crate) bytes: Option<u64>,
    pub(crate) syncs: Option<u64>,
}

/// Measures a row. The samples are in the order of the systems.
pub(crate) fn measure(
    row: &Row,
    rounds: usize,
    systems: &mut [Box<dyn System>],
    calls: &mut Calls,
    meter: &Meter,
) -> Vec<Sample> {
    let mut samples: Vec<Sample> = systems.iter().map(|_| Sample::default()).collect();
    for turn in 0..TURNS * rounds {
        let some: Vec<Call> = (0..row.calls * row.callers).map(|_| row.call(calls)).collect();
        // Each of them comes first in its turn.
        for at in 0..systems.len() {
            let at = (at + turn) % systems.len();
            if row.is_cold {
                systems[at].reopen();
            }
            samples[at].add(row, &*systems[at], &some, meter);
        }
    }
    samples
}

impl Sample {
    fn add(&mut self, row: &Row, system: &dyn System, calls: &[Call], meter: &Meter) {
        disk::rest(Instant::now());
        let (before, start) = (meter.now(), Instant::now());
        self.calls.extend(callers(system, row.callers, calls));
        self.took += disk::rest(Instant::now()).duration_since(start);
        let after = meter.now();
        let more = |sum: Option<u64>, before: Option<u64>, after: Option<u64>| {
            Some(sum.unwrap_or(0) + (after? - before?))
        };
        self.bytes = more(self.bytes, before.bytes, after.bytes);
        self.syncs = more(self.syncs, before.syncs, after.syncs);
        self.notifications += row.notifications() * calls.len() as u64;
    }
}

// Lets so many callers take the calls one by one. Returns the time of each call.
fn callers(system: &dyn System, callers: usize, calls: &[Call]) -> Vec<Duration> {
    let next = AtomicUsize::new(0);
    let caller = || {
        let mut times = Vec::new();
        while let Some(call) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            system.write(call);
            times.push(start.elapsed());
        }
        times
    };
    if callers == 1 {
        return caller();
    }
    thread::scope(|scope| {
        let threads: Vec<_> = (0..callers).map(|_| scope.spawn(caller)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}
