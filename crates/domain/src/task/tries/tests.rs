use std::time::Duration;

use super::*;
use crate::integration::{Choice, Integration};
use crate::sample;
use crate::vocabulary::Channel;

const SECOND: Duration = Duration::from_secs(1);

fn integration(number: u128) -> Integration {
    sample::integration(number, &format!("i{number}"), Channel::Email)
}

fn id(number: u128) -> IntegrationId {
    sample::id(number)
}

// Calls that fail one after the other. Returns who was called, with what may follow each call.
fn run(route: &[u128], on_unknown: OnUnknown, failures: &[Failure]) -> Vec<(u128, Retry)> {
    let all: Vec<_> = route.iter().map(|number| integration(*number)).collect();
    let routed: Vec<_> =
        all.iter().map(|integration| Routed { integration, choice: Choice::Fallback }).collect();
    let (mut tries, mut calls) = (Tries::default(), Vec::new());
    for failure in failures {
        let Ok(next) = tries.next(&routed, &[]) else { break };
        let others: Vec<_> =
            all.iter().map(|one| one.id).filter(|id| *id != next.integration.id).collect();
        let (retry, after) =
            tries.after((next.integration.id, on_unknown), *failure, (&others, &[]));
        let number = route.iter().copied().find(|number| id(*number) == next.integration.id);
        calls.push((number.unwrap(), retry));
        tries = after;
    }
    calls
}

const BUSY: Failure = Failure::Busy(SECOND);
const LATER: Retry = Retry::Later(SECOND);
const SOON: Retry = Retry::Later(Duration::ZERO);

