//! Rates of a provider: tables, and simulations of floods.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::sample::{at, id};

// A provider with a rate.
struct Provider {
    limit: usize,
    rate: Rate,
}

impl Provider {
    fn with_rate(limit: usize) -> Self {
        Self { limit, rate: Rate::default() }
    }

    // The time to which a call at `now` is held back.
    fn later(&mut self, now: i64) -> Option<i64> {
        self.later_of(TaskClass::Normal, now)
    }

    fn later_of(&mut self, class: TaskClass, now: i64) -> Option<i64> {
        self.ask(caller(lane(class), now), now)
    }

    // The time to which a message is held back that asks at `now`.
    fn ask(&mut self, caller: Caller, now: i64) -> Option<i64> {
        match self.rate.ask(caller, self.limit, at(now)) {
            Ok(()) => {
                self.rate.begin(at(now));
                None
            }
            Err(until) => {
                assert!(until > at(now));
                Some(until.as_millis())
            }
        }
    }
}

fn caller(lane: Lane, due_at: i64) -> Caller {
    Caller { lane, due_at: at(due_at) }
}

fn lane(class: TaskClass) -> Lane {
    lane_of(class, 0)
}

fn lane_of(class: TaskClass, number: usize) -> Lane {
    Lane { class, environment_id: id(number as u128), workflow_id: None }
}

#[test]
fn a_rate_counts_the_second_before() {
    let mut provider = Provider::with_rate(2);
    let held: Vec<_> = [0, 400, 500, 600, 700, 999].map(|now| provider.later(now)).into();
    // Each at the time at which its call is free.
    let spread = [1_000, 1_400, 2_000, 2_400].map(Some);
    assert_eq!(held, [&[None, None], &spread[..]].concat());
    assert_eq!(
        [1_000, 1_399, 1_400].map(|now| provider.later(now).is_some()),
        [false, true, false]
    );
}

#[test]
fn a_lane_does_not_wait_behind_another_one() {
    let mut provider = Provider::with_rate(1);
    let flood: Vec<_> = (0..4).map(|now| provider.later(now)).collect();
    assert_eq!(flood, [None, Some(1_000), Some(2_000), Some(3_000)]);
    assert_eq!(provider.later_of(TaskClass::Urgent, 4), Some(1_000));
    assert_eq!(provider.later_of(TaskClass::Urgent, 1_000), None);
}

/// What is urgent is expected at 1,000 ms. A message that is there before it does not take its call.
#[test]
fn a_call_is_kept_for_what_is_expected() {
    let mut provider = Provider::with_rate(1);
    assert_eq!(provider.later(0), None);
    assert_eq!(provider.later_of(TaskClass::Urgent, 10), Some(1_000));
    assert_eq!(provider.later(20), Some(2_000));
    assert!(provider.later(1_000).is_some());
    let urgent = provider.ask(caller(lane(TaskClass::Urgent), 1_000), 1_005);
    assert_eq!(urgent, None);
}

/// The urgent message was canceled, and the rate is not notified of that.
#[test]
fn a_call_is_kept_for_a_second() {
    let mut provider = Provider::with_rate(1);
    assert_eq!(provider.later(0), None);
    assert_eq!(provider.later_of(TaskClass::Urgent, 10), Some(1_000));
    assert_eq!(provider.later(1_000), Some(2_000));
    assert_eq!(provider.ask(caller(lane(TaskClass::Normal), 2_000), 2_000), None);
}

/// The messages of an urgent flood were canceled.
#[test]
fn a_flood_that_does_not_come_holds_up_no_other_lane() {
    let mut provider = Provider::with_rate(10);
    for _ in 0..2_000 {
        provider.later_of(TaskClass::Urgent, 0);
    }
    let mut now = 1_000;
    let mut calls = Vec::new();
    while now < 20_000 {
        let other = lane(TaskClass::Normal);
        calls.extend(provider.ask(caller(other, now), now).is_none().then_some(now));
        now += 50;
    }
    let late = calls.iter().filter(|at| **at > 3_000).count();
    assert!(late >= 160, "{late} calls");
}

/// Most of a flood may be canceled, and nobody says so.
#[test]
fn messages_are_held_back_for_five_minutes_at_most() {
    let mut provider = Provider::with_rate(2);
    let flood: Vec<_> = (0..2_000).filter_map(|_| provider.later(0)).collect();
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
    let mut provider = Provider::with_rate(limit);
    let numbered = messages.iter().enumerate().map(|(number, (time, _))| (*time, number));
    let mut due: BTreeSet<_> = numbered.collect();
    let (mut calls, mut questions, mut now) = (Vec::new(), 0, 0);
    while let Some((time, message)) = due.pop_first() {
        questions += 1;
        let (first, lane) = messages[message];
        let delay = i64::try_from(questions * 7 % 13).unwrap();
        now = now.max(time + delay);
        match provider.ask(caller(lane, time), now) {
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
    let (mut waiting, lane) = (Waiting::default(), lane(TaskClass::Normal));
    for time in [20, 5, 10, 15] {
        waiting.wait(lane, at(time));
        waiting.pass(at(0));
    }
    let come = [20, 5, 10, 15, 25].map(|time| waiting.come(caller(lane, time)));
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
    let mut provider = Provider::with_rate(3);
    let held: Vec<_> = [0, 5, 0, 6].map(|now| provider.later(now)).into();
    assert_eq!(held, [None, None, None, Some(1_000)]);
}

/// The provider counts by its own clock.
#[test]
fn a_clock_that_goes_back_again_and_again_frees_no_call() {
    let mut provider = Provider::with_rate(2);
    let times = [10_000, 10_000, 8_500, 8_500, 10_100, 10_100, 8_700, 8_700];
    // A step back dates the first two to 8,500. At 10,100 the messages that were held back go first, and at
    // 8,700 the first two are of the last second again.
    let made = times.iter().filter(|now| provider.later(**now).is_none()).count();
    assert_eq!(made, 2);
}

/// A clock that is ahead for a while shows the calls before that as old ones.
#[test]
fn a_clock_that_was_ahead_for_a_while_frees_no_call() {
    let mut provider = Provider::with_rate(2);
    let held = [0, 0, 3_000, 100].map(|now| provider.later(now).is_some());
    assert_eq!(held, [false, false, false, true]);

    let mut provider = Provider::with_rate(2);
    assert_eq!([0, 0].map(|now| provider.later(now)), [None; 2]);
    // This call is not made.
    assert_eq!(provider.rate.ask(caller(lane(TaskClass::Normal), 3_000), 2, at(3_000)), Ok(()));
    provider.rate.give_up();
    assert_eq!([100, 1_100].map(|now| provider.later(now).is_some()), [true, false]);
}
