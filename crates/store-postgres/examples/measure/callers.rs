//! Triggers in a second of many callers of one process, on one environment and on several.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::{Decision, Store, WriteScope};
use testkit::postgres::Server;
use tidings::{Engine, Scope};

use crate::prepare;
use crate::throughput::trigger;

const SPAN: Duration = Duration::from_secs(3);

/// Callers, their environments, and how many of these another process holds.
const RUNS: [(usize, usize, usize); 7] =
    [(1, 1, 0), (8, 1, 0), (8, 8, 0), (64, 1, 0), (64, 16, 0), (64, 16, 1), (64, 16, 3)];

pub(crate) fn measure(server: &Server) {
    println!();
    println!(
        "| callers | environments | held | triggers a second | p50 | p99 | round trips of each |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for run in RUNS {
        measure_one(server, run);
    }
}

/// Prints a row. Callers of an environment that is held do not count.
fn measure_one(server: &Server, (callers, environments, held): (usize, usize, usize)) {
    let place = server.place().with(|options| options.connections = 8);
    let (store, holders) = (place.open(), vec![place.open(); held]);
    let engine = Engine::builder().build(store.clone());
    let scopes: Vec<Scope> =
        (0..environments).map(|at| prepare(&engine, &format!("shop-{at}"))).collect();
    for env in &scopes {
        (0..20).for_each(|number| trigger(env, number));
    }
    let (is_over, times) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let call = |at: usize| {
        let (env, mut own) = (&scopes[at % environments], Vec::new());
        for number in 0.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let start = Instant::now();
            trigger(env, at as u64 + number);
            own.push(start.elapsed());
        }
        if at % environments >= held {
            times.lock().extend(own);
        }
    };
    let started = AtomicU64::new(0);
    let before = store.round_trips();
    thread::scope(|threads| {
        for (env, holder) in scopes.iter().zip(&holders) {
            let (is_over, started) = (&is_over, &started);
            let scope = WriteScope::Environment(env.environment_id());
            threads.spawn(move || {
                let wait = holder.write_within(scope, &mut |_| {
                    started.fetch_add(1, Ordering::Relaxed);
                    while !is_over.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(10));
                    }
                    Ok(Decision::Abort)
                });
                wait.unwrap();
            });
        }
        while started.load(Ordering::Relaxed) < held as u64 {
            thread::yield_now();
        }
        let call = &call;
        for at in 0..callers {
            threads.spawn(move || call(at));
        }
        thread::sleep(SPAN);
        is_over.store(true, Ordering::Relaxed);
    });
    let trips = store.round_trips() - before;
    let mut times = times.into_inner();
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1_000.0;
    println!(
        "| {callers} | {environments} | {held} | {:.0} | {:.2} ms | {:.2} ms | {:.2} |",
        times.len() as f64 / SPAN.as_secs_f64(),
        at(50),
        at(99),
        trips as f64 / times.len() as f64,
    );
}