/// One row per course of failures: who is called, and what follows.
#[test]
fn another_integration_takes_over_after_two_failures() {
    use Failure::{Misconfigured, Refused, Unknown};
    use OnUnknown::{GiveUp, Resend, ResendWithKey};
    use Retry::{Never, Switch};
    type Row = (&'static [u128], OnUnknown, &'static [Failure], &'static [(u128, Retry)]);
    let rows: &[Row] = &[
        (&[1], Resend, &[BUSY; 3], &[(1, LATER); 3]),
        (&[1], Resend, &[Misconfigured], &[(1, Never)]),
        (
            &[1, 2],
            Resend,
            &[BUSY; 6],
            &[(1, LATER), (1, Switch), (2, LATER), (2, LATER), (1, LATER), (1, LATER)],
        ),
        (&[1, 2, 3], Resend, &[BUSY; 4], &[(1, LATER), (1, Switch), (2, LATER), (2, Switch)]),
        (
            &[1, 2],
            Resend,
            &[Misconfigured, BUSY, BUSY, BUSY],
            &[(1, Switch), (2, LATER), (2, LATER), (2, LATER)],
        ),
        (&[1, 2], Resend, &[Misconfigured, Misconfigured], &[(1, Switch), (2, Never)]),
        (
            &[1, 2],
            Resend,
            &[BUSY, BUSY, Misconfigured, BUSY],
            &[(1, LATER), (1, Switch), (2, SOON), (1, LATER)],
        ),
        (&[1, 2], Resend, &[Refused], &[(1, Never)]),
        (&[1, 2], Resend, &[Unknown, Unknown, BUSY], &[(1, SOON), (1, Switch), (2, LATER)]),
        // No other integration knows the key, and what the lost answer was.
        (
            &[1, 2],
            ResendWithKey,
            &[Unknown, BUSY, BUSY, Misconfigured],
            &[(1, SOON), (1, LATER), (1, LATER), (1, Never)],
        ),
        (&[1, 2], GiveUp, &[Unknown], &[(1, Never)]),
        (&[1, 2], GiveUp, &[BUSY, BUSY, Unknown], &[(1, LATER), (1, Switch), (2, Never)]),
    ];
    for (route, on_unknown, failures, calls) in rows {
        assert_eq!(run(route, *on_unknown, failures), *calls, "{route:?} {failures:?}");
    }
}

/// One row per setting: who sends after a crash during a call.
#[test]
fn what_follows_a_call_without_an_answer_is_the_setting_of_the_integration() {
    let (first, second) = (integration(1), integration(2));
    let route =
        [&second, &first].map(|integration| Routed { integration, choice: Choice::Fallback });
    let next = |on_unknown| {
        let tries = Tries::default().calling(first.id, on_unknown);
        tries.next(&route, &[]).map(|routed| routed.integration.id)
    };
    assert_eq!(next(OnUnknown::Resend), Ok(second.id));
    assert_eq!(next(OnUnknown::ResendWithKey), Ok(first.id));
    assert_eq!(next(OnUnknown::GiveUp), Err(Detail::AnswerLost));
    // The integration is gone, and no other one knows the key.
    let tries = Tries::default().calling(id(9), OnUnknown::ResendWithKey);
    assert_eq!(tries.next(&route, &[]).err(), Some(Detail::AnswerLost));
    assert_eq!(Tries::default().next(&[], &[]).err(), Some(Detail::NoActiveIntegration));
}

/// One row per circuit that is open, of a first integration and a fallback, after failures of the
/// first one: the integration that sends next.
#[test]
fn an_integration_with_an_open_circuit_sends_last() {
    let (first, second) = (integration(1), integration(2));
    let route =
        [&first, &second].map(|integration| Routed { integration, choice: Choice::Fallback });
    let fails = |tries: Tries, failure, open: &[IntegrationId]| {
        tries.after((first.id, OnUnknown::Resend), failure, (&[second.id], open))
    };
    let busy = Failure::Busy(Duration::ZERO);
    let (_, once) = fails(Tries::default(), busy, &[]);
    let (switched, twice) = fails(once.clone(), busy, &[]);
    // Who is left alone does not take over at once.
    let (waits, _) = fails(once, busy, &[second.id]);
    assert_eq!((switched, waits), (Retry::Switch, Retry::Later(Duration::ZERO)));
    let (later, unset) = fails(Tries::default(), Failure::Misconfigured, &[second.id]);
    assert_eq!(later, Retry::Later(Duration::ZERO));
    for (tries, open, next) in [
        (Tries::default(), &[][..], first.id),
        (Tries::default(), &[first.id], second.id),
        (Tries::default(), &[first.id, second.id], first.id),
        (twice.clone(), &[], second.id),
        (twice.clone(), &[second.id], first.id),
        (unset.clone(), &[second.id], second.id),
    ] {
        let found = tries.next(&route, open).map(|routed| routed.integration.id);
        assert_eq!(found, Ok(next), "{tries:?} {open:?}");
    }
    // A fallback that is paused sends only if no other one can, and be it the first of the route.
    let paused = Integration { paused_at: Some(sample::at(1)), ..second.clone() };
    let route =
        [&first, &paused].map(|integration| Routed { integration, choice: Choice::Fallback });
    for (tries, open, next) in [
        (Tries::default(), &[first.id][..], first.id),
        (twice, &[], first.id),
        (unset, &[], second.id),
    ] {
        let found = tries.next(&route, open).map(|routed| routed.integration.id);
        assert_eq!(found, Ok(next), "{tries:?} {open:?}");
    }
    for (choice, next) in [(Choice::Fallback, first.id), (Choice::Primary, second.id)] {
        let route = [(&paused, choice), (&first, Choice::Fallback)]
            .map(|(integration, choice)| Routed { integration, choice });
        let found = Tries::default().next(&route, &[]).map(|routed| routed.integration.id);
        assert_eq!(found, Ok(next), "{choice:?}");
    }
}

#[test]
fn tries_are_read_as_they_are_written() {
    let (_, failed) =
        Tries::default().after((id(1), OnUnknown::Resend), Failure::Misconfigured, (&[id(2)], &[]));
    let pinned = failed.calling(id(2), OnUnknown::ResendWithKey);
    for tries in [Tries::default(), failed, pinned.calling(id(2), OnUnknown::GiveUp), pinned] {
        let json = serde_json::to_value(&tries).unwrap();
        assert_eq!(serde_json::from_value::<Tries>(json).unwrap(), tries);
    }
}
