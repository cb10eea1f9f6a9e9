//! Limits of the calls of a provider: tables, and simulations of floods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use domain::task::TaskClass;
use uuid::Uuid;

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn lane(class: TaskClass) -> Lane {
    lane_of(class, 0)
}

fn lane_of(class: TaskClass, number: usize) -> Lane {
    Lane { class, environment_id: Uuid::from_u128(number as u128).into(), workflow_id: None }
}

fn with_rate(limit: usize) -> Quotas {
    let mut limits = CallLimits::default();
    limits.limit_rate("smtp".into(), limit);
    Quotas::new(limits)
}

// The time to which a call at `now` is held back.
fn later(quotas: &Quotas, now: i64) -> Option<i64> {
    later_of(quotas, TaskClass::Normal, now)
}

fn later_of(quotas: &Quotas, class: TaskClass, now: i64) -> Option<i64> {
    ask(quotas, (lane(class), now), now)
}

// The time to which a message is held back that is due since a time, and asks at `now`.
fn ask(quotas: &Quotas, (lane, since): (Lane, i64), now: i64) -> Option<i64> {
    match quotas.admit("smtp", (lane, at(since)), &|| at(now)) {
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

#[test]
fn a_rate_counts_the_second_before() {
    let quotas = with_rate(2);
    let held: Vec<_> = [0, 400, 500, 600, 700, 999].map(|now| later(&quotas, now)).into();
    // Each at the time at which its call is free.
    let spread = [1_000, 1_400, 2_000, 2_400].map(Some);
    assert_eq!(held, [&[None, None], &spread[..]].concat());
    assert_eq!(
        [1_000, 1_399, 1_400].map(|now| later(&quotas, now).is_some()),
        [false, true, false]
    );
}

#[test]
fn a_lane_does_not_wait_behind_another_one() {
    let quotas = with_rate(1);
    let flood: Vec<_> = (0..4).map(|now| later(&quotas, now)).collect();
    assert_eq!(flood, [None, Some(1_000), Some(2_000), Some(3_000)]);
    assert_eq!(later_of(&quotas, TaskClass::Urgent, 4), Some(1_000));
    assert_eq!(later_of(&quotas, TaskClass::Urgent, 1_000), None);
}

/// What is urgent is expected at 1,000 ms. A message that is there before it does not take its call.
#[test]
fn a_call_is_kept_for_what_is_expected() {
    let quotas = with_rate(1);
    assert_eq!(later(&quotas, 0), None);
    let normal = |now| later(&quotas, now);
    assert_eq!(later_of(&quotas, TaskClass::Urgent, 10), Some(1_000));
    assert_eq!(normal(20), Some(2_000));
    assert!(normal(1_000).is_some());
    let urgent = ask(&quotas, (lane(TaskClass::Urgent), 1_000), 1_005);
    assert_eq!(urgent, None);
}

/// What is urgent was canceled, as nobody says.
#[test]
fn a_call_is_kept_for_a_second() {
    let quotas = with_rate(1);
    assert_eq!(later(&quotas, 0), None);
    assert_eq!(later_of(&quotas, TaskClass::Urgent, 10), Some(1_000));
    assert_eq!(later(&quotas, 1_000), Some(2_000));
    assert_eq!(ask(&quotas, (lane(TaskClass::Normal), 2_000), 2_000), None);
}

/// The messages of an urgent flood were canceled.
#[test]
fn a_flood_that_does_not_come_holds_up_no_other_lane() {
    let quotas = with_rate(10);
    for _ in 0..2_000 {
        later_of(&quotas, TaskClass::Urgent, 0);
    }
    let mut now = 1_000;
    let mut calls = Vec::new();
    while now < 20_000 {
        let other = lane(TaskClass::Normal);
        calls.extend(ask(&quotas, (other, now), now).is_none().then_some(now));
        now += 50;
    }
    let late = calls.iter().filter(|at| **at > 3_000).count();
    assert!(late >= 160, "{late} calls");
}

/// Most of a flood may be canceled, and nobody says so.
#[test]
fn messages_are_held_back_for_five_minutes_at_most() {
    let quotas = with_rate(2);
    let flood: Vec<_> = (0..2_000).filter_map(|_| later(&quotas, 0)).collect();
    let longest = flood.iter().max();
    assert_eq!((longest, flood[599], flood[600]), (Some(&300_000), 300_000, 1_000));
}

// Calls of a simulation: their times, the lanes, and the times at which the messages have come first.
struct Simulated {
    calls: Vec<(i64, Lane, i64)>,
    questions: usize,
}

// Messages come at their times, and some milliseconds behind those to which they are held back.
fn simulate(limit: usize, messages: &[(i64, Lane)]) -> Simulated {
    let quotas = with_rate(limit);
    let numbered = messages.iter().enumerate().map(|(number, (time, _))| (*time, number));
    let mut due: BTreeSet<_> = numbered.collect();
    let (mut calls, mut questions, mut now) = (Vec::new(), 0, 0);
    while let Some((time, message)) = due.pop_first() {
        questions += 1;
        let (first, lane) = messages[message];
        let delay = i64::try_from(questions * 7 % 13).unwrap();
        now = now.max(time + delay);
        match ask(&quotas, (lane, time), now) {
            None => calls.push((now, lane, first)),
            Some(time) => drop(due.insert((time, message))),
        }
    }
    assert!(calls.windows(limit + 1).all(|few| few[limit].0 - few[0].0 >= 1_000), "{limit}");
    Simulated { calls, questions }
}

fn flood_of(class: TaskClass, size: usize) -> Vec<(i64, Lane)> {
    vec![(0, lane(class)); size]
}

/// Some of the messages come before their calls are free.
#[test]
fn a_flood_has_all_calls_that_there_are() {
    const MESSAGES: usize = 1_000;
    for limit in [1, 3, 20, 100] {
        let Simulated { calls, questions } =
            simulate(limit, &flood_of(TaskClass::Normal, MESSAGES));
        let seconds = i64::try_from(MESSAGES / limit).unwrap();
        let span = calls.last().unwrap().0 - calls[0].0;
        assert!(span <= 1_000 * seconds + 20 * seconds, "{limit}: {span}");
        assert!(questions <= 6 * MESSAGES, "{limit}: {questions}");
    }
}

/// All are expected a little before their times, the last one first.
#[test]
fn messages_that_come_before_an_expected_one_are_expected_too() {
    let (mut waiting, lane) = (waiting::Waiting::default(), lane(TaskClass::Normal));
    for time in [20, 5, 10, 15] {
        waiting.wait(lane, at(time));
        waiting.pass(at(0));
    }
    let come = [20, 5, 10, 15, 25].map(|time| waiting.come(lane, at(time)));
    assert_eq!(come, [true, true, true, true, false]);
}

#[test]
fn lanes_take_turns_call_by_call() {
    const LANES: usize = 60;
    const EACH: usize = 20;
    let lanes: Vec<_> = (0..LANES).map(|number| lane_of(TaskClass::Normal, number)).collect();
    let messages: Vec<_> = (0..EACH).flat_map(|_| lanes.iter().map(|lane| (0, *lane))).collect();

    let Simulated { calls, questions } = simulate(10, &messages);

    let mut served: BTreeMap<_, _> = lanes.iter().map(|lane| (*lane, 0)).collect();
    for (time, lane, _) in &calls {
        *served.get_mut(lane).unwrap() += 1;
        let waiting = || served.values().filter(|count| **count < EACH);
        let apart = waiting().max().zip(waiting().min()).map_or(0, |(most, least)| most - least);
        assert!(apart <= 2, "{apart} calls apart at {time}");
    }
    let span = calls.last().unwrap().0;
    assert!(span <= 120_000 * 110 / 100, "{span}");
    assert!(questions <= 3 * messages.len(), "{questions}");
}

/// As many messages as the provider takes in a hundred seconds, and five of another workflow.
#[test]
fn a_late_lane_has_its_turns_at_once() {
    for limit in [1, 10, 50] {
        let mut messages = flood_of(TaskClass::Normal, 100 * limit);
        let late = lane_of(TaskClass::Normal, 1);
        messages.extend([(5_005, late); 5]);

        let Simulated { calls, .. } = simulate(limit, &messages);

        let last = calls.iter().rfind(|(_, lane, _)| *lane == late).unwrap().0 - 5_005;
        let turns = 1_000 * 5 * 2 / i64::try_from(limit).unwrap();
        assert!(last <= turns + 1_000 + 100, "{limit}: {last}");
    }
}

/// They come at any time in a flood, as many in a second as the provider takes or fewer.
#[test]
fn urgent_messages_are_called_within_a_second() {
    for limit in [1_usize, 5, 10, 50] {
        let mut messages = flood_of(TaskClass::Normal, 60 * limit);
        let apart = 1_250 / i64::try_from(limit).unwrap();
        for number in 0..30 * i64::try_from(limit).unwrap() {
            let time = 2_000 + number * apart + number * 7_919 % 97 * apart / 500;
            let lane = lane_of(TaskClass::Urgent, usize::try_from(number % 3).unwrap());
            messages.push((time, lane));
        }

        let Simulated { calls, questions } = simulate(limit, &messages);

        let urgent = calls.iter().filter(|(_, lane, _)| lane.class == TaskClass::Urgent);
        let longest = urgent.map(|(time, _, first)| time - first).max().unwrap();
        assert!(longest <= 1_100, "{limit}: {longest}");
        assert!(questions <= 4 * messages.len(), "{limit}: {questions}");
    }
}

/// A question looks at a few lanes only.
#[test]
fn many_lanes_take_turns() {
    const LANES: usize = 10_000;
    let messages: Vec<_> =
        (0..LANES).map(|number| (0, lane_of(TaskClass::Normal, number))).collect();
    let Simulated { calls, questions } = simulate(100, &messages);
    assert!(calls.last().unwrap().0 <= 110_000);
    assert!(questions <= 4 * LANES, "{questions}");
}

/// A thread reads the clock, and others do before it asks.
#[test]
fn calls_that_ask_late_are_counted() {
    let quotas = with_rate(3);
    let held: Vec<_> = [0, 5, 0, 6].map(|now| later(&quotas, now)).into();
    assert_eq!(held, [None, None, None, Some(1_000)]);
}

/// The first call begins long after it was admitted, and the second one does not begin.
#[test]
fn a_call_counts_from_its_beginning() {
    let quotas = with_rate(2);
    let admit = |now| quotas.admit("smtp", (lane(TaskClass::Normal), at(now)), &|| at(now));
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
            let since = pass(0);
            let caller = (lane(TaskClass::Normal), since);
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
    let caller = (lane(TaskClass::Normal), at(0));
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

/// The provider counts by its own clock.
#[test]
fn a_clock_that_goes_back_again_and_again_frees_no_call() {
    let quotas = with_rate(2);
    let times = [10_000, 10_000, 8_500, 8_500, 10_100, 10_100, 8_700, 8_700];
    // A step back dates the first two to 8,500. At 10,100 the messages that were held back go first, and at
    // 8,700 the first two are of the last second again.
    let made = times.iter().filter(|now| later(&quotas, **now).is_none()).count();
    assert_eq!(made, 2);
}

/// A clock that is ahead for a while shows the calls before that as old ones.
#[test]
fn a_clock_that_was_ahead_for_a_while_frees_no_call() {
    let quotas = with_rate(2);
    let held = [0, 0, 3_000, 100].map(|now| later(&quotas, now).is_some());
    assert_eq!(held, [false, false, false, true]);

    let quotas = with_rate(2);
    assert_eq!([0, 0].map(|now| later(&quotas, now)), [None; 2]);
    // This call is not made.
    let caller = (lane(TaskClass::Normal), at(3_000));
    assert!(matches!(quotas.admit("smtp", caller, &|| at(3_000)), CallAdmission::Now(_)));
    assert_eq!([100, 1_100].map(|now| later(&quotas, now).is_some()), [true, false]);
}

#[test]
fn other_providers_have_no_limit() {
    let quotas = with_rate(1);
    for _ in 0..3 {
        let caller = (lane(TaskClass::Normal), at(0));
        assert!(matches!(quotas.admit("ses", caller, &|| at(0)), CallAdmission::Now(_)));
    }
}

#[test]
fn calls_under_way_are_limited() {
    let mut limits = CallLimits::default();
    limits.limit_concurrent("smtp".into(), 2);
    let quotas = Quotas::new(limits);
    let admit = || quotas.admit("smtp", (lane(TaskClass::Normal), at(0)), &|| at(0));
    let permits = [admit(), admit()];
    assert_eq!(quotas.running(), BTreeMap::from([("smtp".into(), 2)]));
    assert_eq!(later(&quotas, 0), Some(1_000));
    drop(permits);
    assert_eq!(later(&quotas, 0), None);
    assert_eq!(quotas.running(), BTreeMap::new());
}
