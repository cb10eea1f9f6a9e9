//! Limits of the calls of a provider, among threads and through permits.

use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use domain::task::{Lane, TaskClass};
use uuid::Uuid;

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

// A message that is due at a time.
fn caller(due_at: i64) -> Caller {
    let environment_id = Uuid::nil().into();
    let lane = Lane { class: TaskClass::Normal, environment_id, workflow_id: None };
    Caller { lane, due_at: at(due_at) }
}

fn with_rate(limit: usize) -> Quotas {
    let mut limits = CallLimits::default();
    limits.limit_rate("smtp".into(), limit);
    Quotas::new(limits)
}

// The time to which a call at `now` is held back.
fn later(quotas: &Quotas, now: i64) -> Option<i64> {
    match quotas.admit("smtp", caller(now), &|| at(now)) {
        CallAdmission::Now(mut permit) => {
            permit.begin(at(now));
            None
        }
        CallAdmission::Later { since, until } => {
            assert!(since == at(now) && until > since);
            Some(until.as_millis())
        }
    }
}

/// The first call begins long after it was admitted, and the second one does not begin.
#[test]
fn a_call_counts_from_its_beginning() {
    let quotas = with_rate(2);
    let admit = |now| quotas.admit("smtp", caller(now), &|| at(now));
    let (CallAdmission::Now(mut first), CallAdmission::Now(second)) = (admit(0), admit(0)) else {
        panic!("two calls are free");
    };
    assert_eq!(later(&quotas, 1_500), Some(2_500));
    first.begin(at(1_600));
    drop((first, second));
    assert_eq!(later(&quotas, 1_700), None);
    // The message that has asked at 1,500 ms has the call before.
    assert_eq!(later(&quotas, 1_701), Some(2_700));
}

/// Threads wait for the calls of others, and the clock goes on meanwhile.
#[test]
fn no_second_has_more_calls_than_the_rate_whatever_threads_do() {
    const LIMIT: usize = 10;
    let mut quotas = with_rate(LIMIT);
    quotas.limits.limit_concurrent("smtp".into(), 2);
    let clock = AtomicI64::new(0);
    let pass = |millis| at(clock.fetch_add(millis, Ordering::SeqCst) + millis);
    let work = || {
        let mut calls = Vec::new();
        while calls.len() < 40 {
            let caller = caller(pass(0).as_millis());
            match quotas.admit("smtp", caller, &|| pass(1)) {
                CallAdmission::Now(mut permit) => {
                    let now = pass(3);
                    permit.begin(now);
                    calls.push(now);
                    thread::yield_now();
                    pass(40);
                }
                CallAdmission::Later { .. } => drop(pass(7)),
            }
        }
        calls
    };
    let mut calls: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    calls.sort_unstable();
    let few = calls.windows(LIMIT + 1).map(|few| few[LIMIT].since(few[0]));
    assert!(few.min().unwrap() >= SECOND);
}

/// The clock is the host's, and may look at the queue.
#[test]
fn a_clock_is_read_behind_a_wait_and_without_a_lock() {
    let mut quotas = with_rate(1);
    quotas.limits.limit_concurrent("smtp".into(), 1);
    let caller = caller(0);
    let clock = AtomicI64::new(0);
    let read = || {
        assert!(quotas.calls.try_lock().is_some());
        at(clock.load(Ordering::SeqCst))
    };
    let CallAdmission::Now(mut first) = quotas.admit("smtp", caller, &read) else {
        panic!("a call is free");
    };
    first.begin(at(0));
    thread::scope(|scope| {
        let second = scope.spawn(|| match quotas.admit("smtp", caller, &read) {
            CallAdmission::Now(_) => None,
            CallAdmission::Later { since, .. } => Some(since),
        });
        thread::sleep(Duration::from_millis(20));
        clock.store(300, Ordering::SeqCst);
        drop(first);
        assert_eq!(second.join().unwrap(), Some(at(300)));
    });
}

#[test]
fn a_clock_that_was_ahead_holds_calls_back_for_a_second() {
    const YEAR: i64 = 365 * 24 * 3_600_000;
    let quotas = with_rate(1);
    let held: Vec<_> = [YEAR, YEAR, 0, 1, 1_000].map(|now| later(&quotas, now)).into();
    assert_eq!(held, [None, Some(YEAR + 1_000), Some(1_000), Some(2_000), None]);
}

#[test]
fn other_providers_have_no_limit() {
    let quotas = with_rate(1);
    for _ in 0..3 {
        let caller = caller(0);
        assert!(matches!(quotas.admit("ses", caller, &|| at(0)), CallAdmission::Now(_)));
    }
}

#[test]
fn calls_under_way_are_limited() {
    let mut limits = CallLimits::default();
    limits.limit_concurrent("smtp".into(), 2);
    let quotas = Quotas::new(limits);
    let admit = || quotas.admit("smtp", caller(0), &|| at(0));
    let permits = [admit(), admit()];
    assert_eq!(quotas.running(), BTreeMap::from([("smtp".into(), 2)]));
    assert_eq!(later(&quotas, 0), Some(1_000));
    drop(permits);
    assert_eq!(later(&quotas, 0), None);
    assert_eq!(quotas.running(), BTreeMap::new());
}
